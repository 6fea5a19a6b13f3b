"""95 % intervals over texts, for one trained model. They do not hold the spread between training seeds.

Where one of several numbers may be called certain, `tail` is smaller (`seed_intervals.level_of`).

A text that occurs several times is one observation: its occurrences are a cluster and stay together.
`clusters` numbers the text of each value (`heedmap.experiments.repeats`); None: all texts are distinct.
Each function returns (low, high), both NaN where there is no interval; `why_none` says why. Their coverage
is in docs/verdict.md, from `python -m benchmarks.coverage`.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Values = NDArray[np.float64]
Clusters = NDArray[np.int64] | None
Interval = tuple[float, float]

TAIL = 0.025  # on either side
RESAMPLES = 2000
BLOCK = 1 << 19  # values drawn at a time
GROUPS = 10_000  # of texts, where there are more of them
UNBOUNDED = (-math.inf, math.inf)
NONE = (math.nan, math.nan)
# Distinct texts. Of fewer, resamples repeat one text too often; of five, no order statistics hold 95 %.
FEWEST = {"mean": 5, "ratio": 5, "median": 6, "share": 1}
# If more values than this are equal, their resamples vary too little: the share of the others decides.
MOST_EQUAL = 0.3
UNSEEN = 0.05  # texts at the bound, assumed besides those that differ from the commonest value
ROUNDING = 1e-9  # relative; less is equal


def of_share(values: Values, clusters: Clusters = None, tail: float = TAIL) -> Interval:
    """Return Clopper and Pearson's interval for the mean of values 0 and 1.

    It holds the share at least 95 times of 100, whatever the share and n. Wilson's holds it so often on average
    only: a share of .997 of 50 texts 86 times, since 49 of them already exclude it.

    With repeated texts, n is Kish's effective number (Σ m)² / Σ m² of texts with m occurrences: a model
    answers all occurrences alike. Sources: Clopper & Pearson 1934; Kish 1965; both together: Korn &
    Graubard 1998 (Survey Methodology 24).
    """
    if not len(values):
        return NONE
    sizes = _sums(np.ones(len(values)), clusters)
    return binomial(float(values.mean()), _effective(sizes), tail)


def of_mean(
    values: Values,
    clusters: Clusters = None,
    seed: int = 0,
    bounds: Interval = UNBOUNDED,
    tail: float = TAIL,
) -> Interval:
    """Return the interval of the mean of values that lie within `bounds`.

    The mean of texts with repetitions is a ratio of sums, of values and of occurrences: see `of_ratio`.
    """
    return of_ratio(values, np.ones(len(values)), clusters, seed, bounds, tail)


def of_ratio(
    numerator: Values,
    denominator: Values,
    clusters: Clusters = None,
    seed: int = 0,
    bounds: Interval = UNBOUNDED,
    tail: float = TAIL,
) -> Interval:
    """Return the interval of Σ numerator / Σ denominator, paired per text; denominators are not negative.

    Studentised bootstrap over texts (Efron & Tibshirani 1993, chapter 12) with the linearised standard error
    of a ratio (Cochran 1977, 6.3). More than GROUPS texts are put into so many groups at random, which are
    resampled: their sums vary as those of the texts do, and time and memory stay the same. `bounds`: what the
    ratio of a single text cannot leave. If more than MOST_EQUAL of the texts have the same ratio, as an AUC of
    1, and there are bounds, the interval is `_around_the_commonest`. Without bounds there is none if nearly all
    have the same.
    """
    above, below = _sums(numerator, clusters), _sums(denominator, clusters)
    if len(above) < FEWEST["ratio"] or not below.sum() > 0:
        return NONE
    interval = _around_the_commonest(above, below, bounds, tail)
    rng = np.random.default_rng([seed, len(above)])
    if interval is None and len(above) > GROUPS:
        group = rng.permutation(len(above)) % GROUPS
        above, below = _sums(above, group), _sums(below, group)
    low, high = interval or _studentised(above, below, rng, tail)
    low, high = max(low, bounds[0]), min(high, bounds[1])
    return (low, high) if math.isfinite(low) and math.isfinite(high) else NONE


def of_median(values: Values, clusters: Clusters = None, tail: float = TAIL) -> Interval:
    """Return two order statistics around the median: exact by the binomial, whatever the distribution.

    With repeated texts, the same shares of the weighted distribution, with Kish's effective n (Woodruff 1952).
    """
    sizes = _sums(np.ones(len(values)), clusters)
    if len(sizes) < FEWEST["median"]:
        return NONE
    count = math.floor(_effective(sizes) * (1 + ROUNDING))
    rank = int(stats.binom.ppf(tail, count, 0.5))  # the rank-th smallest and the rank-th largest
    if rank < 1:
        return NONE
    ordered = np.sort(values)
    beyond = max(1, math.ceil(rank / count * len(values) * (1 - ROUNDING)))
    return float(ordered[beyond - 1]), float(ordered[-beyond])


def why_none(distinct: int, statistic: str) -> str:
    """Say why there is no interval for a `statistic` (a key of FEWEST) of some number of distinct texts."""
    if distinct < FEWEST[statistic]:
        return f"no interval of fewer than {FEWEST[statistic]} distinct texts (here {distinct})"
    if statistic == "median":
        return "no interval: a few of the texts repeat so often that the others hardly count"
    return "no interval: too many texts have the same value"


def standard_error(values: Values, clusters: Clusters = None) -> tuple[float, int]:
    """Return the standard error of the mean, and the number of distinct texts; NaN for less than two."""
    sizes = _sums(np.ones(len(values)), clusters)
    if len(sizes) < 2:
        return math.nan, len(sizes)
    return float(_error(_sums(values - values.mean(), clusters), sizes)), len(sizes)


def _sums(values: Values, clusters: Clusters) -> Values:
    """Return the sum over each text's occurrences."""
    if clusters is None:
        return np.asarray(values, dtype=np.float64)
    numbers = np.unique(clusters, return_inverse=True)[1]
    return np.bincount(numbers, values).astype(np.float64)


def _effective(weights: Values) -> float:
    return float(weights.sum() ** 2 / (weights**2).sum())


def binomial(share: float, n: float, tail: float) -> Interval:
    """Return Clopper and Pearson's interval for a share of n, where n need not be a whole number."""
    count = min(max(share, 0.0), 1.0) * n
    low = float(stats.beta.ppf(tail, count, n - count + 1)) if share > ROUNDING else 0.0
    high = float(stats.beta.isf(tail, count + 1, n - count)) if share < 1 - ROUNDING else 1.0
    return low, high


def _studentised(above: Values, below: Values, rng: np.random.Generator, tail: float) -> Interval:
    """Return the bootstrap-t interval: the quantiles of (θ* − θ) / s* stand for those of (θ − θ₀) / s.

    The resamples are too few for a tail below TAIL: there the quantiles at TAIL are stretched as Student's are,
    by t(tail) / t(TAIL), so that a stricter interval always contains the 95 % one.
    """
    n, ratio = len(above), above.sum() / below.sum()
    residuals = above - ratio * below
    error = _error(residuals, below)
    if not error > ROUNDING * (abs(ratio) + np.abs(above).max() / below.sum()):
        return NONE
    statistics = []
    rows = max(1, BLOCK // n)
    for start in range(0, RESAMPLES, rows):
        resampled = rng.integers(0, n, (min(rows, RESAMPLES - start), n))
        part, weights = residuals[resampled], below[resampled]
        with np.errstate(divide="ignore", invalid="ignore"):
            shift = part.sum(1) / weights.sum(1)
            spread = _error(part - shift[:, None] * weights, weights)
            spread = np.where(spread > ROUNDING * error, spread, 0.0)
            statistics.append(shift / spread)
    # A resample without spread is infinitely far, or where it also has the same ratio, not at all.
    t = np.nan_to_num(np.concatenate(statistics), nan=0.0, posinf=math.inf, neginf=-math.inf)
    lowest, highest = np.quantile(t, [TAIL, 1 - TAIL], method="inverted_cdf")
    stretch = 1.0 if tail == TAIL else float(stats.t.isf(tail, n - 1) / stats.t.isf(TAIL, n - 1))
    return float(ratio - stretch * highest * error), float(ratio - stretch * lowest * error)


def _error(residuals: Values, below: Values) -> Values:
    """Return the linearised standard error of a ratio, over the last axis."""
    n = residuals.shape[-1]
    return np.asarray(np.sqrt((residuals**2).sum(-1) * n / (n - 1)) / below.sum(-1))


def _around_the_commonest(
    above: Values, below: Values, bounds: Interval, tail: float
) -> Interval | None:
    """Return the interval for ratios of which many are equal; None where they are not.

    The mean is the commonest value, plus the mean excess over it, minus the mean deficit. Either is a mean μ
    of values D ≥ 0, many of them 0. Its variance, where μ varies with the share of zeros, is μ(M − μ) / n with
    M = E D² / E D: that of M times a share of μ / M. So its interval is M times that of a share, and that of
    a share for D of 0 and 1. As the few D seen may not hold the largest, UNSEEN texts at the bound count in M.
    Both together make the interval of the difference (MOVER, Zou & Donner 2008).
    """
    positive = below > 0
    if (above[~positive] != 0).any() or not np.isfinite(bounds).all():
        return None
    weights = below[positive] * _effective(below) / below.sum()
    rounded = np.round(above[positive] / below[positive], 12)
    ratios, number = np.unique(rounded, return_inverse=True)
    shares = _sums(weights, number)
    if shares.max() <= MOST_EQUAL * weights.sum():
        return None
    ratios = np.clip(ratios, *bounds)
    commonest = float(ratios[shares.argmax()])
    excess = _of_mostly_zeros(
        np.maximum(ratios - commonest, 0), shares, bounds[1] - commonest, tail
    )
    deficit = _of_mostly_zeros(
        np.maximum(commonest - ratios, 0), shares, commonest - bounds[0], tail
    )
    value = commonest + excess[0] - deficit[0]
    return (
        value - math.hypot(excess[0] - excess[1], deficit[2] - deficit[0]),
        value + math.hypot(excess[2] - excess[0], deficit[0] - deficit[1]),
    )


def _of_mostly_zeros(
    values: Values, weights: Values, bound: float, tail: float
) -> tuple[float, float, float]:
    """Return the mean of values from 0 to `bound`, and its interval."""
    if bound <= 0:
        return 0.0, 0.0, 0.0
    n, total, squares = (float(weights @ values**power) for power in range(3))
    scale = (squares + UNSEEN * bound**2) / (total + UNSEEN * bound)
    low, high = binomial(total / n / scale, n, tail)
    return total / n, low * scale, high * scale
