"""Write and remove files atomically."""

import errno
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

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# What a killed process leaves.
_LEFT = re.compile(r"\.(.+)\.partial")


def encoded(content: bytes | str) -> bytes:
    """Return a text as UTF-8. A path's undecodable bytes are surrogates: JSON reads their escapes back."""
    return content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content


def write_atomically(path: Path, content: bytes | str) -> None:
    """Write under a temporary name in the same folder, then rename: a reader never sees half a file.

    The temporary name is always the same, so that a killed process's leftover is overwritten.

    Raises:
        InputError: the disk is full, or the file cannot be written; an existing file is unchanged.
    """
    with replacing(path) as file:
        file.write(encoded(content))


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Yield an empty file that replaces `path` when the block ends; other writers of `path` wait.

    Raises:
        InputError: as `write_atomically`.
    """
    refuse_special(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _locked_file(partial_of(path)) as file:
            yield file
            file.flush()
            # Else a power failure after the rename could leave an empty file under the final name.
            os.fsync(file.fileno())
            if fcntl is None:
                file.close()  # Windows renames no open file
            os.replace(partial_of(path), path)
    except OSError as error:
        raise _unwritable(path, error) from error


@contextmanager
def _locked_file(partial: Path) -> Iterator[BinaryIO]:
    """Open an empty file for one writer at a time; it is removed if the block fails.

    A link in its place may lead to any file of the user: it is removed, never followed.
    """
    while True:
        _remove_link(partial)
        # Not "wb", which truncates: until the lock is taken the content may be another writer's.
        with open(partial, "ab", opener=_without_links) as file:
            if fcntl is not None:
                with suppress(OSError):  # some network file systems have no locks
                    fcntl.flock(file, fcntl.LOCK_EX)
                if not _is_at(partial, file):
                    continue  # another writer has renamed it
            file.truncate(0)
            try:
                yield file
            except BaseException:
                partial.unlink(missing_ok=True)
                raise
            return


def _remove_link(partial: Path) -> None:
    """Remove a temporary name that is a link, another file's second name, a pipe, a socket or a device."""
    with suppress(FileNotFoundError):
        status = partial.lstat()
        if not stat.S_ISDIR(status.st_mode) and (
            not stat.S_ISREG(status.st_mode) or status.st_nlink > 1
        ):
            partial.unlink()


def _without_links(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0), 0o666)


def _is_at(path: Path, file: BinaryIO) -> bool:
    # One look, not `exists` and then `stat`: another writer may rename it in between.
    try:
        return os.path.samestat(path.lstat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


@contextmanager
def folder_written_whole(path: Path) -> Iterator[Path]:
    """Yield a temporary folder that becomes `path` when the block ends: a reader never sees half of it.

    Its name is always the same, so that the next process removes a killed one's leftover.

    Raises:
        InputError: the disk is full, or the folder cannot be written; there is no `path` then.
    """
    partial = partial_of(path)
    try:
        _remove_link(partial)
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        yield partial
        for file in partial.rglob("*"):
            if file.is_file():
                with file.open("rb") as handle:
                    os.fsync(handle.fileno())
                os.chmod(file, 0o666 & ~_umask())  # safetensors makes files private to their owner
        os.replace(partial, path)
    except (OSError, SafetensorError) as error:
        raise _unwritable(path, error) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def remove(path: Path) -> None:
    """Remove a file or a folder atomically, if it exists."""
    try:
        if path.is_dir() and not path.is_symlink():
            partial = partial_of(path) if _LEFT.fullmatch(path.name) is None else path
            if partial != path:
                shutil.rmtree(partial, ignore_errors=True)
                os.replace(path, partial)
            shutil.rmtree(partial)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be removed ({error.strerror or error})") from error


def leftovers(folder: Path, names: Collection[str] | None = None) -> list[Path]:
    """Return what killed processes left of these files and folders, or of any."""
    if not folder.is_dir():
        return []
    matches = ((path, _LEFT.fullmatch(path.name)) for path in folder.iterdir())
    return [path for path, match in matches if match and (names is None or match[1] in names)]


# The longest name in a run folder.
_DEEPEST = "tables/chunks/00000/.importance_mass.parquet.partial"


def refuse_file(folder: Path) -> None:
    """Raise InputError if the folder cannot be made: a file, device or pipe in its place or above it, a broken
    or circular link, too long a name, or no permission to write.
    """
    whole, root = folder.absolute(), _existing_part(folder)
    # Missing parts are checked one by one: their names may be too long.
    for path in (whole / _DEEPEST, *(root / part for part in whole.relative_to(root).parts)):
        try:
            path.stat()
        except FileNotFoundError:
            pass
        except NotADirectoryError as error:
            kind = "a file" if root.is_file() else "a device or a pipe"
            obstacle = kind if root == whole else f"{kind} above it"
            raise InputError(
                f"{folder}: expected a folder, found {obstacle}; choose another --out"
            ) from error
        except OSError as error:
            raise _invalid_place(folder, error.strerror or str(error)) from error
    if not root.is_dir():
        raise _invalid_place(folder, f"the link {root} leads nowhere")
    if not os.access(root, os.W_OK | os.X_OK):
        raise _invalid_place(folder, f"{root} is read-only")


def _existing_part(path: Path) -> Path:
    """Return a path or the nearest above it that is there, even if it is a link that leads nowhere."""
    whole = path.absolute()
    return next(above for above in (whole, *whole.parents) if os.path.lexists(above))


def refuse_place(folder: Path) -> None:
    """Raise InputError if a folder cannot be made (see `refuse_file`), also where only trying it can tell.

    In /proc, say, nothing can be made, although it is not read-only.
    """
    refuse_file(folder)
    whole, root = folder.absolute(), _existing_part(folder)
    if root == whole:
        return
    missing = root / whole.relative_to(root).parts[0]
    try:
        missing.mkdir()
    except FileExistsError:  # another process has just made it
        return
    except OSError as error:
        raise InputError(
            f"{missing}: the folder cannot be made ({error.strerror or error}); choose another --out"
        ) from error
    with suppress(OSError):  # another process has begun to write there
        missing.rmdir()


def refuse_special(path: Path) -> None:
    """Raise InputError if something other than a file is in a file's place: a rename would replace even a
    device.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        try:
            refuse_file(path)  # the same checks hold for a file
        except InputError:
            if not path.is_file():  # which another writer may have made since
                raise
    except OSError as error:
        raise _invalid_place(path, error.strerror or str(error)) from error
    else:
        if not stat.S_ISREG(status.st_mode):
            kind = "a folder" if path.is_dir() else "a device or a pipe"
            raise InputError(
                f"{path}: expected the name of a file, found {kind}; choose another one"
            )


def _invalid_place(path: Path, reason: str) -> InputError:
    return InputError(f"{path}: cannot be written ({reason}); choose another --out")


def partial_of(path: Path) -> Path:
    """Return the temporary name under which a file or folder is written."""
    return path.with_name(f".{path.name}.partial")


def _unwritable(path: Path, error: Exception) -> InputError:
    if not path.parent.is_dir():
        reason = getattr(error, "strerror", None) or error
        return InputError(
            f"{path.parent}: the folder cannot be made ({reason}); choose another place"
        )
    reason = str(getattr(error, "strerror", None) or error)
    # safetensors puts the system's reason into its own message
    room = "make room or " * any(os.strerror(code) in reason for code in FULL)
    return InputError(
        f"{path}: cannot be written ({reason}); what was there is unchanged; {room}choose another place"
    )


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
