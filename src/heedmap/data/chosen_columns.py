"""Which columns of a table are read: those that are named, or else those with the usual names."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from heedmap.data.columns import SEEN_ROWS, Rows, check_single_column, joined, parts_of
from heedmap.data.labels import is_missing, number_of
from heedmap.data.pair_columns import guessed_pair, query_comes_first
from heedmap.data.rows import LABEL_COLUMNS, PICTURE_COLUMNS, TEXT_COLUMNS, ColumnSpec
from heedmap.errors import InputError
from heedmap.settings.data import DataSettings
from heedmap.terminal.output import quoted, some_of

LONG = 4
"""Words of its values, on average, from which a column is one of long texts."""
_NO_TEXTS = (*LABEL_COLUMNS, *PICTURE_COLUMNS, "id", "split", "exp_split")
_NEAR = re.compile(f"({'|'.join(TEXT_COLUMNS)})s?$", re.IGNORECASE)  # Customer Comment, reviewText


@dataclass(frozen=True)
class Columns:
    """The columns of a table that are read, by their names; `first` is a pair's text that is read first."""

    text: str
    label: str | None = None
    query: str | None = None
    id: str | None = None
    first: str | None = None

    def named(self) -> dict[str, str]:
        """Return those that there are, by the names of their settings."""
        return {name: column for name, column in vars(self).items() if column is not None}


def with_text(rows: Rows, settings: DataSettings, spec: ColumnSpec) -> Rows:
    """Return rows with the column of the text, where that is several columns joined."""
    return joined(rows, settings.text or spec.text[0])


def choose_columns(rows: Rows, settings: DataSettings, spec: ColumnSpec) -> Columns:
    """Find the columns that are named, or those with names that are guessed.

    Raises:
        InputError: columns that are not there, or one that is read as two.
    """
    guesses: dict[str, Sequence[str]] = {
        "text": spec.text, "label": spec.label, "query": spec.query, "id": ("id",),
    }  # fmt: skip
    named = {name: getattr(settings, name) for name in guesses}
    columns = {name: find_column(rows, named[name], guesses[name]) for name in guesses}
    if (pair := _pair(rows, settings, spec)) is not None:
        columns["text"], columns["query"] = pair
    if columns["text"] is None and settings.text is None and spec.text == TEXT_COLUMNS:
        columns["text"] = text_by_content(rows, columns.values())
    needed = [
        name
        for name in guesses
        if name == "text" or named[name] or (name in ("label", "query") and guesses[name])
    ]
    if missing := [name for name in needed if columns[name] is None]:
        names_by_role = {
            spec.role if name == "text" else name: named[name] or " / ".join(guesses[name])
            for name in missing
        }
        raise _missing(rows, settings, names_by_role)
    text, label, query = columns["text"], columns["label"], columns["query"]
    assert text is not None
    for role, column in (("query", query), ("label", label)):
        if column in (text, *map(str.strip, text.split(","))):
            raise InputError(
                f"{settings.source}: {column} is read as the {spec.role} and as the {role}; name two columns "
                f"with --{spec.role}-column and --{role}-column"
            )
    return Columns(text, label, query, columns["id"], _read_first(rows, settings, text, query))


def text_by_content(rows: Rows, excluded: Collection[str | None] = ()) -> str | None:
    """Return the only column of strings that is not `excluded`, or else of long texts; None without one."""
    possible = {*rows.columns} - {*excluded}
    if len(rows.columns) == 1:
        return next(iter(possible), None)
    lengths: dict[str, float] = {}
    for name in (name for name in possible if name.strip().lower() not in _NO_TEXTS):
        values = [v for v in (rows.peek or rows.values)(name)[:SEEN_ROWS] if not is_missing(v)]
        if all(isinstance(v, str) for v in values) and None in map(number_of, values):
            lengths[name] = mean(len(value.split()) for value in values)
    names = [name for name in lengths if len(lengths) == 1 or lengths[name] >= LONG]
    return names[0] if len(names) == 1 else None


def note_on_content(rows: Rows, name: str) -> list[str]:
    """Say that a column is read as the text for its content, unless it is the only one."""
    note = f"column {name} is read as the text, because it alone has texts, or long ones; name another with "
    return [f"{note}--text-column (in Python text=)"] if len(rows.columns) > 1 else []


def _pair(rows: Rows, settings: DataSettings, spec: ColumnSpec) -> tuple[str, str] | None:
    """Return two columns with the usual names of a pair; of our own models if neither is that of a text."""
    if settings.text is not None or settings.query is not None or spec.text != TEXT_COLUMNS:
        return None
    pair, text = guessed_pair(rows.columns), find_column(rows, None, spec.text)
    return pair if pair is not None and (settings.raw or text in (None, pair[1])) else None


def notes_on_text(
    rows: Rows, columns: Columns, settings: DataSettings, spec: ColumnSpec
) -> list[str]:
    """Say which columns are read as a pair that would be read as single texts, too, or for their content."""
    by_name, pair = find_column(rows, settings.text, spec.text), _pair(rows, settings, spec)
    if by_name is None and pair is None:
        return note_on_content(rows, columns.text)
    if by_name is None or pair is None:
        return []
    return [
        f"columns {columns.text} and {columns.query} are read as pairs of texts; to read {columns.text} alone, "
        f"name it with --text-column {columns.text} (in Python text={columns.text!r})"
    ]


def _read_first(rows: Rows, settings: DataSettings, text: str, query: str | None) -> str | None:
    """Return the text of a pair that a transformer reads first; None for single texts, and our own models."""
    if query is None or not settings.raw:
        return None
    return settings.first or ("query" if query_comes_first(rows.columns, text, query) else "text")


def _missing(rows: Rows, settings: DataSettings, names_by_role: Mapping[str, str]) -> InputError:
    absent = {
        role: ", ".join(n for n in parts_of(names, rows.columns) if n not in rows.columns) or names
        for role, names in names_by_role.items()
    }
    read_as = f" ({rows.read_as})" if len(rows.columns) == 1 and rows.read_as else ""
    options = " and ".join(f"--{role}-column" for role in names_by_role)
    remedy = f"name {'it' if len(absent) == 1 else 'them'} with {options} (in Python "
    remedy += f"{', '.join(f'{role}=' for role in absent)})"
    if len(rows.columns) == 1 and not (settings.text or settings.label):
        remedy = f"add a column of {' and of '.join(f'{role}s' for role in absent)}"
        remedy += ", or name what is between the fields with --separator" * bool(read_as)
    near_misses = [name for name in rows.columns if _NEAR.search(name)]
    if near_misses and "text" in absent:
        remedy = f"{some_of([quoted(name) for name in near_misses])} may be the text; {remedy}"
    source = rows.source or settings.source
    pictures = find_column(rows, None, PICTURE_COLUMNS) if "text" in names_by_role else None
    kind = "" if pictures is None else f"expected texts, got pictures (column {pictures}): "
    no_columns = " and ".join(f"no {role} column ({names})" for role, names in absent.items())
    return InputError(
        f"{source}: {kind}{no_columns}; the columns are "
        f"{some_of(rows.columns, 20)}{read_as}; {remedy}{rows.hint}"
    )


def find_column(rows: Rows, name: str | None, guesses: Sequence[str]) -> str | None:
    """Return the column that is named, or else the first of the guesses; None where it is not there.

    A guess may be written in any case; where columns differ by case alone, it is the one that is written as
    the guess, or else the first.

    Raises:
        InputError: several columns of that name.
    """
    if name is not None:
        column = next((exact for exact in (name, name.strip()) if exact in rows.columns), None)
    else:
        by_name = {column.strip().lower(): column for column in reversed(rows.columns)}
        by_name.update({column: column for column in rows.columns})
        column = next((by_name[guess] for guess in guesses if guess in by_name), None)
    if column is not None:
        check_single_column(rows, column)
    return column
