"""What the values of a column of texts say: texts, or lists of words."""

import json
import re
import reprlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

from heedmap.data.columns import Rows
from heedmap.data.labels import is_missing, plain, written_value
from heedmap.data.markup import without_html
from heedmap.data.rows import ColumnSpec
from heedmap.errors import InputError
from heedmap.settings.data import DataSettings

_QUOTED = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
_ENDS = {"[]": "brackets", "()": "brackets", "''": "single quotes"}
_LIST = re.compile(rf"\[\s*(?:{_QUOTED}(?:\s*,\s*|\s+|(?=\s*\])))*\]", re.DOTALL)


def text_values(rows: Rows, column: str) -> tuple[list[Any], list[str]]:
    """Return the values of a column of texts, and notes; where all are lists, their words with spaces between.

    Raises:
        InputError: half a character in a list that is written as text, or, where others are lists of words, a
            list that holds something else, with the row.
    """
    values = rows.values(column)
    lists = [list_of_words(value) for value in values]
    some_words = any(lists)
    for i, (value, words) in enumerate(zip(values, lists, strict=True)):
        if some_words and words is None and isinstance(value, list | tuple):
            stranger = next(word for word in value if not isinstance(word, str))
            raise InputError(
                f"{rows.place_of(i)}: expected a list of words in column {column}, as in other rows, got "
                f"{reprlib.repr(stranger)} in it; write each word as text, or leave the row out"
            )
    count = sum(words is not None for words in lists)
    if not count:
        return values, _enclosed(values, column)
    present = sum(not is_missing(value) for value in values)
    if count == present:
        for i in (i for i, words in enumerate(lists) if not _is_whole(words)):
            raise InputError(
                f"{rows.place_of(i)}: expected text, got half a character (a lone surrogate) in column "
                f"{column}; write it whole, or leave the row out"
            )
        note = (
            f"texts in column {column} are lists of words, of which each is read with a space between its "
            "words"
        )
        return [None if words is None else " ".join(words) for words in lists], [note]
    if any(
        isinstance(value, str) and words is not None
        for value, words in zip(values, lists, strict=True)
    ):
        note = (
            f"texts in column {column} that are lists written as text: {count} of {present}; their brackets "
            "and quotes are read as marks: write them as plain text"
        )
        return values, [note]
    return values, []


def _enclosed(values: Sequence[Any], column: str) -> list[str]:
    """Note texts that are read with what encloses them, where most begin and end so."""
    texts = [value.strip() for value in values if isinstance(value, str) and value.strip()]
    ends = Counter(text[0] + text[-1] for text in texts if len(text) > 1)
    return [
        f"texts in column {column} that are in {marks}: {ends[end]} of {len(texts)}; these marks are read as "
        "part of the text: if they are none, write the texts without them"
        for end, marks in _ENDS.items()
        if 2 * ends[end] > len(texts)
    ]


def list_of_words(value: Any) -> list[str] | None:
    """Return the words of a list, or of one that is written as text; None where a value is neither.

    >>> list_of_words("['a', 'b c']"), list_of_words("['a' 'b']"), list_of_words("[sic]")
    (['a', 'b c'], ['a', 'b'], None)
    """
    if isinstance(value, str):
        text = value.strip()
        if not _LIST.fullmatch(text):
            return None
        try:
            return list(json.loads(text))
        except ValueError:
            pass
        try:
            return [written_value(word) for word in re.findall(_QUOTED, text)]
        except ValueError:
            return None
    if isinstance(value, list | tuple) and all(isinstance(word, str) for word in value):
        return [str.__str__(word) for word in value]
    return None


def _is_whole(words: Sequence[str] | None) -> bool:
    try:
        "".join(words or ()).encode()
    except UnicodeEncodeError:
        return False
    return True


def written_text(value: Any, column: str, settings: DataSettings, spec: ColumnSpec) -> str:
    """Return a value as a text, without markup where the settings say so; empty where it is missing.

    It is cleaned as its data set is.

    Raises:
        InputError: a list, an object or bytes.
    """
    if is_missing(value):
        return ""
    try:
        text = str(plain(value))
    except InputError as error:
        raise InputError(f"expected a text, got {column} = {reprlib.repr(value)}") from error
    if settings.markup == "text":
        text = without_html(text)
    return text if spec.clean is None else spec.clean(text)
