"""Texts of a file that need no labels: to be explained, not learned from."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from heedmap.data.chosen_columns import find_column, note_on_content, text_by_content
from heedmap.data.columns import Rows, joined
from heedmap.data.corpus import Split
from heedmap.data.pair_columns import guessed_pair
from heedmap.data.readers import dialect_of, read_rows
from heedmap.data.rows import ColumnSpec
from heedmap.data.text_names import places, text_keys
from heedmap.data.text_values import text_values, written_text
from heedmap.errors import InputError
from heedmap.settings.data import DataSettings
from heedmap.terminal.output import some_of


@dataclass(frozen=True)
class Unlabelled:
    """Texts with their names (see `heedmap.data.text_names`) and queries.

    `left_out` counts rows by reason; `notes` say how the file was read. `splits` are the texts as the model
    reads them, where that is known already: each asks about a word, or is a bag of items.
    """

    keys: list[str]
    texts: list[str]
    queries: list[str] | None
    left_out: Counter[str]
    notes: list[str]
    splits: list[Split] | None = None


def read_unlabelled(settings: DataSettings, *, pairs: bool = False) -> Unlabelled:
    """Read the texts of a CSV, JSONL, Parquet or Excel file; a file of one column needs no name for it.

    Only the columns of text, query and id in the settings count, and how the file is read. Of `pairs` that are
    not named, two columns with the usual names of one are read.

    Raises:
        InputError: as `read_rows`, no such column, no text, or a value that is no text, with the row.
    """
    path, text, query, key = Path(settings.source), settings.text, settings.query, settings.id
    rows = read_rows(path, **dialect_of(settings))
    guess = guessed_pair(rows.columns) if pairs and text is None and query is None else None
    if guess is not None:
        text, query = guess
    rows = joined(rows, text)
    id_column = find_column(rows, key, ("id",))
    by_name = column = find_column(rows, text, ColumnSpec().text)
    if column is None and text is None:
        column = text_by_content(rows, (key, query))
    query_column = find_column(rows, query, ())
    for role, name in (("text", column), ("query", query_column), ("id", id_column)):
        option = getattr(settings, role)
        if name is None and (option is not None or role == "text"):
            pair = guessed_pair(rows.columns) or ("TEXT", "QUERY")
            of_pair = (
                ""
                if role != "text"
                else " (of pairs --text-column {} --query-column {})".format(*pair)
            )
            raise InputError(
                f"{path}: no {role} column{f' ({option})' if option else ''}; the columns are "
                f"{some_of(rows.columns, 20)}; name it with --{role}-column{of_pair}{rows.hint}"
            )
    assert column is not None
    keys, key_notes = text_keys(rows, id_column, guessed=key is None)
    texts, text_notes = _written(rows, column, settings)
    queries, query_notes = (None, []) if query is None else _written(rows, query, settings)
    names = keys or places(rows)
    filled = [
        i for i, written in enumerate(texts)
        if written.strip() and (queries is None or queries[i].strip())
    ]  # fmt: skip
    if not filled:
        raise InputError(f"{path}: expected a text in the column {column}, got none")
    empty = len(texts) - len(filled)
    return Unlabelled(
        [names[i] for i in filled],
        [texts[i] for i in filled],
        None if queries is None else [queries[i] for i in filled],
        Counter({"rows are empty": empty} if empty else {}),
        [
            *rows.notes_on(text),
            *key_notes,
            *([] if by_name else note_on_content(rows, column)),
            *text_notes,
            *query_notes,
            *([] if guess else _unread(rows, settings)),
        ],
    )


def _unread(rows: Rows, settings: DataSettings) -> list[str]:
    """Say that the other column of a pair is not read, where two have the usual names of one."""
    pair = guessed_pair(rows.columns) if settings.text is None and settings.query is None else None
    if pair is None:
        return []
    text, query = pair
    return [
        f"columns {text} and {query} have the names of a pair, and {query} is not read; a model of pairs reads "
        f"it with --text-column {text} --query-column {query}"
    ]


def _written(rows: Rows, column: str, settings: DataSettings) -> tuple[list[str], list[str]]:
    """Return the texts of a column, and notes on them."""
    values, notes = text_values(rows, column)
    texts = []
    for row, value in enumerate(values):
        try:
            texts.append(written_text(value, column, settings, ColumnSpec()))
        except InputError as error:
            raise InputError(f"{rows.place_of(row)}: {error}") from error
    return texts, notes
