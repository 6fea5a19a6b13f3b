"""Search for the most different attention with the same prediction, for any differentiable model.

Jain & Wallace (2019, section 4.2.2) penalise a change of prediction and descend. Here every step
solves a small problem of its own: the divergence and the logits are replaced by their tangents, and
the step maximises ⟨g, a⟩ − KL(a‖a_now)/η over the weightings whose tangent prediction stays within
ε (mirror ascent with linearised constraints, which keeps rows on the simplex). η is
a trust region: it grows where the model agrees with its tangent and shrinks where it does not.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedmap.counterfactual.linearised_problem import Point, Predict, Problem, ToHeatmap, per_weight
from heedmap.measures import LN2

START_SPREAD = 3.0  # Jain & Wallace's
NEARBY = 0.1  # spread around the start that is near α̂
LEAST = 1e-3  # weights of α̂ are raised to this for the starts made from it
FIRST, LARGEST, STALLED = 4.0, 200.0, 1e-3  # η; a lane below the last restarts at random
# Of η: cautious upwards, quick to leave a region where the tangent misleads.
GROW, SHRINK = (
    2.0,
    0.25,
)
RESERVE = 0.2  # the share of ε that a lane first reserves for the tangent's error
HALVINGS = 12
SMALLEST = 1e-6  # `reach` is raised to this, as steps are divided by it


@dataclass(frozen=True)
class SearchResult:
    """The most different weighting found for each instance, and a bound on any.

    `jsd` is that of `attention`, whose change of prediction is `tvd`, as the model computes it.
    `feasible` is False only where the model does not repeat its own prediction on α̂ to within ε.
    No weighting at all, feasible or not, exceeds `upper`.
    """

    jsd: Float[Tensor, " B"]
    attention: Float[Tensor, "B K P"]
    tvd: Float[Tensor, " B"]
    feasible: Bool[Tensor, " B"]
    upper: Float[Tensor, " B"]


def search(
    predict: Predict,
    to_heatmap: ToHeatmap,
    attention: Float[Tensor, "B K P"],
    support: Bool[Tensor, "B K P"],
    mask: Bool[Tensor, "B T"],
    logits: Float[Tensor, "B C"],
    *,
    epsilon: float,
    restarts: int = 4,
    steps: int = 30,
    generators: Sequence[torch.Generator],
    reach: Float[Tensor, " B"] | None = None,
    begin: Float[Tensor, "B K P"] | None = None,
    candidates: Float[Tensor, "N B K P"] | None = None,
) -> SearchResult:
    """Maximise JSD(map(a), map(α̂)) subject to TVD(softmax predict(a), softmax ẑ) ≤ ε.

    `map` is `to_heatmap`: differentiable, its rows sum to 1 or are all 0, and the divergence of an all-zero
    map counts as 0. `a` moves within its support, and every row keeps its total mass, even where that is not
    1 (mass on an attention sink stays there). `reach`, if given, bounds the divergence of any such map:
    steps are scaled by it, and `upper` is the smaller bound. The first lane begins at `begin`, if given; if
    its prediction is within ε, the result is at least as different. The `candidates` are weightings that other
    searches found: they are judged and kept if better, but no lane starts from them.

    `restarts` lanes run side by side: the first from weights ∝ noise/α̂, the second from ∝ α̂² (at
    α̂ itself the divergence has no slope, and ascent would end at a poor maximum nearby), others at
    random, from one generator per instance; a lane that stalls restarts at random. One step is one
    call of `predict` with S = restarts and min(C, 9) − 1 backward passes; one such call precedes the
    first, and without gradient there are one more and the 12 of the pull-back. Every returned weighting was
    judged by a call of `predict`, never by the tangent. Memory: about S·B·K·P·min(C, 9) numbers besides
    what `predict` needs.

    Raises:
        ValueError: no restart, a negative number of steps, or a negative ε.
    """
    if restarts < 1 or steps < 0:
        raise ValueError(
            f"expected at least 1 restart and 0 steps, got {restarts} restarts and {steps} steps"
        )
    if epsilon < 0:
        raise ValueError(f"expected epsilon >= 0, got {epsilon}")
    # A logarithm of 1e-30 needs at least single precision.
    attention = attention.to(torch.promote_types(attention.dtype, torch.float32))
    problem = Problem(predict, to_heatmap, attention, support, logits, epsilon)
    noise = problem.noise(restarts, generators)
    start = START_SPREAD * noise
    log_attention = attention.clamp(min=LEAST).log()
    start[0] = noise[0] - log_attention  # ∝ noise/α̂
    start[1:2] = 2 * log_attention + NEARBY * noise[1:2]  # sharper
    weights = problem.weights(start)
    if begin is not None:
        weights[0] = begin
    current = problem.linearise(weights)
    best = _Best(problem, restarts)
    best.offer(current)
    if candidates is not None:
        best.consider(candidates)
    # Of each lane, the step size η and the share of ε that is held back for the error of the tangent.
    size = torch.full_like(current.jsd, FIRST)
    reserve = torch.full_like(current.jsd, RESERVE)
    # Where the map can hardly move, its slopes are small in proportion.
    scale = 1.0 if reach is None else LN2 / reach.clamp(min=SMALLEST)
    for _ in range(steps):
        restarted = problem.weights(START_SPREAD * problem.noise(restarts, generators))
        stalled = size < STALLED
        moved = torch.where(
            per_weight(stalled), restarted, problem.step(current, size * scale, reserve)
        )
        new = problem.linearise(moved)
        best.offer(new)
        # Prefer feasible to infeasible, then the more different; of two infeasible ones, the smaller change.
        was, fits = problem.is_feasible(current.tvd), problem.is_feasible(new.tvd)
        better = torch.where(was, fits & (new.jsd > current.jsd), fits | (new.tvd < current.tvd))
        size = torch.where(better, (size * GROW).clamp(max=LARGEST), size * SHRINK)
        reserve = torch.where(better, reserve, reserve / 2)
        size = size.masked_fill(stalled, FIRST)
        reserve = reserve.masked_fill(stalled, RESERVE)
        current = current.replaced(better | stalled, new)
    best.pull_back()
    least_heat = problem.heatmap.masked_fill(~mask, torch.inf).amin(-1)
    # JSD is convex: its maximum is at the vertex of the simplex with the least heat.
    upper = LN2 + 0.5 * (
        torch.xlogy(least_heat, least_heat) - torch.xlogy(1 + least_heat, 1 + least_heat)
    )
    upper = torch.where((problem.heatmap > 0).any(-1), upper, 0.0)
    if reach is not None:
        upper = torch.minimum(upper, reach.to(upper))
    feasible = problem.is_feasible(best.tvd)
    return SearchResult(torch.minimum(best.jsd, upper), best.attention, best.tvd, feasible, upper)


class _Best:
    """The most different feasible weighting of each instance so far, at first α̂ itself.

    `far` is the most different infeasible one of each lane, for the pull-back.
    """

    def __init__(self, problem: Problem, lanes: int) -> None:
        self.problem, self.attention = problem, problem.attention
        original = problem.attention.unsqueeze(0)
        with torch.no_grad():
            _, tvd = problem.judge(original, problem.predict(original))
        self.tvd, self.jsd = tvd[0], torch.zeros_like(tvd[0])
        self.far = original.expand(lanes, -1, -1, -1)
        self.far_jsd = torch.zeros_like(tvd).expand(lanes, -1)

    def offer(self, point: Point) -> None:
        """Keep weights, already judged by the model, where they are better."""
        self._keep(point.weights, point.jsd, point.tvd)
        further = ~self.problem.is_feasible(point.tvd) & (point.jsd > self.far_jsd)
        self.far = torch.where(per_weight(further), point.weights, self.far)
        self.far_jsd = torch.where(further, point.jsd, self.far_jsd)

    @torch.no_grad()
    def consider(self, weights: Float[Tensor, "N B K P"]) -> Bool[Tensor, "N B"]:
        """Judge weights by the model, keep them where they are better, and return which are feasible."""
        jsd, tvd = self.problem.judge(weights, self.problem.predict(weights))
        self._keep(weights, jsd, tvd)
        return self.problem.is_feasible(tvd)

    def pull_back(self) -> None:
        """Bisect the segments from α̂ to `far` for where the prediction leaves the tolerance.

        Where `to_heatmap` is linear up to normalising its rows, JSD grows along each segment: it is convex and
        least at α̂, and `to_heatmap` maps a segment to a segment, in order. Where it is not, the point found
        is judged like any other, but a better one may lie before it.
        """
        low, high = torch.zeros_like(self.far_jsd), torch.ones_like(self.far_jsd)
        origin = self.problem.attention
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            weights = origin + per_weight(middle).to(origin) * (self.far - origin)
            feasible = self.consider(weights)
            low, high = torch.where(feasible, middle, low), torch.where(feasible, high, middle)

    def _keep(
        self,
        weights: Float[Tensor, "S B K P"],
        jsd: Float[Tensor, "S B"],
        tvd: Float[Tensor, "S B"],
    ) -> None:
        jsd, lane = jsd.masked_fill(~self.problem.is_feasible(tvd), -1.0).max(0)
        better, rows = jsd > self.jsd, torch.arange(len(jsd), device=jsd.device)
        self.jsd = torch.where(better, jsd, self.jsd)
        self.tvd = torch.where(better, tvd[lane, rows], self.tvd)
        self.attention = torch.where(better[:, None, None], weights[lane, rows], self.attention)
