"""One writer at a time: the lock is on the folder itself, leaves no file behind and dies with its process."""

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
    """Somebody else writes in a folder."""


@dataclass
class _Hold:
    """A folder that this process writes in; `release` gives it free when `depth` comes down to 0."""

    place: object
    thread: int
    made: list[Path]
    release: ExitStack
    depth: int = 1


_holds: dict[object, _Hold] = {}
_guard = threading.Lock()
TRIES = 1000  # to take a folder that others make and remove; one that cannot be made is missing every time
_command: ContextVar[ExitStack | None] = ContextVar("command", default=None)


@contextmanager
def whole_command() -> Iterator[None]:
    """Hold what is taken inside to the end of the block: nobody comes between a training and its audit."""
    with ExitStack() as stack:
        token = _command.set(stack)
        try:
            yield
        finally:
            _command.reset(token)


@contextmanager
def writing(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Be the only one that writes in a folder; inside another `writing` of the same thread, go on.

    A folder that is not there is made, and removed again where nothing was written. With `wait`, for a
    moment's work, wait for others, and let go at the end of the block even within a `whole_command`.

    Raises:
        InputError: somebody else writes in it, a file stands in its place, or it cannot be made.
    """
    if int(os.environ.get("RANK") or 0):
        yield  # one of several processes of one training: the first of them holds the folder
        return
    hold, stack = _take(folder, wait), None if wait else _command.get()
    if stack is not None:
        stack.callback(_let_go, hold)
    try:
        yield
    finally:
        if stack is None:
            _let_go(hold)


def _take(folder: Path, wait: bool) -> _Hold:
    made = [path for path in (folder, *folder.parents) if not path.exists()]
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
                    continue  # whoever held it has removed it
                hold = _Hold(place, threading.get_ident(), made, release.pop_all())
                with _guard:
                    _holds[place] = hold
                return hold
        except FileNotFoundError:
            continue  # removed while it was being taken
        except (FileExistsError, NotADirectoryError) as error:
            raise InputError(
                f"{folder}: expected a folder, found a file; choose another --out"
            ) from error
        except OSError as error:
            raise InputError(
                f"{folder}: cannot be written ({error.strerror or error}); choose another --out"
            ) from error
    raise InputError(f"{folder}: the folder cannot be made; choose another --out")


def _let_go(hold: _Hold) -> None:
    hold.depth -= 1
    if hold.depth:
        return
    with suppress(OSError):
        for path in hold.made:
            path.rmdir()  # only what is empty
    with _guard:
        del _holds[hold.place]
    hold.release.close()


def _place(folder: Path) -> object:
    found = folder.stat()
    return found.st_dev, found.st_ino


def _lock(folder: Path, release: ExitStack, wait: bool) -> bool:
    """Whether the lock was to be had; `release` lets it go."""
    if fcntl is None:
        return _lock_elsewhere(folder, release, wait)
    handle = os.open(folder, os.O_RDONLY)
    release.callback(os.close, handle)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:  # some network file systems
        return _lock_elsewhere(folder, release, wait)
    return True


def _lock_elsewhere(folder: Path, release: ExitStack, wait: bool) -> bool:
    """Where a folder itself cannot be locked: by a file among the temporary ones, named after its path."""
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
