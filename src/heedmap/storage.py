"""Files that are either whole or not there."""

import os
import re
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from safetensors import SafetensorError

from heedmap.errors import InputError
from heedmap.locking import fcntl

# What a killed process leaves of `name`: .name.partial; before that was so, .name. and eight letters.
_LEFT = re.compile(r"\.(.+)\.(partial|[a-z0-9_]{8})")


def write_atomically(path: Path, content: bytes | str) -> None:
    """Write under another name in the same folder, then rename: a reader never sees half a file.

    The other name is always the same one, so that what a killed process left there is written over.

    Raises:
        InputError: the disk is full, or the place cannot be written; what stood there still stands.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _alone(_partial(path)) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            if fcntl is None:
                file.close()  # Windows renames no open file
            os.replace(_partial(path), path)
    except OSError as error:
        raise _unwritable(path, error) from error


@contextmanager
def _alone(partial: Path) -> Iterator[BinaryIO]:
    """An empty file to write, gone if the block fails; who wants the same one at the same time waits."""
    while True:
        with partial.open("ab") as file:
            if fcntl is not None:
                with suppress(OSError):  # some network file systems have no locks
                    fcntl.flock(file, fcntl.LOCK_EX)
                if not (
                    partial.exists() and os.path.samestat(partial.stat(), os.fstat(file.fileno()))
                ):
                    continue  # whoever had it has renamed it
            file.truncate(0)
            try:
                yield file
            except BaseException:
                partial.unlink(missing_ok=True)
                raise
            return


@contextmanager
def folder_written_whole(path: Path) -> Iterator[Path]:
    """A folder to fill that becomes `path` when the block ends: a reader never sees half of it.

    It is under another name beside `path`, always the same one, so that what a killed process left
    behind is cleared away by the next.

    Raises:
        InputError: the disk is full, or the place cannot be written; there is no `path` then.
    """
    partial = _partial(path)
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir(parents=True)
        yield partial
        for file in partial.rglob("*"):
            if file.is_file():
                with file.open("rb") as handle:
                    os.fsync(handle.fileno())
                os.chmod(file, 0o666 & ~_umask())  # safetensors writes for its owner alone
        os.replace(partial, path)
    except (OSError, SafetensorError) as error:
        raise _unwritable(path, error) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def remove(path: Path) -> None:
    """Remove a file, or a folder with all that is in it: whole or not at all; nothing where there is none."""
    try:
        if path.is_dir() and not path.is_symlink():
            partial = _partial(path) if _LEFT.fullmatch(path.name) is None else path
            if partial != path:
                shutil.rmtree(partial, ignore_errors=True)
                os.replace(path, partial)
            shutil.rmtree(partial)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be removed ({error.strerror or error})") from error


def leftovers(folder: Path, names: Collection[str] | None = None) -> list[Path]:
    """What a killed process left of writing these files and folders, or any."""
    if not folder.is_dir():
        return []
    found = ((path, _LEFT.fullmatch(path.name)) for path in folder.iterdir())
    return [path for path, left in found if left and (names is None or left[1] in names)]


def refuse_file(folder: Path) -> None:
    """Raises InputError where a file stands in a folder's place."""
    if folder.is_file():
        raise InputError(f"{folder}: expected a folder, found a file; choose another --out")


def _partial(path: Path) -> Path:
    return path.with_name(f".{path.name}.partial")


def _unwritable(path: Path, error: Exception) -> InputError:
    return InputError(
        f"{path}: cannot be written ({getattr(error, 'strerror', None) or error}); what was there is "
        "unchanged; make room or choose another place"
    )


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
