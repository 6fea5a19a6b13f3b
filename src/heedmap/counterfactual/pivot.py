"""Other weights, the very same logits: walking the polytope of exactly equal predictions.

C + 1 positions have a direction in which their weights can move without moving the sum of the
weights or any of the C logits' differences. The divergence is convex, so one of the direction's two
ends, where a weight reaches zero, is at least as different: like the simplex method, but for a
convex objective.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedmap.counterfactual.tolerance import Instances
from heedmap.measures import LN2

ROUNDS = 60
PROGRESS = 1e-9  # a smaller gain ends the walk
SINGULAR = 1e9  # directions longer than this come from positions that say the same


def pivot(instances: Instances, start: Float[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    """Moves that keep every probability, the best first, until none adds to the difference.

    Ends at a vertex (at most C positions) when nothing degenerates. α̂ is a valid start for any ε.
    """
    classes = instances.logits.shape[-1]
    positions = instances.mask.shape[1]
    weights = start.clone()
    if positions <= classes:
        return weights
    differences = instances.logits[..., 1:] - instances.logits[..., :1]
    # Columns (1, z_1 − z_0, …): a direction of weights that this maps to zero changes no
    # prediction.
    columns = torch.cat([torch.ones_like(differences[..., :1]), differences], dim=-1).mT
    active = torch.arange(len(start), device=start.device)
    for _ in range(ROUNDS):
        now, q = weights[active], instances.attention[active]
        real = instances.mask[active]
        best, gain = now, torch.zeros_like(now[:, 0])
        for order in (now, now * q):
            base = order.masked_fill(~real, -1.0).topk(classes, dim=1).indices
            moved, more = _best_exchange(now, q, real, columns[active], base)
            better = more > gain
            best = torch.where(better.unsqueeze(1), moved, best)
            gain = torch.where(better, more, gain)
        weights[active] = best
        active = active[gain > PROGRESS]
        if not len(active):
            break
    return torch.where(instances.keeps(instances.logits_of(weights)).unsqueeze(1), weights, start)


def _best_exchange(
    weights: Float[Tensor, "b T"],
    q: Float[Tensor, "b T"],
    real: Tensor,
    columns: Float[Tensor, "b C T"],
    base: Int[Tensor, "b C"],
) -> tuple[Float[Tensor, "b T"], Float[Tensor, " b"]]:
    """The best end of all directions e_t − Σ_s x_s e_s, s in the base and t any other position."""
    classes, width = columns.shape[1:]
    matrix = columns.gather(2, base.unsqueeze(1).expand(-1, classes, -1))
    x, info = torch.linalg.solve_ex(
        matrix, columns
    )  # (b, C, T): what each t is in the base's terms
    usable = real & (info == 0).unsqueeze(1) & (x.abs().amax(1) < SINGULAR)
    usable = usable.scatter(1, base, False) & real.gather(1, base).all(-1, keepdim=True)
    x = torch.where(usable.unsqueeze(1), x, 0)
    mass = weights.gather(1, base).unsqueeze(-1)
    q_base = q.gather(1, base).unsqueeze(-1)
    limit = mass / x
    forward = torch.where(x > 0, limit, torch.inf).amin(1)
    backward = torch.maximum(torch.where(x < 0, limit, -torch.inf).amax(1), -weights)
    before = _shared(mass, q_base).sum(1) + _shared(weights, q)
    gains = []
    for end in (forward, backward):
        amount = torch.where(usable & end.isfinite(), end, 0)
        after = _shared((mass - amount.unsqueeze(1) * x).clamp(min=0), q_base).sum(1)
        gains.append(after + _shared((weights + amount).clamp(min=0), q) - before)
    gain, best = torch.cat(gains, dim=1).max(-1)
    target = (best % width).unsqueeze(1)
    amount = torch.cat([forward, backward], dim=1).gather(1, best.unsqueeze(1))
    amount = torch.where(gain.unsqueeze(1) > 0, amount, 0)
    taken = amount * x.gather(2, target.unsqueeze(1).expand(-1, classes, -1))[..., 0]
    moved = weights.scatter_add(1, base, -taken).scatter_add(1, target, amount)
    moved = moved.clamp(min=0)
    return moved / moved.sum(-1, keepdim=True), gain


def _shared(a: Tensor, q: Tensor) -> Tensor:
    """½ [a ln 2 + a ln a − (a + q) ln(a + q)]: the part of the divergence that moves with a."""
    return 0.5 * (a * LN2 + torch.xlogy(a, a) - torch.xlogy(a + q, a + q))
