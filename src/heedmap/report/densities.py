"""Histograms, densities and quartiles: the few numbers that figures draw, so that the page stays small."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import gaussian_kde

FEWEST = 50  # texts of a histogram or a density; fewer are drawn as points
POINTS = 80  # where a density is evaluated
EDGES = (0.0, 0.25, 0.5, 0.75, 1.0)  # bins of maximum attention, as in the paper
BIN_NAMES = ("[0, .25)", "[.25, .5)", "[.5, .75)", "[.75, 1]")


def histogram(
    values: NDArray[np.float64],
    low: float,
    high: float,
    bins: int,
    text_rows: NDArray[np.int64],
) -> list[dict[str, Any]]:
    """Return the share of the values in each bin, summing to 1, and the rows of their texts.

    Values that are not finite are left out; the result is empty if there are no others.
    """
    is_defined = np.isfinite(values)
    defined, defined_rows = values[is_defined], text_rows[is_defined]
    if not len(defined):
        return []
    edges = np.linspace(low, high, bins + 1)
    # As numpy's histogram: a bin holds its lower edge, and the last one its upper edge, too.
    bin_of = np.searchsorted(edges, np.clip(defined, low, high), side="right") - 1
    bin_of = np.minimum(bin_of, bins - 1)
    return [
        {
            "start": round(float(edges[b]), 4),
            "end": round(float(edges[b + 1]), 4),
            "share": float((bin_of == b).sum()) / len(defined),
            "rows": defined_rows[bin_of == b].tolist(),
        }
        for b in range(bins)
    ]


def density(
    values: NDArray[np.float64], low: float, high: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return a Gaussian kernel density (Scott's bandwidth) on [low, high].

    None where it cannot be estimated: fewer than FEWEST values, or values that are practically equal.
    """
    defined = values[np.isfinite(values)]
    # Equal values have no bandwidth: gaussian_kde refuses a singular covariance.
    if len(defined) < FEWEST or np.ptp(defined) < 1e-6:
        return None
    grid = np.linspace(low, high, POINTS)
    return grid, np.asarray(gaussian_kde(defined)(grid))


@dataclass(frozen=True)
class Violin:
    """The values of one class in one bin of maximum attention."""

    bin: int
    series: int
    n: int
    quartiles: tuple[float, float, float]
    values: NDArray[np.float64]
    text_rows: NDArray[np.int64]
    shape: tuple[NDArray[np.float64], NDArray[np.float64]] | None


def violins(
    values: NDArray[np.float64],
    max_attention: NDArray[np.float64],
    series: NDArray[np.int64],
    count: int,
) -> list[Violin]:
    """Return one violin per class and bin that has instances, cut at its extreme values."""
    bins = np.clip(np.searchsorted(EDGES, max_attention, side="right") - 1, 0, len(EDGES) - 2)
    shapes = []
    for b in range(len(EDGES) - 1):
        for s in range(count):
            text_rows = np.flatnonzero((bins == b) & (series == s) & np.isfinite(values))
            group = values[text_rows]
            if len(group):
                shape = density(group, float(group.min()), float(group.max()))
                inner = tuple(np.quantile(group, (0.25, 0.5, 0.75)).tolist())
                shapes.append(Violin(b, s, len(group), inner, group, text_rows, shape))
    return shapes


def quartiles(columns: Sequence[NDArray[np.float64]]) -> list[tuple[float, float]]:
    """Return the lower and upper quartile of each column."""
    return [(float(np.quantile(c, 0.25)), float(np.quantile(c, 0.75))) for c in columns]
