"""Find a lower bound for more than two classes: the best pair of positions, then moves of mass.

Along a segment of weightings the divergence is convex, so only the ends of the segment's feasible intervals
matter; a grid finds the intervals, bisection their ends.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedmap.counterfactual.tolerance import Instances, added_divergence
from heedmap.measures import jensen_shannon

BLOCK = 1 << 20  # entries of the largest temporary
SCREENED = (
    16  # likeliest classes that rule out nearly all infeasible pairs; the others judge the rest
)
SMALLEST, LARGEST = 32, 16  # positions of a long row that are tried: least and most attended
GRID = 9  # points on the part of a segment that the margins allow
SOURCES = 6  # positions that mass is taken from, largest first
ROUNDS = 20
PROGRESS = 1e-9  # a smaller gain ends the search


def best_pair(instances: Instances) -> Float[Tensor, "B T"]:
    """Return the most different feasible mixture of two positions found; α̂ where there is none.

    Tries all pairs of a row with at most 48 positions; in a longer one, those among its 32 least
    attended positions, where mass makes the largest difference, and its 16 most attended, which make
    the prediction. A grid on the mixing weight finds the pair, bisection the ends of its interval.
    """
    positions = _candidates(instances)
    width = positions.shape[1]
    i, j = torch.triu_indices(width, width, offset=1, device=positions.device)
    if not len(i):
        return instances.attention
    size = max(1, BLOCK // (len(i) * GRID * min(SCREENED, instances.logits.shape[-1])))
    blocks = [
        _best_pair(
            instances.rows(slice(begin, begin + size)), positions[begin : begin + size], i, j
        )
        for begin in range(0, len(positions), size)
    ]
    return torch.cat(blocks)


def move_mass(instances: Instances, start: Float[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    """Move mass from one position to another within ε, the best move first.

    Each round moves some of the mass of one of the six heaviest positions to any candidate
    position, as much as keeps the prediction within ε, if that makes the weighting more different;
    at most 20 rounds. Returns a feasible weighting, never less different than the start.
    """
    weights = start.clone()
    active = torch.arange(len(start), device=start.device)
    positions = _candidates(instances)
    entries = SOURCES * max(1, positions.shape[1]) * GRID * instances.logits.shape[-1]
    size = max(1, BLOCK // entries)
    for _ in range(ROUNDS):
        improved = []
        for rows in torch.split(active, size):
            better, gain = _best_move(instances.rows(rows), weights[rows], positions[rows])
            weights[rows] = better
            improved.append(rows[gain > PROGRESS])
        active = torch.cat(improved) if improved else active
        if not len(active):
            break
    return weights


def _candidates(instances: Instances) -> Int[Tensor, "B tried"]:
    """Return the positions to try: all real ones, or in a long row the least and the most attended.

    Padding fills short rows; no mass is moved to it.
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


def _best_pair(
    instances: Instances, positions: Tensor, i: Tensor, j: Tensor
) -> Float[Tensor, "b T"]:
    rows = torch.arange(len(positions), device=positions.device)
    q = instances.attention.gather(1, positions)
    real = instances.mask.gather(1, positions)
    # Most pairs are infeasible: only those that may be feasible are put on the grid.
    row, pair = (_may_be_feasible(instances, positions, i, j) & real[:, i] & real[:, j]).nonzero(
        as_tuple=True
    )
    start = torch.zeros(len(rows), len(i), dtype=q.dtype, device=q.device)
    end = torch.zeros_like(start)
    value = torch.full_like(start, -torch.inf)[..., None].repeat(1, 1, GRID)
    grid = torch.linspace(0, 1, GRID, dtype=q.dtype, device=q.device)
    at_once = max(1, BLOCK // (GRID * instances.logits.shape[-1]))
    for block_rows, block_pairs in zip(
        torch.split(row, at_once), torch.split(pair, at_once), strict=True
    ):
        pair_of_positions = (
            positions[block_rows, i[block_pairs]],
            positions[block_rows, j[block_pairs]],
        )
        base, target = (instances.logits[block_rows, end] for end in pair_of_positions)
        step = target - base
        low, high = instances.range_along(base, step, block_rows)
        low, high = low.clamp(min=0), high.clamp(max=1)
        start[block_rows, block_pairs], end[block_rows, block_pairs] = low, high
        w = low[:, None] + (high - low)[:, None] * grid  # (pairs, GRID)
        feasible = instances.is_feasible(
            base[:, None] + w.unsqueeze(-1) * step[:, None], block_rows
        )
        q_i, q_j = q[block_rows, i[block_pairs], None], q[block_rows, j[block_pairs], None]
        gain = (
            added_divergence(1 - w, q_i)
            + added_divergence(w, q_j)
            + 0.5 * (torch.xlogy(q_i, q_i) + torch.xlogy(q_j, q_j))
        )
        possible = feasible & (low <= high)[:, None]
        value[block_rows, block_pairs] = gain.masked_fill(~possible, -torch.inf)
    value, best = value.flatten(1).max(-1)
    pair, grid_index = best // GRID, best % GRID
    exists = value > -torch.inf
    low = torch.where(exists, start[rows, pair], 0)
    spacing = torch.where(exists, (end - start)[rows, pair], 0) / (GRID - 1)
    middle = low + spacing * grid_index
    ends = positions[rows.unsqueeze(1), torch.stack([i[pair], j[pair]], dim=1)]
    base, target = (instances.logits[rows, position] for position in ends.unbind(1))
    step = target - base
    result, jsd = instances.attention, torch.zeros_like(value)
    for side in (0.0, -1.0, 1.0):
        neighbour = (middle + side * spacing).clamp(0, 1)
        w = instances.last_feasible(base, step, middle, neighbour)
        mixed = torch.zeros_like(result).scatter_(1, ends, torch.stack([1 - w, w], dim=1))
        new = torch.where(exists, jensen_shannon(mixed, instances.attention), 0)
        result = torch.where((new > jsd).unsqueeze(1), mixed, result)
        jsd = torch.maximum(new, jsd)
    return result


def _may_be_feasible(
    instances: Instances, positions: Tensor, i: Tensor, j: Tensor
) -> Bool[Tensor, "b pairs"]:
    """Return whether the margins of the likeliest classes allow any mixture of two positions."""
    likeliest = instances.likeliest(SCREENED)
    rows = torch.arange(len(positions), device=positions.device).unsqueeze(1)
    z = likeliest.logits[rows, positions]
    start, end = likeliest.range_along(z[:, i], z[:, j] - z[:, i])
    return start.clamp(min=0) <= end.clamp(max=1)


def _best_move(
    instances: Instances, weights: Float[Tensor, "b T"], positions: Int[Tensor, "b tried"]
) -> tuple[Float[Tensor, "b T"], Float[Tensor, " b"]]:
    """Return the weights after the best single move of mass, and its gain: 0 where no move gains."""
    classes = instances.logits.shape[-1]
    mass, source = weights.topk(min(SOURCES, weights.shape[1]), dim=1)
    z = instances.logits_of(weights)
    z_from = instances.logits.gather(1, source.unsqueeze(-1).expand(-1, -1, classes))
    z_to = instances.logits.gather(1, positions.unsqueeze(-1).expand(-1, -1, classes))
    step = z_to.unsqueeze(1) - z_from.unsqueeze(2)  # (b, sources, tried, C)
    _, end = instances.range_along(z[:, None, None], step)
    end = torch.minimum(end, mass.unsqueeze(-1)).clamp(min=0)

    grid = torch.linspace(0, 1, GRID, dtype=z.dtype, device=z.device)[1:]
    amount = end.unsqueeze(-1) * grid  # (b, sources, tried, GRID − 1)
    feasible = instances.is_feasible(
        z[:, None, None, None] + amount.unsqueeze(-1) * step.unsqueeze(3)
    )
    q_from = instances.attention.gather(1, source)
    q_to, a_to = instances.attention.gather(1, positions), weights.gather(1, positions)
    divergence_left = added_divergence(
        (mass[:, :, None, None] - amount).clamp(min=0), q_from[:, :, None, None]
    )
    divergence_moved = added_divergence(a_to[:, None, :, None] + amount, q_to[:, None, :, None])
    divergence_now = (
        added_divergence(mass, q_from)[:, :, None] + added_divergence(a_to, q_to)[:, None]
    )
    gain = divergence_left + divergence_moved - divergence_now.unsqueeze(-1)
    allowed = instances.mask.gather(1, positions)[:, None] & (
        source[:, :, None] != positions[:, None]
    )
    gain = gain.masked_fill(~(feasible & allowed.unsqueeze(-1)), -torch.inf)

    gain, best = gain.flatten(1).max(-1)
    move = best // (GRID - 1)
    at_source = (move // positions.shape[1]).unsqueeze(1)
    at_target = (move % positions.shape[1]).unsqueeze(1)
    direction = step.flatten(1, 2)[torch.arange(len(move), device=move.device), move]
    reach = end.flatten(1).gather(1, move.unsqueeze(1))[:, 0]
    moved_mass = amount.flatten(1).gather(1, best.unsqueeze(1))[:, 0]
    gain = torch.where(gain > 0, gain, 0.0)
    moved_mass = torch.where(gain > 0, moved_mass, 0.0)
    # There may be room between the grid point and the next; by convexity, using it is better.
    further = torch.minimum(moved_mass + reach / (GRID - 1), reach)
    moved_mass = torch.where(
        gain > 0, instances.last_feasible(z, direction, moved_mass, further), 0.0
    )
    change = torch.zeros_like(weights)
    change.scatter_add_(1, source.gather(1, at_source), -moved_mass.unsqueeze(1))
    change.scatter_add_(1, positions.gather(1, at_target), moved_mass.unsqueeze(1))
    moved = (weights + change).clamp(min=0)
    # Where the divergence dips after the grid point, this would be worse: keep only what is better.
    old, new = (jensen_shannon(a, instances.attention) for a in (weights, moved))
    better = (new > old) & instances.is_feasible(instances.logits_of(moved))
    return torch.where(better.unsqueeze(1), moved, weights), torch.where(better, new - old, 0.0)
