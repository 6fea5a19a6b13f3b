"""Read a number as two classes, so that what is searched for at the same prediction of classes is found for it.

The two classes have the logits (0, (z − ẑ) / s): at the model's own number ẑ the odds are even. Their
total variation distance from there is ½ tanh(|z − ẑ| / 2s), which grows with |z − ẑ|, and s is such that it
is `WITHIN` where the number is as far off as the tolerance allows. So TVD ≤ WITHIN exactly where
|z − ẑ| ≤ tolerance.
"""

import math

from jaxtyping import Float
from torch import Tensor, cat, zeros_like

WITHIN = 0.01


def as_two_classes(
    outputs: Float[Tensor, "*S B 1"], original: Float[Tensor, "B 1"], tolerance: float
) -> Float[Tensor, "*S B 2"]:
    """Return the logits of the two classes, which are differentiable in the outputs.

    Args:
        outputs: numbers, such as those under other weights.
        original: the model's own numbers.
        tolerance: how far a number may be off to count as the same, above 0 and in its unit.
    """
    logits = (outputs - original) / _size(tolerance)
    return cat([zeros_like(logits), logits], dim=-1)


def change_of_number(tvd: Float[Tensor, "*B"], tolerance: float) -> Float[Tensor, "*B"]:
    """Return how far numbers are off, in their unit, from the total variation distance of the two classes."""
    change: Tensor = 2 * _size(tolerance) * (2 * tvd).atanh()
    return change


def _size(tolerance: float) -> float:
    return tolerance / (2 * math.atanh(2 * WITHIN))
