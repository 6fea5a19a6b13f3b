"""Define the trace of one forward pass, and the protocol of a model on trial."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from heedmap.data.batches import Batch
from heedmap.data.texts import Text
from heedmap.measures import levelled


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

    `attention` is what the model uses, K rows per instance over P positions; `support` is where a row may have
    weight. `heatmap` has one number per token, 0 where `mask` is False. If each token is one
    position, P = T; otherwise `words` is the token of each position, −1 for special tokens and −2 for padding.
    With `all_rows` there is a row per position: K = heads × P. `readout` is None if the model has no linear
    one. `state` is private to the model: what `Model.predict` needs of the pass. `normaliser` makes the weights
    of scores; `scores` are these, where they are known and it is not a softmax: without some positions a
    softmax is what is left of its weights, scaled, and others are not.
    """

    rows: Int[Tensor, " B"]
    mask: Bool[Tensor, "B T"]
    attention: Float[Tensor, "B K P"]
    support: Bool[Tensor, "B K P"]
    heatmap: Float[Tensor, "B T"]
    logits: Float[Tensor, "B C"]
    readout: Readout | None = None
    state: object = None
    words: Int[Tensor, "B P"] | None = None
    all_rows: bool = False
    normaliser: str = "softmax"
    scores: Float[Tensor, "B K P"] | None = None

    @property
    def token_positions(self) -> Bool[Tensor, "B P"] | None:
        """Return which positions belong to a token; None if all do."""
        return None if self.words is None else self.words >= 0

    @cached_property
    def ranked_heatmap(self) -> Float[Tensor, "B T"]:
        """Return the heat map for rankings, in which weights that differ by rounding alone are equal."""
        return levelled(self.heatmap, self.mask)

    @property
    def predicted(self) -> Int[Tensor, " B"]:
        """Return the class of the largest logit; 0 where there is one output alone."""
        return self.logits.argmax(-1)


Capability = Literal["reading", "gradients", "read-out", "classes"]
READS: frozenset[Capability] = frozenset({"reading", "gradients", "classes"})


@torch.no_grad()
def is_scale_free(predict: Callable[[Tensor], Tensor], vectors: Float[Tensor, "*B L E"]) -> bool:
    """Return whether f(c · x) = f(x) for c > 0 at every position: then gradients by x say nothing of its parts.

    Gradient × input is 0 by construction, and along the path of integrated gradients f jumps at x = 0 alone.
    """
    factors = 2 + torch.arange(vectors.shape[-2], device=vectors.device).unsqueeze(1) % 2
    logits, of_longer, of_rolled = map(predict, (vectors, factors * vectors, vectors.roll(1, -1)))
    limit = 0.01 * (of_rolled - logits).abs().max()  # of what other vectors change
    return bool((of_longer - logits).abs().max() < limit)


@runtime_checkable
class Model(Protocol):
    """A model on trial. Experiments use nothing else of a model.

    Without "reading" `logits` are those of the audited texts alone, and without "gradients" there is no
    embedding: `embed` and `logits_from` raise NotImplementedError.
    """

    classes: list[str]
    tokens_at_once: int
    """How many positions one batch may hold, which bounds the memory."""
    capabilities: frozenset[Capability]
    """What it can do: read a changed input again ("reading"), give gradients by its input and parameters
    ("gradients"), read one row of weights out linearly, Σ_t α_t R[t] + b ("read-out"), and decide between
    classes ("classes"). Without "classes" it gives a number: there is one logit, which is this number, and
    `classes` has its unit alone."""

    @property
    def precision(self) -> torch.dtype:
        """Return the dtype in which logits are computed."""
        ...

    def parameters(self) -> Iterable[Tensor]:
        """Yield everything that was learned."""
        ...

    def lengths(self, texts: Sequence[Text]) -> NDArray[np.int64]:
        """Count the positions that the model reads of each text."""
        ...

    def mask_token(self, text: Text, place: int) -> Text:
        """Replace one token by a mask or the unknown word."""
        ...

    def batch(self, texts: Sequence[Text], rows: Sequence[int]) -> Batch:
        """Make the model's input of some texts."""
        ...

    def trace(self, batch: Batch) -> Trace:
        """Run one forward pass."""
        ...

    def logits(self, batch: Batch) -> Float[Tensor, "B C"]:
        """Return the predictions alone."""
        ...

    def predict(self, trace: Trace, attention: Float[Tensor, "S B K P"]) -> Float[Tensor, "S B C"]:
        """Return differentiable logits under S other weightings each; earlier layers do not run again."""
        ...

    def to_heatmap(
        self, trace: Trace, attention: Float[Tensor, "S B K P"]
    ) -> Float[Tensor, "S B T"]:
        """Return the heat maps of S other weightings each, computed as the trace's own."""
        ...

    def embed(self, batch: Batch) -> Float[Tensor, "B L E"]:
        """Embed the input, marks and padding included (L ≥ T)."""
        ...

    def on_tokens(self, values: Float[Tensor, "B L"], batch: Batch) -> Float[Tensor, "B T"]:
        """Sum values at the input positions over each token of the text."""
        ...

    def token_positions(self, batch: Batch) -> Bool[Tensor, "B L"]:
        """Mark the input positions of the text's tokens: no marks, no padding."""
        ...

    def logits_from(
        self, embedded: Float[Tensor, "B L E"], batch: Batch, attention: Tensor | None = None
    ) -> Float[Tensor, "B C"]:
        """Return differentiable logits, under imposed weights (B, K, P) if `attention` is given."""
        ...


def decode(readout: Readout, attention: Float[Tensor, "S B K T"]) -> Float[Tensor, "S B C"]:
    """Return logits of a linear read-out under S weightings."""
    # One product of matrices per instance serves all S weightings.
    flat = attention.flatten(2).transpose(0, 1)  # (B, S, K·T)
    return torch.matmul(flat, readout.relevance.flatten(1, 2)).transpose(0, 1) + readout.bias
