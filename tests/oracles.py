"""References for the fast paths: the slow, obvious way, or another formula."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedmap.importance.rollout import mixed
from heedmap.measures import total_variation


def permutation_moments(
    attention: Float[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
    readout: Float[Tensor, "B T C"],
    bias: Float[Tensor, " C"],
) -> tuple[Float[Tensor, "B C"], Float[Tensor, "B C"]]:
    """Mean and variance of each logit over all n! permutations, in closed form.

    E z = mean_t R_t + b;  Var z = Σ(α_t − 1/n)² · Σ(R_t − R̄)² / (n − 1), sums over real positions.
    (The moments of a linear permutation statistic, Hoeffding 1951; the paper samples instead.) One
    position has one permutation: variance 0. The mean uses Σα = 1.
    """
    n: Int[Tensor, "B 1"] = mask.sum(-1, keepdim=True)
    real = mask.double().unsqueeze(-1)
    average = (readout.double() * real).sum(1) / n
    spread = ((readout.double() - average.unsqueeze(1)).square() * real).sum(1)
    uneven = ((attention.double() - 1 / n).square() * mask).sum(-1, keepdim=True)
    return average + bias.double(), uneven * spread / (n - 1).clamp(min=1)


def rollout_rows(
    layers: Float[Tensor, "L B N N"], mask: Bool[Tensor, "B N"], start: Float[Tensor, "B N"]
) -> Float[Tensor, "B N"]:
    """Rollout of one row per instance, in float64: start Â_L ... Â_1, in O(L N²).

    `start` weighs the states at the top: 1 at [CLS], or 1/n at each of n real positions. The result
    weighs the inputs, has the same sum, and is 0 at padding. No layers: the start itself.

    Raises ValueError where `start` puts weight on padding, which no layer would ever move.
    """
    if bool((start[~mask] != 0).any()):
        raise ValueError("rollout must start at real positions, but some weight lies on padding")
    row = start.double()
    for layer in reversed(layers.unbind(0)):
        row = torch.einsum("bi,bij->bj", row, mixed(layer.double(), mask))
    return row


def distance(weights: Float[Tensor, "B T"], rows: tuple[Tensor, ...]) -> Float[Tensor, " B"]:
    """TVD of the predictions of other weights from those of the rows' own: (attention, readout, bias, mask)."""
    attention, readout, bias, _ = rows
    moved, original = (
        (torch.einsum("bt,btc->bc", a, readout) + bias).softmax(-1) for a in (weights, attention)
    )
    return total_variation(moved, original)
