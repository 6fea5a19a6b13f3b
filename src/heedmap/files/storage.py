"""Files that are either whole or not there."""

import os
import re
import shutil
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from safetensors import SafetensorError

from heedmap.errors import InputError
from heedmap.files.locking import fcntl

# What a killed process leaves of `name`: .name.partial; before that was so, .name. and eight letters.
_LEFT = re.compile(r"\.(.+)\.(partial|[a-z0-9_]{8})")


def write_atomically(path: Path, content: bytes | str) -> None:
    """Write under another name in the same folder, then rename: a reader never sees half a file.

    The other name is always the same one, so that what a killed process left there is written over.

    Raises:
        InputError: the disk is full, or the place cannot be written; what stood there still stands.
    """
    # A path's undecodable bytes are half characters, which no file in UTF-8 can hold; JSON reads these back.
    data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    refuse_special(path)
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


_DEEPEST = (
    "tables/.integrated_gradients.parquet.partial"  # the longest name that a run folder holds
)


def refuse_file(folder: Path) -> None:
    """Raises InputError where no folder can be: a file, a device or a pipe in its place or above it, links
    that lead nowhere or in a circle, too long a name, no right to write.
    """
    whole = folder.absolute()
    there = next(above for above in (whole, *whole.parents) if os.path.lexists(above))
    # What is not there is looked for part by part: its names may be too long.
    for path in (whole / _DEEPEST, *(there / part for part in whole.relative_to(there).parts)):
        try:
            path.stat()
        except FileNotFoundError:
            pass
        except NotADirectoryError as error:
            kind = "a file" if there.is_file() else "a device or a pipe"
            where = kind if there == whole else f"{kind} above it"
            raise InputError(
                f"{folder}: expected a folder, found {where}; choose another --out"
            ) from error
        except OSError as error:
            raise _no_place(folder, error.strerror or str(error)) from error
    if not there.is_dir():
        raise _no_place(folder, f"the link {there} leads nowhere")
    if not os.access(there, os.W_OK | os.X_OK):
        raise _no_place(folder, f"{there} is read-only")


def refuse_special(path: Path) -> None:
    """Raises InputError where something else than a file stands in a file's place: a rename would replace
    even a device.
    """
    try:
        there = path.stat()
    except FileNotFoundError:
        refuse_file(path)  # what keeps a folder from being there keeps a file
    except OSError as error:
        raise _no_place(path, error.strerror or str(error)) from error
    else:
        if not stat.S_ISREG(there.st_mode):
            kind = "a folder" if path.is_dir() else "a device or a pipe"
            raise InputError(
                f"{path}: expected the name of a file, found {kind}; choose another one"
            )


def _no_place(path: Path, why: str) -> InputError:
    return InputError(f"{path}: cannot be written ({why}); choose another --out")


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
