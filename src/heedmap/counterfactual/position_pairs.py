"""Find the best pair of positions mixed to a given logit: all pairs of all rows, in bounded memory."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedmap.measures import LN2

# Entries of the largest temporary: two megabytes in float64, small enough to stay in cache.
BLOCK = 1 << 18


@dataclass(frozen=True)
class Pair:
    """The best pair of each row: mass 1 − w on `major_position`, w on `minor_position`, w ≤ ½.

    `gain` is JSD − ½ ln 2 · Σα̂: the divergence less what it would be with no shared position; −∞ where no
    pair exists.
    """

    gain: Float[Tensor, " B"]
    major_position: Int[Tensor, " B"]
    minor_position: Int[Tensor, " B"]
    minor_weight: Float[Tensor, " B"]


def best_pair(
    attention: Float[Tensor, "B T"],
    logits: Float[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
    bound: Float[Tensor, " B"],
) -> Pair:
    """Return the pair z_i < bound < z_j of largest JSD, mixed so that the logit is the bound.

    With the mass a on i and 1 − a on j:  a = (z_j − bound)/(z_j − z_i)  and, q being α̂,
    JSD = ½ ln 2 Σq + ½ [ln 2 + Σ_{t ∈ {i, j}} a_t ln a_t + q_t ln q_t − (a_t + q_t) ln(a_t + q_t)].
    Sorted by logit, the pairs of a row are a rectangle of k (n − k) ≤ n²/4 entries.
    """
    rows, _ = logits.shape
    z, order = logits.masked_fill(~mask, torch.inf).sort(dim=-1)
    q = attention.gather(1, order)
    below = (mask & (logits < bound.unsqueeze(1))).sum(-1)
    above = (mask & (logits > bound.unsqueeze(1))).sum(-1)
    # The smaller of the two groups makes the rectangle's short side. Sorted by both sides,
    # neighbours have similar shapes and share a block with little padding.
    upper_start = mask.sum(-1) - above
    swap = below > above
    short, long = torch.minimum(below, above), torch.maximum(below, above)
    short_start = torch.where(swap, upper_start, 0)
    long_start = torch.where(swap, 0, upper_start)
    width = logits.shape[1] + 1
    shape_order = torch.argsort(short * width + long)
    shorts, longs = short[shape_order].tolist(), long[shape_order].tolist()

    gain = logits.new_full((rows,), -torch.inf)
    i = torch.zeros(rows, dtype=torch.long, device=logits.device)
    j = torch.zeros_like(i)
    for start, stop in _blocks(shorts, longs):
        block = shape_order[start:stop]
        long_side = _Side.take(z, q, block, long_start, long, max(longs[start:stop]))
        columns = long_side.z.shape[1]
        step = max(1, BLOCK // (len(block) * columns))
        for offset in range(0, shorts[stop - 1], step):
            size = min(step, shorts[stop - 1] - offset)
            short_side = _Side.take(z, q, block, short_start + offset, short - offset, size)
            value, flat = _gain(short_side, long_side, bound[block]).flatten(1).max(-1)
            better = value > gain[block]
            gain[block] = torch.where(better, value, gain[block])
            i[block] = torch.where(
                better, short_side.index.gather(1, flat[:, None] // columns)[:, 0], i[block]
            )
            j[block] = torch.where(
                better, long_side.index.gather(1, flat[:, None] % columns)[:, 0], j[block]
            )

    z_i, z_j = z.gather(1, i[:, None])[:, 0], z.gather(1, j[:, None])[:, 0]
    i, j = order.gather(1, i[:, None])[:, 0], order.gather(1, j[:, None])[:, 0]
    exists = gain > -torch.inf
    distance = torch.where(exists, z_j - z_i, 1.0)
    on_i = torch.where(exists, (z_j - bound) / distance, 1.0)
    on_j = torch.where(exists, (bound - z_i) / distance, 0.0)
    i_is_major = on_i >= on_j
    return Pair(
        gain,
        torch.where(i_is_major, i, j),
        torch.where(i_is_major, j, i),
        torch.minimum(on_i, on_j),
    )


def _blocks(shorts: list[int], longs: list[int]) -> list[tuple[int, int]]:
    """Return consecutive ranges of rectangles, at most BLOCK entries when padded; skip empty ones."""
    ranges = []
    start = next((index for index, short in enumerate(shorts) if short), len(shorts))
    widest = 0
    for index in range(start, len(shorts)):
        widest = max(widest, longs[index])
        if index > start and (index + 1 - start) * shorts[index] * widest > BLOCK:
            ranges.append((start, index))
            start, widest = index, longs[index]
    if start < len(shorts):
        ranges.append((start, len(shorts)))
    return ranges


@dataclass(frozen=True)
class _Side:
    """One side of a block of rectangles: logits, α̂ and q ln q (−∞ on padding: it never wins)."""

    index: Int[Tensor, "b side"]
    z: Float[Tensor, "b side"]
    q: Float[Tensor, "b side"]
    q_log_q: Float[Tensor, "b side"]

    @classmethod
    def take(
        cls, z: Tensor, q: Tensor, block: Tensor, starts: Tensor, sizes: Tensor, width: int
    ) -> "_Side":
        """Take columns starts … starts + sizes of the rows `block`, padded to `width`."""
        column = torch.arange(width, device=z.device)
        size = sizes[block, None]
        # Padding repeats a position of the same side, so that the mixing weight stays in (0, 1).
        index = starts[block, None] + torch.minimum(column, size - 1)
        rows_q = q[block[:, None], index]
        log = torch.xlogy(rows_q, rows_q).masked_fill(column >= size, -torch.inf)
        return cls(index, z[block[:, None], index], rows_q, log)


def _gain(short: _Side, long: _Side, bound: Float[Tensor, " b"]) -> Float[Tensor, "b short long"]:
    """Return ½ [ln 2 + Σ a ln a + q ln q − (a + q) ln(a + q)] over the two positions of every pair."""
    distance = long.z[:, None, :] - short.z[:, :, None]
    on_short = (long.z - bound[:, None])[:, None, :] / distance
    on_long = (bound[:, None] - short.z)[:, :, None] / distance
    # Both weights are positive, and log is several times faster than xlogy.
    total = on_short.log().mul_(on_short).add_(on_long.log().mul_(on_long))
    total += short.q_log_q[:, :, None] + LN2
    total += long.q_log_q[:, None, :]
    on_short += short.q[:, :, None]
    on_long += long.q[:, None, :]
    total -= on_short.log().mul_(on_short)
    total -= on_long.log().mul_(on_long)
    return total.mul_(0.5)
