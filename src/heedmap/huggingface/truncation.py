"""Cut texts and pairs that are longer than a model reads as the tokenizer cuts them, with the same tokens."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import NamedTuple

from transformers import PreTrainedTokenizerBase

from heedmap.data.texts import Asked, CutWord, Pair, Text, TwoTexts, joined
from heedmap.errors import InputError
from heedmap.huggingface.limits import UNLIMITED
from heedmap.huggingface.sides import Positions, Side, ids_of, positions_of, sides_of, tokenized
from heedmap.huggingface.targets import as_read


class Truncated(NamedTuple):
    """What is left of a text or pair: the first word that attention is audited over, their end, the text."""

    start: int
    end: int
    text: Text


def truncated(tokenizer: PreTrainedTokenizerBase, text: Text, longest: int) -> Truncated | None:
    """Return what the tokenizer's truncation leaves of a text or pair, with its tokens; None if the text fits.

    The side is the tokenizer's (`truncation_side`). The word at which the text is cut may be kept in part.

    Raises:
        InputError: no word of a side that is audited is left.
    """
    (text,) = as_read(tokenizer, [text])
    (encoding,) = tokenized(tokenizer, [text])
    if longest >= UNLIMITED or len(encoding) <= longest:
        return None
    full = positions_of(encoding, text)
    (encoding,) = tokenized(tokenizer, [text], truncation=True, max_length=longest)
    tokenizer("", verbose=False)  # a tokenizer keeps the last limit, and would be saved with it
    left_over, on_left = positions_of(encoding, text), tokenizer.truncation_side == "left"
    sides = [*enumerate(sides_of(text))]
    # What stands behind a cut is read with it as far as that changes the tokens: none of it, some, or all.
    for reach in range(3):
        parts = [_part(side, left_over.side(i), full.side(i), reach, on_left) for i, side in sides]
        cut_text = _with_sides(text, parts)
        (encoding,) = tokenized(tokenizer, [cut_text])
        positions = positions_of(encoding, cut_text)
        for number, words in enumerate(parts):
            for _, word in words:
                if isinstance(word, CutWord):
                    word.dropped = len(positions.side(number).ids) - len(left_over.side(number).ids)
        if ids_of(encoding, cut_text) == left_over.ids.tolist():
            break
    audited: list[int] = []
    for words, (_, side) in zip(parts, sides, strict=True):
        if side.start is not None:
            if not words:
                raise too_long(side.words[-1 if on_left else 0], longest)
            audited += [side.start + number for number, _ in words]
    return Truncated(audited[0], audited[-1] + 1, cut_text)


def _part(
    side: Side, left_over: Positions, full: Positions, reach: int, on_left: bool
) -> list[tuple[int, str]]:
    """Return the numbers of the kept words, and what is kept of each, by the positions of a side."""
    if len(left_over.ids) == len(full.ids):
        return [*enumerate(side.words)]
    text, ends = "".join(side.pieces), [0, *accumulate(map(len, side.pieces))]
    start = int(left_over.spans.min(initial=len(text))) if on_left else 0
    end = len(text) if on_left else int(left_over.spans.max(initial=0))
    parts: list[tuple[int, str]] = []
    for number, (a, b) in enumerate(pairwise(ends)):
        part, word = text[max(start, a) : min(end, b)], side.words[number]
        if parts and not part.strip() and not side.pretokenized:  # white space at the end
            parts[-1] = (parts[-1][0], parts[-1][1] + part)
        elif part or (side.pretokenized and number in left_over.words):
            parts.append((number, word[: len(word) - (b - a)] + part))
    if parts:
        number, part = parts[-1 + on_left]
        stop = (ends[number], ends[number + 1]) if side.pretokenized else (0, len(text))
        behind = text[stop[0] : start][::-1] if on_left else text[end : stop[1]]
        rest = ("", re.split(r"(?<=\S)(?=\s)", behind, maxsplit=1)[0], behind)[reach]
        cut = CutWord(part, rest[::-1] if on_left else rest, on_left=on_left)
        parts[-1 + on_left] = (number, cut)
    return parts


def _with_sides(text: Text, parts: Sequence[Sequence[tuple[int, str]]]) -> Text:
    """Return a text or pair with what is kept of its words."""
    sides = [[word for _, word in words] for words in parts]
    if isinstance(text, TwoTexts):
        return joined(*sides)
    if isinstance(text, Pair):
        tokens, query = sides[::-1] if text.query_first else sides
        return replace(text, tokens=tokens, query=query)
    if isinstance(text, Asked) and parts[0]:
        return replace(text, tokens=sides[0], target=text.target - parts[0][0][0])
    return sides[0]


def too_long(word: str, longest: int) -> InputError:
    """Return the refusal of a word that does not fit the model."""
    return InputError(
        f"expected words that fit the model's {longest} positions, got one that does not: {word!r:.60}"
    )
