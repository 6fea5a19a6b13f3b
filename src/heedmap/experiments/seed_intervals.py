"""Student's intervals over seeds: of the mean, and for one seed more.

Both treat the seeds' numbers as draws from one normal distribution, and are exact for it at any number of
seeds from two. One seed has no interval: both ends are NaN, and no comparison with NaN is true.
Equal numbers have an interval of width 0. That is right for what no training can change, such as the weight
of uniform attention, and too narrow for a coarse number, such as an accuracy of 1 in each of three seeds.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy import stats

LEVEL = 0.95


def level_of(tries: int) -> float:
    """Return the level of each of several intervals that together hold at 95 % (Bonferroni)."""
    return 1 - (1 - LEVEL) / max(1, tries)


def mean_interval(values: Sequence[float], level: float = LEVEL) -> tuple[float, float]:
    """Return the interval of the mean: x̄ ± t s / √k, t the quantile of k − 1 degrees of freedom."""
    return _around_mean(values, level, 1 / max(len(values), 1))


def bounded_interval(values: Sequence[float], level: float = LEVEL) -> tuple[float, float]:
    """Return the interval of a mean of differences of shares, or of correlations: cut at ±1."""
    low, high = np.clip(mean_interval(values, level), -1, 1)
    return float(low), float(high)


def next_interval(values: Sequence[float], level: float = LEVEL) -> tuple[float, float]:
    """Return where one seed more would be: x̄ ± t s √(1 + 1/k).

    This is the interval to compare somebody else's single run with. That of the mean shrinks to a point as
    seeds are added, and then holds no single run, however well it was reproduced.
    """
    return _around_mean(values, level, 1 + 1 / max(len(values), 1))


def _around_mean(values: Sequence[float], level: float, factor: float) -> tuple[float, float]:
    """Return x̄ ± t s √factor."""
    if len(values) < 2:
        return math.nan, math.nan
    quantile = float(stats.t.ppf((1 + level) / 2, len(values) - 1))
    half = quantile * float(np.std(values, ddof=1)) * math.sqrt(factor)
    mean = float(np.mean(values))
    return mean - half, mean + half
