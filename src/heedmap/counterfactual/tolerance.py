"""The weightings whose prediction stays within ε: the test itself, and the polytope around them."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedmap.measures import LN2

# Rounding of a total variation distance computed in float64; far below any ε of interest.
ROUNDING = 1e-12
# Bisection steps between a feasible and an infeasible weighting. They stop about 1e-9 short of the edge: any
# closer, rounding in a walk along equal predictions would leave the tolerance and lose the result.
HALVINGS = 30


def canonical_order(
    attention: Float[Tensor, "B T"], logits: Float[Tensor, "B T C"], mask: Bool[Tensor, "B T"]
) -> Int[Tensor, "B T"]:
    """Return each row's positions sorted by their values, not by their place in the text; padding last.

    By attention, then by the logits of each class; positions that share all of them are interchangeable. A
    search in this order does not depend on the order of the tokens, ties and random numbers included.
    """
    order = torch.arange(mask.shape[1], device=mask.device).expand(mask.shape)
    for key in (*reversed(logits.unbind(-1)), attention, (~mask).long()):
        order = order.gather(1, key.gather(1, order).argsort(dim=1, stable=True))
    return order


def added_divergence(a: Tensor, q: Tensor) -> Tensor:
    """Return ½ [a ln 2 + a ln a − (a + q) ln(a + q)]: the part of JSD(a, q) that depends on a.

    Per position; JSD(a, q) is the sum of these and of ½ [q ln 2 + q ln q].
    """
    return 0.5 * (a * LN2 + torch.xlogy(a, a) - torch.xlogy(a + q, a + q))


@dataclass(frozen=True)
class Instances:
    """Rows in float64: α̂, the logits z_t = R_t + b of each position alone, and the predictions.

    `margins[c, c']` is the least z_c − z_c' that the tolerance allows: TVD ≤ ε moves no probability
    by more than ε, so z_c − z_c' ≥ ln((p_c − ε)/(p_c' + ε)), and −∞ where p_c ≤ ε. Together, these
    half-spaces are a polytope that contains the weightings within ε.
    """

    attention: Float[Tensor, "B T"]
    logits: Float[Tensor, "B T C"]
    mask: Bool[Tensor, "B T"]
    prediction: Float[Tensor, "B classes"]
    margins: Float[Tensor, "B C C"]
    epsilon: float

    @classmethod
    def of(
        cls,
        attention: Float[Tensor, "B T"],
        readout: Float[Tensor, "B T C"],
        bias: Float[Tensor, " C"],
        mask: Bool[Tensor, "B T"],
        epsilon: float,
    ) -> "Instances":
        """Make instances from a model's cached attention and read-out: z(α) = Σ_t α_t R_t + b."""
        if epsilon < 0:
            raise ValueError(f"expected epsilon >= 0, got {epsilon}")
        if not bool(mask.any(-1).all()):
            raise ValueError(
                "expected at least one real position in every row, got a row with none: "
                "mask is True on real positions"
            )
        weights = attention.double().masked_fill(~mask, 0.0)
        relevance = readout.double().masked_fill(~mask.unsqueeze(-1), 0.0)
        z = torch.einsum("bt,btc->bc", weights, relevance) + bias.double()
        log_p = z.log_softmax(-1)
        # The tolerance of `is_feasible`, so that the polytope holds all that it accepts.
        granted = torch.tensor(epsilon + ROUNDING, dtype=torch.float64, device=z.device)
        ratio = granted.log() - log_p  # ln(ε/p): logarithms throughout, for p that round to 0 or 1
        less = log_p + torch.where(ratio < 0, torch.log(-torch.expm1(ratio)), -torch.inf)
        more = torch.logaddexp(log_p, granted.log())
        margins = less.unsqueeze(2) - more.unsqueeze(1)
        return cls(weights, relevance + bias.double(), mask, log_p.exp(), margins, epsilon)

    def rows(self, index: Tensor | slice) -> "Instances":
        """Return some of the rows."""
        return Instances(
            self.attention[index],
            self.logits[index],
            self.mask[index],
            self.prediction[index],
            self.margins[index],
            self.epsilon,
        )

    def of_classes(self, classes: list[int]) -> "Instances":
        """Keep some of the classes: fewer margins, a larger polytope. The prediction stays whole."""
        margins = self.margins[:, classes][:, :, classes]
        return replace(self, logits=self.logits[..., classes], margins=margins)

    def logits_of(self, weights: Float[Tensor, "B T"]) -> Float[Tensor, "B C"]:
        """Return z(α) of one weighting per row, whose weights sum to one."""
        return torch.einsum("bt,btc->bc", weights, self.logits)

    def is_feasible(self, logits: Float[Tensor, "B *S C"]) -> Bool[Tensor, "B *S"]:
        """Return whether TVD(softmax z, p̂) ≤ ε, for any number of logit vectors per row."""
        p = self.prediction[(slice(None), *(None for _ in logits.shape[1:-1]))]
        distance = 0.5 * (logits.softmax(-1) - p).abs().sum(-1)
        return distance <= self.epsilon + ROUNDING

    def last_feasible(
        self,
        base: Float[Tensor, "B C"],
        step: Float[Tensor, "B C"],
        inside: Float[Tensor, " B"],
        outside: Float[Tensor, " B"],
    ) -> Float[Tensor, " B"]:
        """Return the last feasible w that bisection finds from `inside`, which is feasible, towards `outside`.

        The logits at w are base + w·step.
        """
        for _ in range(HALVINGS):
            middle = 0.5 * (inside + outside)
            feasible = self.is_feasible(base + middle.unsqueeze(-1) * step)
            inside = torch.where(feasible, middle, inside)
            outside = torch.where(feasible, outside, middle)
        return inside

    def range_along(
        self, base: Float[Tensor, "B *#S C"], step: Float[Tensor, "B *S C"]
    ) -> tuple[Float[Tensor, "B *S"], Float[Tensor, "B *S"]]:
        """Return an interval of w that contains all feasible base + w·step; empty where its ends are reversed.

        From the margins between the predicted class and each other one: necessary, not sufficient.
        """
        rows = torch.arange(len(base), device=base.device)
        top = self.prediction.argmax(-1)
        spread = (slice(None), *(None for _ in base.shape[1:-1]))
        low = self.margins[rows, top][spread]
        high = -self.margins[rows, :, top][spread]
        pick = top[spread].unsqueeze(-1)
        lead = torch.take_along_dim(base, pick, -1) - base
        slope = torch.take_along_dim(step, pick, -1) - step
        # A class whose lead is constant allows every w or none.
        within = (lead >= low - ROUNDING) & (lead <= high + ROUNDING)
        still = slope == 0
        to_low, to_high = (low - lead) / slope, (high - lead) / slope
        start = torch.where(still, torch.where(within, -torch.inf, torch.inf), to_low.fmin(to_high))
        end = torch.where(still, torch.where(within, torch.inf, -torch.inf), to_low.fmax(to_high))
        return start.amax(-1), end.amin(-1)
