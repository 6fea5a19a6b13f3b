"""Texts or pictures from memory: a frame, a data set of the `datasets` library, records, or a list of them.

They have no file from which a run could read them again: it keeps the columns that were read of them in its
folder, as JSON lines. In its settings their source is `memory:` and a hash of these.
"""

import hashlib
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

import numpy as np
import pandas as pd

from heedmap.data.columns import Rows, as_python, check_count
from heedmap.data.embedded import EMBEDDED
from heedmap.data.encoded_pictures import encoded, may_be_picture
from heedmap.data.json_rows import read_json
from heedmap.data.labels import is_missing, plain, shortest, without_midnight
from heedmap.data.picture_lists import pictures_in, table_of_pictures
from heedmap.data.readers import rows_of
from heedmap.data.text_names import places
from heedmap.errors import InputError
from heedmap.files.naming import DATA, kind_of, name_of

if TYPE_CHECKING:
    import datasets

PREFIX = "memory:"
PLACE = "heedmap:place"
"""The name of what a run keeps beside the columns: where each row stood (`index 3`)."""
Values = Union[Sequence[Any], "pd.Series[Any]", "np.ndarray[Any, Any]"]
Source = Union[
    str, os.PathLike[str], pd.DataFrame, "datasets.Dataset", "datasets.DatasetDict", Values
]


class InMemory:
    """Tables by split (`all` where there are none) with plain values, as they were when they were first read.

    `name` is what errors call them.
    """

    def __init__(self, name: str, tables: Mapping[str, Rows]) -> None:
        self.name = name
        self._columns: dict[str, dict[str, list[Any]]] = {}
        self._places: dict[str, list[str]] = {}
        self.tables: dict[str, Rows] = {}
        for split, rows in sorted(tables.items()):
            if len(rows):
                check_count(name, rows.columns)
                self._columns[split] = {}
                has_places = PLACE in rows.columns
                self._places[split] = rows.values(PLACE) if has_places else places(rows)
                columns = [column for column in rows.columns if column != PLACE]
                values = partial(self._values, split, rows)
                place_of = partial(self._place_of, split) if has_places else rows.place_of
                self.tables[split] = replace(
                    rows, columns=columns, values=values, class_names={}, place_of=place_of,
                    peek=rows.values,
                )  # fmt: skip
        if not self.tables:
            raise InputError(f"{name}: no rows; expected rows with a text and a label")

    def _place_of(self, split: str, row: int) -> str:
        return f"{self.name}, {self._places[split][row]}"

    def _values(self, split: str, rows: Rows, column: str) -> list[Any]:
        read_columns = self._columns[split]
        if column not in read_columns:
            names = rows.class_names.get(column)
            values: list[Any] = []
            for i, value in enumerate(rows.values(column)):
                try:
                    values.append(_plain(value) if names is None else _each_named(value, names))
                except ValueError as error:
                    raise InputError(f"{rows.place_of(i)}, {column}: {error}") from error
            read_columns[column] = values
        return read_columns[column]

    def files(self) -> dict[str, bytes]:
        """Return what was read as files of JSON lines, one per split; `kept_in` reads them."""
        return {f"{split}.jsonl": self._lines(split, with_places=True) for split in self.tables}

    def _lines(self, split: str, *, with_places: bool) -> bytes:
        rows = self.tables[split]
        columns = {c: self._columns[split][c] for c in rows.columns if c in self._columns[split]}
        if with_places:
            columns[PLACE] = self._places[split]
        lines = (
            json.dumps({c: values[i] for c, values in columns.items()}) + "\n"
            for i in range(len(rows))
        )
        return "".join(lines).encode()

    def source(self) -> str:
        """Return the name for a run's settings: the same content gives the same, wherever it stood."""
        digest = hashlib.sha256()
        for split in self.tables:
            content = self._lines(split, with_places=False)
            digest.update(f"{split}.jsonl {len(content)} ".encode() + content)
        return PREFIX + digest.hexdigest()[:16]


def kept_in(folder: Path) -> InMemory | None:
    """Return the texts that a run keeps in its folder; None where there are none.

    Raises:
        InputError: they are damaged.
    """
    files = sorted(folder.glob("*.jsonl"))
    return InMemory(str(folder), {file.stem: read_json(file) for file in files}) if files else None


def source_of(
    data: Source,
    labels: Values | None = None,
    queries: Values | None = None,
    *,
    training: bool = True,
) -> tuple[str, InMemory | None]:
    """Return the name of a source of texts, and the texts themselves where they are in memory.

    Those that are not for training need no labels.

    Raises:
        InputError: texts in memory without rows, or with another number of labels or queries.
        TypeError: no source of texts; texts without labels; or labels of what has its own.
    """
    tables = _tables(data)
    if tables is None and (pictures := pictures_in(data)) is not None:
        answers = None if labels is None else _list(labels, "label")
        tables = {"all": table_of_pictures(pictures, answers)}
    elif (
        tables is None
        and isinstance(data, Sequence | pd.Series | np.ndarray)
        and not isinstance(data, str | bytes)
    ):
        tables = {"all": _of_texts(data, labels, queries, training)}
    elif (
        tables is None
        and isinstance(data, Iterable)
        and not isinstance(data, str | bytes | Mapping)
    ):
        raise TypeError(
            f"expected a list of texts or of records, got {kind_of(data)}; make a list of it: list(...)"
        )
    elif labels is not None or queries is not None:
        raise TypeError(
            f"expected labels and queries as lists with a list of texts alone, got them with {kind_of(data)}; "
            "name its columns: label='...', query='...'"
        )
    if tables is None:
        is_embedded = isinstance(data, str) and data in EMBEDDED
        return (str(data) if is_embedded else name_of(data, DATA)), None
    in_memory = InMemory(type(data).__name__, tables)
    return in_memory.name, in_memory


def _tables(data: object) -> dict[str, Rows] | None:
    """Return the tables of what has columns by split; None for anything else."""
    if isinstance(data, pd.DataFrame):
        frame, columns = data, [str(column) for column in data.columns]

        def values(name: str) -> list[Any]:
            return _list(frame.iloc[:, columns.index(name)], name)

        return {
            "all": Rows(columns, len(frame), values, place_of=_indexed("DataFrame", frame.index))
        }
    library = sys.modules.get("datasets")  # whoever has a data set has imported it
    if library is not None and isinstance(data, library.Dataset):
        return {"all": rows_of(data.with_format(None), "Dataset")}
    if library is not None and isinstance(data, library.DatasetDict):
        return {name: rows_of(part.with_format(None), name) for name, part in data.items()}
    if isinstance(data, Sequence) and data and all(isinstance(row, Mapping) for row in data):
        columns = list(dict.fromkeys(name for row in data for name in row))
        if wrong := [name for name in columns if not isinstance(name, str)]:
            raise TypeError(f"expected records with names as keys, got {kind_of(wrong[0])}")
        return {
            "all": Rows(
                columns,
                len(data),
                lambda name: [row.get(name) for row in data],
                place_of="records, index {}".format,
            )
        }
    return None


def _of_texts(texts: Values, labels: Values | None, queries: Values | None, training: bool) -> Rows:
    """Return a list of texts as a table, with its labels and queries beside it."""
    kind = kind_of(texts)
    if labels is None:
        records = _list(texts, "text")
        strangers = [i for i, row in enumerate(records) if not isinstance(row, Mapping)]
        if 0 < len(strangers) < len(records):
            raise TypeError(
                f"expected records (dicts) alone, got {kind_of(records[strangers[0]])} as record {strangers[0]}"
            )
        if training:
            raise TypeError(
                f"expected a label for each text of a {kind}: heedmap.load(texts, labels=[...]); or a "
                "pandas DataFrame, a datasets.Dataset, records (a list of dicts), a file, a folder or a name "
                "on the Hub"
            )
    values_by_name = {"text": texts, "label": labels, "query": queries}
    columns = {
        name: _list(values, name) for name, values in values_by_name.items() if values is not None
    }
    for name, values in columns.items():
        if len(values) != len(columns["text"]):
            raise InputError(
                f"expected a {name} for each text, got {len(values)} for {len(columns['text'])} texts"
            )
        for i, value in enumerate(values):
            if name != "label" and not (isinstance(value, str) or is_missing(value)):
                hint = (
                    "; give the folder that the files are in"
                    if isinstance(value, os.PathLike)
                    else ""
                )
                raise TypeError(
                    f"expected texts, got {kind_of(value)} as {name} {i} of the {kind}{hint}"
                )
    index = texts.index if isinstance(texts, pd.Series) else range(len(texts))
    place = _indexed(type(texts).__name__, index)
    return Rows(list(columns), len(texts), columns.__getitem__, place_of=place)


def _indexed(name: str, index: "pd.Index[Any] | range") -> Callable[[int], str]:
    """Return what names a row by its label in an index, which may have several levels."""

    def place(i: int) -> str:
        label = index[i]
        parts = label if isinstance(label, tuple) else (without_midnight(label),)
        return f"{name}, index {' / '.join(map(str, parts)).replace(', ', ' ')}"

    return place


def _list(values: Values, role: str) -> list[Any]:
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        values = pd.Series(values)  # an array would give its dates as numbers of nanoseconds
    python_values = values
    if hasattr(values, "tolist"):
        with as_python(type(values).__name__, role):
            python_values = shortest(values.tolist(), getattr(values, "dtype", None))
    if not isinstance(python_values, Sequence) or isinstance(python_values, str | bytes):
        raise TypeError(f"expected a list with a {role} for each text, got {kind_of(values)}")
    return list(python_values)


def _each_named(value: Any, names: Sequence[str]) -> Any:
    """Return the name of a class by its number, or of each class in a list."""
    if isinstance(value, list):
        return [_named(number, names) for number in value]
    return _named(value, names)


def _named(value: int | None, names: Sequence[str]) -> str | None:
    """Return the name of a class by its number, which is below 0 where there is none."""
    if value is not None and value >= len(names):
        raise ValueError(f"expected a class from 0 to {len(names) - 1}, got {value}")
    return None if value is None or value < 0 else names[value]


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: the same when it is read again.

    Raises:
        ValueError: it is of a kind that JSON does not know, or half a character.
    """
    if may_be_picture(value):
        value = encoded(value)
    elif isinstance(value, np.ndarray):
        value = value.tolist()
    if is_missing(value):
        return None
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    value = plain(value)
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise ValueError("expected text, got half a character (a lone surrogate)") from error
        return value
    if isinstance(value, float) and math.isinf(value):
        return str(value)
    return value if isinstance(value, bool | int | float) else str(value)
