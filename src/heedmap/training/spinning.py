"""Keep the threads of a training from spinning for cores that other work wants.

An OpenMP thread that waits for the others of its team spins for some milliseconds before it sleeps, so that a
training of many small steps goes on without delay. Where other work keeps the cores busy, the thread that the
team waits for does not run, and the training spends its time spinning. GNU's OpenMP, which PyTorch uses on
Linux, hardly spins while it manages more threads than there are processors: a second team, which only sleeps,
is enough. As many threads compute as before, so that the numbers stay the same.
"""

import ctypes
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

LOOK_EVERY = 0.2  # seconds between two looks at the share of a core that the training has had
HOLD = 30.0  # seconds without spinning before it is tried again
BUSY = 0.75  # the share of a core below which other work is in the way; a training waits for nothing else


@contextmanager
def spinning_bounded() -> Iterator[Callable[[], None]]:
    """Give a function to call after each step of a training; it stops the spinning while cores are taken."""
    openmp = _gnu_openmp() if torch.get_num_threads() > 1 else None
    if openmp is None:
        yield lambda: None
        return
    bound = _Bound(openmp)
    try:
        yield bound.look
    finally:
        bound.release()


class _Bound:
    """Bounds the spinning of this process's teams while the calling thread gets less than a core."""

    def __init__(self, openmp: ctypes.CDLL) -> None:
        self._openmp = openmp
        self._crowd: _Crowd | None = None
        self._since, self._used = time.monotonic(), time.thread_time()

    def look(self) -> None:
        """Compare the calling thread's time with the clock's, and bound the spinning or release it."""
        now = time.monotonic()
        if now - self._since < (HOLD if self._crowd else LOOK_EVERY):
            return
        used = time.thread_time()
        if self._crowd:
            self.release()
        elif used - self._used < BUSY * (now - self._since):
            self._crowd = _Crowd(self._openmp)
        self._since, self._used = now, used

    def release(self) -> None:
        """Let the teams spin as they do by themselves."""
        if self._crowd:
            self._crowd.end()
            self._crowd = None


class _Crowd:
    """A thread with a sleeping team of one more thread than there are processors."""

    def __init__(self, openmp: ctypes.CDLL) -> None:
        self._openmp = openmp
        self._ready, self._over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._wait, daemon=True)
        self._thread.start()
        self._ready.wait()

    def _wait(self) -> None:
        # Each thread of the team frees the null pointer, which does nothing; then it waits for more to do.
        nothing = ctypes.cast(ctypes.CDLL(None).free, ctypes.c_void_p)
        self._openmp.GOMP_parallel(nothing, None, self._openmp.omp_get_num_procs() + 1, 0)
        self._ready.set()
        self._over.wait()

    def end(self) -> None:
        """End the thread, and its team with it."""
        self._over.set()
        self._thread.join()


def _gnu_openmp() -> ctypes.CDLL | None:
    """Return GNU's OpenMP if PyTorch computes by it."""
    from threadpoolctl import threadpool_info

    # Other packages bring copies of their own, in folders such as scikit_learn.libs.
    paths = [x["filepath"] for x in threadpool_info() if x["prefix"] == "libgomp"]
    return next((ctypes.CDLL(path) for path in paths if ".libs" not in path), None)
