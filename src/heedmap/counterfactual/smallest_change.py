"""Find the smallest change of the weights that changes the predicted class: global optima, linear read-out.

z(α) = Σ_t α_t R_t + b is linear in the weights. Let a_t be how far position t alone is from the rival class
c, less that of the best position for c:

    l_t = (R_tc + b_c) − (R_ty + b_y),   L = max_t l_t,   a_t = L − l_t ≥ 0.

Class c reaches the predicted class y where Σ_t α_t l_t ≥ 0, that is where Σ_t α_t a_t ≤ L: one linear
constraint for every rival. Another class is predicted where any of them holds, so the optimum is the least
over the rivals. A tie counts as changed: the distance is the infimum. If L < 0 for every rival, no weighting
whatever changes the class.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from scipy.optimize.elementwise import find_root
from torch import Tensor

from heedmap.counterfactual.tolerance import check_positions
from heedmap.measures import LN2, jensen_shannon

Values = NDArray[np.float64]
Indices = NDArray[np.int64]

TINY, LARGEST = 1e-300, 1e300  # in place of 0 in a logarithm, and of an infinite multiplier
NEGLIGIBLE = 1e-18  # a stretch of the weights by less changes none


@dataclass(frozen=True)
class Change:
    """The nearest weighting of each row that changes the class.

    `distance` is attained by `attention`, and no weighting that changes the class is nearer than `lower_bound`,
    up to the rounding of float64. Both are infinite, and `attention` is α̂, where no weighting changes the
    class.
    """

    distance: Float[Tensor, " B"]
    lower_bound: Float[Tensor, " B"]
    attention: Float[Tensor, "B T"]


def smallest_mass(
    attention: Float[Tensor, "B T"],
    readout: Float[Tensor, "B T C"],
    bias: Float[Tensor, " C"],
    mask: Bool[Tensor, "B T"],
    predicted: Int[Tensor, " B"],
) -> Change:
    """Minimise TVD(α, α̂) = ½ Σ |α_t − α̂_t|, the mass that is moved, over the weightings that change the class.

    A fractional knapsack per rival: mass moves to the best position for c, from those of largest a_t first.

    Raises:
        ValueError: a row without real positions.
    """
    rivals = _Rivals.from_readout(attention, readout, bias, mask, predicted)
    return _nearest(*_mass_per_rival(rivals, rivals.repeated()))


def farthest_order_mass(
    attention: Float[Tensor, "B T"],
    readout: Float[Tensor, "B T C"],
    bias: Float[Tensor, " C"],
    mask: Bool[Tensor, "B T"],
    predicted: Int[Tensor, " B"],
) -> Float[Tensor, " B"]:
    """Bound the `smallest_mass` of these weights in any order; for two classes the bound is attained.

    Against one rival the farthest order has the largest weights where a_t is largest: any other leaves less to
    move. For several rivals, the least over their farthest orders bounds that of every single order.
    """
    rivals = _Rivals.from_readout(attention, readout, bias, mask, predicted)
    order = rivals.shortfall.masked_fill(~mask.unsqueeze(1), -1.0).argsort(-1, descending=True)
    weights = (
        rivals.attention.masked_fill(~mask, -1.0).sort(-1, descending=True).values.clamp(min=0)
    )
    farthest = torch.zeros_like(rivals.shortfall).scatter(
        -1, order, weights.unsqueeze(1).expand_as(order)
    )
    return _mass_per_rival(rivals, farthest)[0].amin(1)


def smallest_divergence(
    attention: Float[Tensor, "B T"],
    readout: Float[Tensor, "B T C"],
    bias: Float[Tensor, " C"],
    mask: Bool[Tensor, "B T"],
    predicted: Int[Tensor, " B"],
) -> Change:
    """Minimise JSD(α, α̂) in nats over all weightings that change the class.

    A convex problem with one linear constraint per rival (`_minimise_divergence`). A weighting at a total
    variation distance δ has a divergence of at least ½ [(1+δ) ln(1+δ) + (1−δ) ln(1−δ)] (Topsøe 2000), so that
    only rivals that may be nearest are solved.
    """
    rivals = _Rivals.from_readout(attention, readout, bias, mask, predicted)
    original = rivals.repeated()
    mass, weights = _mass_per_rival(rivals, original)
    distance = jensen_shannon(weights, original).masked_fill(mass.isinf(), torch.inf)
    share = mass.clamp(max=1.0)
    lower_bound = 0.5 * (torch.xlogy(1 + share, 1 + share) + torch.xlogy(1 - share, 1 - share))
    lower_bound = lower_bound.masked_fill(mass.isinf(), torch.inf)
    may_be_nearest = (mass > 0) & mass.isfinite() & (lower_bound <= distance.amin(1, keepdim=True))
    row, rival = may_be_nearest.nonzero(as_tuple=True)
    if len(row):
        q, pair = rivals.attention[row], (row, rival)
        problem = (q, rivals.shortfall[pair], rivals.limit[pair], rivals.target[pair])
        solutions, bound = _minimise_divergence(*(x.numpy(force=True) for x in problem))
        solved = torch.from_numpy(solutions).to(q)
        weights, distance, lower_bound = weights.clone(), distance.clone(), lower_bound.clone()
        weights[row, rival] = solved
        distance[row, rival] = jensen_shannon(solved, q)
        lower_bound[row, rival] = torch.from_numpy(bound).to(q)
    change = _nearest(distance, weights)
    # Only rounding can put a bound above what is attained.
    lower_bound = torch.minimum(lower_bound.amin(1), change.distance).clamp(min=0.0)
    return Change(change.distance, lower_bound, change.attention)


def largest_divergence(
    attention: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"]
) -> Float[Tensor, " B"]:
    """Return max JSD(α, α̂) over all weightings α of the real positions, whatever is predicted.

    JSD is convex, so the maximum is at a vertex, and of these at the position with the least weight q:
    ½ [2 ln 2 + q ln q − (1 + q) ln(1 + q)]. It is below ln 2 unless some weight is 0: .311 ln 2 for two even
    weights.
    """
    q = attention.double().masked_fill(~mask, torch.inf).amin(-1)
    alone = mask.sum(-1) < 2
    return (0.5 * (2 * LN2 + torch.xlogy(q, q) - torch.xlogy(1 + q, 1 + q))).masked_fill(alone, 0)


@dataclass(frozen=True)
class _Rivals:
    """Rows in float64: α̂; per class a_t (0 at padding), L (−∞ for the predicted class) and L's position."""

    attention: Float[Tensor, "B T"]
    shortfall: Float[Tensor, "B C T"]
    limit: Float[Tensor, "B C"]
    target: Int[Tensor, "B C"]

    @classmethod
    def from_readout(
        cls,
        attention: Float[Tensor, "B T"],
        readout: Float[Tensor, "B T C"],
        bias: Float[Tensor, " C"],
        mask: Bool[Tensor, "B T"],
        predicted: Int[Tensor, " B"],
    ) -> "_Rivals":
        check_positions(mask)
        # In float64, as a_t is a difference of logits and the optimum a quotient of such differences.
        alone = (readout.double() + bias.double()).transpose(1, 2)
        predicted_index = predicted.reshape(-1, 1, 1)
        lead = alone - torch.take_along_dim(alone, predicted_index, 1)
        real = mask.unsqueeze(1)
        limit, target = lead.masked_fill(~real, -torch.inf).max(-1)
        shortfall = (limit.unsqueeze(-1) - lead).masked_fill(~real, 0.0)
        limit = limit.scatter(1, predicted_index.squeeze(-1), -torch.inf)
        return cls(attention.double().masked_fill(~mask, 0.0), shortfall, limit, target)

    def repeated(self) -> Float[Tensor, "B C T"]:
        """Return α̂ once per class."""
        return self.attention.unsqueeze(1).expand_as(self.shortfall)


def _mass_per_rival(
    rivals: _Rivals, original: Float[Tensor, "B C T"]
) -> tuple[Float[Tensor, "B C"], Float[Tensor, "B C T"]]:
    """Return the smallest mass moved from `original` per rival, and its weighting.

    Where no weighting reaches the rival, they are ∞ and `original`. A fractional knapsack: each unit of mass
    that moves from t to the target, where a = 0, lowers Σ α_t a_t by a_t towards L. So the greedy order,
    largest a_t first, moves the least.
    """
    a, order = rivals.shortfall.sort(dim=-1, descending=True, stable=True)
    q = original.gather(-1, order)
    cost = q * a
    # Sums from the end: what is left when the mass of the positions before is gone. No difference cancels.
    remaining = cost.flip(-1).cumsum(-1).flip(-1)
    remaining_after = torch.cat([remaining[..., 1:], torch.zeros_like(remaining[..., :1])], -1)
    limit = rivals.limit.unsqueeze(-1)
    # Of the first position after which the rest is within the limit, a part stays; all later ones stay whole.
    part = torch.where(a > 0, (limit - remaining_after) / a, torch.inf).clamp(min=0.0)
    kept_mass = torch.minimum(q, part)
    moved = (q - kept_mass).sum(-1)
    weights = torch.zeros_like(original).scatter(-1, order, kept_mass)
    weights = weights.scatter_add(-1, rivals.target.unsqueeze(-1), moved.unsqueeze(-1))
    never = rivals.limit < 0
    return (
        moved.masked_fill(never, torch.inf),
        torch.where(never.unsqueeze(-1), original, weights),
    )


def _nearest(distance: Float[Tensor, "B C"], weights: Float[Tensor, "B C T"]) -> Change:
    """Return the nearest of the rivals' weightings."""
    shortest, rival = distance.min(1)
    rows = torch.arange(len(shortest), device=shortest.device)
    return Change(shortest, shortest, weights[rows, rival])


def _minimise_divergence(
    q: Values, a: Values, limit: Values, target: Indices
) -> tuple[Values, Values]:
    """Minimise JSD(α, q) subject to Σ α = 1, Σ α a ≤ limit; rows have Σ q a > limit ≥ 0, and a = 0 at `target`.

    With the multipliers θ/2 of the constraint and (w − ln 2)/2 of the sum, stationarity is

        α_t = q_t / (exp(w + θ a_t) − 1),   θ ≥ 0, w ≥ 0,

    and at w = 0 mass may be added to a position with a_t = q_t = 0. Σ α falls in w, and along its root
    Σ α a falls in θ: two nested root searches. Any such θ and w give a lower bound, the dual function

        ln 2 + ½ [Σ_t q_t ln(1 − exp(−w − θ a_t)) − θ limit − w],

    so the result does not rest on how well the roots are found. Returns weightings that meet the constraint,
    and their bounds.
    """
    face = np.where(a == 0, q, 0.0).sum(-1)
    rows = np.arange(len(q))
    # With a limit of 0 all mass must go to positions with a = 0, which is the case θ → ∞.
    theta, bounded = np.full(len(q), LARGEST), limit > 0
    bounded_rows = rows[bounded]
    if len(bounded_rows):
        # At θ = 1/limit the constraint holds: Σ q a/(exp(θ a) − 1) ≤ Σ q/θ.
        high = -np.log(limit[bounded_rows])
        low = np.minimum(np.log(NEGLIGIBLE) - np.log(a[bounded_rows].max(-1)), high)

        def excess(log_theta: Values, row: Indices) -> Values:
            multiplier = np.exp(log_theta)
            weights = _stationary(
                q[row], a[row], multiplier, _normalising(q, a, face, multiplier, row)
            )
            beyond: Values = (weights * a[row]).sum(-1) - limit[row]
            return beyond

        theta[bounded_rows] = np.exp(_root(excess, low, high, bounded_rows))
    w = _normalising(q, a, face, theta, rows)
    weights = _stationary(q, a, theta, w)
    # expm1 keeps the digits of 1 − exp(−x) for a small x; where q is 0 the term is 0, whatever the logarithm.
    with np.errstate(over="ignore", divide="ignore"):
        logs = np.log(-np.expm1(-(w[:, None] + theta[:, None] * a)))
    logs = np.where(q > 0, logs, 0.0)
    bound = LN2 + 0.5 * ((q * logs).sum(-1) - theta * limit - w)
    # What is missing of the mass, and what rounding puts beyond the constraint, goes to the best position.
    weights /= np.maximum(weights.sum(-1), 1.0)[:, None]
    beyond = (weights * a).sum(-1)
    share = np.minimum(1.0, limit / np.maximum(beyond, np.finfo(np.float64).tiny))
    weights *= share[:, None]
    weights[rows, target] += 1.0 - weights.sum(-1)
    return weights, bound


def _stationary(q: Values, a: Values, theta: Values, w: Values) -> Values:
    """Return q / (exp(w + θ a) − 1), 0 where q is 0."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        return np.where(q > 0, q / np.expm1(w[:, None] + theta[:, None] * a), 0.0)


def _normalising(q: Values, a: Values, face: Values, theta: Values, row: Indices) -> Values:
    """Return the w at which the stationary weights sum to 1; 0 where they sum to less at every w ≥ 0."""

    def missing(log_w: Values, theta: Values, row: Indices) -> Values:
        total: Values = _stationary(q[row], a[row], theta, np.exp(log_w)).sum(-1)
        return total - 1.0

    # Positions with a = 0 alone sum to 1 at ln(1 + Σ q); at ln 2 all do at most, for θ = 0 exactly.
    low = np.log(np.maximum(np.log1p(face[row]), TINY))
    return np.exp(_root(missing, low, np.full(len(row), np.log(LN2)), theta, row))


def _root(falling: Callable[..., Values], low: Values, high: Values, *arguments: Any) -> Values:
    """Return the root of a falling function between two ends; the nearer end where there is none."""
    solution = find_root(falling, (low, high), args=arguments)
    f_low, f_high = falling(low, *arguments), falling(high, *arguments)
    crosses = (f_low > 0) & (f_high < 0)
    return np.where(crosses, solution.x, np.where(f_low <= 0, low, high))
