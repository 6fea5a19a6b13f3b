"""Tighten the upper bound for three classes: try every vertex of the polytope that contains the answer.

Two logit differences place each position in a plane. The tolerance becomes a polygon of at most six
sides there; the weightings whose mean position lies in it form a polytope in the simplex, and a
vertex of it has as many positions as sides it lies on, plus one:

    one position inside      two, crossing a side      three, around a corner
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedmap.counterfactual.tolerance import Instances, added_divergence
from heedmap.measures import LN2

BLOCK = 1 << 20  # entries of the largest temporary
SLACK = 1e-9  # accepting points this far outside can only raise an upper bound
SIDES = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, -1.0]], dtype=torch.float64)


def vertex_bound(instances: Instances) -> Float[Tensor, " B"]:
    """Return the largest JSD(α, α̂) over the polytope of the margins, C = 3: an upper bound in O(n³)."""
    lengths = instances.mask.sum(-1)
    order = torch.argsort(lengths, stable=True)
    bound = torch.zeros_like(instances.attention[:, 0])
    start = 0
    while start < len(order):
        stop = start + 1
        while (
            stop < len(order) and (stop + 1 - start) * _entries(int(lengths[order[stop]])) <= BLOCK
        ):
            stop += 1
        rows = order[start:stop]
        bound[rows] = _vertex_bound(instances.rows(rows), int(lengths[order[stop - 1]]))
        start = stop
    return bound


def _entries(n: int) -> int:
    """Return the entries that a row of n positions needs at once: its triples, or its pairs for each side."""
    return max(n * (n - 1) * (n - 2) // 6, 9 * n * n, 1)


def _vertex_bound(instances: Instances, width: int) -> Float[Tensor, " b"]:
    packed = torch.argsort(~instances.mask, dim=-1, stable=True)[:, :width]
    real = instances.mask.gather(1, packed)
    q = instances.attention.gather(1, packed)
    logits = instances.logits.gather(1, packed.unsqueeze(-1).expand(-1, -1, 3))
    points = logits[..., 1:] - logits[..., :1]  # (z_1 − z_0, z_2 − z_0)
    low, high = _polygon(instances, q, points)

    fixed = 0.5 * LN2 * q.sum(-1)
    feasible = real & _inside(points, low, high)
    best = _gain(torch.ones_like(q), q).masked_fill(~feasible, -torch.inf).amax(-1)
    best = torch.maximum(best, _pairs(points, q, real, low, high))
    best = torch.maximum(best, _triples(points, q, real, low, high))
    # α̂ is feasible: if rounding lost every vertex, its own divergence remains.
    return (best + fixed).clamp(min=0)


def _polygon(instances: Instances, q: Tensor, points: Tensor) -> tuple[Tensor, Tensor]:
    """Return bounds (b, 3) of z_1 − z_0, z_2 − z_0 and z_1 − z_2, widened to include α̂."""
    upper, lower = torch.tensor([[1, 2, 1], [0, 0, 2]], device=q.device)
    current = torch.einsum("bt,btx->bx", q, points) @ SIDES.to(q.device).mT
    low, high = instances.margin(upper, lower), -instances.margin(lower, upper)
    return torch.minimum(low, current), torch.maximum(high, current)


def _inside(points: Tensor, low: Tensor, high: Tensor) -> Bool[Tensor, "b *S"]:
    """Return whether points (b, *S, 2) satisfy the bounds, up to rounding."""
    shape = (len(points), *(1 for _ in points.shape[1:-1]), 3)
    along = points @ SIDES.to(points.device).mT
    slack = SLACK * (1 + points.abs().sum(-1, keepdim=True))
    satisfied = (along >= low.reshape(shape) - slack) & (along <= high.reshape(shape) + slack)
    return satisfied.all(-1)


def _gain(a: Tensor, q: Tensor) -> Tensor:
    """Return what a position of weight a adds to the divergence, less what it adds at 0 (½ q ln 2)."""
    return added_divergence(a, q) + 0.5 * torch.xlogy(q, q)


def _pairs(points: Tensor, q: Tensor, real: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Return the best mixture of two positions that lies on a side of the polygon."""
    width = points.shape[1]
    i, j = torch.triu_indices(width, width, offset=1, device=points.device)
    if not len(i):
        return torch.full_like(q[:, 0], -torch.inf)
    best = torch.full_like(q[:, 0], -torch.inf)
    along = points @ SIDES.to(points.device).mT
    for side in range(3):
        step = along[:, j, side] - along[:, i, side]
        for bound in (low, high):
            w = (bound[:, side, None] - along[:, i, side]) / step
            crosses = (w >= 0) & (w <= 1) & real[:, i] & real[:, j]
            w = torch.where(crosses, w, 0)
            on = points[:, i] + w.unsqueeze(-1) * (points[:, j] - points[:, i])
            value = _gain(1 - w, q[:, i]) + _gain(w, q[:, j])
            value = value.masked_fill(~(crosses & _inside(on, low, high)), -torch.inf)
            best = torch.maximum(best, value.amax(-1))
    return best


def _corners(low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """Return the corners of the polygons (b, n, 2), n the most that any has, and which exist."""
    sides = SIDES.to(low.device)
    crossings = []
    for side, crossed_side in ((0, 1), (0, 2), (1, 2)):
        inverse = torch.linalg.inv(sides[[side, crossed_side]])
        for a in (low[:, side], high[:, side]):
            for b in (low[:, crossed_side], high[:, crossed_side]):
                crossings.append(torch.stack([a, b], dim=-1) @ inverse.mT)
    corners = torch.stack(crossings, dim=1)
    exists = corners.isfinite().all(-1)
    corners = torch.where(exists.unsqueeze(-1), corners, 0)
    exists &= _inside(corners, low, high)
    existing_first = torch.argsort(~exists, dim=1, stable=True)[:, : int(exists.sum(-1).max())]
    return corners.gather(1, existing_first.unsqueeze(-1).expand(-1, -1, 2)), exists.gather(
        1, existing_first
    )


def _triples(points: Tensor, q: Tensor, real: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Return the best mixture of three positions whose triangle holds a corner of the polygon.

    The weights are the corner's barycentric coordinates: areas, from cross products of the
    positions seen from the corner. All three areas have one sign exactly when the corner is in the
    triangle.
    """
    width = points.shape[1]
    best = torch.full_like(q[:, 0], -torch.inf)
    i, j, k = torch.combinations(torch.arange(width, device=points.device), 3).unbind(-1)
    if not len(i):
        return best
    corners, exists = _corners(low, high)
    allowed = real[:, i] & real[:, j] & real[:, k]
    for corner in range(corners.shape[1]):
        x, y = (points - corners[:, corner : corner + 1]).unbind(-1)
        cross = x.unsqueeze(2) * y.unsqueeze(1) - y.unsqueeze(2) * x.unsqueeze(1)
        areas = [cross.flatten(1)[:, a * width + b] for a, b in ((j, k), (k, i), (i, j))]
        total = areas[0] + areas[1] + areas[2]
        # Rounding must not lose a triangle that has the corner on its border; a flat one is a pair.
        edge = -SLACK * total.abs()
        sign = total.sign()
        holds = allowed & (sign != 0) & exists[:, corner : corner + 1]
        for area in areas:
            holds &= area * sign >= edge
        row, triple = holds.nonzero(as_tuple=True)
        value = torch.zeros_like(row, dtype=q.dtype)
        for area, position in zip(areas, (i, j, k), strict=True):
            weight = (area[row, triple] / total[row, triple]).clamp(0, 1)
            value += _gain(weight, q[row, position[triple]])
        best = best.scatter_reduce(0, row, value, "amax")
    return best
