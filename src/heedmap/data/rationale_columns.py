"""Which words people marked, from a table's columns, as a mask of the tokens that the text is read as.

* `evidence_spans`: [[start, end), ...] over the text's words, which are separated by white space.
* `token_labels`: as in SST, the sentiment of each of these words from 0 (negative) to 4. A word is marked if it
  is on the side of the text's label: above 2 in a positive text, below 2 in a negative one.
"""

import json
import reprlib
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from heedmap.data.columns import Rows
from heedmap.data.labels import label_text
from heedmap.errors import InputError

NOT_FOUND = "marks not found on the tokens (kept)"
SPANS, SENTIMENT = "evidence_spans", "token_labels"
Marks = NDArray[np.bool_]
Tokenize = Callable[[str], list[str]]
_POSITIVE = {"0": False, "negative": False, "1": True, "positive": True}
ReadMarks = Callable[[int, str], tuple[list[str], Marks]]
"""Of one row (its number, its label): its words, and which of them are marked."""


def marked_words(rows: Rows, text: str, label: str | None) -> ReadMarks | None:
    """Return what reads the marked words of each row of a table, None where it has no such column.

    A column `token_labels` is read only if every row has a number from 0 to 4 for each word, and the labels are
    negative and positive: it might be of anything.
    """
    if SPANS in rows.columns:
        values, texts = rows.values(SPANS), rows.values(text)

        def by_spans(number: int, label: str) -> tuple[list[str], Marks]:
            words = str(texts[number]).split()
            return words, mask_of(read_spans(values[number]), len(words), SPANS)

        return by_spans
    if SENTIMENT not in rows.columns or label is None:
        return None
    # Jain & Wallace's text of SST has no marks; the labels are those of the treebank's words.
    texts = rows.values("text" if "text" in rows.columns else text)
    words_of = [[] if value is None else str(value).split() for value in texts]
    sentiments = [_sentiment(value) for value in rows.values(SENTIMENT)]
    classes = {label_text(value) for value in rows.values(label) if not pd.isna(value)}
    if not classes <= set(_POSITIVE) or any(
        sentiment is None or len(sentiment) != len(words)
        for sentiment, words in zip(sentiments, words_of, strict=True)
    ):
        return None

    def by_sentiment(number: int, label: str) -> tuple[list[str], Marks]:
        sentiment = sentiments[number]
        assert sentiment is not None
        return words_of[number], on_side(sentiment, label)

    return by_sentiment


def on_side(sentiment: NDArray[np.int64], label: str) -> Marks:
    """Return the words whose sentiment (0 to 4) is on the side of the label; none for any other label."""
    if label not in _POSITIVE:
        return np.zeros(len(sentiment), dtype=bool)
    marked: Marks = sentiment > 2 if _POSITIVE[label] else sentiment < 2
    return marked


def _sentiment(value: Any) -> NDArray[np.int64] | None:
    numbers = _parsed(value)
    if not isinstance(numbers, list) or not all(type(x) is int and 0 <= x <= 4 for x in numbers):
        return None
    return np.array(numbers, dtype=np.int64)


def read_spans(value: Any) -> list[tuple[int, int]]:
    """Return the spans of one row; none where the value is missing.

    Raises:
        InputError: it is no list of [start, end].
    """
    spans = _parsed(value)
    if spans is None:
        return []
    if not isinstance(spans, list) or not all(
        isinstance(span, list) and len(span) == 2 and all(type(x) is int for x in span)
        for span in spans
    ):
        raise InputError(
            f"{SPANS}: expected a list of [start, end] of words, got {reprlib.repr(value)}"
        )
    return [(start, end) for start, end in spans]


def _parsed(value: Any) -> Any:
    """Return the list that a CSV file has as a text; nothing for an empty text and for NaN."""
    if isinstance(value, str) and value.strip():
        try:
            return json.loads(value)
        except ValueError:
            return value
    return None if value is None or isinstance(value, float | str) else value


def mask_of(spans: Sequence[tuple[int, int]], count: int, source: str) -> Marks:
    """Return the mask of some spans among `count` words, of a source that errors name.

    Raises:
        InputError: a span is empty or not within the words.
    """
    mask = np.zeros(count, dtype=bool)
    for start, end in spans:
        if not 0 <= start < end <= count:
            raise InputError(
                f"{source}: expected spans [start, end) within the text's {count} words, got "
                f"[{start}, {end}]"
            )
        mask[start:end] = True
    return mask


def on_tokens(
    words: Sequence[str], marked: Marks, tokens: Sequence[str], tokenize: Tokenize
) -> Marks | None:
    """Return which tokens come from a marked word; None where they are not the words' own tokens.

    A text's tokens, or the words of its sentences, are those of its words, one word after the other: no
    tokenizer of ours changes a word for what is beside it. A token is marked if it has a part of a marked word.
    """
    parts = [[part for token in tokenize(word) for part in token.split()] for word in words]
    of_tokens = [token.split() for token in tokens]
    if [p for part in parts for p in part] != [p for token in of_tokens for p in token]:
        return None
    marks = np.repeat(marked, [len(part) for part in parts])
    ends = np.cumsum([0, *map(len, of_tokens)])
    return np.array([marks[a:b].any() for a, b in pairwise(ends)], dtype=bool)


def rationale_of(
    words: Sequence[str], marked: Marks, tokens: Sequence[str], tokenize: Tokenize
) -> tuple[Marks, bool]:
    """Return which tokens people marked, and whether that is known: where it is not, none is (`on_tokens`)."""
    marks = on_tokens(words, marked, tokens, tokenize)
    return (np.zeros(len(tokens), dtype=bool), False) if marks is None else (marks, True)
