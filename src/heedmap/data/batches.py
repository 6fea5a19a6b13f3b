"""Padded batches, and the order in which a split is read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from numpy.typing import NDArray
from torch import Tensor

from heedmap.data.vocabulary import PAD


@dataclass(frozen=True)
class Batch:
    """Texts of one batch, padded; T is the longest text's number of tokens.

    `ids` is what the model reads, L positions. Our own encoders read two columns more than `mask` has
    (L = T + 2, padded on the right): the start and end marks, to which attention is never paid.
    """

    rows: Int[Tensor, " B"]
    ids: Int[Tensor, "B L"]
    mask: Bool[Tensor, "B T"]
    labels: Int[Tensor, " B"]

    @property
    def lengths(self) -> Int[Tensor, " B"]:
        """Return the number of tokens of each text, the marks not counted."""
        return self.mask.sum(1)

    def to(self, device: torch.device) -> "Batch":
        """Move the batch to a device."""
        return self._each(lambda part: part.to(device))

    def repeated(self, times: int) -> "Batch":
        """Repeat the batch, one copy after the other."""
        return self._each(lambda part: part.repeat(times, *[1] * (part.dim() - 1)))

    def taken(self, rows: slice) -> "Batch":
        """Return some of the texts, padded to the longest of them."""
        part = self._each(lambda value: value[rows])
        longest, marks = int(part.lengths.max()), self.ids.shape[1] - self.mask.shape[1]
        return replace(part, ids=part.ids[:, : longest + marks], mask=part.mask[:, :longest])

    def _each(self, change: Callable[[Tensor], Tensor]) -> "Batch":
        parts = {f.name: getattr(self, f.name) for f in fields(self)}
        changed: dict[str, Any] = {
            name: {key: change(value) for key, value in part.items()}
            if isinstance(part, dict)
            else change(part)
            for name, part in parts.items()
        }
        return replace(self, **changed)


@dataclass(frozen=True)
class PairBatch(Batch):
    """Texts with their queries: `query_ids` has both marks, `allowed` are the possible answers."""

    query_ids: Int[Tensor, "B M"]
    allowed: Bool[Tensor, "B C"]

    @property
    def query_lengths(self) -> Int[Tensor, " B"]:
        """Return the number of tokens of each query, the marks not counted."""
        return (self.query_ids != PAD).sum(1) - 2


@dataclass(frozen=True)
class GuidedBatch(Batch):
    """Texts with the weights that a model reads them with, instead of its own; 0 at padding."""

    weights: Float[Tensor, "B T"]

    def taken(self, rows: slice) -> "GuidedBatch":
        """Return some of the texts, padded to the longest of them."""
        part = Batch(self.rows, self.ids, self.mask, self.labels).taken(rows)
        weights = self.weights[rows, : part.mask.shape[1]]
        return GuidedBatch(part.rows, part.ids, part.mask, part.labels, weights)


class Encoded:
    """A split as word numbers: one flat array with offsets, so that long texts cost what they hold."""

    def __init__(self, texts: Sequence[NDArray[np.int64]], labels: NDArray[np.int64]) -> None:
        self.lengths = np.array([len(text) - 2 for text in texts], dtype=np.int64)
        self.offsets = np.concatenate([[0], np.cumsum(self.lengths + 2)])
        self.ids = np.zeros(int(self.offsets[-1]), dtype=np.int32)
        for text, start in zip(texts, self.offsets, strict=False):
            self.ids[start : start + len(text)] = text
        self.labels = labels

    def __len__(self) -> int:
        return len(self.labels)

    def batch(self, rows: Sequence[int] | NDArray[np.int64]) -> Batch:
        """Return the texts of some rows, padded to the longest of them."""
        lengths = self.lengths[np.asarray(rows, dtype=np.int64)]
        ids = np.full((len(rows), int(lengths.max(initial=0)) + 2), PAD, dtype=np.int64)
        for i, row in enumerate(rows):
            ids[i, : lengths[i] + 2] = self.ids[self.offsets[row] : self.offsets[row + 1]]
        mask = np.arange(ids.shape[1] - 2) < lengths[:, None]
        return Batch(
            torch.as_tensor(np.asarray(rows, dtype=np.int64)),
            torch.from_numpy(ids),
            torch.from_numpy(mask),
            torch.from_numpy(self.labels[np.asarray(rows, dtype=np.int64)]),
        )


class EncodedPairs(Encoded):
    """A split of texts with their queries; `allowed` (B, C) are the possible answers of each."""

    def __init__(
        self,
        texts: Sequence[NDArray[np.int64]],
        queries: Sequence[NDArray[np.int64]],
        labels: NDArray[np.int64],
        allowed: NDArray[np.bool_],
    ) -> None:
        super().__init__(texts, labels)
        self.queries = Encoded(queries, labels)
        self.allowed = allowed

    def batch(self, rows: Sequence[int] | NDArray[np.int64]) -> PairBatch:
        """Return the pairs of some rows, texts and queries padded to the longest of each."""
        texts, queries = super().batch(rows), self.queries.batch(rows)
        allowed = torch.from_numpy(self.allowed[np.asarray(rows, dtype=np.int64)])
        return PairBatch(texts.rows, texts.ids, texts.mask, texts.labels, queries.ids, allowed)


class Ragged:
    """One list of numbers per text, as one flat array with offsets."""

    def __init__(self, lists: Sequence[NDArray[Any] | Sequence[float]]) -> None:
        sizes = [len(numbers) for numbers in lists]
        self.offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        none = np.zeros(0, dtype=np.float32)
        self.values = np.concatenate(
            [none, *(np.asarray(numbers, np.float32) for numbers in lists)]
        )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> NDArray[np.float32]:
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    def padded(self, rows: Int[Tensor, " B"], width: int) -> Float[Tensor, "B T"]:
        """Return the lists of some rows, padded with 0 to T = `width`."""
        matrix = np.zeros((len(rows), width), dtype=np.float32)
        for i, row in enumerate(rows.tolist()):
            values = self[row]
            matrix[i, : len(values)] = values
        return torch.from_numpy(matrix)


class Guided(Encoded):
    """A split whose texts come with weights, one per token: its batches are `GuidedBatch`es."""

    def __init__(self, split: Encoded, weights: Ragged) -> None:
        assert type(split) is Encoded, "pairs and sentences have other batches"
        self.lengths, self.offsets, self.ids = split.lengths, split.offsets, split.ids
        self.labels, self.weights = split.labels, weights

    def batch(self, rows: Sequence[int] | NDArray[np.int64]) -> GuidedBatch:
        """Return the texts of some rows with their weights, padded to the longest of them."""
        batch = super().batch(rows)
        weights = self.weights.padded(batch.rows, batch.mask.shape[1])
        return GuidedBatch(batch.rows, batch.ids, batch.mask, batch.labels, weights)


def sorted_batches(lengths: NDArray[np.int64], tokens: int) -> list[NDArray[np.int64]]:
    """Sort rows by length (equal lengths in file order), and cut them into batches of about `tokens` tokens.

    Almost nothing is padded, and a batch's memory is bounded whatever its texts' lengths.
    """
    order = np.argsort(lengths, kind="stable")
    batches: list[NDArray[np.int64]] = []
    start = 0
    for end in range(1, len(order) + 1):
        if end == len(order) or (end + 1 - start) * lengths[order[end]] > tokens:
            batches.append(order[start:end])
            start = end
    return batches


def bucketed_batches(
    lengths: NDArray[np.int64], size: int, rng: np.random.Generator
) -> list[NDArray[np.int64]]:
    """Draw the batches of one epoch: rows of similar length together, the batches in random order.

    As Jain & Wallace: a noise of up to a tenth is added to each length (marks included) before
    sorting, so that other rows meet every epoch.
    """
    marked = lengths + 2
    spread = np.ceil(0.1 * marked).astype(np.int64)
    noisy = marked + rng.integers(-spread, spread)
    order = np.argsort(noisy, kind="stable")
    batches = [order[i : i + size] for i in range(0, len(order), size)]
    return [batches[i] for i in rng.permutation(len(batches))]


def scatter_rows(
    rows: Sequence[Int[Tensor, " _"]], values: Sequence[Shaped[Tensor, "_ *rest"]]
) -> Shaped[Tensor, "N *rest"]:
    """Put the values of batches back into the order of the split."""
    return torch.cat(list(values))[torch.argsort(torch.cat(list(rows)))]
