"""How a CSV file is written: its encoding and its separator, which differ from country to country."""

import codecs
import csv
import io
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import IO

from heedmap.data.streams import check_utf8, open_bytes, reading
from heedmap.errors import InputError

SEPARATORS = (",", ";", "\t", "|")
SEEN = 1 << 16  # bytes at the start of a file that show its separator
ROWS = 100
_LONE_CR = re.compile(r"\r(?!\n)")
Opened = Callable[[], IO[bytes]]


def as_utf8(path: Path) -> tuple[Opened, bool]:
    """Return what opens a file as UTF-8, and whether it has a carriage return without a line feed.

    A file that starts with the mark of UTF-16 is UTF-16. One that is not UTF-8, and has no letter that is
    written as in UTF-8, is read as Windows-1252, with a warning.

    Raises:
        InputError: neither, with the line that is not UTF-8; cannot be read.
    """
    with reading(path), open_bytes(path) as file:
        start = file.read(2)
    if start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return _recoded(path, "utf-16")
    try:
        lone = check_utf8(path)
    except InputError:
        with reading(path), open_bytes(path) as file:
            content = file.read()
        if not _is_windows(content):
            raise
        warnings.warn(
            f"{path}: not UTF-8; read as Windows-1252 (Western Europe): look whether letters with accents are "
            "right, or save the file as UTF-8",
            stacklevel=2,
        )
        return _recoded(path, "cp1252")
    return lambda: open_bytes(path), lone


def _recoded(path: Path, encoding: str) -> tuple[Opened, bool]:
    with reading(path), open_bytes(path) as file:
        try:
            text = file.read().decode(encoding)
        except UnicodeDecodeError as error:
            raise InputError(
                f"{path}: not {encoding.upper()}, as which it begins; save the file as UTF-8 and try again"
            ) from error
    content = text.encode("utf-8", errors="replace")
    return lambda: io.BytesIO(content), _LONE_CR.search(text) is not None


def _is_windows(content: bytes) -> bool:
    """Whether bytes that are not UTF-8 can be Windows-1252: no control characters, no letters as in UTF-8."""
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data":
            return False
    try:
        text = content.decode("cp1252")
    except UnicodeDecodeError:
        return False
    letters = [one for one in content.decode("utf-8", errors="replace") if one > "\x7f"]
    return set(letters) == {"\ufffd"} and not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", text)


def separator_of(opened: Opened) -> str:
    """Return what separates the fields: the first that splits the header and every row after it alike.

    Where none does it is a comma.
    """
    with opened() as file:
        seen = file.read(SEEN).decode("utf-8", errors="replace").removeprefix("\ufeff")
    lines = seen.splitlines(keepends=True)
    if len(seen.encode()) >= SEEN:
        lines = lines[:-1]
    return next((one for one in SEPARATORS if _fits(lines, one)), SEPARATORS[0])


def _fits(lines: list[str], separator: str) -> bool:
    try:
        rows = [row for row in csv.reader(lines, delimiter=separator) if row][:ROWS]
    except csv.Error:
        return False
    widths = {len(row) for row in rows}
    return len(widths) == 1 and widths.pop() > 1
