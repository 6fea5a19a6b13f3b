"""Texts longer than a model reads: cut, or read window by window; counted either way."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from heedmap.data.corpus import Split
from heedmap.errors import InputError

Lengths = Callable[[Sequence[Sequence[str]]], NDArray[np.int64]]


def fit(split: Split, lengths: Lengths, longest: int, how: str) -> tuple[Split, dict[str, int]]:
    """The split with no text of more than `longest` positions, and how many were longer.

    "cut" keeps the words from the start that fit. "windows" makes each stretch of words that fits an
    instance of its own, with the text's label and the key `KEY#number`.

    Raises:
        InputError: a single word has more positions than the model reads.
    """
    sizes = lengths(split.tokens)
    long = np.flatnonzero(sizes > longest)
    if not len(long):
        return split, {}
    rows: list[int] = []
    keys: list[str] = []
    starts: list[tuple[int, int]] = []
    for row in range(len(split)):
        words = split.tokens[row]
        if sizes[row] <= longest:
            spans = [(0, len(words))]
        else:
            spans = _windows(words, lengths, longest, only_first=how == "cut")
        for number, span in enumerate(spans):
            rows.append(row)
            keys.append(split.keys[row] + (f"#{number}" if len(spans) > 1 else ""))
            starts.append(span)
    taken = split.take(rows)
    tokens = [words[a:b] for words, (a, b) in zip(taken.tokens, starts, strict=True)]
    marks = taken.rationale
    if marks is not None:
        marks = [mark[a:b] for mark, (a, b) in zip(marks, starts, strict=True)]
    done = "cut (kept)" if how == "cut" else f"read as {len(rows) - len(split) + len(long)} windows"
    count = {f"longer than the model's {longest} positions, {done}": len(long)}
    return Split(keys, tokens, taken.labels, marks), count


def _windows(
    words: Sequence[str], lengths: Lengths, longest: int, *, only_first: bool
) -> list[tuple[int, int]]:
    spans = []
    start = 0
    while start < len(words):
        end = _end(words, start, lengths, longest)
        spans.append((start, end))
        if only_first:
            break
        start = end
    return spans


def _end(words: Sequence[str], start: int, lengths: Lengths, longest: int) -> int:
    """The last end for which words[start:end] fits, by halving."""
    low, high = start, min(len(words), start + longest)  # a word is a position at least
    while low < high:
        middle = (low + high + 1) // 2
        if lengths([words[start:middle]])[0] <= longest:
            low = middle
        else:
            high = middle - 1
    if low == start:
        raise InputError(
            f"expected words that fit the model's {longest} positions, got one that does not: "
            f"{words[start]!r:.60}"
        )
    return low
