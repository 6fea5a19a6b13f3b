"""Tables as an Excel workbook (.xlsx): one sheet each, within the limits of the format.

What a sheet cannot hold is never dropped in silence: rows go on in a further sheet, a longer text is cut and
counted, and both are said in the workbook's last sheet, "notes".
"""

import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from heedmap.data.excel_rows import MOST_COLUMNS, MOST_ROWS
from heedmap.errors import InputError, check_installed
from heedmap.report.table_formats import json_text, json_values
from heedmap.terminal.output import printable

if TYPE_CHECKING:
    from openpyxl.worksheet._write_only import WriteOnlyWorksheet as Sheet

LONGEST_CELL = 32_767  # UTF-16 units
LONGEST_NAME = 31
NOTES = "notes"
SEEN = 100  # rows by which a column gets its width
NARROWEST, BROADEST = 9, 60  # letters
_NOT_IN_NAMES = re.compile(r"[\[\]:*?/\\\x00-\x1f]|^'|'$")
_NOT_IN_XML = re.compile("[\ufffe\uffff]")
_MODIFIED = re.compile(rb"(<dcterms:(?:created|modified)[^>]*>)[^<]*")
_EPOCH = (
    1980,
    1,
    1,
    0,
    0,
    0,
)  # the earliest time of a zip file: the same tables give the same bytes


def workbook(tables: Mapping[str, pa.Table]) -> tuple[bytes, list[str]]:
    """Return an Excel file with a sheet per table, and notes on what did not fit as it is.

    Texts are cells of text, whatever they begin with: none is a formula.

    Raises:
        InputError: openpyxl is not installed, a table has more columns than a sheet, or the disk is full.
    """
    check_installed("openpyxl", "excel", "an Excel file")
    from openpyxl import Workbook

    for name, table in tables.items():
        if table.num_columns > MOST_COLUMNS:
            raise InputError(
                f"{name}: expected at most {MOST_COLUMNS:,} columns, which a sheet of Excel has, got "
                f"{table.num_columns:,}; export it as csv, jsonl or parquet"
            )
    book, notes = Workbook(write_only=True), list[str]()
    titles = {NOTES}
    file = io.BytesIO()
    try:
        for name, table in tables.items():
            notes += _write_table(book, titles, name, table)
        if notes:
            _append(book.create_sheet(NOTES), ["note"], [[note] for note in notes])
        book.save(file)
    except Exception as error:
        if not isinstance(error, OSError) and not str(error).startswith("IO_"):  # as lxml says it
            raise
        with suppress(Exception):  # or it is said once more when the sheet is deleted
            book.worksheets[-1].close()
        raise InputError(
            f"the folder for temporary files cannot hold the sheets ({error}); name another in TMPDIR"
        ) from error
    return _timeless(file.getvalue()), notes


def _write_table(book: Any, titles: set[str], name: str, table: pa.Table) -> list[str]:
    """Write a table to as many sheets as its rows need; return notes."""
    notes, base = [], name.rpartition("/")[2]
    size = MOST_ROWS - 1  # the first row names the columns
    for part, start in enumerate(range(0, max(table.num_rows, 1), size), 1):
        title = _title(base if part == 1 else f"{base} {part}", titles)
        rows = table.slice(start, size)
        cut = _append(book.create_sheet(title), rows.column_names, _rows(rows))
        if title != base:
            notes.append(
                f"sheet {title!r}: rows {start + 1:,} to {start + rows.num_rows:,} of {table.num_rows:,} of "
                f"{base!r}"
            )
        if cut:
            notes.append(
                f"sheet {title!r}: texts longer than the {LONGEST_CELL:,} characters of a cell, cut to that: "
                f"{cut}; csv, jsonl and parquet have them whole"
            )
    return notes


def _rows(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    return zip(*(json_values(column) for column in table.columns), strict=True)


def _append(sheet: "Sheet", head: Sequence[str], rows: Iterable[Sequence[Any]]) -> int:
    """Write rows below their head, which stays in sight; return how many texts were cut."""
    from openpyxl.cell import WriteOnlyCell

    cut = 0

    def cell(value: Any) -> Any:
        nonlocal cut
        if value is None or isinstance(value, bool | int | float):
            return value
        text = printable(value) if isinstance(value, str) else json_text(value)
        text = _NOT_IN_XML.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
        short = _shortened(text)
        cut += short != text
        written = WriteOnlyCell(sheet, value=short)
        written.data_type = "s"  # openpyxl takes "=1" for a formula, and "#N/A" for an error
        return written

    sheet.freeze_panes = "A2"
    rows = iter(rows)
    beginning = [head, *islice(rows, SEEN)]
    _widen(sheet, beginning)
    for row in chain(beginning, rows):
        sheet.append([cell(value) for value in row])
    return cut


def _widen(sheet: "Sheet", rows: Sequence[Sequence[Any]]) -> None:
    """Make each column as wide as the texts in these rows, within limits."""
    from openpyxl.utils import get_column_letter

    for number, values in enumerate(zip(*rows, strict=True), 1):
        longest = max(len(value) if isinstance(value, str) else 0 for value in values)
        width = min(max(longest + 2, NARROWEST), BROADEST)
        sheet.column_dimensions[get_column_letter(number)].width = width


def _shortened(text: str) -> str:
    """Return a text cut to the length of a cell; a character is never cut in two."""
    if len(text) <= LONGEST_CELL // 2:
        return text
    return text.encode("utf-16-le")[: 2 * LONGEST_CELL].decode("utf-16-le", "ignore")


def _title(name: str, titles: set[str]) -> str:
    """Return a sheet's name that Excel accepts and no sheet has, whatever the case of its letters."""
    base = _NOT_IN_NAMES.sub("_", name)[:LONGEST_NAME] or "table"
    title, number = base, 1
    while title.casefold() in titles | {"history"}:  # Excel's own
        number += 1
        title = f"{base[: LONGEST_NAME - len(str(number)) - 1]} {number}"
    titles.add(title.casefold())
    return title


def _timeless(content: bytes) -> bytes:
    """Return the same file without the time at which it was made."""
    file = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as timed,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as timeless,
    ):
        for member in timed.infolist():
            data = timed.read(member)
            if member.filename == "docProps/core.xml":
                data = _MODIFIED.sub(rb"\g<1>1980-01-01T00:00:00Z", data)
            timeless.writestr(zipfile.ZipInfo(member.filename, _EPOCH), data, zipfile.ZIP_DEFLATED)
    return file.getvalue()
