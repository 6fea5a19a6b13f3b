"""Texts of a file that need no labels: to be explained, not learned from."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from heedmap.data.columns import joined
from heedmap.data.readers import read_rows
from heedmap.data.rows import ColumnSpec
from heedmap.errors import InputError
from heedmap.terminal.output import some_of


@dataclass(frozen=True)
class Unlabelled:
    """Texts with their keys and queries; `left_out` counts rows by reason.

    Keys are of the column `id`, or count the rows from 1.
    """

    keys: list[str]
    texts: list[str]
    queries: list[str] | None
    left_out: Counter[str]


def read_unlabelled(path: Path, text: str | None = None, query: str | None = None) -> Unlabelled:
    """Read the texts of a CSV, JSONL, Parquet or Excel file; a file of one column needs no name for it.

    Args:
        path: the file.
        text: the column of the texts, or several to join; guessed if it is None.
        query: the column of the queries, for a model of pairs.

    Raises:
        InputError: as `read_rows`, no such column, or no text.
    """
    rows = joined(read_rows(path), text)
    by_name = {name.strip().lower(): name for name in reversed(rows.columns)}
    column = text or next((by_name[name] for name in ColumnSpec().text if name in by_name), None)
    if column is None and len(rows.columns) == 1:
        column = rows.columns[0]
    for what, name in (("text", column), ("query", query)):
        if what == "text" if name is None else name not in rows.columns:
            raise InputError(
                f"{path}: no {what} column{f' ({name})' if name else ''}; the columns are "
                f"{some_of(rows.columns, 20)}; name it with --{what}-column"
            )
    assert column is not None
    size = len(rows)
    keys = (
        _written(rows.values(by_name["id"])) if "id" in by_name else [*map(str, range(1, size + 1))]
    )
    texts = _written(rows.values(column))
    queries = [" "] * size if query is None else _written(rows.values(query))
    used = [i for i in range(size) if texts[i].strip() and (query is None or queries[i].strip())]
    if not used:
        raise InputError(f"{path}: expected a text in the column {column}, got none")
    return Unlabelled(
        [keys[i] for i in used],
        [texts[i] for i in used],
        None if query is None else [queries[i] for i in used],
        Counter({"empty": size - len(used)} if len(used) < size else {}),
    )


def _written(values: Sequence[object]) -> list[str]:
    return ["" if pd.isna(value) else str(value) for value in map(_scalar, values)]


def _scalar(value: object) -> Any:
    return str(value) if isinstance(value, list | dict | bytes) else value
