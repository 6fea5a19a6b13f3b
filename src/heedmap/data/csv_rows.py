"""Read the rows of a CSV file: every value as it is written, without a guess at its type."""

from array import array
from collections.abc import Iterator, Sequence
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
ABOVE = 3
"""Lines above the header that are looked past to find the separator."""
_BATCH = 8192
"""Rows that are parsed at a time: until a column is used, its values are bytes, not objects."""


def read_csv(
    path: Path,
    separator: str | None = None,
    encoding: str | None = None,
    quotes: str | None = None,
    header: str | None = None,
    *,
    usual: str = ",",
    sure: bool = True,
) -> Rows:
    """Read a CSV file. Every value is a text, as it is written; an empty field is missing.

    Encoding, separator (`dialect`) and what quotes mean (`quoting`) are found where they are not given; a first
    line that says the separator for Excel is no row. Where `header` is "none" the first line is a row, and the
    columns are named by their places: 1, 2 and so on. The `usual` separator is tried first where it is a tab. A
    file without a separator has one column, or, where it is not `sure` that it is a table, is none. Lines that
    begin as those of fastText are read by its rules. Rows that repeat the header are left out, with a note, and
    so are separators at the end of rows that the header has not; and where all rows begin with a number more,
    as R writes the names of rows, it is their id.

    Raises:
        InputError: no table, another encoding, no header, one that the given separator does
            not split, carriage returns alone beside other line ends, or rows of more fields than the header.
    """
    content, encoding, decoding_notes = as_utf8(path, encoding)
    if header is None and is_fasttext(content):
        return read_fasttext(path, content, decoding_notes)
    declared_separator, content = declared(content)
    named_separator = separator
    separator = named_separator or declared_separator or _separator(content, usual, sure=sure)
    if separator is None and not sure:
        raise InputError(
            f"{path}: expected a table, its columns separated by {', '.join(SEPARATORS.values())}, got other "
            "text; name its --separator, or put each text into a file of its own, in a folder per class"
        )
    separator = separator or usual
    notes = [*decoding_notes]
    if usual == "\t" != separator and not (named_separator or declared_separator):
        notes.append(
            "no tabs in the first line, though the file is called .tsv; read with "
            f"{SEPARATORS[separator]} between fields"
        )
    try:
        meaning, quote_notes = choose_quotes(content, separator, quotes)
        dialect = Dialect(separator, meaning)
        read_as = described(encoding, dialect)
        first_fields = _first(path, content, dialect, header)
        names = _names(path, first_fields, header)
        if named_separator is not None and len(names) == 1:
            between = SEPARATORS.get(named_separator, repr(named_separator))
            raise InputError(
                f"{path}: expected columns with {between} between them, got one "
                f"column, {names[0]:.60}; give another --separator, or none: it is found"
            )
        if header is None and _rows_have_names(records(content, dialect), names):
            names.insert(0, "id")
            notes.append(
                "rows have one field more than the header: the first, a number, is read as the name of the row "
                "(column id)"
            )
        columns, lines, row_notes = _columns(
            path, records(content, dialect), names, None if header else first_fields, read_as
        )
    except LoneCarriageReturn as error:
        raise InputError(
            f"{path}, line {error.line}: expected lines that end in a line feed, got a carriage return alone; "
            "save the file with the line ends of Unix or Windows"
        ) from error

    def values(name: str) -> list[str | None]:
        return [value or None for value in shared_values(columns[names.index(name)])]

    is_value = partial(_is_value, names, columns)
    hint, header_notes = ("", []) if header else suspected(names, is_value)
    if names[0].startswith("#"):
        hint = "; if the first line is a comment, delete the lines above the names of the columns"
    return Rows(
        names,
        len(lines),
        values,
        place_of=lambda i: f"{path}, line {lines[i]}",
        read_as=read_as,
        notes=[*notes, *row_notes, *quote_notes, *header_notes],
        hint=hint,
        unless_joined={} if header_notes else _unnamed(names, columns, lines),
    )


def _is_value(names: Sequence[str], columns: Sequence["pa.ChunkedArray"], i: int) -> bool:
    """Tell whether the name of a column is among its first values."""
    return names[i] in columns[i].slice(0, SEEN_ROWS).to_pylist()


def _separator(content: bytes, usual: str, *, sure: bool) -> str | None:
    """Return what separates the fields: tabs where they are usual and in the first line, or what is found.

    Where it is `sure` that the file is a table, up to `ABOVE` lines may stand above its header; it is refused
    later, for these lines.
    """
    if usual == "\t" and b"\t" in content[:LONGEST_HEADER].lstrip().partition(b"\n")[0]:
        return "\t"
    separator = separator_of(content)
    if not sure or separator is not None:
        return separator
    lines = content.lstrip().split(b"\n", ABOVE + 1)
    below_title = (separator_of(b"\n".join(lines[i:]), minimum=1.0) for i in range(1, len(lines)))
    return next(filter(None, below_title), None)


def _rows_have_names(rows: Iterator[Record], names: Sequence[str]) -> bool:
    """Tell whether every row begins with a field more than the header has: a number, another in each."""
    if any(name.casefold() == "id" for name in names):
        return False
    row_names: set[str] = set()
    is_filled = False
    for record in islice(rows, 1, None):
        name = record.fields[0]
        if len(record.fields) != len(names) + 1 or not name.isdecimal() or name in row_names:
            return False
        row_names.add(name)
        is_filled = is_filled or record.fields[-1] != ""
    return is_filled


def _first(path: Path, content: bytes, dialect: Dialect, header: str | None) -> list[str]:
    """Return the fields of the first record."""
    record = next(records(content, dialect), None)
    if record is None:
        raise InputError(f"{path}: no header; expected the names of the columns")
    if header is None and (
        len(record.written) > LONGEST_HEADER or max(map(len, record.fields)) > LONGEST_NAME
    ):
        raise InputError(
            f"{path}: expected a header, names of columns of up to 128 kB (1 MiB in all), got a longer first "
            "line; give the file one"
        )
    return record.fields


def _names(path: Path, fields: Sequence[str], header: str | None) -> list[str]:
    """Return the names of the columns; one without a name is called by its place."""
    if header is not None:
        names = [str(i) for i in range(1, len(fields) + 1)]
    else:
        names = [name.strip() or f"Unnamed: {i}" for i, name in enumerate(fields)]
    check_count(path, names)
    return names


def _columns(
    path: Path,
    rows: Iterator[Record],
    names: Sequence[str],
    header_fields: Sequence[str] | None,
    read_as: str,
) -> tuple[list["pa.ChunkedArray"], "array[int]", list[str]]:
    """Return the columns, empty where a row is too short, the line of each row, and notes on rows.

    Without `header_fields` the first row is none.
    """
    import pyarrow as pa

    width = len(names)
    lines, repeated, too_long = array("q"), array("q"), array("q")
    chunks: list[list[pa.Array]] = [[] for _ in range(width)]
    rows = islice(rows, 0 if header_fields is None else 1, None)
    while batch := list(islice(rows, _BATCH)):
        values_of = []
        for record in batch:
            fields = record.fields
            if width > 1 and fields == header_fields:
                repeated.append(record.line)
                continue
            if any(fields[width:]):
                raise _too_wide(path, record, batch, names, header_fields is not None, read_as)
            if len(fields) > width:
                too_long.append(record.line)
                del fields[width:]
            lines.append(record.line)
            fields.extend([""] * (width - len(fields)))
            values_of.append(fields)
        for column, values in zip(chunks, zip(*values_of, strict=True), strict=bool(values_of)):
            column.append(pa.array(values, pa.string()))
    notes = []
    if repeated:
        notes.append(
            f"rows that repeat the header: {len(repeated)} (first: line {repeated[0]}); they are left out"
        )
    if too_long:
        notes.append(
            f"rows that end in more separators than the header has: {len(too_long)} (first: line "
            f"{too_long[0]}); what follows the last column is empty and not read"
        )
    return [pa.chunked_array(column, pa.string()) for column in chunks], lines, notes


def _too_wide(
    path: Path,
    record: Record,
    batch: Sequence[Record],
    names: Sequence[str],
    has_header: bool,
    read_as: str,
) -> InputError:
    """Make the error for a row of more fields than the header, whose cause the others of its batch tell."""
    width, count = len(names), len(record.fields)
    remedy = "put texts that hold the separator in quotes, or name another --separator"
    alike = has_header and all(len(row.fields) == count for row in batch)
    if alike and width > 1:
        remedy += "; if all rows begin with a name, as R writes them, name that column too"
    if alike or (has_header and width == 1):
        remedy += f"; if the first line ({', '.join(names):.40}) is a title or a comment, delete it"
    return InputError(
        f"{path}, line {record.line}: expected as many fields as the "
        f"{'header' if has_header else 'first row'} has ({width}), got {count}, {read_as}; {remedy}"
    )


def _unnamed(
    names: list[str], columns: list["pa.ChunkedArray"], lines: "array[int]"
) -> dict[str, list[str]]:
    """Note values in columns without a name, where texts may go on; the first such column numbers the rows."""
    import pyarrow.compute as pc

    nameless = [i for i, name in enumerate(names) if i and name == f"Unnamed: {i}"]
    filled = {i: pc.not_equal(columns[i], "").to_pylist() for i in nameless}
    filled = {i: values for i, values in filled.items() if any(values)}
    if not filled:
        return {}
    rows = [
        i for i, any_value in enumerate(map(any, zip(*filled.values(), strict=True))) if any_value
    ]
    going_on = [names[i] for i in filled]
    note = (
        f"columns without a name have values in {len(rows)} of {len(lines)} rows (first: line "
        f"{lines[rows[0]]}): a text that goes on there is cut unless it is in quotes, or these are joined: "
        f"--text-column {','.join(['TEXT', *going_on])!r}"
    )
    return {note: going_on}
