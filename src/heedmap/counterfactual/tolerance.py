"""Describe the weightings whose prediction stays within ε: the test itself, and the polytope around them."""

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


def check_positions(mask: Bool[Tensor, "B T"]) -> None:
    """Check that every row has at least one real position.

    Raises:
        ValueError: a row has none.
    """
    if not bool(mask.any(-1).all()):
        raise ValueError(
            "expected at least one real position in every row, got a row with none: "
            "mask is True on real positions"
        )


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

    TVD ≤ ε moves no probability by more than ε: `log_lower` is ln(p_c − ε), −∞ where p_c ≤ ε, `log_upper`
    ln(p_c + ε). The half-spaces of their margins are a polytope that contains the weightings within ε.
    """

    attention: Float[Tensor, "B T"]
    logits: Float[Tensor, "B T C"]
    mask: Bool[Tensor, "B T"]
    prediction: Float[Tensor, "B classes"]
    log_lower: Float[Tensor, "B C"]
    log_upper: Float[Tensor, "B C"]
    epsilon: float

    @classmethod
    def from_readout(
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
        check_positions(mask)
        weights = attention.double().masked_fill(~mask, 0.0)
        relevance = readout.double().masked_fill(~mask.unsqueeze(-1), 0.0)
        z = torch.einsum("bt,btc->bc", weights, relevance) + bias.double()
        log_p = z.log_softmax(-1)
        # The tolerance of `is_feasible`, so that the polytope holds all that it accepts.
        granted = torch.tensor(epsilon + ROUNDING, dtype=torch.float64, device=z.device)
        ratio = granted.log() - log_p  # ln(ε/p): logarithms throughout, for p that round to 0 or 1
        log_lower = log_p + torch.where(ratio < 0, torch.log(-torch.expm1(ratio)), -torch.inf)
        log_upper = torch.logaddexp(log_p, granted.log())
        return cls(
            weights, relevance + bias.double(), mask, log_p.exp(), log_lower, log_upper, epsilon
        )

    def rows(self, index: Tensor | slice) -> "Instances":
        """Return some of the rows."""
        return Instances(
            self.attention[index],
            self.logits[index],
            self.mask[index],
            self.prediction[index],
            self.log_lower[index],
            self.log_upper[index],
            self.epsilon,
        )

    def with_classes(self, classes: list[int]) -> "Instances":
        """Keep some of the classes: fewer margins, a larger polytope. The prediction stays whole."""
        log_lower, log_upper = self.log_lower[:, classes], self.log_upper[:, classes]
        return replace(
            self, logits=self.logits[..., classes], log_lower=log_lower, log_upper=log_upper
        )

    def likeliest(self, count: int) -> "Instances":
        """Keep the likeliest classes of each row: fewer margins, a larger polytope."""
        if count >= self.logits.shape[-1]:
            return self
        classes = self.prediction.topk(count, dim=-1).indices
        class_columns = classes.unsqueeze(1).expand(-1, self.logits.shape[1], -1)
        prediction, log_lower, log_upper = (
            values.gather(1, classes)
            for values in (self.prediction, self.log_lower, self.log_upper)
        )
        logits = self.logits.gather(2, class_columns)
        return replace(
            self, logits=logits, prediction=prediction, log_lower=log_lower, log_upper=log_upper
        )

    def margin(
        self, higher: int | Int[Tensor, " pairs"], lower: int | Int[Tensor, " pairs"]
    ) -> Float[Tensor, "B *pairs"]:
        """Return the least z_c − z_c' that the tolerance allows, of classes or of pairs of classes."""
        return self.log_lower[:, higher] - self.log_upper[:, lower]

    def difference(
        self, higher: Int[Tensor, "B 1"], lower: Int[Tensor, "B 1"]
    ) -> Float[Tensor, "B T"]:
        """Return z_c − z_c' of every position, for a pair of classes per row."""
        z_higher, z_lower = (
            torch.take_along_dim(self.logits, classes.unsqueeze(1), 2)[..., 0]
            for classes in (higher, lower)
        )
        return z_higher - z_lower

    def logits_of(self, weights: Float[Tensor, "B T"]) -> Float[Tensor, "B C"]:
        """Return z(α) of one weighting per row, whose weights sum to one."""
        return torch.einsum("bt,btc->bc", weights, self.logits)

    def is_feasible(
        self, logits: Float[Tensor, "N *S C"], rows: Int[Tensor, " N"] | None = None
    ) -> Bool[Tensor, "N *S"]:
        """Return whether TVD(softmax z, p̂) ≤ ε, for any number of logit vectors of all or of these rows."""
        p = self.prediction if rows is None else self.prediction[rows]
        p = p[(slice(None), *(None for _ in logits.shape[1:-1]))]
        distance = 0.5 * (logits.softmax(-1) - p).abs().sum(-1)
        return distance <= self.epsilon + ROUNDING

    def last_feasible(
        self,
        base: Float[Tensor, "B C"],
        step: Float[Tensor, "B C"],
        feasible_end: Float[Tensor, " B"],
        other_end: Float[Tensor, " B"],
    ) -> Float[Tensor, " B"]:
        """Return the last feasible w that bisection finds from `feasible_end` towards `other_end`.

        The logits at w are base + w·step.
        """
        for _ in range(HALVINGS):
            middle = 0.5 * (feasible_end + other_end)
            feasible = self.is_feasible(base + middle.unsqueeze(-1) * step)
            feasible_end = torch.where(feasible, middle, feasible_end)
            other_end = torch.where(feasible, other_end, middle)
        return feasible_end

    def range_along(
        self,
        base: Float[Tensor, "N *#S C"],
        step: Float[Tensor, "N *S C"],
        rows: Int[Tensor, " N"] | None = None,
    ) -> tuple[Float[Tensor, "N *S"], Float[Tensor, "N *S"]]:
        """Return an interval of w that contains all feasible base + w·step; empty where its ends are reversed.

        From the margins between the predicted class and each other one: necessary, not sufficient. `rows` are
        those of the vectors, by default all.
        """
        if rows is None:
            rows = torch.arange(len(base), device=base.device)
        top = self.prediction.argmax(-1)[rows]
        spread = (slice(None), *(None for _ in base.shape[1:-1]))
        low = (self.log_lower[rows, top].unsqueeze(-1) - self.log_upper[rows])[spread]
        high = (self.log_upper[rows, top].unsqueeze(-1) - self.log_lower[rows])[spread]
        pick = top[spread].unsqueeze(-1)
        lead = torch.take_along_dim(base, pick, -1) - base
        slope = torch.take_along_dim(step, pick, -1) - step
        # A class whose lead is constant allows every w or none.
        holds = (lead >= low - ROUNDING) & (lead <= high + ROUNDING)
        still = slope == 0
        to_low, to_high = (low - lead) / slope, (high - lead) / slope
        start = torch.where(still, torch.where(holds, -torch.inf, torch.inf), to_low.fmin(to_high))
        end = torch.where(still, torch.where(holds, torch.inf, -torch.inf), to_low.fmax(to_high))
        return start.amax(-1), end.amin(-1)
