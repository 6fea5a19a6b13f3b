"""Find other weights with the same logits: a walk on the polytope of exactly equal predictions.

C + 1 positions have a direction in which their weights can move without moving the sum of the
weights or any of the C logits' differences. The divergence is convex, so one of the direction's two
ends, where a weight reaches zero, is at least as different: like the simplex method, but for a
convex objective.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedmap.counterfactual.tolerance import Instances, added_divergence

FEWEST_ROUNDS = 60  # a round usually empties one position: a longer row gets one round per position
PROGRESS = 1e-9  # a smaller gain ends the walk
DEPENDENT = 1e-6  # relative distance from the span of the chosen columns that counts as within it
EXACT = 1e-9  # of the largest logit: a direction that changes the logits by more is not used
LONGEST = 1e9  # directions longer than this are rounding


def walk(instances: Instances, start: Float[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    """Make moves that keep every probability, the best first, until none adds to the difference.

    Ends at a vertex (at most C positions) when nothing degenerates. α̂ is a valid start for any ε.
    """
    classes = instances.logits.shape[-1]
    positions = instances.mask.shape[1]
    weights = start.clone()
    if positions <= classes:
        return weights
    differences = instances.logits[..., 1:] - instances.logits[..., :1]
    # Columns (1, z_1 − z_0, …): a direction that this matrix maps to zero changes no prediction.
    columns = torch.cat([torch.ones_like(differences[..., :1]), differences], dim=-1).mT
    active = torch.arange(len(start), device=start.device)
    for _ in range(max(FEWEST_ROUNDS, positions)):
        current, q = weights[active], instances.attention[active]
        real = instances.mask[active]
        best, gain = current, torch.zeros_like(current[:, 0])
        for order in (current, current * q):
            base, exists = _base(order, real, columns[active])
            moved, moved_gain = _best_exchange(current, q, real, columns[active], base, exists)
            better = moved_gain > gain
            best = torch.where(better.unsqueeze(1), moved, best)
            gain = torch.where(better, moved_gain, gain)
        weights[active] = best
        active = active[gain > PROGRESS]
        if not len(active):
            break
    return torch.where(
        instances.is_feasible(instances.logits_of(weights)).unsqueeze(1), weights, start
    )


def _base(
    order: Float[Tensor, "b T"], real: Bool[Tensor, "b T"], columns: Float[Tensor, "b C T"]
) -> tuple[Int[Tensor, "b C"], Bool[Tensor, "b C"]]:
    """Choose up to C positions of independent columns, largest `order` first; return which exist.

    Repeated words, or words of equal logits, would make the base singular. As a rule the C largest are
    independent, which one QR decomposition says of a whole base: |R_cc| is what column c adds to the span of
    those before it. Other rows are searched position by position.
    """
    classes = columns.shape[1]
    ranked = order.masked_fill(~real, -1.0).argsort(dim=1, descending=True, stable=True)
    positions = ranked[:, :classes]
    largest = columns.gather(2, positions.unsqueeze(1).expand(-1, classes, -1))
    added = torch.linalg.qr(largest, mode="r").R.diagonal(dim1=1, dim2=2).abs()
    exists = added > DEPENDENT * largest.square().sum(1).sqrt().clamp(min=1e-30)
    exists &= real.gather(1, positions)
    rest = (~exists.all(1)).nonzero()[:, 0]
    if len(rest):
        positions[rest], exists[rest] = _independent(order[rest], real[rest], columns[rest])
    return positions, exists


def _independent(
    order: Float[Tensor, "b T"], real: Bool[Tensor, "b T"], columns: Float[Tensor, "b C T"]
) -> tuple[Int[Tensor, "b C"], Bool[Tensor, "b C"]]:
    """Choose the same by Gram-Schmidt: the largest position whose column is not in the span so far."""
    rest = columns.clone()
    scale = columns.square().sum(1).sqrt().clamp(min=1e-30)
    positions, exists = [], []
    for _ in range(columns.shape[1]):
        free = real & (rest.square().sum(1).sqrt() > DEPENDENT * scale)
        value, position = order.masked_fill(~free, -1.0).max(1)
        positions.append(position)
        exists.append(value >= 0)
        axis = rest.gather(2, position[:, None, None].expand(-1, rest.shape[1], 1)).squeeze(2)
        axis = torch.nn.functional.normalize(axis, dim=1) * exists[-1].unsqueeze(1)
        rest = rest - axis.unsqueeze(2) * torch.einsum("bc,bct->bt", axis, rest).unsqueeze(1)
    return torch.stack(positions, dim=1), torch.stack(exists, dim=1)


def _best_exchange(
    weights: Float[Tensor, "b T"],
    q: Float[Tensor, "b T"],
    real: Tensor,
    columns: Float[Tensor, "b C T"],
    base: Int[Tensor, "b C"],
    exists: Bool[Tensor, "b C"],
) -> tuple[Float[Tensor, "b T"], Float[Tensor, " b"]]:
    """Return the best end of all directions e_t − Σ_s x_s e_s, s in the base and t any other position."""
    classes = columns.shape[1]
    matrix = columns.gather(2, base.unsqueeze(1).expand(-1, classes, -1)) * exists.unsqueeze(1)
    # Only the other positions can enter: of 100 positions and 50 classes, half of them.
    is_base = torch.zeros_like(real).scatter_add(1, base, exists)
    count = real.shape[1] - int(exists.sum(1).min())
    others = is_base.long().argsort(dim=1, stable=True)[:, :count]
    entering = columns.gather(2, others.unsqueeze(1).expand(-1, classes, -1))
    weight, q_other = weights.gather(1, others), q.gather(1, others)
    x = _in_terms_of(matrix, entering, exists) * exists.unsqueeze(2)
    off = (matrix @ x - entering).abs().amax(1)
    exact = off <= EXACT * entering.abs().amax(1).clamp(min=1.0)
    usable = (real & ~is_base).gather(1, others) & exact & (x.abs().amax(1) < LONGEST)
    x = torch.where(usable.unsqueeze(1), x, 0)
    mass = weights.gather(1, base).unsqueeze(-1)
    q_base = q.gather(1, base).unsqueeze(-1)
    limit = mass / x
    forward = torch.where(x > 0, limit, torch.inf).amin(1)
    backward = torch.maximum(torch.where(x < 0, limit, -torch.inf).amax(1), -weight)
    divergence_now = added_divergence(mass, q_base).sum(1) + added_divergence(weight, q_other)
    gains, ends = [], []
    for end in (forward, backward):
        amount = torch.where(usable & end.isfinite(), end, 0)
        ends.append(amount)
        divergence_on_base = added_divergence(
            (mass - amount.unsqueeze(1) * x).clamp(min=0), q_base
        ).sum(1)
        gains.append(
            divergence_on_base
            + added_divergence((weight + amount).clamp(min=0), q_other)
            - divergence_now
        )
    gain, best = torch.cat(gains, dim=1).max(-1)
    entered = (best % count).unsqueeze(1)
    amount = torch.cat(ends, dim=1).gather(1, best.unsqueeze(1))
    change = amount * x.gather(2, entered.unsqueeze(1).expand(-1, classes, -1))[..., 0]
    moved = weights.scatter_add(1, base, -change).scatter_add(1, others.gather(1, entered), amount)
    moved = moved.clamp(min=0)
    return moved / moved.sum(-1, keepdim=True), gain


def _in_terms_of(
    base: Float[Tensor, "b C C"], columns: Float[Tensor, "b C T"], exists: Bool[Tensor, "b C"]
) -> Float[Tensor, "b C T"]:
    """Return each column in terms of the base: by least squares where that is smaller than C.

    A whole base has an inverse, at a sixth of what its singular values cost (50 classes). Where it is nearly
    singular, the caller finds by multiplication that the columns are none of these.
    """
    is_whole = exists.all(1)
    solved = torch.zeros_like(columns)
    solved[is_whole] = torch.linalg.solve_ex(base[is_whole], columns[is_whole]).result
    rest = ~is_whole
    solved[rest] = torch.linalg.pinv(base[rest], rtol=1e-13) @ columns[rest]
    return solved
