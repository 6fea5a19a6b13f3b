"""Attention flow: how much could run from a state at the top to each input, through all paths.

Abnar & Zuidema 2020. Attention with its residual connection (rollout.py) is read as a network of
pipes, one column of nodes a layer:

    top, i ──Â_L[i, k]──> layer L−1, k ── ... ──> layer 1, m ──Â_1[m, j]──> input j

The relevance of input j is the largest flow from (top, i) to it, each input taken by itself.
"""

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow
from torch import Tensor

from heedmap.importance.rollout import mixed

LONGEST = 64  # positions: among many maps, a longer text's flow takes too long and is not computed
# SciPy's capacities are int32. No pipe holds more than 1, nor does all that leaves the top.
UNIT = 2.0**-30


def max_flows(
    layers: Float[Tensor, "L N N"], start: int, real: Bool[Tensor, " N"]
) -> Float[Tensor, " N"]:
    """Maximum flow from position `start` at the top to each input, in float64; 0 at padding.

    `layers` is attention averaged over heads, `layers[0]` next to the input; `real` tells padding.
    At least the rollout of the same row, which is a flow, and at most either of two cuts: 1, all that
    leaves the top, and Σ_m Â_1[m, j], all that enters the input. Where attention is spread out, the
    smaller of the two is all there is to the flow (for each input of random softmax rows up to a
    standard deviation of 2 in the scores): it then tells of the lowest layer and of no other.

    Capacities are rounded to multiples of 2^-30, so a flow is off by at most 2^-31 for each pipe of
    its narrowest cut: 6e-8 where that is one of the two, for 128 positions; never above
    ((L − 2) n² + 2n) 2^-31, 8e-5 for 12 layers of 128 positions.

    One maximum flow an input on O(L n²) pipes, on one core: 0.02 s for 6 layers of 25 positions,
    0.3 s for 12 of 64, 2 to 3 s for 12 of 128.

    Raises ValueError where there is no layer, where `start` is no real position, and where attention
    between real positions is negative or not finite.
    """
    if not len(layers):
        raise ValueError("flow needs the attention of at least one layer")
    if not 0 <= start < len(real) or not bool(real[start]):
        raise ValueError(f"flow must start at a real position, and position {start} is none")
    kept = layers[:, real][..., real].double()
    if not bool((kept.isfinite() & (kept >= 0)).all()):
        raise ValueError("flow needs attention that is finite and not negative")
    capacity = mixed(kept.unsqueeze(1), real[real].unsqueeze(0)).squeeze(1)
    units = np.rint(capacity.numpy(force=True) / UNIT).astype(np.int32)
    found = _max_flows(units, int(real[:start].sum()))
    flows = torch.zeros(real.shape, dtype=torch.float64, device=layers.device)
    flows[real] = torch.from_numpy(found * UNIT).to(layers.device)
    return flows


def flow(
    layers: Float[Tensor, "L N N"], start: int, real: Bool[Tensor, " N"]
) -> Float[Tensor, " N"]:
    """Attention flow from position `start` at the top: `max_flows`, scaled to sum to 1.

    The sum is never 0: the residual connections alone carry something from `start` to itself.
    """
    flows = max_flows(layers, start, real)
    return flows / flows.sum()


def _max_flows(units: NDArray[np.int32], start: int) -> NDArray[np.float64]:
    """Maximum flows to all n inputs, in units, of capacities (L, n, n)."""
    depth, n, _ = units.shape
    found: NDArray[np.float64] = units[0, start].astype(np.float64)
    if depth == 1:
        return found
    # Nodes: the top, then n for each layer between from the top down, then the one input asked for.
    # Every pipe but those into the input is the same for all inputs, and these are last in the data.
    between = units[1:-1][::-1].reshape(-1)
    widths = np.repeat([n, n, 1, 0], [1, (depth - 2) * n, n, 1])
    below = [1 + layer * n + np.arange(n) for layer in range(depth - 1)]
    sink = 1 + (depth - 1) * n
    targets = [below[0], *(np.tile(nodes, n) for nodes in below[1:]), np.full(n, sink)]
    network = csr_array(
        (
            np.concatenate([units[-1, start], between, units[0, :, 0]]),
            np.concatenate(targets).astype(np.int32),
            np.concatenate([[0], np.cumsum(widths)]).astype(np.int32),
        ),
        shape=(sink + 1, sink + 1),
    )
    for j in range(n):
        network.data[-n:] = units[0, :, j]
        found[j] = maximum_flow(network, 0, sink).flow_value
    return found
