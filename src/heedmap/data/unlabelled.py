"""Texts of a file that need no labels: to be explained, not learned from."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from heedmap.data.columns import Rows, joined
from heedmap.data.labelled_rows import find_column, text_keys, text_values, written_text
from heedmap.data.readers import dialect_of, read_rows
from heedmap.data.rows import ColumnSpec
from heedmap.data.text_names import places
from heedmap.errors import InputError
from heedmap.settings import DataSettings
from heedmap.terminal.output import some_of


@dataclass(frozen=True)
class Unlabelled:
    """Texts with their names (see `heedmap.data.text_names`) and queries.

    `left_out` counts rows by reason; `notes` say how the file was read.
    """

    keys: list[str]
    texts: list[str]
    queries: list[str] | None
    left_out: Counter[str]
    notes: list[str]


def read_unlabelled(settings: DataSettings) -> Unlabelled:
    """Read the texts of a CSV, JSONL, Parquet or Excel file; a file of one column needs no name for it.

    Only the columns of text, query and id in the settings count, and how the file is read.

    Raises:
        InputError: as `read_rows`, no such column, no text, or a value that is no text, with the row.
    """
    path, text, query, key = Path(settings.source), settings.text, settings.query, settings.id
    rows = joined(read_rows(path, **dialect_of(settings)), text)
    guessed = None if text is not None or len(rows.columns) > 1 else rows.columns[0]
    column = find_column(rows, text, ColumnSpec().text) or guessed
    keys = find_column(rows, key, ("id",))
    for what, asked, name in (
        ("text", text, column),
        ("query", query, find_column(rows, query, ())),
        ("id", key, keys),
    ):
        if name is None and (asked is not None or what == "text"):
            raise InputError(
                f"{path}: no {what} column{f' ({asked})' if asked else ''}; the columns are "
                f"{some_of(rows.columns, 20)}; name it with --{what}-column{rows.hint}"
            )
    assert column is not None
    notes = rows.notes_on(text)
    names = text_keys(rows, keys, notes, guessed=key is None) or places(rows)
    texts = _written(rows, column, settings, notes)
    queries = None if query is None else _written(rows, query, settings, notes)
    used = [
        i for i, written in enumerate(texts)
        if written.strip() and (queries is None or queries[i].strip())
    ]  # fmt: skip
    if not used:
        raise InputError(f"{path}: expected a text in the column {column}, got none")
    empty = len(texts) - len(used)
    return Unlabelled(
        [names[i] for i in used],
        [texts[i] for i in used],
        None if queries is None else [queries[i] for i in used],
        Counter({"empty": empty} if empty else {}),
        notes,
    )


def _written(rows: Rows, column: str, settings: DataSettings, notes: list[str]) -> list[str]:
    """Return the texts of a column."""
    texts = []
    for row, value in enumerate(text_values(rows, column, notes)):
        try:
            texts.append(written_text(value, column, settings))
        except InputError as error:
            raise InputError(f"{rows.where(row)}: {error}") from error
    return texts
