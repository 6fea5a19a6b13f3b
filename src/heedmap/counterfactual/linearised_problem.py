"""Compute a model's tangent at given weights, and the best step that its linearised prediction allows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from heedmap.counterfactual.tolerance import ROUNDING
from heedmap.measures import change_in_prediction, jensen_shannon

PROJECTIONS = 40
REACH = 3.0  # the largest tilt of one projection, in nats: Newton's step may be far too long
GROUPS = 9  # of classes in the tangent: one backward pass for each but the first
FEWER = 0.5  # share of the lanes below which those that are done are left out
TINY = 1e-30  # stands for a weight of 0: its logarithm is finite

Predict = Callable[[Tensor], Tensor]  # (S, B, K, P) weights to (S, B, C) logits
ToHeatmap = Callable[[Tensor], Tensor]  # (S, B, K, P) weights to (S, B, T) heat


@dataclass(frozen=True)
class Point:
    """S weightings of every instance, and the tangents there."""

    weights: Float[Tensor, "S B K P"]
    jsd: Float[Tensor, "S B"]
    tvd: Float[Tensor, "S B"]
    slope: Float[Tensor, "S B K P"]  # ∂JSD/∂a
    logits: Float[Tensor, "S B G"]  # of the groups, less the first's
    tangent: Float[Tensor, "S B G K P"]  # ∂logits/∂a

    def replaced(self, lanes: Bool[Tensor, "S B"], replacement: "Point") -> "Point":
        """Replace the points by others at some lanes."""
        pairs = ((getattr(self, f.name), getattr(replacement, f.name)) for f in fields(self))
        return Point(
            *(
                torch.where(lanes.reshape(*lanes.shape, *[1] * (a.dim() - 2)), b, a)
                for a, b in pairs
            )
        )


class Problem:
    """The fixed part of the search: the model, α̂ and its prediction."""

    def __init__(
        self,
        predict: Predict,
        to_heatmap: ToHeatmap,
        attention: Float[Tensor, "B K P"],
        support: Bool[Tensor, "B K P"],
        logits: Float[Tensor, "B C"],
        epsilon: float,
    ) -> None:
        self.predict, self.to_heatmap, self.epsilon = predict, to_heatmap, epsilon
        self.attention, self.support, self.original_logits = attention, support, logits
        self.mass = attention.sum(-1, keepdim=True)
        self.heatmap = to_heatmap(attention.unsqueeze(0))[0].detach().double()
        order = torch.argsort(logits, dim=-1, descending=True, stable=True)
        self.likely, self.rest = order[:, : GROUPS - 1], order[:, GROUPS - 1 :]
        self.log_p = self.groups(logits.unsqueeze(0))[0].log_softmax(-1)

    def noise(self, lanes: int, generators: Sequence[torch.Generator]) -> Float[Tensor, "S B K P"]:
        """Draw standard normal scores from one generator per instance: independent of batch and padding."""
        scores = torch.zeros(lanes, *self.attention.shape)
        for i, generator in enumerate(generators):
            support = self.support[i].cpu()
            rows, columns = (support.any(d).nonzero()[:, 0] for d in (1, 0))
            noise = torch.randn(lanes, len(rows), len(columns), generator=generator)
            scores[:, i, rows.unsqueeze(1), columns] = noise
        return scores.to(self.attention)

    def weights(self, scores: Float[Tensor, "S B K P"]) -> Float[Tensor, "S B K P"]:
        """Return the softmax over the support times the row's mass; rows without support are 0."""
        return softmax_over(scores, self.support, self.mass)

    def is_feasible(self, tvd: Float[Tensor, "*S B"]) -> Bool[Tensor, "*S B"]:
        """Return whether the prediction counts as the same."""
        return tvd <= self.epsilon + ROUNDING

    def groups(self, logits: Float[Tensor, "S B C"]) -> Float[Tensor, "S B G"]:
        """Return logits of the eight most probable classes and the pooled rest, less those of the first."""
        z = logits.double()
        grouped = z.gather(-1, self.likely.expand(len(z), -1, -1))
        if self.rest.shape[-1]:
            rest = z.gather(-1, self.rest.expand(len(z), -1, -1)).logsumexp(-1, keepdim=True)
            grouped = torch.cat([grouped, rest], dim=-1)
        return grouped - grouped[..., :1]

    def judge(
        self, weights: Float[Tensor, "S B K P"], logits: Float[Tensor, "S B C"]
    ) -> tuple[Float[Tensor, "S B"], Float[Tensor, "S B"]]:
        """Return the divergence of the heat map and the change of the prediction."""
        heatmap = self.to_heatmap(weights).detach().double()
        jsd = jensen_shannon(heatmap, self.heatmap.expand_as(heatmap))
        visible = (heatmap > 0).any(-1) & (self.heatmap > 0).any(-1)
        original_logits = self.original_logits.expand_as(logits)
        return jsd.masked_fill(~visible, 0.0), change_in_prediction(
            original_logits, logits.detach()
        )

    def linearise(self, weights: Float[Tensor, "S B K P"]) -> Point:
        """Return the tangents: ∂JSD/∂h_t = ½ ln(2h_t/(h_t + ĥ_t)) through `to_heatmap`, and of the logits."""
        a = weights.detach().requires_grad_()
        with torch.enable_grad():
            logits = self.predict(a)
            z = self.groups(logits)
            heatmap = self.to_heatmap(a).double()
            # Held constant in the logarithm, so that the gradient of the product is exactly the slope.
            fixed = heatmap.detach().clamp(min=TINY)
            gain = (heatmap * 0.5 * torch.log(2 * fixed / (fixed + self.heatmap))).sum()
            (slope,) = torch.autograd.grad(gain, a)
            rows = [torch.zeros_like(a)]
            for g in range(1, z.shape[-1]):
                rows.append(torch.autograd.grad(z[..., g].sum(), a, retain_graph=True)[0])
        jsd, tvd = self.judge(weights, logits)
        hidden = ~self.support
        tangent = torch.stack(rows, dim=2).masked_fill(hidden.unsqueeze(1), 0.0)
        return Point(weights, jsd, tvd, slope.masked_fill(hidden, 0.0), z.detach(), tangent)

    def step(
        self, point: Point, size: Float[Tensor, "S B"], reserve: Float[Tensor, "S B"]
    ) -> Float[Tensor, "S B K P"]:
        """Ascend, then project onto the most violated half-space until none is violated.

        arg max of ⟨g, a⟩ − KL(a‖a_now)/η is a_now exp(η g), normalised; a projection in KL onto a
        half-space {⟨c, a⟩ ≤ b} tilts further by −μc, and μ comes from Newton's method, whose derivative
        is the variance of c under the rows. No call of the model.
        """
        scores = (
            point.weights.clamp(min=TINY).log() + per_weight(size).to(point.slope) * point.slope
        )
        weights = self.weights(scores)
        lanes, count = scores.shape[0], scores.shape[1]
        index = torch.arange(lanes * count, device=scores.device)
        held = _Lanes(
            scores.flatten(0, 1),
            weights.flatten(0, 1),
            point.weights.flatten(0, 1),
            point.tangent.flatten(0, 1),
            point.logits.flatten(0, 1),
            (self.epsilon * (1 - reserve)).flatten(),
            *(
                values.expand(lanes, *values.shape).flatten(0, 1)
                for values in (self.log_p, self.mass, self.support)
            ),
        )
        projected = held.weights.clone()
        for _ in range(PROJECTIONS):
            change = torch.einsum("ngkp,nkp->ng", held.tangent, held.weights - held.origin)
            excess, gradient = excess_of(held.logits + change, held.epsilon, held.log_p)
            violated = excess > 0
            if not bool(violated.any()):
                break
            # A lane within all half-spaces stays as it is: most are, soon.
            if int(violated.sum()) < FEWER * len(index):
                index, excess, gradient = index[violated], excess[violated], gradient[violated]
                held = held.taken(violated)
            held = held.tilted(excess, gradient)
            projected[index] = held.weights
        return projected.view_as(weights)


@dataclass(frozen=True)
class _Lanes:
    """Weightings that are still projected, in a row, with all that it takes."""

    scores: Float[Tensor, "N K P"]
    weights: Float[Tensor, "N K P"]
    origin: Float[Tensor, "N K P"]
    tangent: Float[Tensor, "N G K P"]
    logits: Float[Tensor, "N G"]
    epsilon: Float[Tensor, " N"]
    log_p: Float[Tensor, "N G"]
    mass: Float[Tensor, "N K 1"]
    support: Bool[Tensor, "N K P"]

    def taken(self, lanes: Bool[Tensor, " N"]) -> "_Lanes":
        """Keep some of the lanes."""
        return _Lanes(*(getattr(self, f.name)[lanes] for f in fields(self)))

    def tilted(self, excess: Float[Tensor, " N"], gradient: Float[Tensor, "N G"]) -> "_Lanes":
        """Project every lane onto the half-space of its gradient."""
        c = torch.einsum("ngkp,ng->nkp", self.tangent, gradient.to(self.tangent))
        mean = (self.weights * c).sum(-1, keepdim=True) / self.mass.clamp(min=TINY)
        variance = (self.weights * (c - mean).square()).sum((-1, -2))
        highest = c.masked_fill(~self.support, -torch.inf).amax(-1)
        lowest = c.masked_fill(~self.support, torch.inf).amin(-1)
        reach = (highest - lowest).amax(-1).clamp(min=TINY)
        tilt = torch.minimum(excess.to(c) / variance.clamp(min=TINY), REACH / reach)
        scores = self.scores - per_weight(tilt) * c
        return replace(self, scores=scores, weights=softmax_over(scores, self.support, self.mass))


def softmax_over(
    scores: Float[Tensor, "*S K P"],
    support: Bool[Tensor, "*#S K P"],
    mass: Float[Tensor, "*#S K 1"],
) -> Float[Tensor, "*S K P"]:
    """Return the softmax over the support times the row's mass; rows without support are 0."""
    hidden = scores.masked_fill(~support, -torch.inf)
    return hidden.softmax(-1).masked_fill(~support, 0.0) * mass


def excess_of(
    logits: Float[Tensor, "*S G"], epsilon: Float[Tensor, "*S"], original: Float[Tensor, "*S G"]
) -> tuple[Float[Tensor, "*S"], Float[Tensor, "*S G"]]:
    """Return by how much the log-odds of the event that rose exceed what ε allows, and the gradient.

    TVD = P(A) − P̂(A) for the event A of the classes whose probability rose: the two-class
    condition, for any number of classes. In log-odds, its gradient does not saturate. `original` is ln p̂.
    """
    log_p = logits.log_softmax(-1)
    rose = log_p > original
    # If no class rose, or by rounding all did, any event will do: there is no excess.
    rose[..., 0] = torch.where(rose.all(-1) | ~rose.any(-1), ~rose[..., 0], rose[..., 0])
    risen, fallen = _halves(log_p, rose)
    originally_risen, originally_fallen = _halves(original, rose)
    granted = epsilon.log().unsqueeze(-1)
    # ln(ε/P̂): logarithms throughout, for P̂ that rounds to 0 or 1.
    ratio = granted - originally_fallen
    less = originally_fallen + torch.where(ratio < 0, torch.log(-torch.expm1(ratio)), -torch.inf)
    limit = torch.logaddexp(originally_risen, granted) - less
    gradient = torch.where(rose, (log_p - risen).exp(), -(log_p - fallen).exp())
    return (risen - fallen - limit).squeeze(-1).clamp(min=0.0), gradient


def per_weight(lanes: Shaped[Tensor, "*S"]) -> Shaped[Tensor, "*S 1 1"]:
    """Reshape one number per lane and instance so that it multiplies weights."""
    return lanes[..., None, None]


def _halves(
    log_p: Float[Tensor, "*lanes C"], rose: Bool[Tensor, "*lanes C"]
) -> tuple[Tensor, Tensor]:
    """Return log-probabilities of the classes that rose and of the others; each (*lanes, 1)."""
    risen = log_p.masked_fill(~rose, -torch.inf).logsumexp(-1, keepdim=True)
    return risen, log_p.masked_fill(rose, -torch.inf).logsumexp(-1, keepdim=True)
