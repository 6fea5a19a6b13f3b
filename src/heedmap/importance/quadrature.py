"""Integrate over a path in steps that can be halved: Clenshaw-Curtis quadrature between 0 and 1."""

import numpy as np
from numpy.typing import NDArray


def clenshaw_curtis(steps: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the steps + 1 points from 0 to 1 and their weights, which integrate polynomials exactly.

    The points are (1 − cos kπ/n) / 2, so that those of n steps are every second one of 2n: halving the steps
    adds only n points. The degree that is exact is n, where Gauss-Legendre's n points reach 2n − 1, but on
    most functions both converge alike (Trefethen 2008, "Is Gauss quadrature better than Clenshaw-Curtis?").

    >>> points, weights = clenshaw_curtis(2)
    >>> points.round(6).tolist(), (6 * weights).round(6).tolist()
    ([0.0, 0.5, 1.0], [1.0, 4.0, 1.0])
    """
    angles = np.arange(steps + 1) * np.pi / steps
    weights = np.ones(steps + 1)
    for j in range(1, steps // 2 + 1):
        factor = 1.0 if 2 * j == steps else 2.0
        weights -= factor * np.cos(2 * j * angles) / (4 * j * j - 1)
    weights /= steps
    weights[[0, -1]] /= 2
    return (1 - np.cos(angles)) / 2, weights
