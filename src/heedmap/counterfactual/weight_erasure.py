"""Erase weights one at a time, along a ranking, or as few as possible: closed forms for a linear read-out.

z(α) = Σ_t α_t R_t + b, and after erasing the positions I the others are divided by their mass m = Σ_{t∉I} α_t:

    z_I = Σ_{t∉I} α_t R_t / m + b.

For a softmax this is the softmax without those positions. Where nothing is left (m = 0) the context is 0
and z = b (Serrano & Smith 2019): that says nothing of the weights, and is no flip. "Flips" is said where
something is left and another class's logit is strictly larger than the predicted one's; multiplied by m > 0
that needs no division, and is a sum over what is kept:

    Σ_{t∉I} w_t < 0,   w_t = α_t [(R_ty + b_y) − (R_tc + b_c)],

for the predicted class y and some other class c: c is then ahead of y. A sum below 0 has a weight above 0.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional


@dataclass(frozen=True)
class Flip:
    """The first flip along a ranking, or the smallest set that flips.

    `count`: positions erased, 0 where nothing flips while any weight is left. `mass`: the weight on them.
    One of each per text, or per text and class.
    """

    count: Int[Tensor, "B *C"]
    mass: Float[Tensor, "B *C"]


def without_each(
    attention: Float[Tensor, "B T"],
    readout: Float[Tensor, "B T C"],
    bias: Float[Tensor, " C"],
    mask: Bool[Tensor, "B T"],
) -> Float[Tensor, "B T C"]:
    """Return the logits without each position in turn, in float64; b where no weight is left. O(T C).

    The others are added up from both ends. Taking the position from the total would lose all digits where it
    has nearly all the weight.
    """
    weights = attention.double().masked_fill(~mask, 0.0)
    context = weights.unsqueeze(-1) * readout.double().masked_fill(~mask.unsqueeze(-1), 0.0)
    mass, rest = _others(weights.unsqueeze(-1)), _others(context)
    has_weight = mass > 0
    return torch.where(has_weight, rest / torch.where(has_weight, mass, 1.0), 0.0) + bias.double()


def along(
    ranking: Float[Tensor, "B T"],
    attention: Float[Tensor, "B T"],
    readout: Float[Tensor, "B T C"],
    bias: Float[Tensor, " C"],
    mask: Bool[Tensor, "B T"],
    predicted: Int[Tensor, " B"],
) -> Flip:
    """Erase the positions of the largest `ranking` first, one after the other, until another class wins.

    The last one stays. Ties keep the order of the text. O(T log T + T C).
    """
    order = _order(ranking.unsqueeze(-1), mask)
    flips = _ahead(order, attention, readout, bias, mask, predicted).any(-1)
    first_flip, ever_flips = flips.long().argmax(-1), flips.any(-1)
    weights = attention.double().masked_fill(~mask, 0.0).gather(1, order.squeeze(-1))
    erased = weights.cumsum(-1).gather(1, first_flip.unsqueeze(-1)).squeeze(-1)
    return Flip((first_flip + 1) * ever_flips, torch.where(ever_flips, erased, 0.0))


def along_each(
    rankings: Float[Tensor, "B T #C"],
    attention: Float[Tensor, "B T"],
    readout: Float[Tensor, "B T C"],
    bias: Float[Tensor, " C"],
    mask: Bool[Tensor, "B T"],
    predicted: Int[Tensor, " B"],
) -> Int[Tensor, "B C"]:
    """Return for each class after how many erasures it is ahead of the predicted one; 0 where it never is.

    `rankings` is one per class, or one for all; otherwise as `along`, whose count is the least of these that
    is not 0, if they are along one ranking. O(C T log T).
    """
    ahead = _ahead(_order(rankings, mask), attention, readout, bias, mask, predicted)
    return (ahead.long().argmax(1) + 1) * ahead.any(1)


def split_along(
    ranking: Float[Tensor, "B T"],
    attention: Float[Tensor, "B T"],
    readout: Float[Tensor, "B T C"],
    bias: Float[Tensor, " C"],
    mask: Bool[Tensor, "B T"],
    counts: Int[Tensor, "B Q"],
) -> tuple[Float[Tensor, "B Q C"], Float[Tensor, "B Q C"]]:
    """Return the logits without the first `counts` positions of a ranking, and with these alone, in float64.

    Sums from either end of the ranking: z = Σ_kept α_t R_t / Σ_kept α_t + b, and b where what is kept has no
    weight. `counts` are from 0 to the text's length. Ties keep the order of the text. O(T log T + T C).
    """
    order = ranking.double().masked_fill(~mask, -torch.inf)
    order = order.argsort(dim=-1, descending=True, stable=True)
    weights = attention.double().masked_fill(~mask, 0.0).gather(1, order).unsqueeze(-1)
    context = readout.double().masked_fill(~mask.unsqueeze(-1), 0.0)
    context = weights * context.gather(1, order.unsqueeze(-1).expand_as(context))
    sums = torch.cat([context, weights], -1)
    nothing = torch.zeros_like(sums[:, :1])
    places = counts.unsqueeze(-1).expand(-1, -1, sums.shape[-1])
    parts = (
        torch.cat([_from_end(sums), nothing], 1).gather(1, places),
        torch.cat([nothing, sums.cumsum(1)], 1).gather(1, places),
    )
    without, alone = (
        torch.where(mass > 0, total / torch.where(mass > 0, mass, 1.0), 0.0) + bias.double()
        for total, mass in ((part[..., :-1], part[..., -1:]) for part in parts)
    )
    return without, alone


def smallest(
    attention: Float[Tensor, "B T"],
    readout: Float[Tensor, "B T C"],
    bias: Float[Tensor, " C"],
    mask: Bool[Tensor, "B T"],
    predicted: Int[Tensor, " B"],
) -> tuple[Flip, Bool[Tensor, "B T"]]:
    """Return the smallest set of positions whose erasure flips the decision, and which they are.

    Serrano & Smith (2019) call the search exponential. For a linear read-out it is a sort for each class
    (`smallest_each`), and the best class has the smallest of all; of two that need as many, the first.
    O(C T log T).
    """
    per_class, erased = smallest_each(attention, readout, bias, mask, predicted)
    never = mask.shape[1] + 1
    best = torch.where(per_class.count > 0, per_class.count, never).argmin(-1)
    rows = torch.arange(len(mask), device=mask.device)
    smallest_set = erased[rows, best]
    return Flip(per_class.count[rows, best], per_class.mass[rows, best]), smallest_set


def smallest_each(
    attention: Float[Tensor, "B T"],
    readout: Float[Tensor, "B T C"],
    bias: Float[Tensor, " C"],
    mask: Bool[Tensor, "B T"],
    predicted: Int[Tensor, " B"],
) -> tuple[Flip, Bool[Tensor, "B C T"]]:
    """Return for each class the smallest set of positions after whose erasure it is ahead of the predicted one.

    Class c is ahead where the kept w sum to less than 0, and of all sets of j positions to keep, the j smallest
    w have the smallest sum. So the largest j for which that is negative is the smallest erasure for c, and
    where there is none, *no* set puts c ahead while anything is left: a proof. Of equal w, the first in the
    text go first. The predicted class is never ahead of itself.

    Returns:
        the sets' sizes and weights, each (B, C); and the sets.
    """
    size = mask.sum(-1)
    margins = _margins(attention, readout, bias, mask, predicted).transpose(1, 2)  # (B, C, T)
    # Flipped before the stable sort, so that of equal margins the last in the text are kept.
    ascending, order = (
        margins.masked_fill(~mask.unsqueeze(1), torch.inf).flip(-1).sort(dim=-1, stable=True)
    )
    order = mask.shape[1] - 1 - order
    sums = ascending.masked_fill(ascending.isinf(), 0.0).cumsum(-1)
    place = torch.arange(1, mask.shape[1] + 1, device=mask.device)
    keep = ((sums < 0) & (place <= size[:, None, None])) * place  # 0 where this many do not flip
    kept_count = keep.amax(-1)  # (B, C)
    weights = attention.double().masked_fill(~mask, 0.0).unsqueeze(1)
    erased = torch.zeros_like(order, dtype=torch.bool).scatter(
        2, order, place > kept_count.unsqueeze(-1)
    ) & mask.unsqueeze(1)
    erased = erased & (kept_count > 0).unsqueeze(-1)
    return Flip(erased.sum(-1), (weights * erased).sum(-1)), erased


def _margins(
    attention: Float[Tensor, "B T"],
    readout: Float[Tensor, "B T C"],
    bias: Float[Tensor, " C"],
    mask: Bool[Tensor, "B T"],
    predicted: Int[Tensor, " B"],
) -> Float[Tensor, "B T C"]:
    """Return w: each position's part of the predicted class's lead over every class, 0 over itself."""
    alone = readout.double() + bias.double()
    predicted_logit = torch.take_along_dim(alone, predicted.reshape(-1, 1, 1), -1)
    weights = attention.double().masked_fill(~mask, 0.0)
    return (weights.unsqueeze(-1) * (predicted_logit - alone)).masked_fill(~mask.unsqueeze(-1), 0.0)


def _ahead(
    order: Int[Tensor, "B T #C"],
    attention: Float[Tensor, "B T"],
    readout: Float[Tensor, "B T C"],
    bias: Float[Tensor, " C"],
    mask: Bool[Tensor, "B T"],
    predicted: Int[Tensor, " B"],
) -> Bool[Tensor, "B T C"]:
    """Return whether a class is ahead of the predicted one once the first k + 1 positions are gone."""
    margins = _margins(attention, readout, bias, mask, predicted)
    remaining = _from_end(margins.gather(1, order.expand_as(margins)))
    # After k + 1 erasures what begins at k + 1 is left; after the last one, nothing.
    return functional.pad(remaining[:, 1:] < 0, (0, 0, 0, 1))


def _order(rankings: Float[Tensor, "B T #C"], mask: Bool[Tensor, "B T"]) -> Int[Tensor, "B T #C"]:
    padding_last = rankings.masked_fill(~mask.unsqueeze(-1), -torch.inf)
    return padding_last.argsort(dim=1, descending=True, stable=True)


def _from_end(values: Float[Tensor, "B T C"]) -> Float[Tensor, "B T C"]:
    """Return the sums of what is at a position and after it. No difference cancels."""
    return values.flip(1).cumsum(1).flip(1)


def _others(values: Float[Tensor, "B T C"]) -> Float[Tensor, "B T C"]:
    """Return the sum of all other positions, at each."""
    none = torch.zeros_like(values[:, :1])
    sums_before = torch.cat([none, values[:, :-1]], 1).cumsum(1)
    sums_after = torch.cat([values[:, 1:], none], 1).flip(1).cumsum(1).flip(1)
    return sums_before + sums_after
