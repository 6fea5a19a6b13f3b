"""How a text file is written: its encoding, and of a CSV file its separator, which differ by country.

Both are found, unless the user names them: then the file is read so or not at all.
"""

import codecs
import csv
import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from heedmap.data.csv_records import Dialect
from heedmap.data.streams import check_utf8, open_bytes, reading
from heedmap.errors import InputError

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
SEEN = 1 << 16  # bytes at the start of a file that show its encoding and its separator
ROWS = 100
ONE_MORE = 0.75
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_MARKS_WITHIN = re.compile(b"^(?:\xef\xbb\xbf)+", re.MULTILINE)
_GUESSED = {"cp1252": "Windows-1252 (Western Europe)", "mac-roman": "Mac Roman"}
_LAST_LETTER = re.compile(rb"[A-Za-z][\xe0\xe1\xe3-\xff]\Z")
"""A letter of Windows-1252 with an accent at the end of a word, and not what begins most signs of UTF-8."""
_DECLARED = re.compile(rb"(\"?)sep=([,;|\t^~:#])\1(?=[\r\n])", re.IGNORECASE)


class Decoded(NamedTuple):
    """The content of a file as UTF-8 without a mark, its own encoding, and notes where that was guessed."""

    content: bytes
    encoding: str
    notes: Sequence[str] = ()


def as_utf8(path: Path, encoding: str | None = None) -> Decoded:
    """Read a file as UTF-8 without marks of its encoding: with a note, without those within.

    Joined files have such a mark where each of them begins.

    Raises:
        InputError: as `_as_utf8`.
    """
    decoded = _as_utf8(path, encoding)
    if codecs.BOM_UTF8 not in decoded.content:  # fast; looking at the beginning of each line is not
        return decoded
    content, within = _MARKS_WITHIN.subn(b"", decoded.content)
    if not within:
        return decoded
    note = (
        f"marks of an encoding at the beginning of lines, where files were joined: {within}; they are left "
        "out"
    )
    return Decoded(content, decoded.encoding, [*decoded.notes, note])


def _as_utf8(path: Path, encoding: str | None) -> Decoded:
    """Read a file as UTF-8, from the encoding that is named or found.

    A file that starts with the mark of UTF-16 or UTF-32 is that. With a note, one without a mark is UTF-16
    where its zero bytes are those of such a text; and one that is not UTF-8, and has no letter that is written
    as in UTF-8, is Windows-1252, or Mac Roman where its lines end as on old Macs. Carriage returns in a file
    without a line feed become line feeds.

    Raises:
        InputError: none of these, with the line that is not UTF-8; not the encoding that was named; cannot be
            read.
    """
    with reading(path), open_bytes(path) as file:
        content = file.read()
    if encoding is None:
        start = content[:SEEN]
        marked = next((name for mark, name in _MARKS.items() if start.startswith(mark)), None)
        if marked is not None:
            return _recoded(path, content, marked, "as which it begins")
        if (marked := _unmarked_utf16(start)) is not None:
            note = _guess_note(f"no mark of its encoding; read as {marked.upper()}")
            return _recoded(path, content, marked, "as which it begins", note)
    if encoding not in (None, "utf-8"):
        return _recoded(path, content, encoding, "as --encoding says")
    try:
        lone = check_utf8(path, content)
    except InputError as error:
        guess = "mac-roman" if b"\r" in content and b"\n" not in content else "cp1252"
        if encoding is not None or not _may_be(content, guess):
            raise InputError(f"{error}, or name its own with --encoding") from error
        note = _guess_note(f"not UTF-8; read as {_GUESSED[guess]}")
        return _recoded(path, content, guess, "as was found", note)
    if lone and b"\n" not in content:  # as on old Macs
        content = content.replace(b"\r", b"\n")
    return Decoded(content.removeprefix(codecs.BOM_UTF8), "utf-8")


def _guess_note(what: str) -> str:
    """Make the note on a guessed encoding."""
    return (
        f"{what}: look whether letters with accents are right, or name the encoding with --encoding"
    )


def _recoded(path: Path, content: bytes, encoding: str, why: str, *notes: str) -> Decoded:
    remedy = "name another with --encoding, or save the file as UTF-8"
    try:
        text = content.decode(encoding)
    except UnicodeError as error:
        start = getattr(error, "start", 0)
        line = content[:start].decode(encoding, errors="replace").count("\n") + 1
        raise InputError(
            f"{path}, line {line}: not {encoding.upper()}, {why}: got the bytes "
            f"{content[start : start + 4].hex(' ')}; {remedy}"
        ) from error
    if "\n" not in text:
        text = text.replace("\r", "\n")
    text = text.removeprefix("\ufeff")
    try:
        return Decoded(text.encode(), encoding, notes)
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise InputError(
            f"{path}, line {line}: not {encoding.upper()}, {why}: got half a character (a lone surrogate); "
            f"{remedy}"
        ) from error


def _unmarked_utf16(start: bytes) -> str | None:
    """Return which UTF-16 a file is that begins so and has no mark; None where it is none."""
    zeros = start.count(0)
    if not zeros or len(start) % 2:
        return None
    for encoding in ("utf-16-le", "utf-16-be"):
        text = start.decode(encoding, errors="ignore")
        plain = sum("\t" <= one <= "~" for one in text)
        # Half, because letters such as the space of Japanese have zeros too, which are others' in either order.
        # A single text may have no line break, but a table has.
        if (
            plain >= zeros / 2
            and "\0" not in text
            and (3 * zeros >= len(start) or re.search(r"[\n\r]", text))
        ):
            return encoding
    return None


def _may_be(content: bytes, encoding: str) -> bool:
    """Whether bytes that are not UTF-8 can be of an encoding: no control characters, no letters as in UTF-8."""
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data" and not _LAST_LETTER.search(content):
            return False
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        return False
    letters = [one for one in content.decode("utf-8", errors="replace") if one > "\x7f"]
    return set(letters) == {"\ufffd"} and not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", text)


def declared(content: bytes) -> tuple[str | None, bytes]:
    """Return the separator that a first line says for Excel (sep=;), and the content with that line empty."""
    line = _DECLARED.match(content)
    return (None, content) if line is None else (line[2].decode(), content[line.end() :])


def separator_of(content: bytes, least: float = 0.5) -> str | None:
    """Return what separates the fields: the first that splits the header and every row after it alike.

    Where none does it is the one that splits most rows as the header, which are more than half (or the share
    that is the `least`); else None. Rows that all have one field more than the header are like it too.
    Where quotes or line breaks hide it, quotes are tried as characters, and backslashes as escapes.
    """
    lines = io.StringIO(content[:SEEN].decode("utf-8", errors="replace"), newline="").readlines()
    cut = len(content) >= SEEN
    for quote, escape in (('"', None), (None, None), ('"', "\\")):
        quoting: Literal[0, 3] = csv.QUOTE_NONE if quote is None else csv.QUOTE_MINIMAL
        shares = {
            each: _share(csv.reader(lines, delimiter=each, quoting=quoting, escapechar=escape), cut)
            for each in SEPARATORS
        }
        best = max(shares, key=lambda each: shares[each])  # the first of equals
        if shares[best] > 0.5 and shares[best] >= least:
            return best
    return None


def _share(reader: Iterable[list[str]], cut: bool) -> float:
    """Return the share of rows that have as many fields as the header; 0 where that is one.

    Where all have one more, which ends them or is the name of the row, it is `ONE_MORE`.
    """
    try:
        rows = [row for row in reader if row]
    except csv.Error:
        return 0.0
    whole = rows[:-1] if cut else rows  # the last one seen may go on, a line break in its quotes
    widths = [len(row) for row in whole[:ROWS]]
    if not widths or widths[0] < 2:
        return 0.0
    if set(widths[1:]) == {widths[0] + 1}:
        return ONE_MORE
    return widths.count(widths[0]) / len(widths)


def described(encoding: str, dialect: Dialect) -> str:
    """Say how a file was read."""
    by = SEPARATORS.get(dialect.separator, repr(dialect.separator))
    quotes = {"double": "", "none": "; quotes are characters", "backslash": "; backslashes escape"}
    return f"read as {encoding.upper()} with {by} between fields{quotes[dialect.quotes]}"
