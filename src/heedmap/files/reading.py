"""Read regular files only: opening a pipe waits for a writer, and a device may have no end."""

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file for reading, or a link to one.

    Raises:
        OSError: it is missing, cannot be read, or is a folder, pipe, socket or device.
    """
    # Without O_NONBLOCK even opening a pipe would wait.
    file = open(path, "rb", opener=_opener)  # noqa: SIM115 - the caller closes it
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return file


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def read_bytes(path: Path) -> bytes:
    """Return the content of a regular file (see `open_regular`)."""
    with open_regular(path) as file:
        return file.read()


def read_text(path: Path) -> str:
    """Return the content of a regular file in UTF-8 (see `open_regular`).

    Raises:
        UnicodeDecodeError: it is not UTF-8.
    """
    return read_bytes(path).decode("utf-8")
