"""Read the rows of a CSV file: every value as it is written, without a guess at its type."""

from array import array
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from heedmap.data.columns import SEEN_ROWS, Rows, check_count, shared_values, suspected
from heedmap.data.csv_records import Dialect, LoneCarriageReturn, Record, records
from heedmap.data.dialect import SEPARATORS, as_utf8, declared, described, separator_of
from heedmap.data.fasttext_rows import is_fasttext, read_fasttext
from heedmap.data.quoting import choose_quotes
from heedmap.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

LONGEST_NAME, LONGEST_HEADER = 1 << 17, 1 << 20  # bytes
_BATCH = 8192
"""Rows that are parsed at a time: until a column is used, its values are bytes, not objects."""


def read_csv(
    path: Path,
    separator: str | None = None,
    encoding: str | None = None,
    quotes: str | None = None,
    header: str | None = None,
    *,
    sure: bool = True,
) -> Rows:
    """Read a CSV file. Every value is a text, as it is written; an empty field is missing.

    Encoding, separator (`dialect`) and what quotes mean (`quoting`) are found where they are not given; a first
    line that says the separator for Excel is no row. Where `header` is "none" the first line is a row, and the
    columns are named by their places: 1, 2 and so on. A file without a separator has one column, or, where it
    is not `sure` that it is a table, is none. Lines that begin as those of fastText are read by its rules.

    Raises:
        InputError: no table, another encoding, no header, one that the given separator does
            not split, carriage returns alone beside other line ends, or rows of more fields than the header.
    """
    content, encoding, notes = as_utf8(path, encoding)
    if header is None and is_fasttext(content):
        return read_fasttext(path, content, notes)
    said, content = declared(content)
    given, separator = separator, separator or said or separator_of(content)
    if separator is None and not sure:
        raise InputError(
            f"{path}: expected a table, its columns separated by {', '.join(SEPARATORS.values())}, got other "
            "text; name its --separator, or put each text into a file of its own, in a folder per class"
        )
    separator = separator or ","
    try:
        meaning, of_quotes = choose_quotes(content, separator, quotes)
        dialect = Dialect(separator, meaning)
        read_as = described(encoding, dialect)
        names = _names(path, content, dialect, header)
        if given is not None and len(names) == 1:
            raise InputError(
                f"{path}: expected columns with {SEPARATORS.get(given, repr(given))} between them, got one "
                f"column, {names[0]:.60}; give another --separator, or none: it is found"
            )
        rows = islice(records(content, dialect), 0 if header else 1, None)
        columns, lines = _columns(
            path, rows, len(names), "header" if header is None else "first row", read_as
        )
    except LoneCarriageReturn as error:
        raise InputError(
            f"{path}, line {error.line}: expected lines that end in a line feed, got a carriage return alone; "
            "save the file with the line ends of Unix or Windows"
        ) from error

    def values(name: str) -> list[str | None]:
        return [value or None for value in shared_values(columns[names.index(name)])]

    is_value = partial(_is_value, names, columns)
    hint, odd = ("", []) if header else suspected(names, is_value)
    return Rows(
        names,
        len(lines),
        values,
        where=lambda i: f"{path}, line {lines[i]}",
        read_as=read_as,
        notes=[*notes, *of_quotes, *(odd or _unnamed(names, columns, lines))],
        hint=hint,
    )


def _is_value(names: Sequence[str], columns: Sequence["pa.ChunkedArray"], i: int) -> bool:
    """Tell whether the name of a column is among its first values."""
    return names[i] in columns[i].slice(0, SEEN_ROWS).to_pylist()


def _names(path: Path, content: bytes, dialect: Dialect, header: str | None) -> list[str]:
    """Return the names of the columns; one without a name is called by its place."""
    first = next(records(content, dialect), None)
    if first is None:
        raise InputError(f"{path}: no header; expected the names of the columns")
    if header is not None:
        names = [str(i) for i in range(1, len(first.fields) + 1)]
    else:
        if len(first.written) > LONGEST_HEADER or max(map(len, first.fields)) > LONGEST_NAME:
            raise InputError(
                f"{path}: expected a header, names of columns of up to 128 kB (1 MiB in all), got a longer "
                "first line; give the file one"
            )
        names = [name.strip() or f"Unnamed: {i}" for i, name in enumerate(first.fields)]
    check_count(path, names)
    return names


def _columns(
    path: Path, rows: Iterable[Record], width: int, first: str, read_as: str
) -> tuple[list["pa.ChunkedArray"], "array[int]"]:
    """Return the columns, empty where a row is too short, and the line of each row."""
    import pyarrow as pa

    lines = array("q")
    chunks: list[list[pa.Array]] = [[] for _ in range(width)]
    rows = iter(rows)
    while batch := list(islice(rows, _BATCH)):
        for record in batch:
            if len(record.fields) > width:
                raise InputError(
                    f"{path}, line {record.line}: expected as many fields as the {first} has ({width}), got "
                    f"{len(record.fields)}, {read_as}; put texts that hold the separator in quotes, or name "
                    "another --separator"
                )
            lines.append(record.line)
            record.fields.extend([""] * (width - len(record.fields)))
        for column, values in zip(
            chunks, zip(*(r.fields for r in batch), strict=True), strict=True
        ):
            column.append(pa.array(values, pa.string()))
    return [pa.chunked_array(column, pa.string()) for column in chunks], lines


def _unnamed(names: list[str], columns: list["pa.ChunkedArray"], lines: "array[int]") -> list[str]:
    """Note values in columns without a name, where texts may go on; the first such column numbers the rows."""
    import pyarrow.compute as pc

    nameless = [i for i, name in enumerate(names) if i and name == f"Unnamed: {i}"]
    filled = {i: pc.not_equal(columns[i], "").to_pylist() for i in nameless}
    filled = {i: values for i, values in filled.items() if any(values)}
    if not filled:
        return []
    rows = [
        i for i, any_value in enumerate(map(any, zip(*filled.values(), strict=True))) if any_value
    ]
    return [
        f"columns without a name have values in {len(rows)} of {len(lines)} rows (first: line "
        f"{lines[rows[0]]}): a text that goes on there is cut unless it is in quotes, or these are joined: "
        f"--text-column {','.join(['TEXT', *(names[i] for i in filled)])!r}"
    ]
