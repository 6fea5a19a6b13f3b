"""Read the rows of an Excel file (.xlsx) by openpyxl: its first sheet, whose first row names the columns."""

import io
import math
import re
import warnings
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from heedmap.data.columns import SEEN_ROWS, Rows, check_count, suspected
from heedmap.data.labels import without_midnight
from heedmap.data.streams import check_archive, check_growth, first_line, open_bytes, reading
from heedmap.errors import InputError, check_installed
from heedmap.terminal.output import some_of

if TYPE_CHECKING:
    from openpyxl.worksheet._read_only import ReadOnlyWorksheet as Sheet

MOST_ROWS, MOST_COLUMNS = 1 << 20, 1 << 14  # of a sheet, by the format
_OLE = bytes.fromhex("d0cf11e0a1b11ae1")  # begins an .xls, and an .xlsx with a password
_ZEROS = re.compile(r"(0+)(?:\.(0+))?")
_HIDDEN = re.compile(rb"<(?:\w+:)?row\s[^>]*?\bhidden=[\"'](?:1|true)[\"']")
_FORMULA = re.compile(rb"<(?:\w+:)?f[ />]")


def read_excel(path: Path, header: str | None = None) -> Rows:
    """Read an Excel file: cells as they are shown, formulas as their stored values, errors (#N/A) as missing.

    Where `header` is "none" the first row is no header, and the columns are named by their places: 1, 2 ...

    Notes say what is not read: further sheets, columns without a name, formulas without a value.

    Raises:
        InputError: openpyxl is not installed; a password, a damaged file, one that unpacks beyond the limit;
            no header.
    """
    check_installed("openpyxl", "excel", f"{path}: an Excel file")
    try:
        with reading(path), open_bytes(path) as opened:
            packed = path.name.lower().endswith(".gz")
            file: IO[bytes] = io.BytesIO(opened.read()) if packed else opened
            has_formulas = _check(path, file)
            with warnings.catch_warnings():  # of styles and the like, which are not read
                warnings.simplefilter("ignore")
                sheets = _sheets(path, file)
                named, columns, numbers, nameless = _columns(path, sheets[0], header is not None)
                hidden = _hidden(file, sheets[0])
                empty = _uncomputed(path, file, sheets[0]) if has_formulas else []
    except InputError:
        raise
    except Exception as error:  # openpyxl raises many kinds on a damaged file
        raise InputError(f"{path}: not readable as XLSX ({first_line(error)})") from error
    names = [sheet.title for sheet in sheets]
    notes = (
        f"sheets {some_of(names)}: read the first alone; move another to the front to read that"
        if len(names) > 1
        else "",
        f"columns {some_of(nameless)}: no name in the first row; not read" if nameless else "",
        f"formulas in {some_of(empty)}: no value stored with them, read as empty; open the file in a "
        "spreadsheet program and save it there"
        if empty
        else "",
        f"rows that the sheet hides, as its filters do: {hidden}; read like the others"
        if hidden
        else "",
    )
    if empty and not columns[0]:
        raise _without_values(path, "the rows", empty)

    def values(name: str) -> list[Any]:
        column = columns[named.index(name)]
        if empty and all(value is None for value in column):
            raise _without_values(path, f"the column {name}", empty)
        return column

    def is_value(i: int) -> bool:
        return named[i] in {str(value) for value in columns[i][:SEEN_ROWS]}

    hint, odd = ("", []) if header else suspected(named, is_value)
    return Rows(
        named,
        len(columns[0]),
        values,
        place_of=lambda i: f"{path}, row {numbers[i]}",
        notes=[*(note for note in notes if note), *odd],
        hint=hint,
    )


def _without_values(path: Path, location: str, cells: Sequence[str]) -> InputError:
    return InputError(
        f"{path}: expected values in {location}, got formulas without any ({some_of(cells)}); open the file in "
        "a spreadsheet program and save it there"
    )


def _check(path: Path, file: IO[bytes]) -> bool:
    """Refuse what is no archive or unpacks beyond the limit; tell whether any sheet has a formula."""
    start = file.read(len(_OLE))
    if start == _OLE:
        raise InputError(
            f"{path}: expected an .xlsx file without a password, got one with a password, or an old .xls; save "
            "it as .xlsx without a password"
        )
    if not start.startswith(b"PK"):
        raise InputError(
            f"{path}: no Excel file, though its name says so; name it .csv if it is one"
        )
    with zipfile.ZipFile(file) as archive:
        check_archive(path, archive)
        sheets = [name for name in archive.namelist() if name.startswith("xl/worksheets/")]
        return any(_FORMULA.search(archive.read(name)) for name in sheets)


def _sheets(path: Path, file: IO[bytes], *, values: bool = True) -> "list[Sheet]":
    """Return the sheets that a reader of the file sees, with formulas' values or the formulas."""
    from openpyxl.reader.excel import ExcelReader

    class WithoutCharts(ExcelReader):  # type: ignore[misc]  # openpyxl has no types
        def read_chartsheet(self, *_: Any) -> None:
            """Leave out a sheet that is one chart, which openpyxl cannot read in this mode."""

    reader = WithoutCharts(file, read_only=True, data_only=values, keep_links=False)
    reader.read()
    sheets: list[Sheet] = [
        sheet for sheet in reader.wb.worksheets if sheet.sheet_state == "visible"
    ]
    if not sheets:
        raise InputError(
            f"{path}: expected a visible sheet of rows with a text and a label, got none: sheets of charts "
            "and hidden sheets are not read"
        )
    sheets[0].reset_dimensions()  # the file may say anything of them
    return sheets


def _columns(
    path: Path, sheet: "Sheet", by_place: bool
) -> tuple[list[str], list[list[Any]], list[int], list[str]]:
    """Return the columns' names and values, the numbers of the rows, and the columns that have no name.

    Empty rows are none, as empty lines are of a CSV file.

    Named `by_place`, columns are those that the first row has, which is no header.
    """
    from openpyxl.utils import get_column_letter
    from openpyxl.utils.escape import unescape

    def value(cell: Any) -> Any:
        if cell.data_type == "e":
            return None
        if isinstance(cell.value, str):
            return unescape(cell.value)
        return _shown(cell) if type(cell.value) in (int, float) else without_midnight(cell.value)

    header = [*map(value, next(sheet.iter_rows(max_row=1, max_col=MOST_COLUMNS), ()))]
    while header and header[-1] is None:
        del header[-1]
    names = {
        i: str(i + 1) if by_place else str(name).strip()
        for i, name in enumerate(header)
        if by_place or name is not None
    }
    if not names:
        raise InputError(
            f"{path}: no header; expected the names of the columns in the first row of {sheet.title}, which is "
            "empty, or has formulas whose values no spreadsheet program has stored"
        )
    check_count(path, list(names.values()))
    columns: list[list[Any]] = [[] for _ in names]
    nameless: set[int] = set()
    numbers: list[int] = []
    size, start = 0, 1 if by_place else 2
    for number, row in enumerate(sheet.iter_rows(min_row=start), start):
        values = {i: content for i, cell in enumerate(row) if (content := value(cell)) is not None}
        nameless.update(values.keys() - names.keys())
        if values.keys() & names.keys():
            numbers.append(number)
            for i, column in zip(names, columns, strict=True):
                column.append(values.get(i))
        # One long text that many cells share, and cells at the sheet's far end, fill the memory too.
        size += 8 * (len(row) + len(names)) + sum(
            len(content) for content in values.values() if isinstance(content, str)
        )
        check_growth(path, size if number <= MOST_ROWS else math.inf)
    return (
        list(names.values()),
        columns,
        numbers,
        [get_column_letter(i + 1) for i in sorted(nameless)],
    )


def _hidden(file: IO[bytes], sheet: "Sheet") -> int:
    """Count the rows that a sheet does not show."""
    with zipfile.ZipFile(file) as archive:
        return len(_HIDDEN.findall(archive.read(sheet._worksheet_path)))


def _shown(cell: Any) -> int | float | str:
    """Return a number as the cell shows it, where its format is of zeros alone: 007, 1.10."""
    value: int | float = cell.value
    zeros = _ZEROS.fullmatch(cell.number_format)
    if zeros is None or not math.isfinite(value):
        return int(value) if isinstance(value, float) and value.is_integer() else value
    places = len(zeros[2] or "")
    width = len(zeros[1]) + (places + 1 if places else 0) + (value < 0)
    return f"{value:0{width}.{places}f}" if places else f"{round(value):0{width}d}"


def _uncomputed(path: Path, file: IO[bytes], sheet: "Sheet") -> list[str]:
    """Return the cells with a formula that no spreadsheet program has computed."""
    formulas = _sheets(path, file, values=False)[0]
    return [
        formula.coordinate
        for values, row in zip(
            sheet.iter_rows(min_row=2), formulas.iter_rows(min_row=2), strict=True
        )
        for value, formula in zip(values, row, strict=True)
        # A formula whose value is an empty text has a value, and is of type "str".
        if formula.data_type == "f" and value.value is None and value.data_type == "n"
    ]
