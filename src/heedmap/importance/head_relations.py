"""Read heads of attention as parsers: a word's head is the word that it attends to most (Clark et al. 2019)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from numpy.typing import NDArray
from torch import Tensor

from heedmap.data.trees import DependencyTree

DIRECTIONS = ("dependent to head", "head to dependent")
FARTHEST = 10  # words; of fixed offsets
OFFSETS = (*range(-FARTHEST, 0), *range(1, FARTHEST + 1))


def predicted_heads(attention: Float[Tensor, "K T T"]) -> Int[Tensor, "2 K T"]:
    """Return the head of each word by each head of attention: another word, the first of equal ones.

    First as if dependents attended to their heads (argmax of a word's row), then as if heads attended to
    their dependents (argmax of its column).
    """
    itself = torch.eye(attention.shape[-1], dtype=torch.bool, device=attention.device)
    rows = attention.masked_fill(itself, -torch.inf)
    return torch.stack([rows.argmax(-1), rows.argmax(-2)])


def at_offsets(words: int) -> Int[np.ndarray, "O T"]:
    """Return the words at each of the fixed offsets from every word; −1 outside of the sentence."""
    places = np.arange(words) + np.array(OFFSETS)[:, None]
    return np.where((places >= 0) & (places < words), places, -1)


@dataclass(frozen=True)
class Predictions:
    """The heads that each of P parsers predicts for W words of many sentences, beside the true ones.

    The first 2 K parsers are heads of attention, in both directions; the others are fixed offsets.
    """

    predicted: NDArray[np.int16]  # (W, P)
    true: NDArray[np.int16]
    relation: Shaped[np.ndarray, " W"]  # of texts
    sentence: NDArray[np.int64]

    @property
    def parsers(self) -> int:
        """Return how many parsers are heads of attention."""
        return int(self.predicted.shape[1]) - len(OFFSETS)

    @classmethod
    def of(
        cls, trees: Sequence[DependencyTree], attention: Iterable[Float[Tensor, "K _ _"]]
    ) -> "Predictions":
        """Predict the heads of all words but roots and punctuation; there must be at least one."""
        predicted, true, relations, sentences = [], [], [], []
        for number, (tree, weights) in enumerate(zip(trees, attention, strict=True)):
            if not (scored := tree.scored):
                continue
            by_attention = predicted_heads(weights).flatten(0, 1).numpy(force=True)
            parsers = np.concatenate([by_attention, at_offsets(len(tree))])
            predicted.append(parsers[:, scored].T.astype(np.int16))
            true += [tree.heads[word] for word in scored]
            relations += [tree.relations[word] for word in scored]
            sentences += [number] * len(scored)
        return cls(
            np.concatenate(predicted),
            np.array(true, np.int16),
            np.array(relations),
            np.array(sentences),
        )

    def hits(self, words: NDArray[np.bool_], heads: NDArray[np.int16]) -> NDArray[np.bool_]:
        """Return which of some words each parser gives the head that `heads` (of all words) has."""
        return np.asarray(self.predicted[words] == heads[words, None])

    def best(self, words: NDArray[np.bool_], heads: NDArray[np.int16]) -> tuple[int, int]:
        """Return the head of attention and the offset that are right most often; the first of equal ones."""
        right = self.hits(words, heads).mean(0)
        return int(right[: self.parsers].argmax()), self.parsers + int(
            right[self.parsers :].argmax()
        )
