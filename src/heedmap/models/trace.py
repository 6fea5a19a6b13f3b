"""What one forward pass leaves behind, and what any model on trial must be able to do."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from heedmap.data.batches import Batch


@dataclass(frozen=True)
class Readout:
    """A linear read-out: logits = Σ_k Σ_t attention[k, t] · relevance[k, t] + bias.

    `relevance[t] = W h_t` is the output relevance of position t (Snell et al. 2021). Models with one
    sigmoid output are written as two classes with logits (0, z).
    """

    relevance: Float[Tensor, "B K T C"]
    bias: Float[Tensor, " C"]


@dataclass(frozen=True)
class Trace:
    """Tokens' mask, attention weights, heat map and logits of one batch.

    `attention` is what the model uses, K rows an instance; `heat` is what a person is shown, one number a
    token. Both are 0 where `mask` is False. `readout` is None where the model has no linear one.
    """

    rows: Int[Tensor, " B"]
    mask: Bool[Tensor, "B T"]
    attention: Float[Tensor, "B K T"]
    heat: Float[Tensor, "B T"]
    logits: Float[Tensor, "B C"]
    readout: Readout | None

    @property
    def predicted(self) -> Int[Tensor, " B"]:
        """The class of the largest logit."""
        return self.logits.argmax(-1)


@runtime_checkable
class Model(Protocol):
    """A model on trial. Experiments see this and nothing else, whatever family it is of."""

    classes: list[str]

    def batch(self, texts: Sequence[Sequence[str]], rows: Sequence[int]) -> Batch:
        """The model's own input for some texts."""
        ...

    def trace(self, batch: Batch) -> Trace:
        """One forward pass."""
        ...

    def predict(self, trace: Trace, attention: Float[Tensor, "S B K T"]) -> Float[Tensor, "S B C"]:
        """Logits under S other weightings each, without reading the text again."""
        ...

    def embed(self, batch: Batch) -> Float[Tensor, "B L E"]:
        """Input embeddings, marks and padding included (L ≥ T)."""
        ...

    def on_tokens(
        self, values: Shaped[Tensor, "B L *rest"], batch: Batch
    ) -> Shaped[Tensor, "B T *rest"]:
        """Of values at the model's input positions, those of the text's tokens."""
        ...

    def logits_from(
        self, embedded: Float[Tensor, "B L E"], batch: Batch, attention: Tensor | None = None
    ) -> Float[Tensor, "B C"]:
        """Differentiable logits; under imposed weights (B, K, T) where `attention` is given."""
        ...


def decode(readout: Readout, attention: Float[Tensor, "S B K T"]) -> Float[Tensor, "S B C"]:
    """Logits of a linear read-out under S weightings."""
    flat = attention.flatten(2).transpose(0, 1)  # (B, S, K·T)
    return torch.matmul(flat, readout.relevance.flatten(1, 2)).transpose(0, 1) + readout.bias
