"""Rows as they come from a file or a Hub data set: all columns, before texts and labels are chosen."""

import re
import reprlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from heedmap.data.labels import label_text, shortest
from heedmap.errors import InputError
from heedmap.terminal.output import quoted, some_of

if TYPE_CHECKING:
    import pyarrow as pa

MOST_COLUMNS = 10_000
SEEN_ROWS = 1000
"""Rows that show whether the names of columns are values, which they are in a file without a header."""
MOST_WORDS = 5
"""Names of columns with more words look like texts."""
NO_HEADER = (
    "; if the first line is a row, say --header none: the columns are then named 1, 2 and so on"
)
_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?")


@dataclass(frozen=True)
class Rows:
    """Rows by column. `values(name)` are those of one column, one per row, None where missing.

    `class_names` of a column say what its numbers mean (a `ClassLabel` of the Hub). `place_of(i)` names row i
    in errors, with its file; `read_as` says how a file was read where that was found out, `notes` what a user
    should look at: a guessed encoding, what was not read; `hint` what may be wrong where a column is not there;
    `unless_joined` are notes that hold unless these columns are joined to the text. `peek(name)` are the values
    of a column that is not read for that, as those in memory are kept with a run.
    """

    columns: list[str]
    count: int
    values: Callable[[str], list[Any]]
    class_names: Mapping[str, list[str]] = field(default_factory=dict)
    place_of: Callable[[int], str] = "row {}".format
    read_as: str = ""
    notes: Sequence[str] = ()
    hint: str = ""
    unless_joined: Mapping[str, Sequence[str]] = field(default_factory=dict)
    peek: Callable[[str], list[Any]] | None = None

    def notes_on(self, text: str | None) -> list[str]:
        """Return the notes where `text` is read: with those on columns that are not joined to it."""
        joined_columns = set(parts_of(text or "", ()))
        return [
            *self.notes,
            *(
                note
                for note, columns in self.unless_joined.items()
                if not joined_columns.issuperset(columns)
            ),
        ]

    @property
    def source(self) -> str:
        """Return the file or table as errors name it; empty where rows have no common place."""
        return self.place_of(0).rpartition(", ")[0] if self.count else ""

    def take(self, rows: Sequence[int]) -> "Rows":
        """Return some of the rows, in the given order."""

        def values(name: str) -> list[Any]:
            return [*map(self.values(name).__getitem__, rows)]

        return replace(
            self, count=len(rows), values=values, place_of=lambda i: self.place_of(rows[i])
        )

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for name in self.columns:
            check_single_column(self, name)
        columns = [self.values(name) for name in self.columns]
        for values in zip(*columns, strict=True):
            yield dict(zip(self.columns, values, strict=True))


@dataclass(frozen=True)
class Tables:
    """The tables of a source by split (`all` where it has none), counts of what was left out, and notes."""

    by_split: Mapping[str, Rows]
    left_out: Mapping[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()


def joined(rows: Rows, text: str | None) -> Rows:
    """Return rows with one column more if it is wanted: "a,b" joins columns a and b, an empty line between.

    What is missing or empty is left out; a row in which all are has None. Numbers and dates are written as
    labels are: 1.0 is 1, since a whole column of numbers turns into floats where one is missing.

    Raises:
        InputError: several columns of one of the names.
    """
    names = parts_of(text or "", rows.columns)
    if text is None or len(names) == 1 or not set(names) <= set(rows.columns):
        return rows
    for name in names:
        check_single_column(rows, name)

    def values(name: str) -> list[Any]:
        if name != text:
            return rows.values(name)
        columns = [rows.values(part) for part in names]
        return [
            "\n\n".join(written for part in parts if (written := _part(rows, i, part)).strip())
            or None
            for i, parts in enumerate(zip(*columns, strict=True))
        ]

    return replace(rows, columns=[*rows.columns, text], values=values)


def parts_of(text: str, columns: Sequence[str]) -> list[str]:
    """Return the columns that a name asks for: "a, b" is a and b, unless a column is called so.

    >>> parts_of("a, b", ["a", "b"]), parts_of("a, b", ["a, b"])
    (['a', 'b'], ['a, b'])
    """
    if text in columns:
        return [text]
    return [name if name in columns else name.strip() for name in text.split(",")]


def check_single_column(rows: Rows, name: str) -> None:
    """Refuse a name that several columns have, of which one would be read.

    Raises:
        InputError: with the name.
    """
    if (count := rows.columns.count(name)) > 1:
        raise InputError(
            f"{rows.source or 'the table'}: expected one column {name}, got {count} of that name; rename one"
            f"{rows.hint}"
        )


def _part(rows: Rows, row: int, value: Any) -> str:
    """Return one of the values that make a text; empty where it is missing."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | dict | bytes):
        raise InputError(
            f"{rows.place_of(row)}: expected texts or numbers to join, got {reprlib.repr(value)}"
        )
    return "" if pd.isna(value) else label_text(value)


@contextmanager
def as_python(source: object, name: str) -> Iterator[None]:
    """Turn the errors of a column's values that Python cannot hold into an `InputError`."""
    try:
        yield
    except (OverflowError, ValueError) as error:
        raise InputError(
            f"{source}, column {name}: expected values that Python can hold, got others, such as a date after "
            f"the year 9999 or an unknown time zone ({error}); save them as text, or name another column"
        ) from error


def shared_values(column: "pa.ChunkedArray") -> list[Any]:
    """Return the values of a column; those of texts that are equal are one object.

    Raises:
        ValueError: Python cannot hold one: its time zone, or the nanoseconds of a time of day.
        OverflowError: it is a date after the year 9999.
    """
    import pyarrow as pa

    if column.type == pa.time64("ns"):
        column = column.cast(pa.time64("us"))
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return shortest(column.to_pylist(), column.type)
    values: list[Any] = []
    by_text: dict[str, str] = {}
    for chunk in column.chunks:
        values += [
            by_text.setdefault(value, value) if value is not None else None
            for value in chunk.to_pylist()
        ]
    return values


def names_like_values(names: Sequence[str], is_value: Callable[[int], bool]) -> list[str]:
    """Return the names of columns that look like values: numbers, sentences, or what a column has in its rows.

    `is_value` tells whether a name is among the values of its column, by its place.
    """
    places = [str(i) for i in range(len(names) + 1)]
    if list(names) in (places[1:], places[:-1]):  # of a frame without names
        return []
    return [
        name
        for i, name in enumerate(names)
        if _NUMBER.fullmatch(name) or len(name.split()) > MOST_WORDS or is_value(i)
    ]


def suspected(names: Sequence[str], is_value: Callable[[int], bool]) -> tuple[str, list[str]]:
    """Return the hint and the notes on a header that looks like a row (see `names_like_values`)."""
    odd = names_like_values(names, is_value)
    if 2 * len(odd) < len(names):
        return NO_HEADER if odd else "", []
    return NO_HEADER, [
        f"the names of columns look like a row ({some_of([quoted(name) for name in odd], 4)}){NO_HEADER}"
    ]


def check_count(path: str | Path, names: Sequence[str]) -> None:
    """Refuse too many columns.

    Raises:
        InputError: with their number.
    """
    if len(names) > MOST_COLUMNS:
        raise InputError(
            f"{path}: expected up to {MOST_COLUMNS} columns, got {len(names)}; keep those with the text "
            "and the label"
        )
