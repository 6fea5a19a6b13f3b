"""How a CSV file is written: its encoding and its separator, which differ from country to country.

Both are found, unless the user names them: then the file is read so or not at all.
"""

import codecs
import csv
import io
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from heedmap.data.streams import check_utf8, open_bytes, reading
from heedmap.errors import InputError

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
SEEN = 1 << 16  # bytes at the start of a file that show its encoding and its separator
ROWS = 100
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_GUESSED = {"cp1252": "Windows-1252 (Western Europe)", "mac-roman": "Mac Roman"}
_DECLARED = re.compile(rb"(?:\xef\xbb\xbf)?sep=([,;|\t^~:#])(?=[\r\n])", re.IGNORECASE)
_LONE_CR = re.compile(r"\r(?!\n)")
Opened = Callable[[], IO[bytes]]


class Recoded(NamedTuple):
    """A file as UTF-8: what opens it, its own encoding, whether a carriage return stands alone in it.

    `notes` say that the encoding was guessed.
    """

    opened: Opened
    encoding: str
    lone: bool
    notes: Sequence[str] = ()


def as_utf8(path: Path, encoding: str | None = None) -> Recoded:
    """Open a file as UTF-8, from the encoding that is named or found.

    A file that starts with the mark of UTF-16 or UTF-32 is that. With a note, one without a mark is UTF-16
    where its zero bytes are those of such a text; and one that is not UTF-8, and has no letter that is written
    as in UTF-8, is Windows-1252, or Mac Roman where its lines end as on old Macs. Carriage returns in a file
    without a line feed become line feeds.

    Raises:
        InputError: none of these, with the line that is not UTF-8; not the encoding that was named; cannot be
            read.
    """
    if encoding is None:
        with reading(path), open_bytes(path) as file:
            start = file.read(SEEN)
        marked = next((name for mark, name in _MARKS.items() if start.startswith(mark)), None)
        if marked is not None:
            return _recoded(path, marked, "as which it begins")
        if (marked := _unmarked_utf16(start)) is not None:
            note = guess_note(f"no mark of its encoding; read as {marked.upper()}")
            return _recoded(path, marked, "as which it begins", note)
    if encoding not in (None, "utf-8"):
        return _recoded(path, encoding, "as --encoding says")
    try:
        lone = check_utf8(path)
    except InputError as error:
        with reading(path), open_bytes(path) as file:
            content = file.read()
        guess = "mac-roman" if b"\r" in content and b"\n" not in content else "cp1252"
        if encoding is not None or not may_be(content, guess):
            raise InputError(f"{error}, or name its own with --encoding") from error
        note = guess_note(f"not UTF-8; read as {_GUESSED[guess]}")
        return _recoded(path, guess, "as was found", note)
    if lone and _is_old_mac(path):
        return _recoded(path, "utf-8", "as was found")
    return Recoded(lambda: open_bytes(path), "utf-8", lone)


def guess_note(what: str) -> str:
    """Make the note on a guessed encoding."""
    return (
        f"{what}: look whether letters with accents are right, or name the encoding with --encoding"
    )


def _recoded(path: Path, encoding: str, why: str, *notes: str) -> Recoded:
    with reading(path), open_bytes(path) as file:
        content = file.read()
    try:
        text = content.decode(encoding)
    except UnicodeError as error:
        start = getattr(error, "start", 0)
        line = content[:start].decode(encoding, errors="replace").count("\n") + 1
        raise InputError(
            f"{path}, line {line}: not {encoding.upper()}, {why}: got the bytes "
            f"{content[start : start + 4].hex(' ')}; name another with --encoding, or save the file as UTF-8"
        ) from error
    if "\n" not in text:
        text = text.replace("\r", "\n")
    recoded = text.encode("utf-8", errors="replace")
    return Recoded(lambda: io.BytesIO(recoded), encoding, _LONE_CR.search(text) is not None, notes)


def _unmarked_utf16(start: bytes) -> str | None:
    """Return which UTF-16 a file is that begins so and has no mark; None where it is none."""
    zeros = start.count(0)
    if not zeros:
        return None
    for encoding in ("utf-16-le", "utf-16-be"):
        text = start.decode(encoding, errors="ignore")
        plain = sum("\t" <= one <= "~" for one in text)
        # Half, because letters such as the space of Japanese have zeros too, which are others' in either order.
        if plain >= zeros / 2 and "\0" not in text and re.search(r"[\n\r]", text):
            return encoding
    return None


def _is_old_mac(path: Path) -> bool:
    with reading(path), open_bytes(path) as file:
        return all(b"\n" not in block for block in iter(lambda: file.read(1 << 20), b""))


def may_be(content: bytes, encoding: str) -> bool:
    """Whether bytes that are not UTF-8 can be of an encoding: no control characters, no letters as in UTF-8."""
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data":
            return False
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        return False
    letters = [one for one in content.decode("utf-8", errors="replace") if one > "\x7f"]
    return set(letters) == {"\ufffd"} and not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", text)


def declared(opened: Opened) -> tuple[str | None, Opened]:
    """Return the separator that a first line says for Excel (sep=;), and the file with that line empty."""
    with opened() as file:
        found = _DECLARED.match(file.readline(16))
    if found is None:
        return None, opened

    def without() -> IO[bytes]:
        file = opened()
        file.read(found.end())
        return file

    return found[1].decode(), without


def separator_of(opened: Opened) -> str | None:
    """Return what separates the fields: the first that splits the header and every row after it alike.

    Where none does it is the one that splits most rows as the header, which are more than half; else None.
    """
    with opened() as file:
        seen = file.read(SEEN).decode("utf-8", errors="replace").removeprefix("\ufeff")
    lines = io.StringIO(seen, newline="").readlines()
    cut = len(seen.encode()) >= SEEN
    shares = {one: _share(lines, one, cut) for one in SEPARATORS}
    best = max(shares, key=lambda one: shares[one])  # the first of equals
    return best if shares[best] > 0.5 else None


def _share(lines: list[str], separator: str, cut: bool) -> float:
    """Return the share of rows that have as many fields as the header; 0 where that is one."""
    try:
        rows = [row for row in csv.reader(lines, delimiter=separator) if row]
    except csv.Error:
        return 0.0
    whole = rows[:-1] if cut else rows  # the last one seen may go on, a line break in its quotes
    widths = [len(row) for row in whole[:ROWS]]
    return widths.count(widths[0]) / len(widths) if widths and widths[0] > 1 else 0.0


def described(encoding: str, separator: str) -> str:
    """Say how a file was read."""
    return f"read as {encoding.upper()} with {SEPARATORS.get(separator, repr(separator))} between fields"
