"""Files that are either whole or not there."""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError

from heedmap.errors import InputError


def write_atomically(path: Path, content: bytes | str) -> None:
    """Write under another name in the same folder, then rename: a reader never sees half a file.

    Raises:
        InputError: the disk is full, or the place cannot be written; what stood there still stands.
    """
    # A path's undecodable bytes are half characters, which no file in UTF-8 can hold; JSON reads these back.
    data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    refuse_special(path)
    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


@contextmanager
def folder_written_whole(path: Path) -> Iterator[Path]:
    """A folder to fill that becomes `path` when the block ends: a reader never sees half of it.

    It is under another name beside `path`, always the same one, so that what a killed process left
    behind is cleared away by the next.

    Raises:
        InputError: the disk is full, or the place cannot be written; there is no `path` then.
    """
    partial = path.with_name(f".{path.name}.partial")
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


def _unwritable(path: Path, error: Exception) -> InputError:
    return InputError(
        f"{path}: cannot be written ({getattr(error, 'strerror', None) or error}); what was there is "
        "unchanged; make room or choose another place"
    )


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
