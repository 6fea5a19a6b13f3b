"""Which columns of a table are read: those that are named, or else those with the usual names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from heedmap.data.columns import Rows, check_single_column, joined, parts_of
from heedmap.data.pair_columns import guessed_pair, query_comes_first
from heedmap.data.rows import PICTURE_COLUMNS, TEXT_COLUMNS, ColumnSpec
from heedmap.errors import InputError
from heedmap.settings.data import DataSettings
from heedmap.terminal.output import some_of


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
    if _may_be_a_pair(settings, spec) and (pair := guessed_pair(rows.columns)) is not None:
        columns["text"], columns["query"] = pair
    if not spec.label and settings.text is None and len(rows.columns) == 1:
        columns["text"] = rows.columns[0]  # of texts alone
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


def _may_be_a_pair(settings: DataSettings, spec: ColumnSpec) -> bool:
    """Return whether two columns with the usual names of a pair are one: of a transformer, if none is named."""
    is_named = settings.text is not None or settings.query is not None
    return settings.raw and not is_named and spec.text == TEXT_COLUMNS


def notes_on_pair(
    rows: Rows, columns: Columns, settings: DataSettings, spec: ColumnSpec
) -> list[str]:
    """Say that two columns are read as a pair, where one of them would be read as single texts, too."""
    is_guessed = _may_be_a_pair(settings, spec) and columns.query is not None
    if not is_guessed or find_column(rows, None, spec.text) is None:
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
    source = rows.source or settings.source
    pictures = find_column(rows, None, PICTURE_COLUMNS)
    if "text" in names_by_role and pictures is not None:
        return InputError(
            f"{source}: expected texts, because the model reads texts, got pictures (column {pictures}) and no "
            f"text column ({names_by_role['text']}); the columns are {some_of(rows.columns, 20)}; choose a "
            "model of pictures, or name the column of the texts with --text-column (in Python text=)"
        )
    no_columns = " and ".join(f"no {role} column ({names})" for role, names in absent.items())
    remedy = (
        f"name {'it' if len(absent) == 1 else 'them'} with {options} "
        f"(in Python {', '.join(f'{role}=' for role in absent)})"
    )
    if len(rows.columns) == 1 and "label" in absent:
        remedy = "add a column of labels" + ", or name another --separator" * bool(read_as)
    return InputError(
        f"{source}: {no_columns}; the columns are {some_of(rows.columns, 20)}{read_as}; {remedy}{rows.hint}"
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
