"""How different an attention with the same prediction can be, for any number of classes.

Two classes have an exact answer. For more, TVD ≤ ε is no longer a slab, and the answer is enclosed:
from below by a feasible weighting, from above by the optimum over a polytope that holds them all.
"""

from dataclasses import dataclass
from itertools import combinations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedmap.counterfactual.climb import best_pair, climb
from heedmap.counterfactual.exact import adversary, most_different
from heedmap.counterfactual.pivot import pivot
from heedmap.counterfactual.polytope import vertex_bound
from heedmap.counterfactual.tolerance import Instances
from heedmap.measures import LN2, jensen_shannon

LONGEST_FOR_VERTICES = 48  # positions of a row whose triples are enumerated
MOST_FOR_VERTICES = 4  # classes: every triple of them costs as much again, and C = 5 has ten


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
) -> Bounds:
    """Enclose max JSD(α, α̂) subject to TVD(softmax z(α), softmax z(α̂)) ≤ ε.

    Jain & Wallace's problem (2019, equation 2) with one adversary. Upper: TVD ≤ ε implies
    ln((p_c − ε)/(p_c' + ε)) ≤ z_c − z_c' for every two classes; the least of the exact optima over
    one pair of classes at a time, over one triple at a time (C = 3 or 4, at most 48 positions), and
    ln 2. Lower: the best weighting found, α̂ itself (0) at worst. C = 2 is exact.
    """
    classes = readout.shape[-1]
    if classes < 2:
        raise ValueError(
            f"expected at least 2 classes, got {classes}: a sigmoid model has two, of logits (0, z)"
        )
    if classes == 2:
        optimum = adversary(attention, readout, bias, mask, epsilon)
        return Bounds(optimum.jsd, optimum.jsd, optimum.dense(mask.shape[1]))

    instances = Instances.of(attention, readout, bias, mask, epsilon)
    upper = _slab_bound(instances)
    if classes <= MOST_FOR_VERTICES:
        short = (mask.sum(-1) <= LONGEST_FOR_VERTICES).nonzero()[:, 0]
        for triple in combinations(range(classes), 3):
            tighter = vertex_bound(instances.rows(short).of_classes(list(triple)))
            upper = upper.index_copy(0, short, torch.minimum(upper[short], tighter))

    best, lower = instances.attention, torch.zeros_like(upper)
    for start in (pivot(instances, instances.attention), best_pair(instances)):
        found = climb(instances, start)
        # The climb spends the tolerance, after which there may be better weights for the same
        # logits.
        found = climb(instances, pivot(instances, found))
        jsd = jensen_shannon(found, instances.attention)
        best = torch.where((jsd > lower).unsqueeze(1), found, best)
        lower = torch.maximum(jsd, lower)
    # What is attained is no less than the bound but for rounding.
    return Bounds(lower, torch.maximum(upper, lower), best)


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
