"""Sequences of many texts in less than half the memory that lists of Python's own strings take."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import overload

import numpy as np

MANY = 50_000  # texts of a split from which on they are held so
AT_ONCE = 8192  # texts whose numbers are read together


class CompactTokens(Sequence[list[str]]):
    """Lists of tokens: each distinct one once, and a number per token."""

    def __init__(self, lists: Iterable[Sequence[str]]) -> None:
        number: dict[str, int] = {}
        sizes: list[int] = []

        def numbers() -> Iterable[int]:
            for tokens in lists:
                sizes.append(len(tokens))
                for token in tokens:
                    yield number.setdefault(token, len(number))

        self._numbers = np.fromiter(numbers(), dtype=np.int32)
        self._ends = np.cumsum([0, *sizes], dtype=np.int64)
        self._tokens = list(number)

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Sequence)
            and len(self) == len(other)
            and all(a == b for a, b in zip(self, other, strict=True))
        )

    __hash__ = None  # type: ignore[assignment]  # as lists

    @overload
    def __getitem__(self, index: int) -> list[str]: ...
    @overload
    def __getitem__(self, index: slice) -> list[list[str]]: ...
    def __getitem__(self, index: int | slice) -> list[str] | list[list[str]]:
        if isinstance(index, slice):
            return [self[i] for i in range(len(self))[index]]
        i = range(len(self))[index]
        return [self._tokens[n] for n in self._numbers[self._ends[i] : self._ends[i + 1]].tolist()]

    def __iter__(self) -> Iterator[list[str]]:
        tokens = self._tokens
        for start in range(0, len(self), AT_ONCE):
            ends = self._ends[start : start + AT_ONCE + 1]
            numbers = self._numbers[ends[0] : ends[-1]].tolist()
            for first, end in pairwise((ends - ends[0]).tolist()):
                yield [tokens[number] for number in numbers[first:end]]


class CompactStrings(Sequence[str]):
    """Strings, as the bytes of all of them together."""

    def __init__(self, strings: Iterable[str]) -> None:
        sizes: list[int] = []
        content = bytearray()
        for string in strings:
            encoded = string.encode("utf-8", "surrogatepass")
            sizes.append(len(encoded))
            content += encoded
        self._bytes = content
        self._ends = np.cumsum([0, *sizes], dtype=np.int64)

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[i] for i in range(len(self))[index]]
        i = range(len(self))[index]
        content = self._bytes[self._ends[i] : self._ends[i + 1]]
        return content.decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), AT_ONCE):
            for first, end in pairwise(self._ends[start : start + AT_ONCE + 1].tolist()):
                yield self._bytes[first:end].decode("utf-8", "surrogatepass")
