"""Compute attention flow: the largest flow from a state at the top to each input, through all paths.

Abnar & Zuidema 2020. Attention with its residual connection (rollout.py) is read as a network of
pipes, one column of nodes per layer:

    top, i ──Â_l[i, k]──> layer l−1, k ── ... ──> layer 1, m ──Â_1[m, j]──> input j

The relevance of input j is the maximum flow from (top, i) to it, computed separately for each input.
"""

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow
from torch import Tensor

from heedmap.importance.rollout import mixed

LONGEST = 64  # positions; with several maps, longer texts take too long and get no flow
# SciPy's capacities are int32. No pipe holds more than 1, and the flow out of the top is at most 1.
UNIT = 2.0**-30


def max_flows(
    layers: Float[Tensor, "layers N N"], start: int, real: Bool[Tensor, " N"]
) -> Float[Tensor, " N"]:
    """Return the maximum flow from position `start` at the top to each input, in float64; 0 at padding.

    `layers` is attention averaged over heads, `layers[0]` next to the input; `real` is False at padding.
    The flow is at least the rollout of the same row, which is a flow, and at most either of two cuts: 1,
    out of the top, and Σ_m Â_1[m, j], into the input. If attention is spread out, the flow equals the
    smaller cut (for every input of random softmax rows whose scores have a standard deviation of up to
    2): it then depends on the lowest layer only.

    Capacities are rounded to multiples of 2^-30, so a flow is off by at most 2^-31 per pipe of its
    minimum cut: 6e-8 for one of the two above and 128 positions; never more than
    ((l − 2) n² + 2n) 2^-31, 8e-5 for l = 12 layers of n = 128 positions.

    One maximum flow per input on O(l n²) pipes, on one core: 0.02 s for 6 layers of 25 positions,
    0.3 s for 12 of 64, 2 to 3 s for 12 of 128.

    Raises ValueError if there is no layer, if `start` is not a real position, or if attention between
    real positions is negative or not finite.
    """
    if not len(layers):
        raise ValueError("flow needs the attention of at least one layer")
    if not 0 <= start < len(real) or not bool(real[start]):
        raise ValueError(f"flow must start at a real position, and position {start} is none")
    unpadded = layers[:, real][..., real].double()
    if not bool((unpadded.isfinite() & (unpadded >= 0)).all()):
        raise ValueError("flow needs attention that is finite and not negative")
    capacity = mixed(unpadded.unsqueeze(1), real[real].unsqueeze(0)).squeeze(1)
    units = np.rint(capacity.numpy(force=True) / UNIT).astype(np.int32)
    largest = _max_flows(units, int(real[:start].sum()))
    flows = torch.zeros(real.shape, dtype=torch.float64, device=layers.device)
    flows[real] = torch.from_numpy(largest * UNIT).to(layers.device)
    return flows


def flow(
    layers: Float[Tensor, "layers N N"], start: int, real: Bool[Tensor, " N"]
) -> Float[Tensor, " N"]:
    """Return the attention flow from position `start` at the top: `max_flows`, scaled to sum to 1.

    The sum is never 0: the residual connections carry some flow from `start` to itself.
    """
    flows = max_flows(layers, start, real)
    return flows / flows.sum()


def _max_flows(units: NDArray[np.int32], start: int) -> NDArray[np.float64]:
    """Return the maximum flows to all n inputs, in units, for capacities (layers, n, n)."""
    depth, n, _ = units.shape
    flows: NDArray[np.float64] = units[0, start].astype(np.float64)
    if depth == 1:
        return flows
    # Nodes: the top, then n per layer in between, from the top down, then the one input.
    # Only the pipes into the input differ between inputs; they are last in the data.
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
        flows[j] = maximum_flow(network, 0, sink).flow_value
    return flows
