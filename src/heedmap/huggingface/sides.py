"""Give texts and pairs of texts to a tokenizer, and find the word of each position that it makes of them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Int
from numpy.typing import NDArray
from transformers import BatchEncoding, PreTrainedTokenizerBase

from heedmap.data.texts import Pair, Text, TwoTexts
from heedmap.importance.words import own_words, word_of_positions

OUTSIDE = -1  # of the words and the sides: a position of a special token


class Side(NamedTuple):
    """One of the texts that are read in a row; `start` numbers its first word, None if no map is of it."""

    words: Sequence[str]
    start: int | None

    @property
    def text(self) -> str:
        """Return the side as it is written."""
        return "".join(self.words)


def sides_of(text: Text) -> list[Side]:
    """Return the sides of a text in the order in which they are read: one, or a pair's two."""
    if isinstance(text, TwoTexts):
        first_side, second_side = text.sides
        return [Side(first_side, 0), Side(second_side, text.second)]
    if isinstance(text, Pair):
        audited, query = Side(text.tokens, 0), Side(text.query, None)
        return [query, audited] if text.query_first else [audited, query]
    return [Side(text, 0)]


def tokenized(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[Text], **options: object
) -> BatchEncoding:
    """Tokenise texts, or pairs with the separators and token types that the tokenizer gives them."""
    sides = [sides_of(text) for text in texts]
    columns = [[side.text for side in column] for column in zip(*sides, strict=True)]
    encoding: BatchEncoding = tokenizer(*columns, verbose=False, **options)
    return encoding


def words_of_positions(encoding: BatchEncoding, row: int, text: Text) -> NDArray[np.int64]:
    """Return the word of each position of one text of an encoding with offsets and special tokens marked.

    −1 for special tokens, and for the side of a pair that no map is of.
    """
    words = np.full(len(encoding["input_ids"][row]), OUTSIDE, dtype=np.int64)
    for pieces, start, spans, special in _spans(encoding, row, text):
        numbers_in_side = np.array(word_of_positions(pieces, spans, special), dtype=np.int64)
        words = np.where(numbers_in_side >= 0, numbers_in_side + start, words)
    return words


def own_words_of(encoding: BatchEncoding, row: int, text: Text) -> list[int]:
    """Return where the words of one text must begin so that no two share a sub-word (see `own_words`)."""
    return [
        start + word
        for pieces, start, spans, special in _spans(encoding, row, text)
        for word in own_words(pieces, spans, special)
    ]


def sides_of_positions(encoding: BatchEncoding, row: int) -> Int[np.ndarray, " N"]:
    """Return the side that each position of one text is of: 0 or 1; −1 for special tokens."""
    numbers = encoding.sequence_ids(row)
    return np.array([OUTSIDE if number is None else number for number in numbers], dtype=np.int64)


Spans = tuple[Sequence[str], int, list[tuple[int, int]], list[int]]


def _spans(encoding: BatchEncoding, row: int, text: Text) -> list[Spans]:
    """Return the words of each audited side, the number of its first, and its positions' spans and marks.

    Positions of the other side are marked as if they were special.
    """
    spans, special = encoding["offset_mapping"][row], encoding["special_tokens_mask"][row]
    sides = sides_of(text)
    if len(sides) == 1:
        return [(sides[0].words, 0, spans, special)]
    numbers = sides_of_positions(encoding, row)
    result: list[Spans] = []
    for number, (words, start) in enumerate(sides):
        if start is not None:
            outside = (numbers != number) | np.array(special, dtype=bool)
            own_spans = [
                (0, 0) if is_out else span for span, is_out in zip(spans, outside, strict=True)
            ]
            result.append((words, start, own_spans, outside.astype(int).tolist()))
    return result
