"""From many numbers to a few: what the figures draw, so that the page stays small."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import gaussian_kde

FEWEST = 10  # instances that a density is drawn of; fewer are drawn as points
POINTS = 80  # at which a density is drawn
EDGES = (0.0, 0.25, 0.5, 0.75, 1.0)  # of maximum attention, as in the paper
BIN_NAMES = ("[0, .25)", "[.25, .5)", "[.5, .75)", "[.75, 1]")


def histogram(
    values: NDArray[np.float64], low: float, high: float, bins: int
) -> list[dict[str, float]]:
    """Share of the values in each bin, normalised to 1; empty where there are none."""
    kept = values[np.isfinite(values)]
    if not len(kept):
        return []
    edges = np.linspace(low, high, bins + 1)
    found, _ = np.histogram(np.clip(kept, low, high), edges)
    return [
        {"start": round(float(a), 4), "end": round(float(b), 4), "share": float(n) / len(kept)}
        for a, b, n in zip(edges[:-1], edges[1:], found, strict=True)
    ]


def density(
    values: NDArray[np.float64], low: float, high: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Gaussian kernel density (Scott's bandwidth) on [low, high].

    None where it cannot be estimated: fewer than FEWEST values, or values that are practically one.
    """
    kept = values[np.isfinite(values)]
    if len(kept) < FEWEST or np.ptp(kept) < 1e-6:
        return None
    grid = np.linspace(low, high, POINTS)
    return grid, np.asarray(gaussian_kde(kept)(grid))


@dataclass(frozen=True)
class Violin:
    """The values of one class in one bin of maximum attention."""

    bin: int
    series: int
    n: int
    quartiles: tuple[float, float, float]
    values: NDArray[np.float64]
    shape: tuple[NDArray[np.float64], NDArray[np.float64]] | None


def violins(
    values: NDArray[np.float64],
    max_attention: NDArray[np.float64],
    series: NDArray[np.int64],
    count: int,
) -> list[Violin]:
    """One violin for each class and bin that has instances, cut at its extreme values."""
    bins = np.clip(np.searchsorted(EDGES, max_attention, side="right") - 1, 0, len(EDGES) - 2)
    found = []
    for b in range(len(EDGES) - 1):
        for s in range(count):
            kept = values[(bins == b) & (series == s) & np.isfinite(values)]
            if len(kept):
                shape = density(kept, float(kept.min()), float(kept.max()))
                inner = tuple(np.quantile(kept, (0.25, 0.5, 0.75)).tolist())
                found.append(Violin(b, s, len(kept), inner, kept, shape))
    return found


def quartiles(columns: Sequence[NDArray[np.float64]]) -> list[tuple[float, float]]:
    """The middle half of each column."""
    return [(float(np.quantile(c, 0.25)), float(np.quantile(c, 0.75))) for c in columns]
