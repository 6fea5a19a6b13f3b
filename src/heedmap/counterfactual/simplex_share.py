"""Measure how many weightings give the same prediction: the share of the simplex within ε of it.

The weights are drawn uniformly from the simplex (Dirichlet with all parameters 1). Two classes and a linear
read-out: exact, because the logit Σ_t α_t r_t + b then has a known distribution, whose density is the
B-spline with knots r_t + b (Curry & Schoenberg 1966). Otherwise the share of seeded draws.
"""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedmap.counterfactual.exact import prediction_interval
from heedmap.counterfactual.tolerance import ROUNDING
from heedmap.measures import total_variation

ELEMENTS = 1 << 22  # weights drawn at a time: 32 MB


def share_within(
    logits: Float[Tensor, "S B C"],
    readout: Float[Tensor, "B T C"],
    bias: Float[Tensor, " C"],
    mask: Bool[Tensor, "B T"],
    epsilon: float,
) -> Float[Tensor, "S B"]:
    """Return the share of weightings whose prediction is within ε (TVD) of each of S given ones; two classes.

    The probability that a uniform mean of the positions' own logits lies in an interval
    (`probability_between`).
    """
    position_logits = (readout.double() + bias.double()).diff(dim=-1).squeeze(-1)
    intervals = [prediction_interval(z.double().diff(dim=-1).squeeze(-1), epsilon) for z in logits]
    return torch.stack(
        [probability_between(position_logits, mask, low, high) for low, high in intervals]
    )


def probability_between(
    values: Float[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
    low: Float[Tensor, " B"],
    high: Float[Tensor, " B"],
) -> Float[Tensor, " B"]:
    """Return P(low ≤ Σ_t α_t r_t ≤ high) for α uniform on the simplex over the real positions. O(T²) per row.

    With r sorted, the distribution function of every run of neighbours follows from those of two shorter ones:

        F(r_i … r_j)(x) = [(x − r_i) F(r_i … r_{j−1})(x) + (r_j − x) F(r_{i+1} … r_j)(x)] / (r_j − r_i),

    F = 0 below r_i and 1 above r_j: Leibniz's rule for divided differences. Every term is positive, so the
    tails are accurate, and the difference of two values is taken in the smaller tail.
    """
    sizes = mask.sum(-1)
    largest = values.double().masked_fill(~mask, -torch.inf).amax(-1, keepdim=True)
    r = torch.where(mask, values.double(), largest).sort(dim=-1).values
    bounds = torch.stack([low, high]).double()
    middle = (r * mask.sort(dim=-1, descending=True).values).sum(-1) / sizes
    lower_tail = (bounds.mean(0) < middle).unsqueeze(-1)
    x = bounds.unsqueeze(-1)
    # The tail with the interval, and the tail without it.
    inner = torch.where(lower_tail, r <= x[1], r >= x[0])
    outer = torch.where(lower_tail, r < x[0], r > x[1])
    x = torch.where(lower_tail, x.flip(0), x)
    tails = torch.stack([inner, outer]).double()
    result = tails[:, :, 0]
    for size in range(2, r.shape[1] + 1):
        start, end = r[:, : 1 - size], r[:, size - 1 :]
        width = end - start
        share = torch.where(width > 0, (x - start) / width, 0.5).clamp(0, 1)
        tails = share * tails[:, :, :-1] + (1 - share) * tails[:, :, 1:]
        result = torch.where(sizes == size, tails[:, :, 0], result)
    return (result[0] - result[1]).clamp(0, 1)


def share_drawn(
    logits: Float[Tensor, "S B C"],
    readout: Float[Tensor, "B T C"],
    bias: Float[Tensor, " C"],
    mask: Bool[Tensor, "B T"],
    epsilon: float,
    draws: int,
    rngs: Sequence[np.random.Generator],
) -> Float[Tensor, "S B"]:
    """Return the same for any number of classes, as the share of uniform draws; one generator per row."""
    share = torch.zeros(logits.shape[:2], dtype=torch.float64)
    for row, rng in enumerate(rngs):
        relevance = (readout[row, mask[row]].double() + bias.double()).cpu()
        remaining, hits = draws, torch.zeros(len(logits), dtype=torch.float64)
        while remaining:
            count = min(remaining, max(1, ELEMENTS // (len(relevance) * len(bias))))
            weights = torch.from_numpy(rng.standard_exponential((count, len(relevance))))
            predictions = (weights @ relevance / weights.sum(-1, keepdim=True)).softmax(-1)
            for s, prediction in enumerate(logits[:, row].double().softmax(-1).cpu()):
                change = total_variation(prediction.expand_as(predictions), predictions)
                hits[s] += (change <= epsilon + ROUNDING).sum()
            remaining -= count
        share[:, row] = hits / draws
    return share.to(logits.device)
