"""Labelled texts on their way into a corpus. Many of them are packed, and unpacked as they are read."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from operator import attrgetter
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from heedmap.data.compact import MANY, CompactStrings, CompactTokens
from heedmap.data.item_vectors import ItemVectors
from heedmap.nouns import BAGS, Nouns

TEXT_COLUMNS = (
    "text", "sentence", "review", "content", "document", "comment", "message", "body", "tweet", "post",
    "feedback", "description", "question",
)  # fmt: skip
PICTURE_COLUMNS = ("image", "picture", "img")
LABEL_COLUMNS = ("label", "labels", "sentiment", "class", "category", "stars", "accept")
AMOUNT_COLUMNS = (*LABEL_COLUMNS, "score", "rating", "similarity")
BLOCK = 8192  # rows that are packed together


@dataclass(frozen=True, slots=True)
class Row:
    """A labelled text, or a pair: attention is paid to `tokens`, given `query`.

    `label` is its class by name, empty where the data say none. `rationale` says which tokens are known to
    decide the label; `candidates` are the labels that are possible answers for this row, None where all are.
    `written` is the text before it became tokens. `target` is the place of the word that a model is asked
    about, if it is asked of words, and `choices` the two words of which one is hidden there. `amount` is the
    label where that is a number, not a class.
    """

    key: str
    tokens: list[str]
    label: str
    rationale: NDArray[np.bool_] | None = None
    query: list[str] | None = None
    candidates: tuple[str, ...] | None = None
    written: str | None = None
    target: int | None = None
    choices: tuple[str, str] | None = None
    amount: float | None = None


_EXTRAS = ("rationale", "query", "candidates", "target", "choices", "amount")


class _Block(Sequence[Row]):
    """Rows without anything but a key, tokens, a label and the text as it was written."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._keys = CompactStrings(row.key for row in rows)
        self._tokens = CompactTokens(row.tokens for row in rows)
        self._labels = [row.label for row in rows]
        written = [row.written for row in rows if row.written is not None]
        self._written = CompactStrings(written) if written else None

    def column(self, name: str) -> Iterable[Any]:
        columns = {"key": self._keys, "tokens": self._tokens, "label": self._labels}
        values = self._written if name == "written" else columns.get(name)
        return repeat(None, len(self)) if values is None else values

    @staticmethod
    def holds(rows: Sequence[Row]) -> bool:
        """Return whether nothing of some rows would be lost."""
        is_plain = all(getattr(row, name) is None for row in rows for name in _EXTRAS)
        return is_plain and len({row.written is None for row in rows}) == 1

    def __len__(self) -> int:
        return len(self._labels)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        if isinstance(index, slice):
            return [self[i] for i in range(len(self))[index]]
        written = None if self._written is None else self._written[index]
        return Row(self._keys[index], self._tokens[index], self._labels[index], written=written)

    def __iter__(self) -> Iterator[Row]:
        columns = (self.column(name) for name in ("key", "tokens", "label", "written"))
        for key, tokens, label, written in zip(*columns, strict=True):
            yield Row(key, tokens, label, None, None, None, written)


class PackedRows(Sequence[Row]):
    """Rows, from MANY on in blocks, of which those that can be are packed: a row is made when it is read."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self._blocks: list[Sequence[Row]] = []
        self._last: list[Row] = []
        for row in rows:
            self.append(row)

    def append(self, row: Row) -> None:
        """Add a row at the end."""
        self._last.append(row)
        if len(self._last) >= (BLOCK if self._blocks else max(BLOCK, MANY)):
            self._pack()

    def _pack(self) -> None:
        whole = len(self._last) - len(self._last) % BLOCK
        for start in range(0, whole, BLOCK):
            block = self._last[start : start + BLOCK]
            self._blocks.append(_Block(block) if _Block.holds(block) else block)
        self._last = self._last[whole:]

    def column(self, name: str) -> Iterator[Any]:
        """Yield what all rows have under a name."""
        for block in (*self._blocks, self._last):
            if isinstance(block, _Block):
                yield from block.column(name)
            else:
                yield from map(attrgetter(name), block)

    def __len__(self) -> int:
        return BLOCK * len(self._blocks) + len(self._last)

    def __iter__(self) -> Iterator[Row]:
        for block in (*self._blocks, self._last):
            yield from block

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        if isinstance(index, slice):
            return gathered(self[i] for i in range(len(self))[index])
        i, packed = range(len(self))[index], BLOCK * len(self._blocks)
        return self._last[i - packed] if i >= packed else self._blocks[i // BLOCK][i % BLOCK]


def gathered(rows: Iterable[Row]) -> Sequence[Row]:
    """Return rows as a list, or packed if there are MANY."""
    packed = rows if isinstance(rows, PackedRows) else PackedRows(rows)
    return packed if len(packed) >= MANY else list(packed)


def column(rows: Sequence[Row], name: str) -> Iterator[Any]:
    """Yield what rows have under a name; of packed ones nothing else is unpacked."""
    return rows.column(name) if isinstance(rows, PackedRows) else map(attrgetter(name), rows)


def chosen(rows: Sequence[Row], is_chosen: Callable[[str], bool]) -> Sequence[Row]:
    """Return the rows whose labels are chosen; the same object if all are."""
    labels = {*column(rows, "label")}
    if all(map(is_chosen, labels)):
        return rows
    if not any(map(is_chosen, labels)):
        return []
    return gathered(row for row in rows if is_chosen(row.label))


Parts = Mapping[str, Sequence[Row]]
"""Rows by split; those of a source without splits are `all`."""


@dataclass(frozen=True)
class LabelledTexts:
    """Rows by split, with counts of what was left out by its reason, and notes on how they were read.

    `columns` are the names of the columns that were read, by the names of their settings, where all tables have
    the same. `vectors` are those of the items, where the texts are bags or pictures; `nouns` says which.
    """

    parts: Parts
    left_out: Mapping[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    vectors: ItemVectors | None = None
    nouns: Nouns = BAGS


@dataclass(frozen=True)
class ColumnSpec:
    """Names that a column may have, the first that is there, and how a text becomes tokens.

    The first name of the text may be of several columns that are joined: title,content. Without a name for the
    label none is read. `clean` changes a text before it becomes tokens. `role`: what the column of the text is
    called, which of bags has their ids.
    """

    text: Sequence[str] = TEXT_COLUMNS
    label: Sequence[str] = LABEL_COLUMNS
    query: Sequence[str] = ()
    tokenize: Callable[[str], list[str]] | None = None
    clean: Callable[[str], str] | None = None
    role: str = "text"
