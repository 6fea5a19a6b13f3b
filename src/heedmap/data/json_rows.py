"""Read the rows of a JSON file: one object per line, objects one after another, or one list of them.

The standard library parses it. pyarrow's reader changes what is written (the labels 1 and 2.5 become 1.0 and
2.5, null among numbers becomes NaN), and refuses a column that holds a list in one row and none in another.
"""

import json
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from heedmap.data.columns import Rows, check_count
from heedmap.data.streams import check_utf8, first_line, open_bytes, reading
from heedmap.errors import InputError

_LINES = re.compile(r"\.(jsonl|ndjson)\b")
_SPACE = re.compile(r"[ \t\r\n]*")


def read_json(path: Path) -> Rows:
    """Read a JSON file; its columns are the names that any object has, missing in the others.

    A file of one object that holds the columns is read as such, with a note, unless its name says that it has
    rows in lines.

    Raises:
        InputError: not UTF-8, or not JSON objects, with the line.
    """
    check_utf8(path)
    with reading(path):
        rows, lines = _by_line(path)
    notes = []
    # A line of .jsonl is a row, even if it holds lists alone, as a sentence of labelled words does.
    is_object = len(rows) == 1 and not _LINES.search(path.name)
    if is_object and (columns := _by_columns(rows[0])) is not None:
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        lines = []
        notes = [f"one object that holds the columns: read as {len(rows)} rows"]
    with suppress(AttributeError, KeyError, TypeError):  # tables of anything else
        rows = [_task(row) for row in rows]
    names = list(dict.fromkeys(name for row in rows for name in row))
    check_count(path, names)

    def place_of(i: int) -> str:
        return f"{path}, line {lines[i]}" if lines else f"{path}, row {i + 1}"

    return Rows(
        names,
        len(rows),
        lambda name: [row.get(name) for row in rows],
        place_of=place_of,
        notes=notes,
    )


def _task(task: dict[str, Any]) -> dict[str, Any]:
    """Return a task of Label Studio's JSON export as a row, labelled with the choices of its annotators."""
    valid = [answer for answer in task["annotations"] if not answer.get("was_cancelled")]
    results = [result["value"] for answer in valid for result in answer["result"]]
    choices = dict.fromkeys(choice for value in results for choice in value.get("choices", ()))
    return {"id": task.get("id"), **task["data"], "label": [*choices]}


def _by_columns(value: dict[str, Any]) -> dict[str, list[Any]] | None:
    """Return the columns that an object holds, each as a list, or as pandas writes them, by index; else None.

    >>> _by_columns({"text": {"0": "a", "1": "b"}, "label": {"0": 1, "1": 0}})
    {'text': ['a', 'b'], 'label': [1, 0]}
    >>> _by_columns({"text": ["two", "words"], "label": "good"})
    """
    if len(value) < 2 or len({type(column) for column in value.values()}) > 1:
        return None
    first_column = next(iter(value.values()))
    if isinstance(first_column, dict) and all(
        column.keys() == first_column.keys() for column in value.values()
    ):
        columns = {
            name: [column[index] for index in first_column] for name, column in value.items()
        }
    elif isinstance(first_column, list) and len({len(column) for column in value.values()}) == 1:
        columns = value
    else:
        return None
    return columns if len(first_column) > 1 else None


def read_lines(path: Path) -> list[tuple[int, dict[str, Any]]]:
    """Read a file of exactly one JSON object per line; return each with the number of its line.

    Raises:
        InputError: cannot be read, not UTF-8, or a line that is no JSON object, with its number.
    """
    check_utf8(path)
    with reading(path):
        rows, lines = _by_line(path, alone=True)
    return [*zip(lines, rows, strict=True)]


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = {sys.intern(name): value for name, value in pairs}
    if len(mapping) < len(pairs):
        raise ValueError("a name is there twice in one object")
    return mapping


def _constant(name: str) -> None:
    if name != "NaN":  # as some write what is missing
        raise ValueError(f"{name} is no JSON number")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant)


def _decode(text: str, start: int = 0) -> tuple[Any, int]:
    try:
        value, end = _DECODER.raw_decode(text, start)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    except ValueError as error:
        if "integer string" in str(error):  # Python's own limit
            raise ValueError("a number of more than 4300 digits") from error
        raise
    if re.search(
        r"\\ud", text[start:end], re.IGNORECASE
    ):  # half a character cannot be written again
        json.dumps(value, ensure_ascii=False).encode()
    return value, _SPACE.match(text, end).end()  # type: ignore[union-attr]


def _lines(file: Iterable[bytes]) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not empty, with their numbers."""
    for number, line in enumerate(file, 1):
        if text := line.decode("utf-8-sig" if number == 1 else "utf-8").strip(" \t\r\n"):
            yield number, text


def _one(text: str) -> Any:
    """Decode a line of exactly one value."""
    value, end = _decode(text)
    if end < len(text):
        raise ValueError("more than one value in the line")
    return value


def _by_line(path: Path, *, alone: bool = False) -> tuple[list[dict[str, Any]], list[int]]:
    """Return the objects and the numbers of their lines; no numbers where an object is not a line.

    Where each must be `alone` in its line, other files are refused.
    """
    rows: list[dict[str, Any]] = []
    lines: list[int] = []
    with open_bytes(path) as file:
        for number, text in _lines(file):
            try:
                value = _one(text)
            except ValueError as error:
                if not (rows or alone):  # a value may span several lines
                    return _whole(path), []
                raise _broken(path, number, error) from error
            if isinstance(value, list) and not (rows or alone):
                return _whole(path), []
            rows.append(_checked(value, f"{path}, line {number}"))
            lines.append(number)
    return rows, lines


def _whole(path: Path) -> list[dict[str, Any]]:
    with open_bytes(path) as file:
        text = file.read().decode("utf-8-sig")
    values, position = [], _SPACE.match(text).end()  # type: ignore[union-attr]
    while position < len(text):
        try:
            value, position = _decode(text, position)
        except ValueError as error:
            number = getattr(error, "lineno", text.count("\n", 0, position) + 1)
            raise _broken(path, number, error) from error
        values.append(value)
    if len(values) == 1 and isinstance(values[0], list):
        values = values[0]
    return [_checked(value, f"{path}, row {row}") for row, value in enumerate(values, 1)]


def _checked(value: object, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{place}: expected a JSON object, got {type(value).__name__}")
    return value


def _broken(path: Path, line: int, error: ValueError) -> InputError:
    reason = getattr(error, "msg", None) or first_line(error)
    return InputError(f"{path}, line {line}: broken JSON ({reason}); expected one object a line")
