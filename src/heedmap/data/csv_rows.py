"""Read the rows of a CSV file by pandas, and refuse it where pandas would guess."""

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from heedmap.data.columns import Rows, check_names
from heedmap.data.dialect import SEPARATORS, Opened, as_utf8, declared, described, separator_of
from heedmap.data.streams import first_line, reading
from heedmap.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

LONGEST_HEADER = 1 << 20


def read_csv(
    path: Path, separator: str | None = None, encoding: str | None = None, *, sure: bool = True
) -> Rows:
    """Read a CSV file. Each column is of numbers, of truth values or of texts; empty fields are missing.

    Encoding and separator are found where they are not given (`dialect`); a first line that says the separator
    for Excel is no row. A file without a separator has one column, or, where it is not `sure` that it is a
    table, is none.

    Raises:
        InputError: no table, another encoding, no header of different names, one that the given separator does
            not split, carriage returns alone beside other line ends, or rows that do not fit the header.
    """
    import pandas as pd
    import pyarrow as pa

    opened, encoding, lone, notes = as_utf8(path, encoding)
    said, opened = declared(opened)
    given, separator = separator, separator or said or separator_of(opened)
    if separator is None and not sure:
        raise InputError(
            f"{path}: expected a table, its columns separated by {', '.join(SEPARATORS.values())}, got other "
            "text; name its --separator, or put each text into a file of its own, in a folder per class"
        )
    separator = separator or ","
    if lone:
        _check_line_ends(path, opened, separator)
    names = _header(path, opened, separator)
    if given is not None and len(names) == 1:
        raise InputError(
            f"{path}: expected columns with {SEPARATORS.get(given, repr(given))} between them, got one column, "
            f"{names[0]:.60}; give another --separator, or none: it is found"
        )
    with reading(path), opened() as file:
        try:
            # Only an empty field is missing: a text that says "null" or "NA" is a text.
            frame = pd.read_csv(
                file, sep=separator, keep_default_na=False, na_values=[""], low_memory=False
            )
            if not isinstance(
                frame.index, pd.RangeIndex
            ):  # it takes the first fields for rows' names
                raise ValueError("rows of more fields than the header has")
            frame = frame.assign(**_ambiguous(opened, separator, frame))
            table = pa.Table.from_pandas(frame, preserve_index=False)
        except pd.errors.EmptyDataError as error:
            raise InputError(f"{path}: no header; expected the names of the columns") from error
        except (ValueError, OverflowError, pa.ArrowException) as error:  # pandas' are ValueErrors
            _check_widths(path, opened, separator, encoding)
            raise InputError(
                f"{path}: not readable as CSV ({first_line(error)}), {described(encoding, separator)}; put "
                "texts that hold the separator or a line break in quotes, or name another --separator"
            ) from error
    place = _places(opened, separator)
    return Rows(
        table.column_names,
        len(table),
        lambda name: table[name].to_pylist(),
        where=lambda i: f"{path}, {place(i)}",
        read_as=described(encoding, separator),
        notes=notes,
    )


def _ambiguous(
    opened: Opened, separator: str, frame: "pd.DataFrame"
) -> dict[str, "pd.Series[str]"]:
    """Find columns whose numbers are written in several ways (1, 01, +1), and return them as written.

    As labels 1 and 01 are different, as numbers they would be the same.
    """
    import pandas as pd

    numbers = frame.select_dtypes("number")
    if not len(numbers.columns):
        return {}
    with opened() as file:
        written = pd.read_csv(
            file, sep=separator, keep_default_na=False, na_values=[""], low_memory=False, dtype=str,
            usecols=list(numbers.columns),
        )  # fmt: skip
    return {
        str(name): written[name]
        for name in numbers
        if written[name].nunique() > numbers[name].nunique()
    }


def _lines(opened: Opened) -> Iterator[str]:
    with opened() as file:
        for line in file:
            yield line.decode("utf-8", errors="replace")


def _numbered(opened: Opened, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each row and the line on which it begins, as an editor counts; up to a field of 128 kB."""
    rows = csv.reader(_lines(opened), delimiter=separator)
    start = 1
    try:
        for fields in rows:
            if len(fields) > 1 or (fields and not fields[0].isspace()):  # as pandas skips lines
                yield start, fields
            start = rows.line_num + 1
    except csv.Error:
        pass


def _places(opened: Opened, separator: str) -> Callable[[int], str]:
    """Return what names the line on which a row begins, or the row where that is not to be found."""
    lines: list[int] = []

    def place(row: int) -> str:
        if not lines:
            lines.extend(line for line, _ in _numbered(opened, separator))  # the header comes first
        return f"line {lines[row + 1]}" if row + 1 < len(lines) else f"row {row + 1}"

    return place


def _check_widths(path: Path, opened: Opened, separator: str, encoding: str) -> None:
    """Refuse rows of more fields than the header has, with the line of the first."""
    rows = _numbered(opened, separator)
    header = next(rows, (0, []))[1]
    if (wide := next((row for row in rows if len(row[1]) > len(header)), None)) is not None:
        raise InputError(
            f"{path}, line {wide[0]}: expected as many fields as the header has ({len(header)}), got "
            f"{len(wide[1])}, {described(encoding, separator)}; put texts that hold the separator in quotes, "
            "or name another --separator"
        )


def _check_line_ends(path: Path, opened: Opened, separator: str) -> None:
    """Refuse carriage returns outside of quotes: pandas would start a new row at each."""
    rows = csv.reader(_lines(opened), delimiter=separator)
    try:
        for _ in rows:
            pass
    except csv.Error as error:
        if "new-line" in str(error):
            raise InputError(
                f"{path}, line {rows.line_num}: expected lines that end in a line feed, got a carriage "
                "return alone; save the file with the line ends of Unix or Windows"
            ) from error


def _header(path: Path, opened: Opened, separator: str) -> list[str]:
    """Return the names of the columns, which are different where they are not empty."""
    with reading(path), opened() as file:
        long = len(file.readline(LONGEST_HEADER + 1)) > LONGEST_HEADER
    try:
        rows = csv.reader(_lines(opened), delimiter=separator)
        names = [] if long else next((row for row in rows if row), [])
    except csv.Error:  # a name of more than 128 kB
        long = True
    if long:
        raise InputError(
            f"{path}: expected a header, names of columns of up to 128 kB (1 MiB in all), got a longer "
            "first line; give the file one"
        )
    names = [name.strip().removeprefix("\ufeff") for name in names]
    check_names(path, [name for name in names if name])
    return names
