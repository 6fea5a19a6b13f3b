"""A model of which arrays are known alone: the weights of each instance, and what each item says per class.

logits = Σ_k Σ_t α[k, t] · R[k, t] + b (`heedmap.models.trace.Readout`), or this is the number that the model
gives, where there is one name. Other weights are decoded exactly.
Input that was changed is read by the user's function, if there is one.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor

from heedmap.data.batches import Batch
from heedmap.data.texts import Stored, Text
from heedmap.errors import InputError
from heedmap.models.trace import Capability, Readout, Trace, decode
from heedmap.settings.models import ArraysSettings

POSITIONS = 16_384  # per batch
NUMBERS = 1 << 20  # of read-outs per batch: of many classes and rows a batch holds fewer positions
NO_EMBEDDING = "arrays have no embedded input, and so no gradients by it"
Predict = Callable[[list[list[str]]], tuple[Any, Any]]
Reader = Callable[[list[list[str]]], Float[Tensor, "B C"]]


@dataclass(frozen=True)
class ArraysBatch(Batch):
    """Instances with their weights and read-outs, 0 at padding."""

    attention: Float[Tensor, "B K T"]
    relevance: Float[Tensor, "B K T C"]


@dataclass(frozen=True)
class ReadBatch(Batch):
    """Changed instances with the logits that the user's function gave them."""

    read_logits: Float[Tensor, "B C"]


class ArraysModel:
    """A model that is its arrays. Its heat map is the mean over the rows of weights.

    `reader` returns the logits of changed instances, lists of their items' names; without it the model cannot
    read again.
    """

    def __init__(
        self,
        settings: ArraysSettings,
        classes: Sequence[str],
        attention: Sequence[Float[Tensor, "K _"]],
        relevance: Sequence[Float[Tensor, "K _ C"]],
        bias: Float[Tensor, " C"],
        reader: Reader | None = None,
    ) -> None:
        self.settings = settings
        self.classes = list(classes)
        self.attention, self.relevance, self.bias = attention, relevance, bias
        self.reader = reader
        numbers = settings.rows * len(self.classes)
        self.tokens_at_once = min(POSITIONS, max(1, NUMBERS // numbers))
        abilities: set[Capability] = {"classes"} if len(self.classes) > 1 else set()
        if settings.rows == 1:
            abilities.add("read-out")
        if reader is not None:
            abilities.add("reading")
        self.capabilities = frozenset(abilities)

    @property
    def precision(self) -> torch.dtype:
        """Return the arrays' dtype."""
        return self.bias.dtype

    def parameters(self) -> Iterable[Tensor]:
        """Yield the bias: the rest belongs to the instances."""
        yield self.bias

    def lengths(self, texts: Sequence[Text]) -> NDArray[np.int64]:
        """Count the items of each instance."""
        return np.array([len(text) for text in texts], dtype=np.int64)

    def mask_token(self, text: Text, place: int) -> Text:
        """Refuse to mask an item.

        Raises:
            InputError: always, because no mask is known.
        """
        raise InputError(
            "leave_one_out = 'mask': expected a model with a mask, got arrays; leave it out, to remove items"
        )

    def batch(self, texts: Sequence[Text], rows: Sequence[int]) -> Batch:
        """Take the arrays of some instances, padded with 0; changed instances are read."""
        lengths = torch.tensor([len(text) for text in texts])
        mask = torch.arange(int(lengths.max()))[None] < lengths[:, None]
        zeros = torch.zeros(len(texts), dtype=torch.int64)
        plain = Batch(torch.tensor(list(rows)), mask.long(), mask, zeros)
        stored = [text for text in texts if isinstance(text, Stored)]
        if len(stored) < len(texts):
            return ReadBatch(**vars(plain), read_logits=self._read(texts))
        shape = (len(texts), self.settings.rows, mask.shape[1])
        attention = self.bias.new_zeros(shape)
        relevance = self.bias.new_zeros(*shape, len(self.classes))
        for i, text in enumerate(stored):
            size = len(text)
            attention[i, :, :size] = self.attention[text.number][:, :size]
            relevance[i, :, :size] = self.relevance[text.number][:, :size]
        return ArraysBatch(**vars(plain), attention=attention, relevance=relevance)

    def _read(self, texts: Sequence[Text]) -> Float[Tensor, "B C"]:
        assert self.reader is not None, "a model that cannot read was given changed input"
        return self.reader([[name.strip() for name in text] for text in texts]).to(self.precision)

    def trace(self, batch: Batch) -> Trace:
        """Return the weights, the read-out and the logits of the instances.

        Raises:
            InputError: changed instances, of which no read-out is known.
        """
        if not isinstance(batch, ArraysBatch):
            raise InputError("expected the instances that arrays hold, got changed ones")
        readout = Readout(batch.relevance, self.bias)
        logits = decode(readout, batch.attention.unsqueeze(0)).squeeze(0)
        support = batch.mask.unsqueeze(1).expand(batch.attention.shape)
        heatmap = batch.attention.mean(1)
        return Trace(batch.rows, batch.mask, batch.attention, support, heatmap, logits, readout)

    def logits(self, batch: Batch) -> Float[Tensor, "B C"]:
        """Return the predictions: of the arrays, or of what was read again."""
        return batch.read_logits if isinstance(batch, ReadBatch) else self.trace(batch).logits

    def predict(self, trace: Trace, attention: Float[Tensor, "S B K P"]) -> Float[Tensor, "S B C"]:
        """Return logits under S other weightings each, from the read-out."""
        assert trace.readout is not None
        return decode(trace.readout, attention)

    def to_heatmap(
        self, trace: Trace, attention: Float[Tensor, "S B K P"]
    ) -> Float[Tensor, "S B T"]:
        """Return the mean over the rows of weights."""
        return attention.mean(2)

    def on_tokens(self, values: Float[Tensor, "B L"], batch: Batch) -> Float[Tensor, "B T"]:
        """Return the values: each item is one position."""
        return values

    def token_positions(self, batch: Batch) -> Bool[Tensor, "B L"]:
        """Mark the items."""
        return batch.mask

    def embed(self, batch: Batch) -> Float[Tensor, "B L E"]:
        """Raise NotImplementedError: arrays have no input to embed."""
        raise NotImplementedError(NO_EMBEDDING)

    def logits_from(
        self, embedded: Float[Tensor, "B L E"], batch: Batch, attention: Tensor | None = None
    ) -> Float[Tensor, "B C"]:
        """Raise NotImplementedError: arrays have no input to embed."""
        raise NotImplementedError(NO_EMBEDDING)
