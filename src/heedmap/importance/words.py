"""Map a tokenizer's positions to the words of the text, and sum values by word."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

Spans = Sequence[tuple[int, int]] | Int[np.ndarray, "N 2"]


def word_of_positions(pieces: Sequence[str], offsets: Spans, special: Sequence[int]) -> list[int]:
    """Return the word of each position; −1 for special tokens and positions without characters.

    The joined `pieces` are the text; `offsets` are the character spans (start, end), and `special` 1
    or 0, that a tokenizer gives each position (`offsets` and `special_tokens_mask` of `tokenizers`). A
    position belongs to the word that holds its last visible character, or its last one if none is
    visible: byte-level tokenizers put the white space beside a word into the span, and pieces carry their
    white space in front. So a span across two words counts for the second (`own_words` makes one of them),
    and an empty piece has no position.

    Raises ValueError if `offsets` and `special` differ in length, or a span is not in the text.
    """
    words: list[int] = _first_and_last(pieces, offsets, special)[:, 1].tolist()
    return words


def own_words(pieces: Sequence[str], offsets: Spans, special: Sequence[int]) -> list[int]:
    """Return where words must begin so that no position holds visible characters of two words.

    A byte-level tokenizer has one sub-word for ").": to the model these two marks are one word with one
    weight. Arguments and errors are those of `word_of_positions`.
    """
    ends = _first_and_last(pieces, offsets, special)
    continuing = {
        word
        for first_word, last_word in ends[ends[:, 0] < ends[:, 1]].tolist()
        for word in range(first_word + 1, last_word + 1)
    }
    return [word for word in range(len(pieces)) if word not in continuing]


def _first_and_last(
    pieces: Sequence[str], offsets: Spans, special: Sequence[int]
) -> NDArray[np.int64]:
    """Return the words (N, 2) of each position's first and last visible characters; −1 without characters."""
    if len(offsets) != len(special):
        raise ValueError(
            f"one mark for each position: {len(offsets)} spans but {len(special)} marks came"
        )
    text = "".join(pieces)
    spans = np.array(offsets, dtype=np.int64).reshape(-1, 2)
    start, end = spans[:, 0], spans[:, 1]
    for bad in spans[(start < 0) | (start > end) | (end > len(text))][:1].tolist():
        raise ValueError(f"span {tuple(bad)} does not lie in a text of {len(text)} characters")
    owner = np.repeat(np.arange(len(pieces)), [len(piece) for piece in pieces])
    visible = np.array([not character.isspace() for character in text], dtype=bool)
    place = np.arange(len(text))
    visible_before = np.maximum.accumulate(np.where(visible, place, -1))
    visible_from = np.minimum.accumulate(np.where(visible, place, len(text))[::-1])[::-1]
    words = np.full(spans.shape, -1)
    present = (start < end) & ~np.array(special, dtype=bool)
    first_visible, last_visible = visible_from[start[present]], visible_before[end[present] - 1]
    blank = first_visible >= end[present]
    ends = np.stack(
        [
            np.where(blank, end[present] - 1, first_visible),
            np.where(blank, end[present] - 1, last_visible),
        ],
        1,
    )
    words[present] = owner[ends]
    return words


def sum_by_word(
    values: Float[Tensor, "*lead B N"], words: Int[Tensor, "B N"], size: int
) -> Float[Tensor, "*lead B {size}"]:
    """Sum the values of each word's positions: y_w = Σ_{t: words[t] = w} x_t; differentiable.

    `words` as from `word_of_positions`, padding −1; values at −1 are dropped, NaN included. 0 for words
    without a position, and for those past a text's last.

    Raises ValueError if a word is below −1 or not below `size`.
    """
    if words.numel() and not -1 <= int(words.min()) <= int(words.max()) < size:
        low, high = int(words.min()), int(words.max())
        raise ValueError(f"words must lie between -1 and {size - 1}, got {low} to {high}")
    # Positions outside all words go to a first slot, which is then dropped.
    slots = (words.long() + 1).expand(values.shape)
    totals = values.new_zeros(*values.shape[:-1], size + 1)
    return totals.scatter_add(-1, slots, values)[..., 1:]


def between_words(
    attention: Float[Tensor, "*lead N N"], words: Int[Tensor, " N"], size: int
) -> Float[Tensor, "*lead {size} {size}"]:
    """Return the attention of words to words: the sum over a word's positions *to* it, the mean *from* it.

    This is how Clark et al. 2019, section 4.1, read words of several sub-words. Rows keep their sum, but for
    what falls on positions outside all words. A word without a position has a row and a column of 0.
    """
    to_words = sum_by_word(attention, words.expand(attention.shape[-2:]), size)
    from_words = sum_by_word(
        to_words.transpose(-2, -1), words.expand(size, len(words)), size
    ).transpose(-2, -1)
    counts = torch.bincount(words[words >= 0], minlength=size)
    return from_words / counts.clamp(min=1).unsqueeze(-1)


def shares(values: Float[Tensor, "*batch T"]) -> Float[Tensor, "*batch T"]:
    """Divide values by their sum; a sum of 0 gives zeros."""
    total = values.sum(-1, keepdim=True)
    return values / torch.where(total > 0, total, torch.ones_like(total))
