"""How different an attention with the same prediction can be, for any number of classes.

Two classes have an exact answer. For more, TVD ≤ ε is no longer a slab, and the answer is enclosed:
from below by a feasible weighting, from above by the optimum over a polytope that holds them all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedmap.counterfactual.constrained import search
from heedmap.counterfactual.exact import adversary, most_different
from heedmap.counterfactual.local_search import best_pair, climb
from heedmap.counterfactual.null_space_walk import pivot
from heedmap.counterfactual.polytope import vertex_bound
from heedmap.counterfactual.tolerance import Instances, canonical_order
from heedmap.measures import LN2, jensen_shannon

LONGEST_FOR_VERTICES = 48  # positions of a row whose triples are enumerated
MOST_FOR_VERTICES = 4  # classes: every triple of them costs as much again, and C = 5 has ten
RESTARTS, STEPS = 4, 15
SOLVED = 1e-3  # nats between the bounds that are not worth a search
BLOCK = 1 << 15  # logits searched together
HALVINGS = 30  # of the way to a weighting that is not feasible


@dataclass(frozen=True)
class Bounds:
    """lower ≤ max JSD(α, α̂) ≤ upper over all weightings within ε; `attention` attains lower."""

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

    Jain & Wallace's problem (2019, equation 2) with one adversary. Upper: TVD ≤ ε implies
    ln((p_c − ε)/(p_c' + ε)) ≤ z_c − z_c' for every two classes; the least of the exact optima over
    one pair of classes at a time, over one triple at a time (C = 3 or 4, at most 48 positions), and
    ln 2. Lower: the best feasible weighting met by any means, α̂ itself (0) at worst: at vertices of
    the polytope of equal predictions (walking from α̂), among pairs of positions, from `starts`, which may
    be any weightings (what is not feasible is drawn towards α̂ until it is), and, where these leave a gap
    and `searching`, by a constrained search, which takes three to five times as long as all the rest; the
    best of them improved by moves of mass. Neither the order of the positions nor other rows change
    anything. C = 2 is exact.
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
    instances = Instances.of(
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
    if (
        searching and len(gap) and epsilon > 0
    ):  # no step of a search keeps the prediction to the last digit
        best.offer(best.weights.index_copy(0, gap, _searched(instances.rows(gap))))
    best.climb()
    found = torch.zeros_like(best.weights).scatter(1, order, best.weights)
    # What is attained is no less than the bound but for rounding.
    return Bounds(best.jsd, torch.maximum(upper, best.jsd), found)


class _Best:
    """The most different feasible weighting of each row so far, at first α̂ itself."""

    def __init__(self, instances: Instances) -> None:
        self.instances, self.weights = instances, instances.attention
        self.jsd = torch.zeros_like(instances.attention[:, 0])

    def offer(self, start: Float[Tensor, "B T"]) -> None:
        """A weighting per row, and the vertex that a walk from it ends at."""
        start = _feasible(self.instances, start)
        self._keep(start)
        self._keep(pivot(self.instances, start))

    def climb(self) -> None:
        """Moves of mass from the best one. They spend the tolerance, after which there may be better
        weights for the same logits.
        """
        for improve in (climb, pivot, climb):
            self._keep(improve(self.instances, self.weights))

    def _keep(self, found: Float[Tensor, "B T"]) -> None:
        jsd = jensen_shannon(found, self.instances.attention)
        better = jsd > self.jsd
        self.weights = torch.where(better.unsqueeze(1), found, self.weights)
        self.jsd = torch.where(better, jsd, self.jsd)


def _feasible(instances: Instances, start: Float[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    """The weightings themselves, or the last feasible one that halving finds between them and α̂."""
    step = start - instances.attention
    base, change = instances.logits_of(instances.attention), instances.logits_of(step)
    low = torch.zeros_like(start[:, 0])
    high = torch.ones_like(low)
    whole = instances.keeps(instances.logits_of(start))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        inside = instances.keeps(base + middle.unsqueeze(1) * change)
        low, high = torch.where(inside, middle, low), torch.where(inside, high, middle)
    between = instances.attention + low.unsqueeze(1) * step
    # Rounding: the sum is not that of the logits above.
    between = torch.where(
        instances.keeps(instances.logits_of(between)).unsqueeze(1), between, instances.attention
    )
    return torch.where(whole.unsqueeze(1), start, between)


def _searched(instances: Instances) -> Float[Tensor, "b T"]:
    """What the constrained search of models without a linear read-out finds: it follows no vertices."""
    size = max(1, BLOCK // instances.logits[0].numel())
    blocks = range(0, len(instances.mask), size)
    return torch.cat([_search(instances.rows(slice(at, at + size))) for at in blocks])


def _search(instances: Instances) -> Float[Tensor, "b T"]:
    def predict(weights: Float[Tensor, "S b 1 T"]) -> Float[Tensor, "S b C"]:
        return torch.einsum("sbkt,btc->sbc", weights, instances.logits)

    def shown(weights: Float[Tensor, "S b 1 T"]) -> Float[Tensor, "S b T"]:
        return weights.squeeze(2)

    found = search(
        predict,
        shown,
        instances.attention.unsqueeze(1),
        instances.mask.unsqueeze(1),
        instances.mask,
        instances.logits_of(instances.attention),
        epsilon=instances.epsilon,
        restarts=RESTARTS,
        steps=STEPS,
        # One seed for all: a row has the same random numbers in any company.
        generators=[torch.Generator().manual_seed(0) for _ in instances.mask],
    )
    return found.attention.squeeze(1)


def _upper(instances: Instances) -> Float[Tensor, " B"]:
    upper = _slab_bound(instances)
    classes = instances.logits.shape[-1]
    if classes <= MOST_FOR_VERTICES:
        short = (instances.mask.sum(-1) <= LONGEST_FOR_VERTICES).nonzero()[:, 0]
        for triple in combinations(range(classes), 3):
            tighter = vertex_bound(instances.rows(short).of_classes(list(triple)))
            upper = upper.index_copy(0, short, torch.minimum(upper[short], tighter))
    return upper


def _slab_bound(instances: Instances) -> Float[Tensor, " B"]:
    """The least of the two-class optima, one a pair of classes."""
    upper = torch.full_like(instances.attention[:, 0], LN2)
    no_bias = torch.zeros_like(upper)
    for c, other in combinations(range(instances.logits.shape[-1]), 2):
        optimum = most_different(
            instances.attention,
            instances.logits[..., c] - instances.logits[..., other],
            no_bias,
            instances.mask,
            instances.margins[:, c, other],
            -instances.margins[:, other, c],
        )
        upper = torch.minimum(upper, optimum.jsd)
    return upper
