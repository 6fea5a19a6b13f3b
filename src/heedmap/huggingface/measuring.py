"""What the handshake measures with: visitors that record or replace weights, and exact comparisons."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedmap.counterfactual.row_weights import uniform
from heedmap.huggingface.door import Call, Visitor
from heedmap.measures import change_in_prediction

Inputs = Mapping[str, Tensor]


class Recording(Visitor):
    """Keeps the weights of every call, (B, H, Q, N) each."""

    def __init__(self) -> None:
        self.taken: list[Tensor] = []

    def weights(self, call: Call, weights: Float[Tensor, "B H Q N"]) -> None:
        """Looks on."""
        self.taken.append(weights.detach())


class Copying(Visitor):
    """Gives the same weights back, so that the output is computed anew from them."""

    def weights(self, call: Call, weights: Float[Tensor, "B H Q N"]) -> Float[Tensor, "B H Q N"]:
        """A copy."""
        return weights.clone()


class Spreading(Visitor):
    """Spreads each row's mass evenly over the keys that have any: masks and sinks stay what they are."""

    def weights(self, call: Call, weights: Float[Tensor, "B H Q N"]) -> Float[Tensor, "B H Q N"]:
        """The even rows."""
        return uniform(weights, weights > 0)


class Leaves(Visitor):
    """Puts a leaf of the graph into the weights of every call, to ask for its gradient.

    `held`: the weights are leaves themselves, so that what a layer does by way of later layers' weights is
    no part of the gradient. Otherwise they keep their past, and the leaf is zeros added to them.
    """

    def __init__(self, held: bool = True) -> None:
        self.held = held
        self.leaves: dict[int, Tensor] = {}

    def weights(self, call: Call, weights: Float[Tensor, "B H Q N"]) -> Float[Tensor, "B H Q N"]:
        """The same numbers, asking for a gradient."""
        leaf = weights.detach().clone() if self.held else torch.zeros_like(weights)
        self.leaves[call.index] = leaf.requires_grad_(True)
        return leaf if self.held else weights + leaf


@dataclass(frozen=True)
class Drift:
    """How far a model's answers with its eager attention are from those with its default one, at most.

    `logits` is the largest difference, `tvd` that of the probabilities (total variation distance): None where
    the answer is no logits of texts. Infinite where only one of the two gives numbers.
    """

    default: str
    logits: float
    tvd: float | None


def drift_between(default: str, before: Tensor, eager: Tensor) -> Drift:
    """From the two answers to the same inputs."""
    logits = difference(before, eager)
    if before.ndim != 2:
        return Drift(default, logits, None)
    if not math.isfinite(logits):
        return Drift(default, logits, math.inf)
    return Drift(default, logits, float(change_in_prediction(before, eager).max()))


def answer(output: Any) -> Tensor:
    """What a model says: its logits, or its last hidden states where it has no head."""
    for name in ("logits", "last_hidden_state"):
        found = getattr(output, name, None)
        if isinstance(found, Tensor):
            return found
    raise TypeError(f"no logits and no hidden states in {type(output).__name__}")


def kept(said: Tensor, real: Tensor | None) -> Tensor:
    """An answer without what it says of padding: hidden states (B, N, D) → (real positions, D)."""
    per_token = real is not None and said.ndim == 3 and said.shape[:2] == real.shape
    return said[real] if per_token and real is not None else said


def difference(a: Tensor, b: Tensor) -> float:
    """The largest |a − b|; infinite for other shapes, or where one is not a number and the other is."""
    if a.shape != b.shape:
        return math.inf
    a, b = a.double(), b.double()
    if bool((a.isnan() != b.isnan()).any()):
        return math.inf
    gap = (a - b).abs()[~a.isnan() & (a != b)]  # equal infinities would differ by NaN
    return float(gap.max()) if gap.numel() else 0.0


def real_tokens(inputs: Inputs) -> Bool[Tensor, "B N"] | None:
    """Which positions are text; None where the inputs have no mask."""
    mask = inputs.get("attention_mask")
    return None if mask is None else mask.bool()


def alone(inputs: Inputs, row: int, real: Bool[Tensor, "B N"] | None) -> dict[str, Tensor]:
    """One row of the inputs; without its padding where `real` is given."""
    found = {name: tensor[row : row + 1] for name, tensor in inputs.items()}
    if real is None:
        return found
    return {
        name: tensor[:, real[row]] if inputs[name].shape[:2] == real.shape else tensor
        for name, tensor in found.items()
    }


def other_side(inputs: Inputs, real: Bool[Tensor, "B N"]) -> tuple[dict[str, Tensor], Tensor]:
    """The same texts padded on the other side, and their new mask of real tokens."""
    left = not bool(real[:, 0].all())
    order = torch.argsort((~real if left else real).long(), dim=1, stable=True)

    def turned(tensor: Tensor) -> Tensor:
        return tensor.gather(1, order) if tensor.shape == real.shape else tensor

    return {name: turned(tensor) for name, tensor in inputs.items()}, real.gather(1, order)


def on_padding(weights: Float[Tensor, "B H Q N"], real: Bool[Tensor, "B T"]) -> float:
    """The largest weight that a real query gives a padded key; 0 where the keys are other tokens."""
    if weights.shape[-1] != real.shape[1]:
        return 0.0
    rows = real if weights.shape[-2] == real.shape[1] else torch.ones_like(real[:, :1])
    hit = rows[:, None, :, None] & ~real[:, None, None, :]
    found = weights.masked_select(hit.expand_as(weights))
    return float(found.abs().max()) if found.numel() else 0.0


def ahead(weights: Float[Tensor, "B H Q N"], real: Bool[Tensor, "B T"] | None) -> float:
    """The largest weight of a real query on a later token; infinite where queries are other tokens."""
    if weights.shape[-1] != weights.shape[-2]:
        return math.inf
    later = weights.triu(1).abs().amax(-1)  # (B, H, Q)
    if real is not None and later.shape[-1] == real.shape[1]:
        later = later * real[:, None]  # padding on the left sees nothing, and so looks everywhere
    return float(later.max())


def off_one(weights: Float[Tensor, "B H Q N"], real: Bool[Tensor, "B T"] | None) -> float:
    """How far the sum of a real query's row is from one, at most."""
    gap = (weights.double().sum(-1) - 1).abs()
    if real is not None and weights.shape[-2] == real.shape[1]:
        gap = gap.masked_select(real[:, None].expand_as(gap))
    return float(gap.max()) if gap.numel() else 0.0


def nearest(weights: Tensor, others: list[Tensor]) -> float:
    """The difference to the most similar of the others."""
    return min((difference(weights, other) for other in others), default=math.inf)
