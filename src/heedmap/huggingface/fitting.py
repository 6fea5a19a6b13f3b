"""Fit texts to a model: cut long ones or split them into windows, and merge words that share a weight.

All changes are counted.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from heedmap.data.corpus import Split
from heedmap.data.texts import Asked, Pair, Text, TwoTexts, as_one
from heedmap.errors import InputError
from heedmap.huggingface.truncation import Truncated, too_long

Lengths = Callable[[Sequence[Text]], NDArray[np.int64]]
Cut = Callable[[Text], Truncated | None]
OwnWords = Callable[[Sequence[Text]], Iterable[Sequence[int]]]


def fit(
    split: Split, lengths: Lengths, longest: int, cut: Cut | None
) -> tuple[Split, dict[str, int]]:
    """Return the split with no text of more than `longest` positions, and how many were longer.

    `cut` keeps what the model reads of a text, or returns None if it fits. Without it there is one row for each
    stretch of words that fits, of a pair with its whole query, with the text's label and the key `KEY#number`;
    the rows of a text stay one instance (`text_of`).

    Raises:
        InputError: nearly all texts are one long word, as proteins are; a single word takes more positions than
            the model reads; windows of both texts of a pair.
    """
    texts = split.texts
    sizes = lengths(texts)
    alone = sizes[[len(text) == 1 and not isinstance(text, Pair | TwoTexts) for text in texts]]
    if len(alone) >= 0.9 * len(texts) and alone.mean() > 8:  # special ones included
        raise InputError(
            f"expected texts of words with spaces between them, got {len(alone)} of {len(texts)} that are one "
            f"word each, of {alone.mean():.0f} positions on average (proteins, DNA?); a word alone has all the "
            "weight: put spaces between the units, if the model is trained so"
        )
    long = np.flatnonzero(sizes > longest)
    if not len(long):
        return split, {}
    rows: list[int] = []
    keys: list[str] = []
    spans: list[tuple[int, int]] = []
    kept_texts: list[Text] = []
    unread = 0
    for row, text in enumerate(texts):
        if sizes[row] <= longest:
            parts = [(0, len(text), text)]
        elif cut is not None:
            parts = [cut(text) or (0, len(text), text)]
        else:
            parts = _windows(text, lengths, longest)
        if isinstance(text, Asked):
            parts = [(start, end, part) for start, end, part in parts if start <= text.target < end]
            unread += not parts
        for number, (start, end, kept_text) in enumerate(parts):
            rows.append(row)
            keys.append(split.keys[row] + (f"#{number}" if len(parts) > 1 else ""))
            spans.append((start, end))
            kept_texts.append(kept_text)
    spread = split.take(rows)
    marks = spread.rationale
    if marks is not None:
        marks = [mark[a:b] for mark, (a, b) in zip(marks, spans, strict=True)]
    done = "cut" if cut else f"read as {len(rows) - len(split) + len(long)} windows"
    count = {f"longer than the model's {longest} positions, {done} (kept)": len(long)}
    if unread:
        count[f"longer than the model's {longest} positions, its word lies beyond them"] = unread
    if not rows:
        raise InputError(
            f"expected texts with the word that is asked about within the model's {longest} positions, got none"
        )
    targets = [text.target for text in kept_texts if isinstance(text, Asked)]
    seconds = [text.second for text in kept_texts if isinstance(text, TwoTexts)]
    return replace(
        spread,
        keys=keys,
        tokens=[list(text) for text in kept_texts],
        rationale=marks,
        queries=[list(text.query) for text in kept_texts if isinstance(text, Pair)] or None,
        seconds=np.array(seconds, dtype=np.int64) if seconds else None,
        targets=np.array(targets, dtype=np.int64) if targets else None,
        text_of=None if cut or targets else np.array(rows, dtype=np.int64),
        written=None,
    ), count


def merge(split: Split, own_words: OwnWords) -> tuple[Split, dict[str, int]]:
    """Merge neighbouring words that share a sub-word; return the split and how many words were merged away.

    A model has one weight per sub-word: giving it to one of two words would invent a 0 for the other.
    A merged word is in the rationale if any part of it is.
    """
    starts = list(own_words(split.texts))
    sizes = [
        len(words) - len(word_starts)
        for words, word_starts in zip(split.tokens, starts, strict=True)
    ]
    if not any(sizes):
        return split, {}
    tokens = [
        [
            as_one(words[a:b])
            for a, b in zip(word_starts, [*word_starts[1:], len(words)], strict=True)
        ]
        for words, word_starts in zip(split.tokens, starts, strict=True)
    ]
    marks, seconds = split.rationale, split.seconds
    if marks is not None:
        marks = [
            np.logical_or.reduceat(mask, word_starts) if word_starts else mask
            for mask, word_starts in zip(marks, starts, strict=True)
        ]
    if seconds is not None:  # the second text's first word begins there, and is never merged away
        seconds = np.array(
            [np.searchsorted(s, second) for s, second in zip(starts, seconds, strict=True)]
        )
    targets = split.targets
    if targets is not None:
        targets = np.array(
            [
                np.searchsorted(word_starts, target, side="right") - 1
                for word_starts, target in zip(starts, targets, strict=True)
            ]
        )
    texts = split.take(np.flatnonzero(sizes)).whole_texts
    where = "1 text" if texts == 1 else f"{texts} texts"
    count = f"words merged with a neighbour that shares a sub-word, in {where} (kept)"
    merged = replace(split, tokens=tokens, rationale=marks, seconds=seconds, targets=targets)
    return merged, {count: sum(sizes)}


def _windows(text: Text, lengths: Lengths, longest: int) -> list[tuple[int, int, Text]]:
    if isinstance(text, TwoTexts):
        raise InputError(
            "--long-texts windows: expected one text that attention is audited over, got both texts of a pair; "
            "cut long pairs, or choose --side text or query"
        )

    def part(start: int, end: int) -> Text:
        words = text[start:end]
        if isinstance(text, Asked):
            return replace(text, tokens=words, target=text.target - start)
        return replace(text, tokens=words) if isinstance(text, Pair) else words

    windows = []
    start = 0
    while start < len(text):
        end = _end(part, start, len(text), lengths, longest)
        if end == start:
            raise too_long(text[start], longest)
        windows.append((start, end, part(start, end)))
        start = end
    return windows


def _end(
    part: Callable[[int, int], Text], start: int, size: int, lengths: Lengths, longest: int
) -> int:
    """Return the last end for which part(start, end) fits, by bisection; the start if none does."""
    low, high = start, min(size, start + longest)  # a word has at least one position
    while low < high:
        middle = (low + high + 1) // 2
        if lengths([part(start, middle)])[0] <= longest:
            low = middle
        else:
            high = middle - 1
    return low
