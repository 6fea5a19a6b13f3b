"""Compute attention rollout: how much of each input is in each state if layers only mix by attention.

Abnar & Zuidema 2020. Attention is averaged over heads, and the residual connection counts as a
position that attends to itself. The product of the layers then leads from a state at the top to the
inputs. `layers[0]` is the layer next to the input; rows attend to columns.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def mixed(
    layers: Float[Tensor, "*L B N N"], mask: Bool[Tensor, "B N"]
) -> Float[Tensor, "*L B N N"]:
    """Return attention and residual connection as one stochastic matrix: Â = rownorm(A + I).

    `layers` is A averaged over heads, any number of layers or a single one; `mask` holds the real
    positions. Padded keys get 0 before the rows are normalised. A row of A that sums to 1 over
    real keys becomes ½(A + I). The row of a padded position is that of I, even if A is NaN there, so
    it passes nothing to a real one.
    """
    real = mask.unsqueeze(-1) & mask.unsqueeze(-2)
    identity = torch.eye(mask.shape[-1], dtype=layers.dtype, device=layers.device)
    total = torch.where(real, layers, 0) + identity
    return total / total.sum(-1, keepdim=True)


def extend(
    rolled: Float[Tensor, "B N N"], layer: Float[Tensor, "B N N"], mask: Bool[Tensor, "B N"]
) -> Float[Tensor, "B N N"]:
    """Extend the rollout of all rows by one layer: Ã_l = Â_l Ã_{l−1}, in O(N³).

    For layers that come one at a time, from the input up. `rolled` is Ã_{l−1}, at first the identity; the
    result has its dtype. Row i of Ã_L is the rollout of the state at position i.
    """
    return mixed(layer.to(rolled.dtype), mask) @ rolled
