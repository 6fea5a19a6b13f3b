"""Tokenise texts for a transformer: sub-word positions, and the word that each belongs to."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Bool, Int
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from heedmap.data.batches import Batch
from heedmap.data.texts import Text
from heedmap.huggingface.padding import absent_token
from heedmap.huggingface.sides import OUTSIDE, ids_of, own_words_of, positions_of, tokenized
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
    """Tokenise texts or pairs (see `heedmap.huggingface.sides`), and pad them.

    A word that the tokenizer drops has no position and weight 0. Shorter texts are padded on the tokenizer's
    side with the token `padding`, or with one that no text of the batch has.
    """
    texts = as_read(tokenizer, texts)
    # Padded below and not by the tokenizer, whose padding token may be missing or stand in a text.
    encodings = tokenized(tokenizer, texts)
    positions_by_text = [positions_of(*pair) for pair in zip(encodings, texts, strict=True)]
    lengths = np.array([len(positions.ids) for positions in positions_by_text], dtype=np.int64)
    place = np.arange(lengths.max(initial=0))
    on_left = tokenizer.padding_side == "left"
    real = place >= (len(place) - lengths)[:, None] if on_left else place < lengths[:, None]

    def tensor(values: NDArray[np.generic]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(values)).to(device)

    def padded(rows: Sequence[NDArray[np.int64]], value: int) -> Tensor:
        values = np.full(real.shape, value, dtype=np.int64)
        values[real] = np.concatenate(rows)
        return tensor(values)

    ids, types, sides, _, words = zip(*positions_by_text, strict=True)
    if padding is None:
        padding = absent_token(torch.from_numpy(np.concatenate(ids)))
    sizes = np.array([len(text) for text in texts])
    mask = np.arange(sizes.max(initial=0)) < sizes[:, None]
    asks = target_inputs(tokenizer, texts, positions_by_text)
    return SubwordBatch(
        rows=torch.as_tensor(list(rows), device=device),
        ids=padded(ids, padding),
        mask=tensor(mask),
        labels=torch.zeros(len(texts), dtype=torch.long, device=device),
        real=tensor(real),
        words=padded(words, OUTSIDE),
        types=padded(types, tokenizer.pad_token_type_id),
        sides=padded(sides, OUTSIDE),
        asks={name: padded(marks, 0) for name, marks in asks.items()},
    )


def token_ids(tokenizer: PreTrainedTokenizerBase, texts: Sequence[Text]) -> list[list[int]]:
    """Return the sub-words of each text, special ones included, without padding."""
    if not texts:
        return []
    texts = as_read(tokenizer, texts)
    return [ids_of(*pair) for pair in zip(tokenized(tokenizer, texts), texts, strict=True)]


def lengths(tokenizer: PreTrainedTokenizerBase, texts: Sequence[Text]) -> NDArray[np.int64]:
    """Count the positions of each text, special ones included."""
    return np.array([len(row) for row in token_ids(tokenizer, texts)], dtype=np.int64)


def holding(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[Text], token: int
) -> NDArray[np.int64]:
    """Count the positions of each text that hold the token."""
    return np.array([row.count(token) for row in token_ids(tokenizer, texts)], dtype=np.int64)


def own_words(tokenizer: PreTrainedTokenizerBase, texts: Sequence[Text]) -> Iterator[list[int]]:
    """Yield per text where its words must begin so that no two share a sub-word (see `own_words_of`)."""
    for start in range(0, len(texts), AT_ONCE):
        chunk = as_read(tokenizer, texts[start : start + AT_ONCE])
        for encoding, text in zip(tokenized(tokenizer, chunk), chunk, strict=True):
            yield own_words_of(encoding, text)


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
