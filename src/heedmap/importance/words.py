"""From a tokenizer's positions to the words of the text, and a word's share of what they have."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

import torch
from jaxtyping import Float, Int
from torch import Tensor


def word_of_positions(
    pieces: Sequence[str], offsets: Sequence[tuple[int, int]], special: Sequence[int]
) -> list[int]:
    """The word that each position belongs to; −1 for special tokens and for those without characters.

    `pieces` joined are the text; `offsets` are the spans (start, end) of characters, and `special` 1
    or 0, that a tokenizer gave each position (`offsets` and `special_tokens_mask` of `tokenizers`). A
    position belongs to the word that holds its last character: byte-level tokenizers put the space
    before a word into the span, and pieces carry their white space in front. So a span across two
    words counts for the second, and an empty piece has no position.

    Raises ValueError where `offsets` and `special` differ in length, or a span is not in the text.
    """
    if len(offsets) != len(special):
        raise ValueError(
            f"one mark for each position: {len(offsets)} spans but {len(special)} marks came"
        )
    ends = list(accumulate(map(len, pieces)))
    length = ends[-1] if ends else 0
    words = []
    for (start, end), is_special in zip(offsets, special, strict=True):
        if not 0 <= start <= end <= length:
            raise ValueError(f"span ({start}, {end}) does not lie in a text of {length} characters")
        # The first word to end after the last character; one that ends where it begins never is.
        words.append(-1 if is_special or start == end else bisect_right(ends, end - 1))
    return words


def sum_by_word(
    values: Float[Tensor, "*lead B N"], words: Int[Tensor, "B N"], size: int
) -> Float[Tensor, "*lead B {size}"]:
    """Sum of the values of each word's positions: y_w = Σ_{t: words[t] = w} x_t; differentiable.

    `words` as from `word_of_positions`, padding −1; values at −1 are dropped, NaN included. 0 for words
    without a position, and for those past a text's last.

    Raises ValueError where a word is below −1 or not below `size`.
    """
    if words.numel() and not -1 <= int(words.min()) <= int(words.max()) < size:
        low, high = int(words.min()), int(words.max())
        raise ValueError(f"words must lie between -1 and {size - 1}, got {low} to {high}")
    # What belongs to no word is gathered in a first slot, which is then left out.
    slots = (words.long() + 1).expand(values.shape)
    totals = values.new_zeros(*values.shape[:-1], size + 1)
    return totals.scatter_add(-1, slots, values)[..., 1:]


def shares(values: Float[Tensor, "*batch T"]) -> Float[Tensor, "*batch T"]:
    """Values as shares of their sum; zeros where that is 0."""
    total = values.sum(-1, keepdim=True)
    return values / torch.where(total > 0, total, torch.ones_like(total))
