"""Texts of a file that need no labels: to be explained, not learned from."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from heedmap.data.columns import joined
from heedmap.data.labelled_rows import find_column, text_keys, text_values, written_text
from heedmap.data.readers import read_rows
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


def read_unlabelled(
    path: Path, text: str | None = None, query: str | None = None, key: str | None = None
) -> Unlabelled:
    """Read the texts of a CSV, JSONL, Parquet or Excel file; a file of one column needs no name for it.

    Args:
        path: the file.
        text: the column of the texts, or several to join; guessed if it is None.
        query: the column of the queries, for a model of pairs.
        key: the column of the texts' own ids; guessed if it is None.

    Raises:
        InputError: as `read_rows`, no such column, or no text.
    """
    rows = joined(read_rows(path), text)
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
    notes, settings = rows.notes_on(text), DataSettings(source=str(path))
    names = text_keys(rows, keys, notes, guessed=key is None) or places(rows)
    texts = [written_text(value, column, settings) for value in text_values(rows, column, notes)]
    queries = None
    if query is not None:
        asked_values = text_values(rows, query, notes)
        queries = [written_text(value, query, settings) for value in asked_values]
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
