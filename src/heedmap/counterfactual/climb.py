"""A feasible weighting as different as can be found: pairs of positions, then moves of mass.

The lower bound for more than two classes. Along a segment of weightings the divergence is convex, so
only the ends of the segment's feasible intervals matter; a grid finds the intervals, bisection their ends.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedmap.counterfactual.tolerance import Instances
from heedmap.measures import LN2, jensen_shannon

BLOCK = 1 << 20  # entries of the largest temporary
SMALLEST, LARGEST = 32, 16  # of a long row, the positions tried: by attention
GRID = 9  # points on the part of a segment that the margins allow
HALVINGS = 40
SOURCES = 6  # positions that mass is taken from, largest first
ROUNDS = 20
PROGRESS = 1e-9  # a smaller gain ends the climb


def best_pairs(instances: Instances, count: int) -> Float[Tensor, "count B T"]:
    """The `count` most different feasible mixtures of two positions found; α̂ where there are fewer.

    All pairs of a row with at most 48 positions; of a longer one, those among its 32 positions of
    smallest attention, where mass is most different, and its 16 of largest, which made the prediction.
    """
    positions = _candidates(instances)
    width = positions.shape[1]
    i, j = torch.triu_indices(width, width, offset=1, device=positions.device)
    entries = max(1, len(i)) * GRID * instances.logits.shape[-1]
    size = max(1, BLOCK // entries)
    blocks = [
        _best_pairs(instances.rows(slice(at, at + size)), positions[at : at + size], i, j, count)
        for at in range(0, len(positions), size)
    ]
    return torch.cat(blocks, dim=1)


def climb(instances: Instances, start: Float[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    """Local search from a feasible weighting: move mass from one position to another, best move first.

    Each round moves some of the mass of one of the six heaviest positions to any candidate position, as
    much as keeps the prediction within ε, if that makes the weighting more different; at most 20
    rounds. Returns a feasible weighting, never less different than the start.
    """
    weights = start.clone()
    active = torch.arange(len(start), device=start.device)
    positions = _candidates(instances)
    entries = SOURCES * max(1, positions.shape[1]) * GRID * instances.logits.shape[-1]
    size = max(1, BLOCK // entries)
    for _ in range(ROUNDS):
        improved = []
        for rows in active.split(size):
            better, gain = _best_move(instances.rows(rows), weights[rows], positions[rows])
            weights[rows] = better
            improved.append(rows[gain > PROGRESS])
        active = torch.cat(improved) if improved else active
        if not len(active):
            break
    return weights


def shrink(instances: Instances, target: Float[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    """The point of the segment from α̂ to `target`, as far out as bisection finds it feasible."""
    origin = instances.logits_of(instances.attention)
    step = instances.logits_of(target) - origin
    zero = torch.zeros_like(origin[:, 0])
    w = torch.where(instances.keeps(origin + step), 1.0, _edge(instances, origin, step, zero, zero + 1))
    return instances.attention + w.unsqueeze(1) * (target - instances.attention)


def _candidates(instances: Instances) -> Int[Tensor, "B M"]:
    """The positions tried: all real ones, or of a long row the least and the most attended.

    Short rows fill up with padding, whose weight is never moved: it fails the mask.
    """
    width = instances.mask.shape[1]
    ordered = instances.attention.masked_fill(~instances.mask, torch.inf)
    ranked = torch.argsort(ordered, dim=-1, stable=True)
    if width <= SMALLEST + LARGEST:
        return ranked
    column = torch.arange(SMALLEST + LARGEST, device=ranked.device)
    lengths = instances.mask.sum(-1, keepdim=True)
    skip = (lengths - (SMALLEST + LARGEST)).clamp(min=0)
    return ranked.gather(1, torch.where(column < SMALLEST, column, column + skip))


def _shared(a: Tensor, q: Tensor) -> Tensor:
    """½ [a ln 2 + a ln a − (a + q) ln(a + q)]: the part of a position's divergence that moves with a."""
    return 0.5 * (a * LN2 + torch.xlogy(a, a) - torch.xlogy(a + q, a + q))


def _edge(instances: Instances, base: Tensor, step: Tensor, inside: Tensor, outside: Tensor) -> Tensor:
    """Bisection from a feasible w towards an infeasible one; always returns a feasible w."""
    for _ in range(HALVINGS):
        middle = 0.5 * (inside + outside)
        keeps = instances.keeps(base + middle.unsqueeze(-1) * step)
        inside, outside = torch.where(keeps, middle, inside), torch.where(keeps, outside, middle)
    return inside


def _best_pairs(
    instances: Instances, positions: Tensor, i: Tensor, j: Tensor, count: int
) -> Float[Tensor, "count b T"]:
    classes = instances.logits.shape[-1]
    z = instances.logits.gather(1, positions.unsqueeze(-1).expand(-1, -1, classes))
    q = instances.attention.gather(1, positions)
    real = instances.mask.gather(1, positions)
    base, step = z[:, i], z[:, j] - z[:, i]
    start, end = instances.range_along(base, step)
    start, end = start.clamp(min=0), end.clamp(max=1)
    possible = (start <= end) & real[:, i] & real[:, j]

    grid = torch.linspace(0, 1, GRID, dtype=z.dtype, device=z.device)
    start, end = torch.where(possible, start, 0), torch.where(possible, end, 0)
    w = start.unsqueeze(-1) + (end - start).unsqueeze(-1) * grid  # (b, pairs, GRID)
    keeps = instances.keeps(base.unsqueeze(2) + w.unsqueeze(-1) * step.unsqueeze(2))
    fixed = 0.5 * torch.xlogy(q, q)
    value = _shared(1 - w, q[:, i].unsqueeze(-1)) + _shared(w, q[:, j].unsqueeze(-1))
    value += (fixed[:, i] + fixed[:, j]).unsqueeze(-1)
    value = value.masked_fill(~(keeps & possible.unsqueeze(-1)), -torch.inf)
    value, at = value.max(-1)

    value, pair = value.topk(min(count, value.shape[1]), dim=1)
    found = instances.attention.expand(count, -1, -1).clone()
    for rank in range(pair.shape[1]):
        index = pair[:, rank : rank + 1]
        best = w.gather(1, index[..., None].expand(-1, -1, GRID))[:, 0].gather(1, at.gather(1, index))
        ends = index.unsqueeze(-1).expand(-1, -1, classes)
        z_i, move = base.gather(1, ends)[:, 0], step.gather(1, ends)[:, 0]
        spacing = (end - start).gather(1, index) / (GRID - 1)
        tries = [best[:, 0]]
        for away in (-spacing, spacing):
            neighbour = (best + away).clamp(0, 1)[:, 0]
            tries.append(_edge(instances, z_i, move, best[:, 0], neighbour))
        columns = torch.stack([positions.gather(1, i[index]), positions.gather(1, j[index])], dim=-1)
        for t in tries:
            mixed = torch.zeros_like(instances.attention)
            mixed.scatter_(1, columns[:, 0], torch.stack([1 - t, t], dim=1))
            gain = jensen_shannon(mixed, instances.attention)
            better = (value[:, rank] > -torch.inf) & (
                gain > jensen_shannon(found[rank], instances.attention)
            )
            found[rank] = torch.where(better.unsqueeze(1), mixed, found[rank])
    return found


def _best_move(
    instances: Instances, weights: Float[Tensor, "b T"], positions: Int[Tensor, "b M"]
) -> tuple[Float[Tensor, "b T"], Float[Tensor, " b"]]:
    """The weights after the best single move of mass, and what it gained (0 and no move if none did)."""
    classes = instances.logits.shape[-1]
    mass, source = weights.topk(min(SOURCES, weights.shape[1]), dim=1)
    z = instances.logits_of(weights)
    z_from = instances.logits.gather(1, source.unsqueeze(-1).expand(-1, -1, classes))
    z_to = instances.logits.gather(1, positions.unsqueeze(-1).expand(-1, -1, classes))
    step = z_to.unsqueeze(1) - z_from.unsqueeze(2)  # (b, sources, M, C)
    _, end = instances.range_along(z[:, None, None], step)
    end = torch.minimum(end, mass.unsqueeze(-1)).clamp(min=0)

    grid = torch.linspace(0, 1, GRID, dtype=z.dtype, device=z.device)[1:]
    amount = end.unsqueeze(-1) * grid  # (b, sources, M, GRID − 1)
    keeps = instances.keeps(z[:, None, None, None] + amount.unsqueeze(-1) * step.unsqueeze(3))
    q_from = instances.attention.gather(1, source)
    q_to, a_to = instances.attention.gather(1, positions), weights.gather(1, positions)
    less = _shared((mass[:, :, None, None] - amount).clamp(min=0), q_from[:, :, None, None])
    more = _shared(a_to[:, None, :, None] + amount, q_to[:, None, :, None])
    before = _shared(mass, q_from)[:, :, None] + _shared(a_to, q_to)[:, None]
    gain = less + more - before.unsqueeze(-1)
    allowed = instances.mask.gather(1, positions)[:, None] & (source[:, :, None] != positions[:, None])
    gain = gain.masked_fill(~(keeps & allowed.unsqueeze(-1)), -torch.inf)

    gain, best = gain.flatten(1).max(-1)
    move = best // (GRID - 1)
    at_source = (move // positions.shape[1]).unsqueeze(1)
    at_target = (move % positions.shape[1]).unsqueeze(1)
    direction = step.flatten(1, 2)[torch.arange(len(move), device=move.device), move]
    reach = end.flatten(1).gather(1, move.unsqueeze(1))[:, 0]
    taken = amount.flatten(1).gather(1, best.unsqueeze(1))[:, 0]
    gain = torch.where(gain > 0, gain, 0.0)
    taken = torch.where(gain > 0, taken, 0.0)
    # Beyond the grid point there may be room before the next one, and convexity says it is better used.
    further = torch.minimum(taken + reach / (GRID - 1), reach)
    taken = torch.where(gain > 0, _edge(instances, z, direction, taken, further), 0.0)
    change = torch.zeros_like(weights)
    change.scatter_add_(1, source.gather(1, at_source), -taken.unsqueeze(1))
    change.scatter_add_(1, positions.gather(1, at_target), taken.unsqueeze(1))
    moved = (weights + change).clamp(min=0)
    # A grid point followed by a dip would be worse a little further out: keep what is really better.
    old, new = (jensen_shannon(a, instances.attention) for a in (weights, moved))
    better = (new > old) & instances.keeps(instances.logits_of(moved))
    return torch.where(better.unsqueeze(1), moved, weights), torch.where(better, new - old, 0.0)
