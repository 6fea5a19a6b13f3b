"""One writer per folder at a time. The lock is on the folder itself and ends with its process: no lock file.

A lock file, as filelock makes, is less safe here. In the folder it would be a file that a killed process
leaves, so that the folder is no longer free. Elsewhere it is named after a path: one folder under two
mounts has two locks, as have users with temporary folders of their own, and whoever tidies the temporary
folder unlocks every run. So it is used only where a folder cannot be locked: on Windows and on some network
file systems.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedmap.errors import InputError

try:
    import fcntl as fcntl  # noqa: PLC0414 - for `storage` too
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


class BusyError(InputError):
    """Another process or thread is writing in a folder."""


@dataclass
class _Hold:
    """A folder locked by this process; `release` unlocks it when `depth` reaches 0."""

    place: object
    thread: int
    made: list[Path]
    release: ExitStack
    is_shared: bool
    depth: int = 1


_holds: dict[object, _Hold] = {}
_guard = threading.Lock()
TRIES = 1000  # attempts to lock a folder that other processes make and remove
_command: ContextVar[ExitStack | None] = ContextVar("command", default=None)
_is_shared: ContextVar[bool] = ContextVar("shared", default=False)


@contextmanager
def whole_command() -> Iterator[None]:
    """Keep locks taken inside until the block ends: nothing is written between training and audit."""
    with ExitStack() as stack:
        token = _command.set(stack)
        try:
            yield
        finally:
            _command.reset(token)


@contextmanager
def sharing(is_shared: bool = True) -> Iterator[None]:
    """Let others who share hold the locks that this thread takes in the block; writers alone are refused."""
    token = _is_shared.set(is_shared)
    try:
        yield
    finally:
        _is_shared.reset(token)


def is_sole_writer(folder: Path) -> bool:
    """Return whether this process holds the lock of a folder, and shares it with no other."""
    try:
        hold = _holds.get(_place(folder))
    except OSError:
        return False
    return hold is not None and not hold.is_shared


@contextmanager
def writing(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Lock a folder for writing. Reentrant within a thread.

    A missing folder is made, and removed again if it stays empty. With `wait`, meant for brief work, wait for
    other writers, and unlock at the end of the block even within a `whole_command`.

    Raises:
        InputError: another writer has the lock, a file is in the folder's place, or it cannot be made.
    """
    if int(os.environ.get("RANK") or 0):
        yield  # of the processes of a distributed training only the first takes the lock
        return
    hold, stack = _take(folder, wait), None if wait else _command.get()
    if stack is not None:
        stack.callback(_release, hold)
    try:
        yield
    finally:
        if stack is None:
            _release(hold)


def _take(folder: Path, wait: bool) -> _Hold:
    new_folders = [path for path in (folder, *folder.parents) if not path.exists()]
    for _ in range(TRIES):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with ExitStack() as release:
                place = _place(folder)
                with _guard:
                    if (hold := _holds.get(place)) is not None:
                        if hold.thread != threading.get_ident():
                            raise _busy(folder)
                        hold.depth += 1
                        return hold
                if not _lock(folder, release, wait):
                    raise _busy(folder)
                if _place(folder) != place:
                    continue  # its last holder has removed it
                hold = _Hold(
                    place,
                    threading.get_ident(),
                    new_folders,
                    release.pop_all(),
                    _is_shared.get(),
                )
                with _guard:
                    _holds[place] = hold
                return hold
        except FileNotFoundError:
            continue  # removed while it was being locked
        except (FileExistsError, NotADirectoryError) as error:
            raise InputError(
                f"{folder}: expected a folder, found a file; choose another --out"
            ) from error
        except OSError as error:
            raise InputError(
                f"{folder}: cannot be written ({error.strerror or error}); choose another --out"
            ) from error
    raise InputError(f"{folder}: the folder cannot be made; choose another --out")


def _release(hold: _Hold) -> None:
    hold.depth -= 1
    if hold.depth:
        return
    # Before unlocking: afterwards another process may have begun to write in them.
    with suppress(OSError):
        for path in hold.made:
            path.rmdir()  # only if empty
    with _guard:
        del _holds[hold.place]
    hold.release.close()


def _place(folder: Path) -> object:
    status = folder.stat()
    return status.st_dev, status.st_ino


def _lock(folder: Path, release: ExitStack, wait: bool) -> bool:
    """Take the lock if it is free, and return whether it was; `release` unlocks it."""
    if fcntl is None:
        # A lock file has one holder: those who share a folder do without.
        return _is_shared.get() or _lock_by_file(folder, release, wait)
    handle = os.open(folder, os.O_RDONLY)
    release.callback(os.close, handle)
    try:
        kind = fcntl.LOCK_SH if _is_shared.get() else fcntl.LOCK_EX
        fcntl.flock(handle, kind | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:  # some network file systems
        return _is_shared.get() or _lock_by_file(folder, release, wait)
    return True


def _lock_by_file(folder: Path, release: ExitStack, wait: bool) -> bool:
    """Lock a folder by a temporary file named after its path, where the folder itself cannot be locked."""
    import hashlib
    import tempfile

    from filelock import FileLock, Timeout

    name = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:32]
    lock: Any = FileLock(Path(tempfile.gettempdir()) / f"heedmap-{name}.lock")
    try:
        lock.acquire(timeout=-1 if wait else 0)
    except Timeout:
        return False
    release.callback(lock.release)
    return True


def _busy(folder: Path) -> BusyError:
    return BusyError(
        f"{folder}: is being written by another heedmap; wait until it is done, or choose another --out"
    )
