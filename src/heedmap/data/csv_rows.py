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
    content, encoding, notes = as_utf8(path, encoding)
    if header is None and is_fasttext(content):
        return read_fasttext(path, content, notes)
    said, content = declared(content)
    given = separator
    separator = given or said or _separator(content, usual, sure=sure)
    if separator is None and not sure:
        raise InputError(
            f"{path}: expected a table, its columns separated by {', '.join(SEPARATORS.values())}, got other "
            "text; name its --separator, or put each text into a file of its own, in a folder per class"
        )
    separator = separator or usual
    found = [*notes]
    if usual == "\t" != separator and not (given or said):
        found.append(
            "no tabs in the first line, though the file is called .tsv; read with "
            f"{SEPARATORS[separator]} between fields"
        )
    try:
        meaning, of_quotes = choose_quotes(content, separator, quotes)
        dialect = Dialect(separator, meaning)
        read_as = described(encoding, dialect)
        first = _first(path, content, dialect, header)
        names = _names(path, first, header)
        if given is not None and len(names) == 1:
            raise InputError(
                f"{path}: expected columns with {SEPARATORS.get(given, repr(given))} between them, got one "
                f"column, {names[0]:.60}; give another --separator, or none: it is found"
            )
        if header is None and _rows_have_names(records(content, dialect), names):
            names.insert(0, "id")
            found.append(
                "rows have one field more than the header: the first, a number, is read as the name of the row "
                "(column id)"
            )
        columns, lines = _columns(
            path, records(content, dialect), names, first, header, read_as, found
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
    if names[0].startswith("#"):
        hint = "; if the first line is a comment, delete the lines above the names of the columns"
    return Rows(
        names,
        len(lines),
        values,
        where=lambda i: f"{path}, line {lines[i]}",
        read_as=read_as,
        notes=[*found, *of_quotes, *odd],
        hint=hint,
        unless_joined={} if odd else _unnamed(names, columns, lines),
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
    found = separator_of(content)
    if not sure or found is not None:
        return found
    lines = content.lstrip().split(b"\n", ABOVE + 1)
    below = (separator_of(b"\n".join(lines[i:]), least=1.0) for i in range(1, len(lines)))
    return next(filter(None, below), None)


def _rows_have_names(rows: Iterator[Record], names: Sequence[str]) -> bool:
    """Tell whether every row begins with a field more than the header has: a number, another in each."""
    if any(name.casefold() == "id" for name in names):
        return False
    known: set[str] = set()
    filled = False
    for record in islice(rows, 1, None):
        name = record.fields[0]
        if len(record.fields) != len(names) + 1 or not name.isdecimal() or name in known:
            return False
        known.add(name)
        filled = filled or record.fields[-1] != ""
    return filled


def _first(path: Path, content: bytes, dialect: Dialect, header: str | None) -> list[str]:
    """Return the fields of the first record."""
    first = next(records(content, dialect), None)
    if first is None:
        raise InputError(f"{path}: no header; expected the names of the columns")
    if header is None and (
        len(first.written) > LONGEST_HEADER or max(map(len, first.fields)) > LONGEST_NAME
    ):
        raise InputError(
            f"{path}: expected a header, names of columns of up to 128 kB (1 MiB in all), got a longer first "
            "line; give the file one"
        )
    return first.fields


def _names(path: Path, first: Sequence[str], header: str | None) -> list[str]:
    """Return the names of the columns; one without a name is called by its place."""
    if header is not None:
        names = [str(i) for i in range(1, len(first) + 1)]
    else:
        names = [name.strip() or f"Unnamed: {i}" for i, name in enumerate(first)]
    check_count(path, names)
    return names


def _columns(
    path: Path,
    rows: Iterator[Record],
    names: Sequence[str],
    first: Sequence[str],
    header: str | None,
    read_as: str,
    notes: list[str],
) -> tuple[list["pa.ChunkedArray"], "array[int]"]:
    """Return the columns, empty where a row is too short, and the line of each row."""
    import pyarrow as pa

    width = len(names)
    lines, again, ended = array("q"), array("q"), array("q")
    chunks: list[list[pa.Array]] = [[] for _ in range(width)]
    rows = islice(rows, 0 if header else 1, None)
    while batch := list(islice(rows, _BATCH)):
        kept = []
        for record in batch:
            fields = record.fields
            if header is None and width > 1 and fields == first:
                again.append(record.line)
                continue
            if any(fields[width:]):
                raise _too_wide(path, record, batch, names, header, read_as)
            if len(fields) > width:
                ended.append(record.line)
                del fields[width:]
            lines.append(record.line)
            fields.extend([""] * (width - len(fields)))
            kept.append(fields)
        for column, values in zip(chunks, zip(*kept, strict=True), strict=bool(kept)):
            column.append(pa.array(values, pa.string()))
    if again:
        notes.append(
            f"rows that repeat the header: {len(again)} (first: line {again[0]}); they are left out"
        )
    if ended:
        notes.append(
            f"rows that end in more separators than the header has: {len(ended)} (first: line {ended[0]}); "
            "what follows the last column is empty and not read"
        )
    return [pa.chunked_array(column, pa.string()) for column in chunks], lines


def _too_wide(
    path: Path,
    record: Record,
    batch: Sequence[Record],
    names: Sequence[str],
    header: str | None,
    read_as: str,
) -> InputError:
    """Make the error for a row of more fields than the header, whose cause the others of its batch tell."""
    width, count = len(names), len(record.fields)
    remedy = "put texts that hold the separator in quotes, or name another --separator"
    alike = header is None and all(len(each.fields) == count for each in batch)
    if alike and width > 1:
        remedy += "; if all rows begin with a name, as R writes them, name that column too"
    if alike or (header is None and width == 1):
        remedy += f"; if the first line ({', '.join(names):.40}) is a title or a comment, delete it"
    return InputError(
        f"{path}, line {record.line}: expected as many fields as the "
        f"{'header' if header is None else 'first row'} has ({width}), got {count}, {read_as}; {remedy}"
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
