"""Bound how different an attention with the same prediction can be, for any number of classes.

Two classes have an exact answer. For more, TVD ≤ ε is no longer a slab, and the answer is enclosed:
from below by a feasible weighting, from above by the optimum over a polytope that contains them all.

No part replaces another. The mean (largest) loss without it, in units of ln 2, on 100 texts of five
classes (reviews-stars, lstm) and 40 of four (AG News, lstm), at the ε = .01 of the audit and at a smaller one:

    part                            five: .01     five: .001    four: .01     four: .001
    pairs of positions              .002 (.09)    .004 (.26)    .001 (.02)    .002 (.06)
    moves of mass                   .001 (.08)    .028 (.45)    .000 (.01)    .004 (.11)
    both (`local_search`)           .003 (.09)    .050 (.49)    .002 (.02)    .015 (.30)
    `null_space_walk`               .002 (.16)    .012 (.32)    .003 (.07)    .300 (.95)
    constrained search              .004 (.18)    .001 (.09)    .001 (.04)    .000 (.01)
    `polytope`, of the upper bound  not used      not used      .010 (.31)    .035 (.32)

The paper's search as a start adds at most .0003 at .01; with it, no row is below what that search found.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedmap.counterfactual.constrained import search
from heedmap.counterfactual.exact import adversary, most_different
from heedmap.counterfactual.linearised_problem import GROUPS
from heedmap.counterfactual.local_search import best_pair, move_mass
from heedmap.counterfactual.null_space_walk import walk
from heedmap.counterfactual.polytope import vertex_bound
from heedmap.counterfactual.tolerance import Instances, canonical_order
from heedmap.measures import LN2, jensen_shannon

LONGEST_FOR_VERTICES = 48  # longest row whose triples of positions are enumerated
MOST_FOR_VERTICES = 4  # classes: every triple of them costs as much again, and C = 5 has ten
RESTARTS, STEPS = 4, 15
SOLVED = 1e-3  # nats: a smaller gap between the bounds is not searched
BLOCK = 1 << 15  # logits searched together
PAIRS_BLOCK = 1 << 18  # logits of pairs of classes that are bounded together
ROUNDING_OF_JSD = 1e-9  # of the divergences that are compared to leave out a pair of classes


@dataclass(frozen=True)
class Bounds:
    """Bounds lower ≤ max JSD(α, α̂) ≤ upper in nats, over all weightings within ε; `attention` attains lower."""

    lower: Float[Tensor, " B"]
    upper: Float[Tensor, " B"]
    attention: Float[Tensor, "B T"]


def bound_adversary(
    attention: Float[Tensor, "B T"],
    readout: Float[Tensor, "B T C"],
    bias: Float[Tensor, " C"],
    mask: Bool[Tensor, "B T"],
    epsilon: float,
    *,
    starts: Sequence[Float[Tensor, "B T"]] = (),
    searching: bool = True,
) -> Bounds:
    """Enclose max JSD(α, α̂) subject to TVD(softmax z(α), softmax z(α̂)) ≤ ε.

    Jain & Wallace's problem (2019, equation 2) with one adversary. C = 2 is exact.

    Upper: TVD ≤ ε implies ln((p_c − ε)/(p_c' + ε)) ≤ z_c − z_c' for every pair of classes. The bound is the
    smallest of ln 2 and the exact optima over one pair of classes at a time and one triple at a time
    (C = 3 or 4, at most 48 positions). Lower: the best feasible weighting found, at worst α̂ itself (0). It
    comes from vertices of the polytope of equal predictions (walking from α̂), pairs of positions, any
    `starts` (pulled towards α̂ until feasible) and, where a gap remains and `searching`, a constrained
    search, which takes one to two times as long as all the rest. Moves of mass improve the best one.
    The result depends neither on the order of the positions nor on other rows.

    Raises:
        ValueError: fewer than two classes, a negative ε, or a row without real positions.
    """
    classes = readout.shape[-1]
    if classes < 2:
        raise ValueError(
            f"expected at least 2 classes, got {classes}: a sigmoid model has two, of logits (0, z)"
        )
    if classes == 2:
        optimum = adversary(attention, readout, bias, mask, epsilon)
        return Bounds(optimum.jsd, optimum.jsd, optimum.dense(mask.shape[1]))

    order = canonical_order(attention, readout, mask)
    instances = Instances.from_readout(
        attention.gather(1, order),
        readout.gather(1, order.unsqueeze(-1).expand(readout.shape)),
        bias,
        mask.gather(1, order),
        epsilon,
    )
    upper = _upper(instances)
    best = _Best(instances)
    best.offer(instances.attention)
    for start in (best_pair(instances), *(start.double().gather(1, order) for start in starts)):
        best.offer(start)
    gap = (upper - best.jsd > SOLVED).nonzero()[:, 0]
    # At ε = 0 no step of a search is feasible.
    if searching and epsilon > 0 and len(gap):
        best.offer(best.weights.index_copy(0, gap, _search(instances.rows(gap))))
    best.improve()
    in_text_order = torch.zeros_like(best.weights).scatter(1, order, best.weights)
    # Only rounding can put the attained value above the bound.
    return Bounds(best.jsd, torch.maximum(upper, best.jsd), in_text_order)


class _Best:
    """The most different feasible weighting of each row so far, at first α̂ itself."""

    def __init__(self, instances: Instances) -> None:
        self.instances, self.weights = instances, instances.attention
        self.jsd = torch.zeros_like(instances.attention[:, 0])

    def offer(self, start: Float[Tensor, "B T"]) -> None:
        """Try a weighting per row, and the vertex at which a walk from it ends."""
        start = _feasible(self.instances, start)
        self._keep(start)
        self._keep(walk(self.instances, start))

    def improve(self) -> None:
        """Move mass within the tolerance, then try other weights with the same logits, then move mass again."""
        for move in (move_mass, walk, move_mass):
            self._keep(move(self.instances, self.weights))

    def _keep(self, weights: Float[Tensor, "B T"]) -> None:
        jsd = jensen_shannon(weights, self.instances.attention)
        better = jsd > self.jsd
        self.weights = torch.where(better.unsqueeze(1), weights, self.weights)
        self.jsd = torch.where(better, jsd, self.jsd)


def _feasible(instances: Instances, start: Float[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    """Return each weighting if feasible, else the last feasible point on the segment from α̂ to it."""
    original, step = instances.attention, start - instances.attention
    none = torch.zeros_like(original[:, 0])
    share = instances.last_feasible(
        instances.logits_of(original), instances.logits_of(step), none, none + 1
    )
    result = original
    # Rounding: the logits of a sum are not the sum of the logits.
    for weights in (original + share.unsqueeze(1) * step, start):
        feasible = instances.is_feasible(instances.logits_of(weights))
        result = torch.where(feasible.unsqueeze(1), weights, result)
    return result


def _search(instances: Instances) -> Float[Tensor, "b T"]:
    """Run the constrained search that serves models without a linear read-out."""
    positions, classes = instances.logits[0].shape
    size = max(1, BLOCK // (positions * min(classes, GROUPS)))
    results = []
    for begin in range(0, len(instances.mask), size):
        block = instances.rows(slice(begin, begin + size))

        def predict(weights: Tensor, logits: Tensor = block.logits) -> Tensor:
            return torch.einsum("sbkt,btc->sbc", weights, logits)

        result = search(
            predict,
            lambda weights: weights.squeeze(2),
            block.attention.unsqueeze(1),
            block.mask.unsqueeze(1),
            block.mask,
            block.logits_of(block.attention),
            epsilon=block.epsilon,
            restarts=RESTARTS,
            steps=STEPS,
            # One seed for all: a row's random numbers do not depend on its batch.
            generators=[torch.Generator().manual_seed(0) for _ in block.mask],
        )
        results.append(result.attention.squeeze(1))
    return torch.cat(results)


def _upper(instances: Instances) -> Float[Tensor, " B"]:
    upper = _slab_bound(instances)
    classes = instances.logits.shape[-1]
    if classes <= MOST_FOR_VERTICES:
        short = (instances.mask.sum(-1) <= LONGEST_FOR_VERTICES).nonzero()[:, 0]
        for triple in combinations(range(classes), 3):
            tighter = vertex_bound(instances.rows(short).with_classes(list(triple)))
            upper = upper.index_copy(0, short, torch.minimum(upper[short], tighter))
    return upper


def _slab_bound(instances: Instances) -> Float[Tensor, " B"]:
    """Return the least of the two-class optima, one per pair of classes.

    A position whose logits are within a pair's margins is a weighting within them: an optimum that is at least
    the least one so far is not computed. Pairs of classes with the least such weightings come first, in waves
    that double.
    """
    # Dropping all margins but one pair's enlarges the set, so each optimum bounds the answer from above.
    upper = torch.full_like(instances.attention[:, 0], LN2)
    first, second = torch.combinations(
        torch.arange(instances.logits.shape[-1], device=upper.device), 2
    ).unbind(1)
    attained, order = _attained(instances, first, second).sort(dim=1, stable=True)
    start, size = 0, 1
    while start < order.shape[1]:
        wave = attained[:, start : start + size] < upper.unsqueeze(1) + ROUNDING_OF_JSD
        rows, column = wave.nonzero(as_tuple=True)
        if not len(rows):
            break  # those after it attain more
        pairs = order[rows, start + column]
        at_once = max(1, PAIRS_BLOCK // instances.mask.shape[1])
        for block_rows, block_pairs in zip(
            torch.split(rows, at_once), torch.split(pairs, at_once), strict=True
        ):
            block = instances.rows(block_rows)
            higher, lower = (classes[block_pairs].unsqueeze(1) for classes in (first, second))
            optimum = most_different(
                block.attention,
                block.difference(higher, lower),
                torch.zeros_like(block.attention[:, 0]),
                block.mask,
                (block.log_lower.gather(1, higher) - block.log_upper.gather(1, lower))[:, 0],
                (block.log_upper.gather(1, higher) - block.log_lower.gather(1, lower))[:, 0],
            )
            upper = upper.scatter_reduce(0, block_rows, optimum.jsd, "amin")
        start, size = start + size, 2 * size
    return upper


def _attained(
    instances: Instances, first: Int[Tensor, " pairs"], second: Int[Tensor, " pairs"]
) -> Float[Tensor, "B pairs"]:
    """Return the largest JSD of a single position within the margins of each pair of classes; −∞ for none."""
    q = instances.attention
    alone = 0.5 * (LN2 + torch.xlogy(q, q) - torch.xlogy(1 + q, 1 + q))
    alone = (alone + 0.5 * LN2 * q.sum(-1, keepdim=True)).masked_fill(~instances.mask, -torch.inf)
    low, high = instances.margin(first, second), -instances.margin(second, first)
    size = max(1, PAIRS_BLOCK // q.numel())
    blocks = []
    for begin in range(0, len(first), size):
        part = slice(begin, begin + size)
        lead = instances.logits[..., first[part]] - instances.logits[..., second[part]]
        within = (lead >= low[:, None, part]) & (lead <= high[:, None, part])
        blocks.append(alone.unsqueeze(2).where(within, -torch.inf).amax(1))
    return torch.cat(blocks, dim=1)
