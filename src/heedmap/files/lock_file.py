"""A lock that works in a folder that several machines share, where `flock` may hold on one of them alone.

A lock is a file that only one process can create (`O_EXCL`, which NFS keeps from version 3 on). Its holder
touches it every few seconds. One whose holder has died is taken over: at once if that process was on this
machine, else when it has not been touched for a while. Each waiting process measures that with its own clock,
so that the machines' clocks need not agree.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from socket import gethostname
from uuid import uuid4

TOUCHED_EVERY = 5.0  # seconds
STALE_AFTER = 60.0  # seconds without a touch
LOOK_EVERY = 0.2  # seconds between tries


@contextmanager
def lock_file(path: Path, waiting: Callable[[str], None] = lambda holder: None) -> Iterator[None]:
    """Hold the lock at `path`; wait for another holder, and call `waiting` with its name meanwhile.

    The folder of the file is made if it is missing.
    """
    mine = f"{_machine()} {os.getpid()} {uuid4().hex}"
    _take(path, mine, waiting)
    ended = threading.Event()
    thread = threading.Thread(target=_touch, args=(path, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        if (state := _state(path)) is not None and state[0] == mine:
            path.unlink(missing_ok=True)


def is_held(path: Path) -> bool:
    """Return whether there is a lock whose holder is not known to be dead."""
    state = _state(path)
    return state is not None and not _has_died(state[0])


def _take(path: Path, mine: str, waiting: Callable[[str], None]) -> None:
    seen: tuple[str, int] | None = None
    since = time.monotonic()
    while not _create(path, mine):
        state = _state(path)
        if state is None:
            continue  # it was released
        if state != seen:
            seen, since = state, time.monotonic()
        if _has_died(state[0]) or time.monotonic() - since > STALE_AFTER:
            _take_away(path, state[0])
            continue
        waiting(" ".join(state[0].split()[:1]))
        time.sleep(LOOK_EVERY)


def _create(path: Path, mine: str) -> bool:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Written under a name of its own, then linked: nobody reads a lock without its holder.
    own = path.with_name(f"{path.name}.{uuid4().hex}")
    try:
        own.write_text(mine, encoding="utf-8")
    except FileNotFoundError:
        return False  # another process has removed the folder, which was empty
    try:
        os.link(own, path)
    except FileExistsError:
        return False
    except OSError:  # no hard links here
        return _create_exclusively(path, mine)
    finally:
        own.unlink(missing_ok=True)
    return True


def _create_exclusively(path: Path, mine: str) -> bool:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(mine)
    except FileExistsError:
        return False
    return True


def _take_away(path: Path, dead: str) -> None:
    """Remove the lock of a dead holder, and no other that was made meanwhile."""
    aside = path.with_name(f"{path.name}.{uuid4().hex}")
    try:
        path.rename(aside)
    except FileNotFoundError:
        return  # another process was faster
    if (state := _state(aside)) is not None and state[0] != dead:
        with suppress(OSError):
            os.link(aside, path)
    aside.unlink(missing_ok=True)


def _touch(path: Path, ended: threading.Event) -> None:
    while not ended.wait(TOUCHED_EVERY):
        with suppress(OSError):
            os.utime(path)


def _state(path: Path) -> tuple[str, int] | None:
    """Return the holder, and when it last touched the file; None if there is no lock."""
    try:
        # Opening it asks a file server for its newest state.
        with path.open(encoding="utf-8") as file:
            return file.read(), os.fstat(file.fileno()).st_mtime_ns
    except OSError:
        return None


def _has_died(holder: str) -> bool:
    """Return whether a holder was a process of this machine that is no more."""
    machine, pid, *_ = [*holder.split(), "", ""]
    if machine != _machine() or not pid.isdigit():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass  # another user's
    return _is_zombie(int(pid))


def _is_zombie(pid: int) -> bool:
    """Return whether a process has ended and its parent has not asked for its exit code yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (OSError, IndexError):
        return False


def _machine() -> str:
    """Name this machine, or this container: process numbers mean nothing outside of it."""
    try:
        space = os.readlink("/proc/self/ns/pid").strip("pid:[]")
    except OSError:
        space = ""
    return f"{gethostname()}/{space}"
