"""Cut pairs of texts that are longer than a model reads as the tokenizer cuts them: the longer side first."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

import numpy as np
from transformers import PreTrainedTokenizerBase

from heedmap.data.texts import Pair, Text, TwoTexts, joined
from heedmap.huggingface.inputs import Truncated, lengths, token_ids, too_long
from heedmap.huggingface.sides import sides_of, sides_of_positions, tokenized


def truncated_pair(
    tokenizer: PreTrainedTokenizerBase, pair: Pair | TwoTexts, longest: int
) -> Truncated | None:
    """Return what the tokenizer's truncation leaves of a pair; None if the pair fits.

    Where no parts of the texts have the truncated pair's tokens, words are kept whole. `start` and `end`
    are of the words that attention is audited over.

    Raises:
        InputError: no word of a side that is audited is left.
    """
    if lengths(tokenizer, [pair])[0] <= longest:
        return None
    encoding = tokenized(
        tokenizer, [pair], truncation=True, max_length=longest, return_offsets_mapping=True
    )
    tokenizer("", verbose=False)  # a tokenizer keeps the last limit, and would be saved with it
    numbers, spans = sides_of_positions(encoding, 0), np.array(encoding["offset_mapping"][0])
    sides = sides_of(pair)
    on_left = tokenizer.truncation_side == "left"
    sides_left: list[list[tuple[int, str]]] = []
    for number, side in enumerate(sides):
        side_spans = spans[(numbers == number) & (spans[:, 0] < spans[:, 1])]
        text = side.text
        start, end = (
            (int(side_spans[:, 0].min()), int(side_spans[:, 1].max()))
            if len(side_spans)
            else (0, 0)
        )
        if on_left and len(side_spans):
            # The white space before a word belongs to it.
            start, end = start - (len(text[:start]) - len(text[:start].rstrip())), len(text)
        sides_left.append(_within(side.words, 0 if not on_left else start, end))
    cut_pair, exact = _rebuilt(pair, sides_left), True
    if token_ids(tokenizer, [cut_pair]) != [encoding["input_ids"][0]]:
        exact = False
        sides_left = [
            [(word, piece) for word, piece in pieces if piece == side.words[word]]
            for pieces, side in zip(sides_left, sides, strict=True)
        ]
        while lengths(tokenizer, [cut_pair := _rebuilt(pair, sides_left)])[0] > longest:
            del max(sides_left, key=len)[0 if on_left else -1]
    for pieces, side in zip(sides_left, sides, strict=True):
        if side.start is not None and not pieces:
            raise too_long(side.words[-1 if on_left else 0], longest)
    audited = [
        side.start + word
        for pieces, side in zip(sides_left, sides, strict=True)
        if side.start is not None
        for word, _ in pieces
    ]
    return Truncated(audited[0], audited[-1] + 1, cut_pair, exact)


def _within(words: Sequence[str], start: int, end: int) -> list[tuple[int, str]]:
    """Return the numbers of the words between two characters, and what is there of each."""
    ends = [0, *accumulate(map(len, words))]
    text = "".join(words)
    parts = [
        (number, text[max(start, a) : min(end, b)]) for number, (a, b) in enumerate(pairwise(ends))
    ]
    return [(number, part) for number, part in parts if part.strip()]


def _rebuilt(pair: Pair | TwoTexts, sides_left: Sequence[Sequence[tuple[int, str]]]) -> Text:
    first, second = ([piece for _, piece in pieces] for pieces in sides_left)
    if isinstance(pair, TwoTexts):
        return joined(first, second)
    query, tokens = (first, second) if pair.query_first else (second, first)
    return replace(pair, tokens=tokens, query=query)
