"""Fit texts to a model: cut long ones or split them into windows, and merge words that share a weight.

All changes are counted.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from heedmap.data.corpus import Split
from heedmap.huggingface.inputs import Truncated, too_long

Lengths = Callable[[Sequence[Sequence[str]]], NDArray[np.int64]]
Cut = Callable[[Sequence[str]], Truncated | None]
AT_WORDS = (
    "cut between words, since no part of the text has the tokens that the tokenizer keeps (kept)"
)
OwnWords = Callable[[Sequence[Sequence[str]]], Iterable[Sequence[int]]]


def fit(
    split: Split, lengths: Lengths, longest: int, cut: Cut | None
) -> tuple[Split, dict[str, int]]:
    """Return the split with no text of more than `longest` positions, and how many were longer.

    `cut` keeps what the model reads of a text, or returns None if it fits. Without it there is one row for each
    stretch of words that fits, with the text's label and the key `KEY#number`; the rows of a text stay one
    instance (`text_of`).

    Raises:
        InputError: a single word takes more positions than the model reads.
    """
    sizes = lengths(split.tokens)
    long = np.flatnonzero(sizes > longest)
    if not len(long):
        return split, {}
    rows: list[int] = []
    keys: list[str] = []
    spans: list[tuple[int, int]] = []
    tokens: list[list[str]] = []
    at_words = 0
    for row in range(len(split)):
        words = split.tokens[row]
        if sizes[row] <= longest:
            parts = [(0, len(words), words)]
        elif cut is not None:
            start, end, kept_words, exact = cut(words) or Truncated(
                0, len(words), words, exact=True
            )
            parts, at_words = [(start, end, kept_words)], at_words + (not exact)
        else:
            parts = [(a, b, words[a:b]) for a, b in _windows(words, lengths, longest)]
        for number, (start, end, kept_words) in enumerate(parts):
            rows.append(row)
            keys.append(split.keys[row] + (f"#{number}" if len(parts) > 1 else ""))
            spans.append((start, end))
            tokens.append(kept_words)
    spread = split.take(rows)
    marks = spread.rationale
    if marks is not None:
        marks = [mark[a:b] for mark, (a, b) in zip(marks, spans, strict=True)]
    done = "cut" if cut else f"read as {len(rows) - len(split) + len(long)} windows"
    count = {f"longer than the model's {longest} positions, {done} (kept)": len(long)}
    if at_words:
        count[AT_WORDS] = at_words
    windows = None if cut else np.array(rows, dtype=np.int64)
    return Split(keys, tokens, spread.labels, marks, text_of=windows), count


def merge(split: Split, own_words: OwnWords) -> tuple[Split, dict[str, int]]:
    """Merge neighbouring words that share a sub-word; return the split and how many words were merged away.

    A model has one weight per sub-word: giving it to one of two words would invent a 0 for the other.
    A merged word is in the rationale if any part of it is.
    """
    starts = list(own_words(split.tokens))
    sizes = [
        len(words) - len(word_starts)
        for words, word_starts in zip(split.tokens, starts, strict=True)
    ]
    if not any(sizes):
        return split, {}
    tokens = [
        [
            "".join(words[a:b])
            for a, b in zip(word_starts, [*word_starts[1:], len(words)], strict=True)
        ]
        for words, word_starts in zip(split.tokens, starts, strict=True)
    ]
    marks = split.rationale
    if marks is not None:
        marks = [
            np.logical_or.reduceat(mask, word_starts) if word_starts else mask
            for mask, word_starts in zip(marks, starts, strict=True)
        ]
    texts = split.take(np.flatnonzero(sizes)).whole_texts
    count = f"words merged with a neighbour that shares a sub-word, in {texts} texts (kept)"
    return replace(split, tokens=tokens, rationale=marks), {count: sum(sizes)}


def _windows(words: Sequence[str], lengths: Lengths, longest: int) -> list[tuple[int, int]]:
    spans = []
    start = 0
    while start < len(words):
        end = _end(words, start, lengths, longest)
        spans.append((start, end))
        start = end
    return spans


def _end(words: Sequence[str], start: int, lengths: Lengths, longest: int) -> int:
    """Return the last end for which words[start:end] fits, by bisection."""
    low, high = start, min(len(words), start + longest)  # a word has at least one position
    while low < high:
        middle = (low + high + 1) // 2
        if lengths([words[start:middle]])[0] <= longest:
            low = middle
        else:
            high = middle - 1
    if low == start:
        raise too_long(words[start], longest)
    return low
