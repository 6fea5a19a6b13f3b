"""What the columns of a table mean. Each experiment says it of its own, where the table is made."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

import pyarrow as pa

SHARED = {
    "row": ("number, from 0", "the text among those audited, or the window of a long one"),
    "label": ("class", "what the data say; null where they say none"),
    "predicted": ("class", "what the model predicts"),
    "n_tokens": ("count, from 1", "tokens of the text"),
    "max_attention": ("0 to 1", "the largest weight of the heat map"),
}
"""Columns that many tables have. A class is its number in `audit.classes`."""
_PART = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Column:
    """A column of a table, or a family of them: its range or unit, and its meaning."""

    name: str
    range: str
    meaning: str


class Columns:
    """The description of a table's columns.

    Args:
        rows: what a row is, and where numbers are null or NaN.
        described: range or unit, and meaning, by name. `tau_{measure}` is a family, with a column for each of
            `values["measure"]`, which maps the name's part to the words that replace `{measure}` in the
            meaning. Without such values any part will do.
    """

    def __init__(
        self,
        rows: str = "",
        described: Mapping[str, tuple[str, str]] | None = None,
        **values: Mapping[str, str],
    ) -> None:
        self.rows, self.values = rows, values
        self.described = [Column(name, *said) for name, said in (described or {}).items()]

    def __iter__(self) -> Iterator[tuple[str, Column]]:
        """Yield each described name with its description, a family member by member."""
        for column in self.described:
            parts = [part for part in _PART.findall(column.name) if part in self.values]
            for members in product(*(self.values[part] for part in parts)):
                names = dict(zip(parts, members, strict=True))
                words = {part: self.values[part][name] for part, name in names.items()}
                yield (
                    _filled(column.name, names),
                    replace(
                        column,
                        range=_filled(column.range, words),
                        meaning=_filled(column.meaning, words),
                    ),
                )

    def of(self, name: str) -> Column | None:
        """Return the description of a column; None if there is none."""
        for described, column in self:
            pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.+)", re.escape(described))
            if match := re.fullmatch(pattern, name):
                return replace(column, meaning=_filled(column.meaning, match.groupdict()))
        return None


def shared(*names: str) -> dict[str, tuple[str, str]]:
    """Return the descriptions of columns that many tables have."""
    return {name: SHARED[name] for name in names}


def type_of(kind: pa.DataType) -> str:
    """Return an Arrow type in words.

    >>> type_of(pa.list_(pa.float32())), type_of(pa.int64()), type_of(pa.bool_())
    ('list of number', 'integer', 'true or false')
    """
    if pa.types.is_list(kind):
        return f"list of {type_of(kind.value_type)}"
    if pa.types.is_integer(kind):
        return "integer"
    if pa.types.is_boolean(kind):
        return "true or false"
    return "number" if pa.types.is_floating(kind) else "text"


def _filled(text: str, words: Mapping[str, str]) -> str:
    """Replace `{name}` where a word is given for it."""
    return _PART.sub(lambda match: words.get(match[1], match[0]), text)
