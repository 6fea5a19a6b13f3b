"""Find how a text file is written: its encoding, and of a CSV file its separator, which differ by country.

Both are found, unless the user names them: then the file is read so or not at all.

Libraries were tried on texts of 2 to 2000 rows. charset-normalizer 3.5 takes most French and Spanish ones in
cp1252 for ISO 8859-10 or cp1250, and chardet a pound sign in cp1252 for cp1250: words would be wrong, silently.
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
_LAST_LETTER = re.compile(rb"[A-Za-z][\xe0\xe1\xe3-\xff]\Z")
"""A letter of Windows-1252 with an accent at the end of a word, and not what begins most signs of UTF-8."""
_DECLARED = re.compile(rb"(\"?)sep=([,;|\t^~:#])\1(?=[\r\n])", re.IGNORECASE)


class Decoded(NamedTuple):
    """The content of a file as UTF-8 without a mark, its encoding, and notes where that was guessed."""

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
    content, count = _MARKS_WITHIN.subn(b"", decoded.content)
    if not count:
        return decoded
    note = (
        f"marks of an encoding at the beginning of lines, where files were joined: {count}; they are left "
        "out"
    )
    return Decoded(content, decoded.encoding, [*decoded.notes, note])


def _as_utf8(path: Path, encoding: str | None) -> Decoded:
    """Read a file as UTF-8, from the encoding that is named or found.

    A file that starts with the mark of UTF-16 or UTF-32 is in that encoding; UTF-16 without one is refused.
    One that is not UTF-8, and has no letter that is written as in UTF-8, is Windows-1252, with a note. Carriage
    returns in a file without a line feed become line feeds.

    Libraries were measured on small files in five languages. charset-normalizer 3.5 reads 7 of 126 French and
    Spanish files rightly (others as cp1250 or ISO-8859-10). chardet 7.7 reads 122 of them, and Russian and
    Polish too, but takes the pound signs of English files for Polish letters (Ł).

    Raises:
        InputError: none of these, with the line that is not UTF-8; not the encoding that was named; cannot be
            read.
    """
    with reading(path), open_bytes(path) as file:
        content = file.read()
    if encoding is None:
        marked = next((name for mark, name in _MARKS.items() if content.startswith(mark)), None)
        if marked is not None:
            return _recoded(path, content, marked, "as which it begins")
        # Valid UTF-8, but every letter would come with a NUL: refused, so that no such text is trained on.
        size = min(len(content), SEEN)
        if size and len(content) % 2 == 0 and 3 * content.count(0, 0, SEEN) >= size:
            raise InputError(
                f"{path}: expected UTF-8, or a file that begins with the mark of its encoding, got zeros as in "
                "UTF-16; say --encoding utf-16-le (or utf-16-be), or save the file as UTF-8"
            )
    if encoding not in (None, "utf-8"):
        return _recoded(path, content, encoding, "as --encoding says")
    try:
        has_lone_returns = check_utf8(path, content)
    except InputError as error:
        if encoding is not None or not _may_be_western(content):
            raise InputError(f"{error}, or name its own with --encoding") from error
        note = (
            "not UTF-8; read as Windows-1252 (Western Europe): look whether letters with accents are right, or "
            "name the encoding with --encoding"
        )
        return _recoded(path, content, "cp1252", "as was found", note)
    if has_lone_returns and b"\n" not in content:  # as on old Macs
        content = content.replace(b"\r", b"\n")
    return Decoded(content.removeprefix(codecs.BOM_UTF8), "utf-8")


def _recoded(path: Path, content: bytes, encoding: str, reason: str, *notes: str) -> Decoded:
    remedy = "name another with --encoding, or save the file as UTF-8"
    try:
        text = content.decode(encoding)
    except UnicodeError as error:
        start = getattr(error, "start", 0)
        line = content[:start].decode(encoding, errors="replace").count("\n") + 1
        raise InputError(
            f"{path}, line {line}: not {encoding.upper()}, {reason}: got the bytes "
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
            f"{path}, line {line}: not {encoding.upper()}, {reason}: got half a character (a lone surrogate); "
            f"{remedy}"
        ) from error


def _may_be_western(content: bytes) -> bool:
    """Return whether bytes that are not UTF-8 can be Windows-1252.

    They have no control characters and no letters as in UTF-8: a file that has both was damaged, or joined.
    """
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data" and not _LAST_LETTER.search(content):
            return False
    try:
        text = content.decode("cp1252")
    except UnicodeDecodeError:
        return False
    letters = {letter for letter in content.decode("utf-8", errors="replace") if letter > "\x7f"}
    return letters == {"\ufffd"} and not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", text)


def declared(content: bytes) -> tuple[str | None, bytes]:
    """Return the separator that a first line says for Excel (sep=;), and the content with that line empty."""
    line = _DECLARED.match(content)
    return (None, content) if line is None else (line[2].decode(), content[line.end() :])


def separator_of(content: bytes, minimum: float = 0.5) -> str | None:
    """Return what separates the fields: the first that splits the header and every row after it alike.

    Where none does it is the one that splits most rows as the header, which are more than half (or the
    `minimum`); else None. Rows that all have one field more than the header are like it too.
    Where quotes or line breaks hide it, quotes are tried as characters, and backslashes as escapes.

    Sniffers of libraries were measured on the 126 tables of the tests that are read. DuckDB 2.0 gives the same
    rows for 95 of 115, takes a first line `sep=;` for a header, and swallows 48 of the 120 rows of a file whose
    quotes are characters. CleverCSV 0.8 gives the same for 101 of 126, and takes spaces for the separator of
    texts with tabs.
    """
    lines = io.StringIO(content[:SEEN].decode("utf-8", errors="replace"), newline="").readlines()
    cut = len(content) >= SEEN
    for quote, escape in (('"', None), (None, None), ('"', "\\")):
        quoting: Literal[0, 3] = csv.QUOTE_NONE if quote is None else csv.QUOTE_MINIMAL
        shares = {
            separator: _share(
                csv.reader(lines, delimiter=separator, quoting=quoting, escapechar=escape), cut
            )
            for separator in SEPARATORS
        }
        best = max(shares, key=lambda separator: shares[separator])  # the first of equals
        if shares[best] > 0.5 and shares[best] >= minimum:
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
