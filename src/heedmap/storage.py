"""Files that are either whole or not there."""

import os
import tempfile
from pathlib import Path

from heedmap.errors import InputError


def write_atomically(path: Path, content: bytes | str) -> None:
    """Write under another name in the same folder, then rename: a reader never sees half a file.

    Raises:
        InputError: the disk is full, or the place cannot be written; what stood there still stands.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
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
        raise InputError(
            f"{path}: cannot be written ({error.strerror or error}); what was there is unchanged; "
            "make room or choose another place"
        ) from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
