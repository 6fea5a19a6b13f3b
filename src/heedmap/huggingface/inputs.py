"""Tokenise texts for a transformer: sub-word positions, and the word that each belongs to."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from heedmap.data.batches import Batch
from heedmap.importance.words import own_words, word_of_positions

AT_ONCE = 1000  # texts tokenised at a time: spans take more memory than texts


@dataclass(frozen=True)
class SubwordBatch(Batch):
    """`ids` (B, N) are sub-words; `real` marks those that are not padding; `words` is each one's word or −1."""

    real: Bool[Tensor, "B L"]
    words: Int[Tensor, "B L"]
    types: Int[Tensor, "B L"]

    def inputs(self, names: Sequence[str]) -> dict[str, Tensor]:
        """Return the model's keyword arguments."""
        tensors = {"input_ids": self.ids, "attention_mask": self.real.long()}
        return {**tensors, "token_type_ids": self.types} if "token_type_ids" in names else tensors


def encode(
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[Sequence[str]],
    rows: Sequence[int],
    device: torch.device,
) -> SubwordBatch:
    """Tokenise texts; each is a list of words that joined give the raw text, white space included.

    Words are found by the character offsets of the sub-words. A word that the tokenizer drops has no
    position and weight 0.
    """
    joined = ["".join(words) for words in texts]
    encoding = tokenizer(
        joined,
        return_offsets_mapping=True,
        return_special_tokens_mask=True,
        return_attention_mask=True,
        return_token_type_ids=True,
        padding=True,
        return_tensors="np",
        verbose=False,
    )
    real = encoding["attention_mask"].astype(bool)
    # Padding counts as special: it belongs to no word.
    special = encoding["special_tokens_mask"].astype(bool) | ~real
    words = np.full(real.shape, -1, dtype=np.int64)
    for i, text in enumerate(texts):
        spans = [(int(a), int(b)) for a, b in encoding["offset_mapping"][i]]
        words[i] = word_of_positions(text, spans, special[i].tolist())
    sizes = np.array([len(text) for text in texts])
    mask = np.arange(sizes.max(initial=0)) < sizes[:, None]

    def tensor(values: NDArray[np.generic]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(values)).to(device)

    return SubwordBatch(
        rows=torch.as_tensor(list(rows), device=device),
        ids=tensor(encoding["input_ids"].astype(np.int64)),
        mask=tensor(mask),
        labels=torch.zeros(len(texts), dtype=torch.long, device=device),
        real=tensor(real),
        words=tensor(words),
        types=tensor(encoding["token_type_ids"].astype(np.int64)),
    )


def lengths(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[Sequence[str]]
) -> NDArray[np.int64]:
    """Count the positions of each text, special ones included."""
    if not texts:
        return np.zeros(0, dtype=np.int64)
    ids = tokenizer(["".join(words) for words in texts], verbose=False)["input_ids"]
    return np.array([len(row) for row in ids], dtype=np.int64)


def holding(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[Sequence[str]], token: int
) -> NDArray[np.int64]:
    """Count the positions of each text that hold the token."""
    ids = tokenizer(["".join(words) for words in texts], verbose=False)["input_ids"]
    return np.array([row.count(token) for row in ids], dtype=np.int64)


def own_words_of(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[Sequence[str]]
) -> Iterator[list[int]]:
    """Yield per text where its words must begin so that no two share a sub-word (see `own_words`)."""
    for start in range(0, len(texts), AT_ONCE):
        chunk = texts[start : start + AT_ONCE]
        encoding = tokenizer(
            ["".join(words) for words in chunk],
            return_offsets_mapping=True,
            return_special_tokens_mask=True,
            verbose=False,
        )
        spans, special = encoding["offset_mapping"], encoding["special_tokens_mask"]
        for words, where, marks in zip(chunk, spans, special, strict=True):
            yield own_words(words, where, marks)


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
    inside, outside = (batch.ids.new_tensor(kinds)[which] for kinds in (of_word, of_none))
    return torch.where(batch.words < 0, outside, inside).masked_fill(~batch.real, -1)
