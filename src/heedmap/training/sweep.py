"""Run many jobs of a grid in worker processes: trainings, audits, or other resumable work.

    numbers = sweep(jobs, partial(run_job, corpus, out))

Every worker has one thread, and by default every core one worker: a job's numbers do not depend on how
many there are. The same numbers come of running a job in this process within `one_thread`.

The workers are our own because those of an executor fall short (tried with loky 3.7). If one of its workers is
killed, every unfinished future gets the same error, so that no error can name the job that died. If the parent
is killed, its workers finish their jobs first, and write where another process may hold the lock by then; its
tracker of resources prints a warning about leaked semaphores. It has no channel for the progress and the
warnings of a running job either. With all of that added, little of this file would be saved.
"""

import multiprocessing
import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from types import ModuleType
from typing import Any, TypeVar

from heedmap.errors import InputError
from heedmap.terminal.displays import Display
from heedmap.terminal.progress import at, log_line, shown_by

C = TypeVar("C")
R = TypeVar("R")
Work = Callable[[C], R]

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
TELL_EVERY = 0.2  # seconds between what a worker tells of its progress
TERMINATE = 5.0  # seconds that a worker has to end before it is killed


def sweep(
    jobs: Sequence[C],
    work: Work[C, R],
    workers: int | None = None,
    after: Callable[[C, R], None] = lambda job, result: None,
) -> list[R]:
    """Call `work(job)` for every job in worker processes; return the results in the order of jobs.

    The sweep saves nothing: `work` writes its results, and reads them again if it is called a second time.
    No worker outlives the sweep, however it ends. Workers share a GPU where there is one.

    Args:
        jobs: what to run; `str(job)` is a job's name.
        work: a function of a module, or a `partial` of one: it is pickled, as jobs and results are, and
            workers do not import the main script. Its progress is the sweep's (`heedmap.terminal.progress`).
        workers: how many processes, at most one per job; None for one per core.
        after: called with each job and its result, in the order of the jobs.

    Raises:
        InputError: the first that a job raises, with the job's name; or a worker was killed. The other
            workers are ended, and what their jobs have written stays.
        OSError: as a job raises it.
        RuntimeError: any other error of a job, its traceback in a note.
    """
    results: dict[int, R] = {}
    waiting = list(range(len(jobs)))[::-1]
    running: dict[Connection, _Worker] = {}
    reported = 0
    try:
        for _ in range(min(processes(workers), len(jobs))):
            worker = _Worker(work)
            running[worker.connection] = worker
            worker.give(waiting.pop(), jobs)
        while running:
            workers_now = running.values()
            done = len(results) + sum(worker.done for worker in workers_now)
            at(done, len(jobs), "; ".join(worker.text for worker in workers_now))
            for connection in wait(list(running)):
                assert isinstance(connection, Connection)
                worker = running[connection]
                kind, content = worker.receive()
                if kind == "tell":
                    worker.done, text = content
                    worker.text = f"{worker.name}: {text}" if text else worker.name
                elif kind == "warning":
                    category, text = content
                    warnings.warn_explicit(f"{worker.name}: {text}", category, "<heedmap>", 1)
                elif kind == "error":
                    raise content
                else:
                    results[worker.index] = content
                    log_line(f"{worker.name} ({len(results)} of {len(jobs)})")
                    worker.done = 0.0
                    if waiting:
                        worker.give(waiting.pop(), jobs)
                    else:
                        running.pop(connection).end()
            while reported in results:
                after(jobs[reported], results[reported])
                reported += 1
    finally:
        _end(list(running.values()))
    at(1, 1)
    return [results[index] for index in range(len(jobs))]


class _Worker:
    """A worker process, seen from its parent."""

    def __init__(self, work: Work[Any, Any]) -> None:
        # A fork would copy the locks of torch's threads.
        context = multiprocessing.get_context("spawn")
        self.connection, child_end = context.Pipe()
        self.index, self.name, self.text, self.done = -1, "", "", 0.0
        self.process: SpawnProcess = context.Process(
            target=_serve, args=(child_end, work), daemon=True
        )
        with one_thread(), _without_main(), _interrupts_held():
            self.process.start()
        child_end.close()

    def give(self, index: int, jobs: Sequence[Any]) -> None:
        """Start the worker on a job."""
        self.index, self.name, self.text = index, str(jobs[index]), str(jobs[index])
        with suppress(BrokenPipeError):  # `receive` reports a killed worker
            self.connection.send(jobs[index])

    def receive(self) -> tuple[str, Any]:
        """Receive a message of the worker.

        Raises:
            InputError: it was killed.
        """
        try:
            kind, content = self.connection.recv()
        except (EOFError, ConnectionResetError):
            self.process.join(TERMINATE)
            raise InputError(
                f"{self.name}: {_death(self.process.exitcode)}; finished jobs are kept, run the same command "
                "again to resume"
            ) from None
        if kind == "input error":
            return "error", InputError(f"{self.name}: {content}")
        if kind == "system error":
            return "error", OSError(*content)
        if kind == "error":
            message, note = content
            error = RuntimeError(f"{self.name}: {message}")
            error.add_note(note)
            return kind, error
        return kind, content

    def end(self) -> None:
        """End an idle worker."""
        self.connection.close()
        self.process.join()


def _end(workers: list[_Worker]) -> None:
    """Terminate workers, even in the middle of a job: their files are written atomically."""
    for worker in workers:
        worker.process.terminate()
    for worker in workers:
        worker.process.join(TERMINATE)
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()
        worker.connection.close()


class _ToParent(Display):
    """Sends a worker's progress to the sweep."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._sent = connection, 0.0

    def move(self, done: float, text: str, seconds_left: float | None) -> None:
        """Send it now and then."""
        if time.monotonic() - self._sent >= TELL_EVERY:
            self._sent = time.monotonic()
            self._connection.send(("tell", (done, text)))


def _serve(connection: Connection, work: Work[Any, Any]) -> None:
    """Run jobs in a worker, one after another, until the parent closes the connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and ends the workers
    _end_with_parent()
    import torch

    torch.set_num_threads(1)

    def warn(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        connection.send(("warning", (category, str(message))))

    warnings.showwarning = warn
    while True:
        try:
            job = connection.recv()
        except (EOFError, ConnectionResetError):
            return
        try:
            with shown_by(_ToParent(connection)):
                result = work(job)
            connection.send(("result", result))
        except InputError as error:
            connection.send(("input error", str(error)))
        except Exception as error:  # from the work, or from a result that cannot be pickled
            if isinstance(error, OSError) and error.strerror:
                connection.send(("system error", (error.errno, error.strerror, error.filename)))
            else:
                message = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
                connection.send(("error", (message, traceback.format_exc())))


def _end_with_parent() -> None:
    """Exit with the parent, even in the middle of a job, so that locks are released."""
    from threading import Thread

    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    Thread(target=watch, daemon=True).start()


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread within the block: in this process, its libraries and the processes that it starts."""
    import torch
    from threadpoolctl import threadpool_limits

    names = {**dict.fromkeys(THREADS, "1"), "TOKENIZERS_PARALLELISM": "false"}
    environment, threads = {name: os.environ.get(name) for name in names}, torch.get_num_threads()
    os.environ.update(names)
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):  # numpy's and scipy's, which torch does not set
            yield
    finally:
        torch.set_num_threads(threads)
        for name, value in environment.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _without_main() -> Iterator[None]:
    """Keep processes started within the block from running the main script, which may start a sweep."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Block Ctrl-C for processes that start within the block, even while they load."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # starting it later would unblock Ctrl-C
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def processes(workers: int | None) -> int:
    """Return the number of workers; by default one per core that this process may use.

    Raises:
        InputError: fewer than one.
    """
    if workers is None:
        affinity = getattr(os, "sched_getaffinity", None)
        return len(affinity(0)) if affinity else os.cpu_count() or 1
    if workers < 1:
        raise InputError(f"--workers: expected a number from 1, got {workers}")
    return workers


def _death(code: int | None) -> str:
    """Describe how a worker process ended."""
    if code is None or code >= 0:
        return f"its worker process ended by itself (exit code {code})"
    names = {number.value: number.name for number in signal.Signals}
    name = names.get(-code, f"signal {-code}")
    return f"its worker process was killed ({name}; memory may have run out)"
