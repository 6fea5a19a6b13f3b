"""Find the most different attention with the same prediction: the global optimum, for two classes.

Jain & Wallace (2019, section 4.2.2) look for adversarial attention by gradient descent. For two
classes and a read-out linear in the attention, their problem with one adversary has an exact
solution. The weightings within ε of the prediction are the simplex cut by two parallel planes. The
Jensen-Shannon divergence is convex, so its maximum is at a vertex, and a vertex has at most two
positions.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import logsigmoid

from heedmap.counterfactual.position_pairs import best_pair
from heedmap.counterfactual.tolerance import check_positions
from heedmap.measures import LN2, jensen_shannon


@dataclass(frozen=True)
class Optimum:
    """The optimal weighting of each row: (1 − w) on `major_position`, w on `minor_position`, w ≤ ½.

    With a single position both are the same, and w = 0. `jsd` is in nats.
    """

    jsd: Float[Tensor, " B"]
    major_position: Int[Tensor, " B"]
    minor_position: Int[Tensor, " B"]
    minor_weight: Float[Tensor, " B"]

    def dense(self, positions: int) -> Float[Tensor, "B T"]:
        """Return the weighting itself, over `positions` columns."""
        weights = self.jsd.new_zeros(len(self.jsd), positions)
        weights.scatter_(1, self.major_position.unsqueeze(1), (1 - self.minor_weight).unsqueeze(1))
        return weights.scatter_add_(
            1, self.minor_position.unsqueeze(1), self.minor_weight.unsqueeze(1)
        )


def prediction_interval(
    logit: Float[Tensor, " B"], epsilon: float
) -> tuple[Float[Tensor, " B"], Float[Tensor, " B"]]:
    """Return the interval of logits whose probability is within ε: [logit(p − ε), logit(p + ε)], p = σ(logit).

    logit(p − ε) = logit + ln(1 − ε/p) − ln(1 + ε/(1 − p)), with p and 1 − p kept as logarithms:
    exact at ε = 0 and accurate where p rounds to 0 or 1. −∞ where p − ε ≤ 0, +∞ where p + ε ≥ 1.

    Raises:
        ValueError: ε is negative.
    """
    if epsilon < 0:
        raise ValueError(f"expected epsilon >= 0, got {epsilon}")
    x = logit.double()
    log_epsilon = torch.tensor(epsilon, dtype=torch.float64, device=x.device).log()

    def below(x: Tensor) -> Tensor:
        ratio = log_epsilon - logsigmoid(x)  # ln(ε/p)
        shrink = torch.where(ratio < 0, torch.log(-torch.expm1(ratio)), -torch.inf)
        # expm1 and logaddexp keep all digits where p − ε is near 0; p itself is never formed.
        return x + shrink - torch.logaddexp(torch.zeros_like(x), log_epsilon - logsigmoid(-x))

    return below(x), -below(-x)


def adversary(
    attention: Float[Tensor, "B T"],
    readout: Float[Tensor, "B T 2"],
    bias: Float[Tensor, " 2"],
    mask: Bool[Tensor, "B T"],
    epsilon: float,
) -> Optimum:
    """Maximise JSD(α, α̂) subject to TVD(softmax z(α), softmax z(α̂)) ≤ ε, for two classes.

    For two classes the total variation distance is |p_1 − p̂_1|. The result is the
    global optimum; Jain & Wallace's search gives a lower bound.

    Raises:
        ValueError: ε is negative, or a row has no real positions.
    """
    relevance = readout[..., 1].double() - readout[..., 0].double()
    offset = bias[1].double() - bias[0].double()
    logit = (attention.double() * relevance * mask).sum(-1) + offset
    lower, upper = prediction_interval(logit, epsilon)
    return most_different(attention, relevance, offset, mask, lower, upper)


def number_adversary(
    attention: Float[Tensor, "B T"],
    readout: Float[Tensor, "B T 1"],
    bias: Float[Tensor, " 1"],
    mask: Bool[Tensor, "B T"],
    tolerance: float,
) -> Optimum:
    """Maximise JSD(α, α̂) subject to |z(α) − z(α̂)| ≤ tolerance, for the one output z that is a number.

    The simplex is cut by two parallel planes here, too, and the optimum is global.

    Raises:
        ValueError: the tolerance is negative, or a row has no real positions.
    """
    if tolerance < 0:
        raise ValueError(f"expected tolerance >= 0, got {tolerance}")
    relevance = readout[..., 0].double()
    offset = bias[0].double()
    output = (attention.double() * relevance * mask).sum(-1) + offset
    return most_different(
        attention, relevance, offset, mask, output - tolerance, output + tolerance
    )


def most_different(
    attention: Float[Tensor, "B T"],
    relevance: Float[Tensor, "B T"],
    bias: Float[Tensor, "*#B"],
    mask: Bool[Tensor, "B T"],
    lower: Float[Tensor, " B"],
    upper: Float[Tensor, " B"],
) -> Optimum:
    """Maximise JSD(α, α̂) over the simplex, subject to lower ≤ Σ_t α_t r_t + bias ≤ upper.

    Candidates: every position whose own logit lies between the bounds, and for each bound every
    pair of positions on its two sides, mixed to meet it exactly. α̂ counts as feasible: the bounds
    are widened to hold its logit, which for bounds made from that logit only undoes rounding.

    Raises:
        ValueError: a row has no real positions.
    """
    check_positions(mask)
    q = attention.double().masked_fill(~mask, 0.0)
    r = relevance.double()
    logits = r + bias.double().reshape(-1, 1)
    current = (q * r).sum(-1) + bias.double().reshape(-1)
    smallest = logits.masked_fill(~mask, torch.inf).amin(-1)
    largest = logits.masked_fill(~mask, -torch.inf).amax(-1)
    # Rounding may put the logit of α̂, or a bound equal to it, outside [smallest, largest].
    low = torch.minimum(torch.minimum(lower.double(), current), largest)
    high = torch.maximum(torch.maximum(upper.double(), current), smallest)

    within_bounds = mask & (logits >= low.unsqueeze(1)) & (logits <= high.unsqueeze(1))
    alone = 0.5 * (LN2 + torch.xlogy(q, q) - torch.xlogy(1 + q, 1 + q))
    best, major = alone.masked_fill(~within_bounds, -torch.inf).max(-1)
    minor, weight = major, torch.zeros_like(best)
    # A vertex with two positions lies on one of the two planes: between them, it could move along its edge.
    for bound in (low, high):
        pair = best_pair(q, logits, mask, bound)
        better = pair.gain > best
        best = torch.where(better, pair.gain, best)
        major = torch.where(better, pair.major_position, major)
        minor = torch.where(better, pair.minor_position, minor)
        weight = torch.where(better, pair.minor_weight, weight)
    optimum = Optimum(best, major, minor, weight)
    return Optimum(jensen_shannon(optimum.dense(mask.shape[1]), q), major, minor, weight)
