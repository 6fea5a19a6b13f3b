"""Provide the instruments of the verification: visitors that record or replace weights, and comparisons."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedmap.counterfactual.row_weights import uniform
from heedmap.huggingface.attention_hook import Call, Visitor
from heedmap.measures import change_in_prediction

Inputs = Mapping[str, Tensor]
SAME_SHAPES = (
    64  # rounding units (ε of the dtype) by which the same operations on the same shapes may differ
)


def roundings(dtype: torch.dtype) -> int:
    """Return the rounding units by which answers may differ where shapes do.

    Other kernels then sum in another order; half precision sums in single precision, so it needs fewer units.
    """
    return 1024 if dtype in (torch.float32, torch.float64) else SAME_SHAPES


class WeightRecorder(Visitor):
    """Record the weights of every call, (B, H, Q, N) each."""

    def __init__(self) -> None:
        self.taken: list[Tensor] = []

    def weights(self, call: Call, weights: Float[Tensor, "B H Q N"]) -> None:
        """Record the weights."""
        self.taken.append(weights.detach())


class Copying(Visitor):
    """Return the same weights, so that the output is recomputed from them."""

    def weights(self, call: Call, weights: Float[Tensor, "B H Q N"]) -> Float[Tensor, "B H Q N"]:
        """Return a copy."""
        return weights.clone()


class Spreading(Visitor):
    """Spread each row's mass evenly over the keys that have any; masks and sinks are kept."""

    def weights(self, call: Call, weights: Float[Tensor, "B H Q N"]) -> Float[Tensor, "B H Q N"]:
        """Return uniform rows."""
        return uniform(weights, weights > 0)


class Leaves(Visitor):
    """Put a leaf of the graph into the weights of every call, to take its gradient.

    If `held`, the weights are the leaves: a layer's effect through later layers' weights is not part of
    the gradient. Otherwise the weights keep their graph, and the leaf is zeros added to them.
    """

    def __init__(self, held: bool = True) -> None:
        self.held = held
        self.leaves: dict[int, Tensor] = {}

    def weights(self, call: Call, weights: Float[Tensor, "B H Q N"]) -> Float[Tensor, "B H Q N"]:
        """Return the same numbers, with a gradient."""
        leaf = weights.detach().clone() if self.held else torch.zeros_like(weights)
        self.leaves[call.index] = leaf.requires_grad_(True)
        return leaf if self.held else weights + leaf


@dataclass(frozen=True)
class Drift:
    """The largest difference between a model's answers with eager and with default attention.

    `logits` is the difference of the answers, `tvd` that of the probabilities (total variation distance), None
    if the answer is not logits of texts. Infinite if only one of the two is finite. Where the answer
    `is_number` both are in its unit.
    """

    default: str
    logits: float
    tvd: float | None
    is_number: bool = False


def drift_between(default: str, default_answer: Tensor, eager: Tensor) -> Drift:
    """Compare the two answers to the same inputs."""
    logits = difference(default_answer, eager)
    if default_answer.ndim != 2:
        return Drift(default, logits, None)
    if not math.isfinite(logits):
        return Drift(default, logits, math.inf)
    change = float(change_in_prediction(default_answer, eager).max())
    return Drift(default, logits, change, is_number=default_answer.shape[-1] == 1)


def answer(output: Any) -> Tensor:
    """Return a model's answer: its logits, or its last hidden states if it has no head."""
    for name in ("logits", "last_hidden_state"):
        value = getattr(output, name, None)
        if isinstance(value, Tensor):
            return value
    raise TypeError(f"no logits and no hidden states in {type(output).__name__}")


def real_part(output: Tensor, real: Tensor | None) -> Tensor:
    """Drop an answer's padding: hidden states (B, N, D) → (real positions, D)."""
    per_token = real is not None and output.ndim == 3 and output.shape[:2] == real.shape
    return output[real] if per_token and real is not None else output


def difference(a: Tensor, b: Tensor) -> float:
    """Return the largest |a − b|; infinite if shapes differ, or if NaN stands against a number."""
    if a.shape != b.shape:
        return math.inf
    a, b = a.double(), b.double()
    if bool((a.isnan() != b.isnan()).any()):
        return math.inf
    gap = (a - b).abs()[~a.isnan() & (a != b)]  # equal infinities would differ by NaN
    return float(gap.max()) if gap.numel() else 0.0


def real_tokens(inputs: Inputs) -> Bool[Tensor, "B N"] | None:
    """Return which positions are text; None if the inputs have no mask."""
    mask = inputs.get("attention_mask")
    return None if mask is None else mask.bool()


def alone(inputs: Inputs, row: int, real: Bool[Tensor, "B N"] | None) -> dict[str, Tensor]:
    """Return one row of the inputs, without its padding if `real` is given."""
    one_row = {name: tensor[row : row + 1] for name, tensor in inputs.items()}
    if real is None:
        return one_row
    return {
        name: tensor[:, real[row]] if inputs[name].shape[:2] == real.shape else tensor
        for name, tensor in one_row.items()
    }


def other_side(inputs: Inputs, real: Bool[Tensor, "B N"]) -> tuple[dict[str, Tensor], Tensor]:
    """Return the same texts padded on the other side, and their new mask of real tokens."""
    pads_left = not bool(real[:, 0].all())
    order = torch.argsort((~real if pads_left else real).long(), dim=1, stable=True)

    def turned(tensor: Tensor) -> Tensor:
        return tensor.gather(1, order) if tensor.shape == real.shape else tensor

    return {name: turned(tensor) for name, tensor in inputs.items()}, real.gather(1, order)


def on_padding(weights: Float[Tensor, "B H Q N"], real: Bool[Tensor, "B T"]) -> float:
    """Return the largest weight of a real query on a padded key; 0 if the keys are other tokens."""
    if weights.shape[-1] != real.shape[1]:
        return 0.0
    rows = real if weights.shape[-2] == real.shape[1] else torch.ones_like(real[:, :1])
    is_padding = rows[:, None, :, None] & ~real[:, None, None, :]
    values = weights.masked_select(is_padding.expand_as(weights))
    return float(values.abs().max()) if values.numel() else 0.0


def ahead(weights: Float[Tensor, "B H Q N"], real: Bool[Tensor, "B T"] | None) -> float:
    """Return the largest weight of a real query on a later token; infinite if queries are other tokens."""
    if weights.shape[-1] != weights.shape[-2]:
        return math.inf
    later = weights.triu(1).abs().amax(-1)  # (B, H, Q)
    if real is not None and later.shape[-1] == real.shape[1]:
        later = later * real[:, None]  # left padding is fully masked, and so attends everywhere
    return float(later.max())


def off_one(weights: Float[Tensor, "B H Q N"], real: Bool[Tensor, "B T"] | None) -> float:
    """Return the largest distance of a real query's row sum from one."""
    gap = (weights.double().sum(-1) - 1).abs()
    if real is not None and weights.shape[-2] == real.shape[1]:
        gap = gap.masked_select(real[:, None].expand_as(gap))
    return float(gap.max()) if gap.numel() else 0.0


def nearest(weights: Tensor, candidates: list[Tensor]) -> float:
    """Return the difference to the most similar of the others."""
    return min((difference(weights, candidate) for candidate in candidates), default=math.inf)
