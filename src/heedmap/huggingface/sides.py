"""Give texts and pairs of texts to a tokenizer as their user wrote them, and find the word of each position.

This is the one place where token ids are made. A text that is one string is read as that string, and words are
found by character offsets; a list of words is read as such (`is_split_into_words`). Where a text is cut, what
follows is read too, and its positions are dropped (`CutWord`): those that stay are the tokenizer's own.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int
from tokenizers import Encoding
from transformers import PreTrainedTokenizerBase

from heedmap.data.texts import Asked, CutWord, Pair, Text, TwoTexts
from heedmap.importance.words import own_words, word_of_positions

OUTSIDE = -1  # of the words and the sides: a position of a special token


class Side(NamedTuple):
    """One of the texts that are read in a row; `start` numbers its first word, None if no map is of it.

    A list of words is `pretokenized` (see `heedmap.data.texts.Asked`).
    """

    words: Sequence[str]
    start: int | None
    pretokenized: bool = False

    @property
    def pieces(self) -> Sequence[str]:
        """Return the words without what separates them: joined, they are the text that offsets count in."""
        return [word.removeprefix(" ") for word in self.words] if self.pretokenized else self.words

    @property
    def cut(self) -> CutWord | None:
        """Return the word at which this side is cut."""
        for end in (-1, 0) if self.words else ():
            if isinstance(word := self.words[end], CutWord):
                return word
        return None

    @property
    def read(self) -> Sequence[str]:
        """Return the pieces that the tokenizer reads: with the rest of a word at which the side is cut."""
        pieces, cut = self.pieces, self.cut
        if cut is None:
            return pieces
        if cut.on_left:
            return [cut.rest + pieces[0], *pieces[1:]]
        return [*pieces[:-1], pieces[-1] + cut.rest]


def sides_of(text: Text) -> list[Side]:
    """Return the sides of a text in the order in which they are read: one, or a pair's two."""
    if isinstance(text, TwoTexts):
        first_side, second_side = text.sides
        return [Side(first_side, 0), Side(second_side, text.second)]
    if isinstance(text, Pair):
        audited, query = Side(text.tokens, 0), Side(text.query, None)
        return [query, audited] if text.query_first else [audited, query]
    return [Side(text, 0, isinstance(text, Asked) and text.pretokenized)]


def tokenized(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[Text], **options: object
) -> list[Encoding]:
    """Tokenise texts, or pairs with the separators and token types that the tokenizer gives them.

    What stands behind a cut is among the positions: `positions_of` and `ids_of` drop it.
    """
    sides = [sides_of(text) for text in texts]
    encodings: dict[int, Encoding] = {}
    for pretokenized in {of_text[0].pretokenized for of_text in sides}:
        rows = [i for i, of_text in enumerate(sides) if of_text[0].pretokenized == pretokenized]
        columns = [
            [[*side.read] if pretokenized else "".join(side.read) for side in column]
            for column in zip(*(sides[i] for i in rows), strict=True)
        ]
        batch = tokenizer(
            *columns,
            is_split_into_words=pretokenized,
            verbose=False,
            return_attention_mask=False,
            return_token_type_ids=False,
            **options,
        )
        encodings |= zip(rows, batch.encodings or (), strict=True)
    return [encodings[i] for i in range(len(texts))]


class Positions(NamedTuple):
    """What a tokenizer makes of one text, position by position, special tokens included.

    `sides` is 0 or 1, −1 for special tokens; `spans` are characters of the side's joined pieces. `words` is the
    word, −1 for special tokens, for positions without characters and for the side of a pair that no map is of.
    """

    ids: Int[np.ndarray, " N"]
    types: Int[np.ndarray, " N"]
    sides: Int[np.ndarray, " N"]
    spans: Int[np.ndarray, "N 2"]
    words: Int[np.ndarray, " N"]

    def taken(self, which: Bool[np.ndarray, " N"]) -> "Positions":
        """Return some of the positions."""
        return Positions(*(values[which] for values in self))

    def side(self, number: int) -> "Positions":
        """Return the positions of one side."""
        return self.taken(self.sides == number)


def ids_of(encoding: Encoding, text: Text) -> list[int]:
    """Return the token ids of one text."""
    ids: list[int] = encoding.ids
    if any(side.cut is not None for side in sides_of(text)):
        ids = _positions(encoding, text).ids.tolist()
    return ids


def positions_of(encoding: Encoding, text: Text) -> Positions:
    """Return the positions of one text."""
    positions = _positions(encoding, text)
    for number, side in enumerate(sides_of(text)):
        if side.start is not None and not side.pretokenized:
            is_own = positions.sides == number
            words = word_of_positions(side.pieces, positions.spans[is_own], [0] * int(is_own.sum()))
            positions.words[is_own] = [word if word < 0 else word + side.start for word in words]
    return positions


def own_words_of(encoding: Encoding, text: Text) -> list[int]:
    """Return where the words of one text must begin so that no two share a sub-word (see `own_words`)."""
    positions = _positions(encoding, text)
    starts: list[int] = []
    for number, side in enumerate(sides_of(text)):
        if side.pretokenized:
            starts += range(len(side.words))
        elif side.start is not None:
            spans = positions.side(number).spans
            starts += [side.start + w for w in own_words(side.pieces, spans, [0] * len(spans))]
    return starts


def _positions(encoding: Encoding, text: Text) -> Positions:
    """Return the positions of one text, with the words of a list alone."""
    special = np.array(encoding.special_tokens_mask, dtype=bool)
    numbers = np.array(encoding.sequence_ids, dtype=np.float64)  # NaN for None
    sides = np.where(special | np.isnan(numbers), OUTSIDE, numbers).astype(np.int64)
    spans = np.array(encoding.offsets, dtype=np.int64).reshape(-1, 2)
    words, is_kept = np.full(len(sides), OUTSIDE), np.ones(len(sides), dtype=bool)
    for number, side in enumerate(sides_of(text)):
        indices, cut = np.flatnonzero(sides == number), side.cut
        if side.pretokenized:  # whose spans are counted within each word
            words[indices] = np.array(encoding.word_ids, dtype=np.float64)[indices]
            spans[indices] += np.cumsum([0, *map(len, side.read)])[words[indices], None]
        if cut is not None:
            is_kept[
                indices[: cut.dropped] if cut.on_left else indices[len(indices) - cut.dropped :]
            ] = False
            spans[indices] -= len(cut.rest) if cut.on_left else 0
            spans[indices] = spans[indices].clip(0, sum(map(len, side.pieces)))
    ids, types = np.array(encoding.ids, np.int64), np.array(encoding.type_ids, np.int64)
    return Positions(ids, types, sides, spans, words).taken(is_kept)
