"""Differences between rows, question by question, with intervals that hold for all of them together.

Where two rows have the same texts, the difference is computed per text, and its interval is over texts: what
makes a text hard for both cancels out. A text's number is the mean over those of a row's seeds that have it. Of
a ratio of sums R, numerators and denominators are averaged, and the text's number is the linearised
R + (numerator − R · denominator) / mean denominator (Cochran 1977, 6.3), whose mean is R. Of medians the
difference is the median of the texts' differences. Otherwise the interval of a difference is made of those of
both rows (MOVER, Zou & Donner 2008); runs of one row on different texts count as independent.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from heedmap.comparisons.same_texts import TextIds
from heedmap.experiments import intervals
from heedmap.experiments.intervals import FEWEST, TAIL, Interval
from heedmap.experiments.results import TextNumbers
from heedmap.experiments.seed_intervals import level_of

ALL_PAIRS = 6  # rows; of more, each is compared with the first alone
LEAST_COMMON = 0.5  # of the texts of the smaller row, from where on a comparison is paired

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class RunNumbers:
    """A run's numbers of one question, and which texts they are of."""

    numbers: TextNumbers
    texts: TextIds

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """Which texts have a number."""
        values, denominators = self.numbers.values, self.numbers.denominators
        is_finite = np.isfinite(values)
        return is_finite if denominators is None else is_finite & np.isfinite(denominators)

    @property
    def value(self) -> float:
        """The statistic of all texts that have a number; NaN without any."""
        values = self.numbers.values[self.is_known]
        if not len(values):
            return math.nan
        if self.numbers.denominators is not None:
            whole = self.numbers.denominators[self.is_known].sum()
            return float(values.sum() / whole) if whole > 0 else math.nan
        return float(np.median(values) if self.numbers.statistic == "median" else values.mean())

    def interval(self, tail: float) -> Interval:
        """The interval of `value`."""
        is_known = self.is_known
        values, clusters = self.numbers.values[is_known], self.texts.texts[is_known]
        if self.numbers.denominators is not None:
            denominators = self.numbers.denominators[is_known]
            return intervals.of_ratio(values, denominators, clusters, tail=tail)
        if self.numbers.statistic == "median":
            return intervals.of_median(values, clusters, tail)
        return intervals.of_mean(values, clusters, bounds=self.numbers.bounds, tail=tail)


@dataclass(frozen=True)
class Difference:
    """How much higher the first row's number is than the second's.

    Attributes:
        key: the question's.
        first: index of the first row.
        second: index of the second row.
        value: the difference, of the texts that both have where it is `paired`; NaN if undefined.
        low: lower end of its 95 % interval by itself.
        high: upper end.
        strict_low: lower end of the interval that holds together with those of all other comparisons.
        strict_high: upper end.
        n: texts that both rows have, or of the smaller row where it is not paired.
        paired: whether the interval is over the texts that both rows have.
        seeds_apart: whether all seeds of one row are above all of the other; None for one seed in each.
        no_interval: why there is none.
    """

    key: str
    first: int
    second: int
    value: float
    low: float
    high: float
    strict_low: float
    strict_high: float
    n: int
    paired: bool
    seeds_apart: bool | None
    no_interval: str = ""

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval that is corrected for all comparisons excludes 0."""
        return self.strict_low > 0 or self.strict_high < 0

    @property
    def certain(self) -> bool:
        """Whether the sign is certain, corrected for all comparisons, and the same for every two seeds."""
        return self.excludes_zero and self.seeds_apart is not False

    @property
    def word(self) -> str:
        """Whether the difference is certain, in words, with the reason where there is no interval."""
        if self.certain:
            return "certain"
        if self.no_interval:
            return self.no_interval
        return "not certain: the seeds overlap" if self.excludes_zero else "not certain"


def compared_pairs(count: int) -> list[tuple[int, int]]:
    """Return the pairs of rows that are compared: all, or of many rows each with the first."""
    if count <= ALL_PAIRS:
        return list(combinations(range(count), 2))
    return [(0, row) for row in range(1, count)]


def differences(
    numbers: dict[str, list[list[RunNumbers] | None]], pairs: Sequence[tuple[int, int]]
) -> list[Difference]:
    """Compare rows in every question that both have.

    `numbers`: by question, for each row those of its runs; None for a row that lacks the question.
    """
    comparisons = [
        (key, first, second)
        for key, rows in numbers.items()
        for first, second in pairs
        if rows[first] and rows[second]
    ]
    tail = (1 - level_of(len(comparisons))) / 2
    compared = []
    for key, first, second in comparisons:
        sides = numbers[key][first], numbers[key][second]
        assert sides[0] is not None
        assert sides[1] is not None
        compared.append(_difference(key, first, second, sides[0], sides[1], tail))
    return compared


def _difference(
    key: str,
    first: int,
    second: int,
    upper: Sequence[RunNumbers],
    lower: Sequence[RunNumbers],
    tail: float,
) -> Difference:
    upper_ids, lower_ids = _known_ids(upper), _known_ids(lower)
    common = np.intersect1d(upper_ids, lower_ids)
    smaller = min(len(upper_ids), len(lower_ids))
    statistic = upper[0].numbers.statistic
    paired = len(common) >= max(FEWEST[statistic], LEAST_COMMON * smaller)
    if paired:
        value, (low, high), strict, distinct = _paired(upper, lower, common, tail)
    else:
        value, (low, high), strict = _unpaired(upper, lower, tail)
        distinct = min(len(np.unique(run.texts.texts[run.is_known])) for run in (*upper, *lower))
    if not math.isfinite(low):
        strict = intervals.NONE
    return Difference(
        key, first, second, value, low, high, *strict,
        n=len(common) if paired else smaller,
        paired=paired,
        seeds_apart=_seeds_apart(upper, lower),
        no_interval="" if math.isfinite(low) else intervals.why_none(distinct, statistic),
    )  # fmt: skip


def _known_ids(runs: Sequence[RunNumbers]) -> NDArray[np.int64]:
    """Return the texts of which one of the runs has the number."""
    return np.unique(np.concatenate([run.texts.ids[run.is_known] for run in runs]))


def _seeds_apart(upper: Sequence[RunNumbers], lower: Sequence[RunNumbers]) -> bool | None:
    if len(upper) == len(lower) == 1:
        return None
    values = [[run.value for run in side] for side in (upper, lower)]
    return min(values[0]) > max(values[1]) or max(values[0]) < min(values[1])


def _paired(
    upper: Sequence[RunNumbers], lower: Sequence[RunNumbers], common: NDArray[np.int64], tail: float
) -> tuple[float, Interval, Interval, int]:
    """Return the difference on the common texts, its two intervals, and the number of distinct texts."""
    change = _mean_number(upper, common) - _mean_number(lower, common)
    clusters = _clusters(upper, common)
    distinct = len(np.unique(clusters))
    numbers = upper[0].numbers
    if numbers.statistic == "median":
        ends = [intervals.of_median(change, clusters, t) for t in (TAIL, tail)]
        return float(np.median(change)), ends[0], ends[1], distinct
    bounds = (
        numbers.bounds[0] - lower[0].numbers.bounds[1],
        numbers.bounds[1] - lower[0].numbers.bounds[0],
    )
    ends = [intervals.of_mean(change, clusters, bounds=bounds, tail=t) for t in (TAIL, tail)]
    return float(change.mean()), ends[0], ends[1], distinct


def _clusters(runs: Sequence[RunNumbers], common: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers of the distinct texts among `common`."""
    text_of = {
        i: text for run in runs for i, text in zip(*map(np.ndarray.tolist, run.texts), strict=True)
    }
    return np.array([text_of[i] for i in common.tolist()], dtype=np.int64)


def _mean_number(runs: Sequence[RunNumbers], common: NDArray[np.int64]) -> Numbers:
    """Return each common text's number, the mean over the runs that have it."""
    values = _averaged(runs, common, [run.numbers.values for run in runs])
    of_ratio = [run.numbers.denominators for run in runs if run.numbers.denominators is not None]
    if not of_ratio:
        return values
    denominators = _averaged(runs, common, of_ratio)
    whole = denominators.sum()
    if not whole > 0:
        return np.full(len(common), math.nan)
    ratio = values.sum() / whole
    return np.asarray(ratio + (values - ratio * denominators) / (whole / len(common)))


def _averaged(
    runs: Sequence[RunNumbers], common: NDArray[np.int64], columns: Sequence[Numbers]
) -> Numbers:
    """Return the mean of the runs' columns for each common text."""
    total, count = np.zeros(len(common)), np.zeros(len(common))
    for run, column in zip(runs, columns, strict=True):
        rows = np.flatnonzero(run.is_known & np.isin(run.texts.ids, common))
        places = np.searchsorted(common, run.texts.ids[rows])
        total[places] += column[rows]
        count[places] += 1
    return np.asarray(total / count)


def _unpaired(
    upper: Sequence[RunNumbers], lower: Sequence[RunNumbers], tail: float
) -> tuple[float, Interval, Interval]:
    """Return the difference of the rows' means over seeds, and its two intervals."""
    means = [float(np.mean([run.value for run in side])) for side in (upper, lower)]
    value = means[0] - means[1]
    ends = []
    for t in (TAIL, tail):
        below_first, above_first = _arms(upper, t)
        below_second, above_second = _arms(lower, t)
        ends.append(
            (
                value - math.hypot(below_first, above_second),
                value + math.hypot(above_first, below_second),
            )
        )
    return value, ends[0], ends[1]


def _arms(runs: Sequence[RunNumbers], tail: float) -> tuple[float, float]:
    """Return how far the interval of the mean over independent runs reaches below and above it."""
    ends = [(run.value, *run.interval(tail)) for run in runs]
    return (
        math.hypot(*(value - low for value, low, _ in ends)) / len(runs),
        math.hypot(*(high - value for value, _, high in ends)) / len(runs),
    )
