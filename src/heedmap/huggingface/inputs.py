"""Tokenise texts for a transformer: sub-word positions, and the word that each belongs to."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Int
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from heedmap.data.batches import Batch
from heedmap.data.texts import Text
from heedmap.errors import InputError
from heedmap.huggingface.limits import UNLIMITED
from heedmap.huggingface.padding import absent_token
from heedmap.huggingface.sides import (
    OUTSIDE,
    own_words_of,
    sides_of_positions,
    tokenized,
    words_of_positions,
)
from heedmap.huggingface.targets import as_read, target_inputs

AT_ONCE = 1000  # texts tokenised at a time: spans take more memory than texts


@dataclass(frozen=True)
class SubwordBatch(Batch):
    """`ids` (B, N) are sub-words; `real` marks those that are not padding; `words` is each one's word or −1.

    `sides` is the text of a pair that each one is of, 0 or 1; −1 for special tokens and padding. `asks` are the
    inputs that say which position a model is asked about (see `heedmap.huggingface.targets`).
    """

    real: Bool[Tensor, "B L"]
    words: Int[Tensor, "B L"]
    types: Int[Tensor, "B L"]
    sides: Int[Tensor, "B L"]
    asks: dict[str, Int[Tensor, "B L"]] = field(default_factory=dict)

    def inputs(self, names: Sequence[str]) -> dict[str, Tensor]:
        """Return the model's keyword arguments."""
        tensors = {"input_ids": self.ids, "attention_mask": self.real.long(), **self.asks}
        return {**tensors, "token_type_ids": self.types} if "token_type_ids" in names else tensors


def encode(
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[Text],
    rows: Sequence[int],
    device: torch.device,
    padding: int | None = None,
) -> SubwordBatch:
    """Tokenise texts or pairs; each is a list of words that joined give the raw text, white space included.

    Words are found by the character offsets of the sub-words. A word that the tokenizer drops has no
    position and weight 0. Shorter texts are padded on the tokenizer's side with the token `padding`, or with
    one that no text of the batch has.
    """
    texts = as_read(tokenizer, texts)
    # Padded below and not by the tokenizer, whose padding token may be missing or stand in a text.
    encoding = tokenized(
        tokenizer,
        texts,
        return_offsets_mapping=True,
        return_special_tokens_mask=True,
        return_attention_mask=False,
        return_token_type_ids=True,
    )
    lengths = np.array([len(ids) for ids in encoding["input_ids"]], dtype=np.int64)
    place = np.arange(lengths.max(initial=0))
    on_left = tokenizer.padding_side == "left"
    real = place >= (len(place) - lengths)[:, None] if on_left else place < lengths[:, None]

    def padded(rows: Sequence[Sequence[int] | NDArray[np.int64]], value: int) -> NDArray[np.int64]:
        values = np.full(real.shape, value, dtype=np.int64)
        values[real] = np.concatenate([np.asarray(row, dtype=np.int64) for row in rows])
        return values

    if padding is None:
        joined = np.concatenate([np.asarray(ids, np.int64) for ids in encoding["input_ids"]])
        padding = absent_token(torch.from_numpy(joined))
    words = [words_of_positions(encoding, i, text) for i, text in enumerate(texts)]
    sides = [sides_of_positions(encoding, i) for i in range(len(texts))]
    sizes = np.array([len(text) for text in texts])
    mask = np.arange(sizes.max(initial=0)) < sizes[:, None]

    def tensor(values: NDArray[np.generic]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(values)).to(device)

    word_of_positions = tensor(padded(words, -1))
    return SubwordBatch(
        rows=torch.as_tensor(list(rows), device=device),
        ids=tensor(padded(encoding["input_ids"], padding)),
        mask=tensor(mask),
        labels=torch.zeros(len(texts), dtype=torch.long, device=device),
        real=tensor(real),
        words=word_of_positions,
        types=tensor(padded(encoding["token_type_ids"], tokenizer.pad_token_type_id)),
        sides=tensor(padded(sides, OUTSIDE)),
        asks=target_inputs(tokenizer, texts, word_of_positions),
    )


def token_ids(tokenizer: PreTrainedTokenizerBase, texts: Sequence[Text]) -> list[list[int]]:
    """Return the sub-words of each text, special ones included, without padding."""
    if not texts:
        return []
    ids: list[list[int]] = tokenized(tokenizer, as_read(tokenizer, texts))["input_ids"]
    return ids


def lengths(tokenizer: PreTrainedTokenizerBase, texts: Sequence[Text]) -> NDArray[np.int64]:
    """Count the positions of each text, special ones included."""
    return np.array([len(row) for row in token_ids(tokenizer, texts)], dtype=np.int64)


class Truncated(NamedTuple):
    """What is left of a text or pair: the first word, the end, and the kept words.

    `exact`: they have the tokens that the tokenizer's truncation leaves.
    """

    start: int
    end: int
    words: Text
    exact: bool


def truncated(
    tokenizer: PreTrainedTokenizerBase, words: Sequence[str], longest: int
) -> Truncated | None:
    """Return what the tokenizer's truncation leaves of a text; None if the text fits.

    The side is the tokenizer's (`truncation_side`). The word at which the text is cut may be kept in part.
    Where no part of the text has the truncated text's tokens, words are kept whole.

    Raises:
        InputError: a single word takes more positions than the model reads.
    """
    text, on_left = "".join(words), tokenizer.truncation_side == "left"
    if longest >= UNLIMITED or lengths(tokenizer, [words])[0] <= longest:
        return None
    encoding = tokenizer(
        text,
        truncation=True,
        max_length=longest,
        return_offsets_mapping=True,
        return_special_tokens_mask=True,
    )
    ids = encoding["input_ids"]
    tokenizer("", verbose=False)  # a tokenizer keeps the last limit, and would be saved with it
    spans = [
        span
        for span, special in zip(
            encoding["offset_mapping"], encoding["special_tokens_mask"], strict=True
        )
        if span[0] < span[1] and not special
    ]
    ends = [0, *accumulate(map(len, words))]
    if spans:
        start, end = min(a for a, _ in spans), max(b for _, b in spans)
        blank = start - len(text[:start].rstrip())
        parts = [(start, len(text)), (start - blank, len(text))] if on_left else [(0, end)]
        for a, b in parts:
            if tokenizer(text[a:b], verbose=False)["input_ids"] == ids:
                kept_parts = [
                    (word, text[max(a, c) : min(b, d)])
                    for word, (c, d) in enumerate(pairwise(ends))
                    if text[max(a, c) : min(b, d)].strip()
                ]
                if kept_parts and "".join(piece for _, piece in kept_parts) == text[a:b]:
                    pieces = [piece for _, piece in kept_parts]
                    return Truncated(kept_parts[0][0], kept_parts[-1][0] + 1, pieces, exact=True)
    low, high = 0, min(len(words), longest)  # a word has at least one position
    while low < high:
        middle = (low + high + 1) // 2
        part = words[len(words) - middle :] if on_left else words[:middle]
        if lengths(tokenizer, [part])[0] <= longest:
            low = middle
        else:
            high = middle - 1
    if low == 0:
        raise too_long(words[-1] if on_left else words[0], longest)
    start_word = len(words) - low if on_left else 0
    return Truncated(
        start_word, start_word + low, list(words[start_word : start_word + low]), exact=False
    )


def too_long(word: str, longest: int) -> InputError:
    """Return the refusal of a word that does not fit the model."""
    return InputError(
        f"expected words that fit the model's {longest} positions, got one that does not: {word!r:.60}"
    )


def holding(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[Text], token: int
) -> NDArray[np.int64]:
    """Count the positions of each text that hold the token."""
    return np.array([row.count(token) for row in token_ids(tokenizer, texts)], dtype=np.int64)


def own_words(tokenizer: PreTrainedTokenizerBase, texts: Sequence[Text]) -> Iterator[list[int]]:
    """Yield per text where its words must begin so that no two share a sub-word (see `own_words_of`)."""
    for start in range(0, len(texts), AT_ONCE):
        chunk = as_read(tokenizer, texts[start : start + AT_ONCE])
        encoding = tokenized(
            tokenizer, chunk, return_offsets_mapping=True, return_special_tokens_mask=True
        )
        for row, text in enumerate(chunk):
            yield own_words_of(encoding, row, text)


def kinds_of(
    tokenizer: PreTrainedTokenizerBase, batch: SubwordBatch, names: Sequence[str]
) -> Int[Tensor, "B L"]:
    """Return the kind of each position, an index into `names`; −1 for padding.

    `names` are words, punctuation, then special tokens. A position outside all words that is none of these
    special tokens counts as a word; one inside a word, without a letter or digit, as punctuation.
    """
    special = {tokenizer.convert_tokens_to_ids(name): i for i, name in enumerate(names) if i > 1}
    ids, which = torch.unique(batch.ids, return_inverse=True)
    pieces = [str(tokenizer.decode([token])) for token in ids.tolist()]
    of_word = [int(not any(c.isalnum() for c in piece)) for piece in pieces]
    of_none = [special.get(token, 0) for token in ids.tolist()]
    inside_words, outside_words = (
        batch.ids.new_tensor(kinds)[which] for kinds in (of_word, of_none)
    )
    # The words of a pair's other text are words too, although no map is of them.
    of_pair = bool((batch.sides == 1).any())
    is_outside = (batch.sides if of_pair else batch.words) < 0
    return torch.where(is_outside, outside_words, inside_words).masked_fill(~batch.real, -1)
