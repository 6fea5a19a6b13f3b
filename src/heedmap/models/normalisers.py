"""Turn scores into weights: softmax, sparsemax, 1.5-entmax.

The sparse ones come from the `entmax` library, with its limits guarded: fully masked rows raise, bfloat16
sums are off by up to 6 %, and only the last dimension is safe.
"""

from collections.abc import Callable

import torch
from entmax import entmax15, sparsemax
from jaxtyping import Bool, Float
from torch import Tensor

_FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    "softmax": torch.softmax,
    "sparsemax": sparsemax,
    "entmax15": entmax15,
}


def normalise(
    scores: Float[Tensor, "*batch T"], mask: Bool[Tensor, "*batch T"], name: str
) -> Float[Tensor, "*batch T"]:
    """Return weights that sum to 1 over the unmasked positions; exactly 0 elsewhere.

    A fully masked row gets weights of 0. Computed in float32 at least.
    """
    # Half precision would not sum to 1: see the head of this file.
    wide = scores if scores.dtype == torch.float64 else scores.float()
    # The smallest finite number, not -inf: a row of only -inf is NaN in softmax and an error in entmax.
    lowest = torch.finfo(wide.dtype).min
    if wide.numel() == 0:
        return wide
    # A row that is masked everywhere is uniform here, and zeros after the mask.
    weights = _FUNCTIONS[name](wide.masked_fill(~mask, lowest), dim=-1)
    return weights.masked_fill(~mask, 0.0)
