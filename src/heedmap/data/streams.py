"""Open users' files, plain or gzipped, and refuse those that would do harm."""

import codecs
import gzip
import io
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from heedmap.errors import InputError

MOST_GROWTH = 100
"""A compressed file may grow to this many times its size, which no text does; a small one to `SMALL` bytes."""
SMALL = 100 << 20
_LONE_CR = re.compile(rb"\r[^\n]")


@contextmanager
def reading(source: str | Path) -> Iterator[None]:
    """Turn errors of the system and of damaged archives while `what` is read into an `InputError`."""
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or first_line(error)
        raise InputError(
            f"{source}: cannot be read ({reason}); check the path and the file"
        ) from error


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text, or its type where it has none."""
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__


def check_growth(path: Path, size: float) -> None:
    """Raise InputError if the content of a file is of more bytes than a compressed one may grow to."""
    if size > max(SMALL, MOST_GROWTH * path.stat().st_size):
        raise InputError(
            f"{path}: expected content of up to {MOST_GROWTH} times the file's size (or {SMALL >> 20} MiB), "
            "got more, as of a harmful file; save it uncompressed (Parquet as CSV) if it is right"
        )


def check_archive(path: Path, archive: zipfile.ZipFile) -> None:
    """Raise InputError if the parts of an archive are too large; zipfile unpacks no more than they say."""
    check_growth(path, sum(part.file_size for part in archive.infolist()))


class _Unpacked(io.RawIOBase):
    """The content of a gzipped file, up to its limit."""

    def __init__(self, path: Path) -> None:
        self._path, self._size = path, 0
        self._file = gzip.GzipFile(path)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._file.readinto(buffer)
        self._size += count
        check_growth(self._path, self._size)
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file, unpacked where its name ends in .gz.

    Raises:
        InputError: while it is read, if a compressed file grows beyond its limit.
    """
    if not path.name.lower().endswith(".gz"):
        return path.open("rb")
    return cast("IO[bytes]", io.BufferedReader(_Unpacked(path), 1 << 20))


def plain_or_gzipped(path: Path) -> Path | None:
    """Return a file as it is, or else with .gz at the end of its name; None where there is neither."""
    gzipped = path.with_name(f"{path.name}.gz")
    return next((file for file in (path, gzipped) if file.is_file()), None)


def open_text(path: Path, encoding: str = "utf-8", newline: str | None = None) -> IO[str]:
    """Open a file as `open_bytes` does, decoded."""
    return io.TextIOWrapper(open_bytes(path), encoding=encoding, newline=newline)


def check_utf8(path: Path, content: bytes | None = None) -> bool:
    """Check that a file is UTF-8, and tell whether it has a carriage return without a line feed.

    `content` is the file's, where it has been read.

    Raises:
        InputError: not UTF-8, with the line; cannot be read.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    line, tail, lone = 1, b"", False
    with reading(path), open_bytes(path) if content is None else io.BytesIO(content) as file:
        while True:
            block = file.read(1 << 20)
            try:
                decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                line += block[: max(error.start, 0)].count(b"\n")
                raise InputError(
                    f"{path}, line {line}: not UTF-8; save the file as UTF-8 and try again"
                ) from error
            if not block:
                return lone or tail == b"\r"
            line += block.count(b"\n")
            lone = lone or _LONE_CR.search(tail + block) is not None
            tail = block[-1:]
