"""The 95 % intervals: against slow ways to the same numbers, at their edges, and how often they hold."""

import math

import numpy as np
import pytest
from benchmarks.coverage import POPULATIONS, coverage, percentile, repeated
from scipy import stats

from heedmap.experiments.intervals import (
    FEWEST,
    of_mean,
    of_median,
    of_ratio,
    of_share,
    standard_error,
    why_none,
)

UNIT = (0.0, 1.0)


def zeros_and_ones(count, of):
    return np.array([1.0] * count + [0.0] * (of - count))


def none(interval):
    return all(math.isnan(x) for x in interval)


def unit_mean(values, clusters=None):
    return of_mean(values, clusters, bounds=UNIT)


def self_ratio(values, clusters=None):
    return of_ratio(values * 0.4, 0.5 + values, clusters)


WITH_CLUSTERS = {"share": of_share, "mean": unit_mean, "median": of_median, "ratio": self_ratio}


# --- shares -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 5, 20, 333])
def test_the_interval_of_a_share_is_clopper_and_pearsons(n):
    for count in {0, 1, n // 2, n - 1, n}:
        wanted = stats.binomtest(count, n).proportion_ci(method="exact")
        assert of_share(zeros_and_ones(count, n)) == pytest.approx((wanted.low, wanted.high))


@pytest.mark.parametrize("n", [1, 5, 20, 50, 200])
def test_the_interval_of_a_share_holds_it_as_often_as_it_says_also_near_its_bounds(n):
    """Exactly: the sum of the probabilities of the counts whose interval has p in it."""
    exact = np.array([of_share(zeros_and_ones(count, n)) for count in range(n + 1)])
    wilson = [stats.binomtest(count, n).proportion_ci(method="wilson") for count in range(n + 1)]
    shares = np.append(np.linspace(0.001, 0.999, 999), 0.9995)
    assert held(exact, shares).min() >= 0.95
    if n == 50:
        assert held(np.array([(each.low, each.high) for each in wilson]), [0.997])[0] < 0.87
        assert held(exact, [0.997])[0] > 0.98


def held(ends, shares):
    """How often intervals, one per count, hold each share."""
    count, p = np.arange(len(ends))[:, None], np.asarray(shares)
    inside = (ends[:, :1] <= p) & (p <= ends[:, 1:])
    return (stats.binom.pmf(count, len(ends) - 1, p) * inside).sum(0)


def test_a_share_is_held_too_where_a_fifth_of_the_occurrences_are_of_one_text():
    """Exactly, over the answers to that text, and over the number of right answers to the others."""
    clusters = np.array([0] * 10 + list(range(1, 41)))
    ends = np.array([of_share(zeros_and_ones(count, 50), clusters) for count in range(51)])
    for p in (0.5, 0.9, 0.98, 0.997):
        of_others = stats.binom.pmf(np.arange(41), 40, p)
        weights = p * np.append(np.zeros(10), of_others) + (1 - p) * np.append(
            of_others, np.zeros(10)
        )
        assert weights @ ((ends[:, 0] <= p) & (p <= ends[:, 1])) >= 0.95


def test_five_right_answers_are_not_certain():
    low, high = of_share(np.ones(5))
    assert low == pytest.approx(0.025 ** (1 / 5))
    assert high == 1
    assert none(of_share(np.ones(0)))


# --- medians ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [6, 7, 20, 100, 1000])
def test_the_interval_of_a_median_is_made_of_order_statistics(n):
    values = np.random.default_rng(n).normal(size=n)
    wanted = stats.quantile_test(values, q=0.0).confidence_interval(0.95)
    assert of_median(values) == (wanted.low, wanted.high)
    rank = int((values <= of_median(values)[0]).sum())
    held = 1 - 2 * stats.binom.cdf(rank - 1, n, 0.5)
    assert 0.95 <= held <= 0.985 if n < 20 else 0.95 <= held <= 0.97


# --- means and ratios -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [5, 12, 40])
def test_the_interval_of_a_ratio_is_the_studentised_bootstrap_written_out(n):
    rng = np.random.default_rng(n)
    below = rng.gamma(3, 1, n)
    above = 0.3 * below + rng.normal(0, 0.2, n)

    def error(above, below):
        ratio = sum(above) / sum(below)
        squares = sum((a - ratio * b) ** 2 for a, b in zip(above, below, strict=True))
        return math.sqrt(squares * n / (n - 1)) / sum(below)

    ratio, drawn = above.sum() / below.sum(), []
    for at in np.random.default_rng([3, n]).integers(0, n, (2000, n)):
        spread = error(above[at], below[at])
        shift = above[at].sum() / below[at].sum() - ratio
        drawn.append(shift / spread if spread > 1e-12 else math.copysign(math.inf, shift))
    drawn.sort()
    spread = error(above, below)
    wanted = ratio - drawn[1949] * spread, ratio - drawn[49] * spread
    assert of_ratio(above, below, seed=3) == pytest.approx(wanted)


def test_a_mean_is_a_ratio_to_ones_and_a_share_is_a_mean():
    rng = np.random.default_rng(0)
    values = rng.random(30)
    assert of_mean(values, seed=1) == of_ratio(values, np.ones(30), seed=1)
    for count in (0, 1, 7, 15, 29, 30):
        of = zeros_and_ones(count, 30)
        assert of_mean(of, bounds=UNIT) == pytest.approx(of_share(of))


@pytest.mark.parametrize("value", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("n", [5, 20, 1000])
def test_values_that_are_all_the_same_leave_room_for_others(value, n):
    """As many of n could be at either bound as the interval of none among n allows."""
    most = of_share(np.zeros(n))[1]
    low, high = of_mean(np.full(n, value), bounds=UNIT)
    assert low == pytest.approx(value - most * value)
    assert high == pytest.approx(value + most * (1 - value))
    assert none(of_mean(np.full(n, value)))
    assert why_none(n, "mean").endswith("too many texts have the same value")


def test_texts_that_reach_all_that_is_attainable_have_an_interval_within_bounds():
    attainable = np.random.default_rng(0).random(50)
    low, high = of_ratio(attainable, attainable, bounds=(-1.0, 1.0))
    assert 0.7 < low < 0.95
    assert high == 1
    assert none(of_ratio(attainable, attainable))
    assert none(of_ratio(np.zeros(50), np.zeros(50)))


@pytest.mark.parametrize("seed", range(60))
def test_intervals_hold_their_number_and_stay_within_its_bounds(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 60))
    values = rng.beta(*rng.uniform(0.1, 3, 2), n)
    if seed % 3:
        values = np.round(values * rng.integers(1, 12)) / 11
    clusters = rng.integers(0, n, n) if seed % 2 else None
    for name, interval in (("mean", unit_mean), ("median", of_median)):
        low, high = interval(values, clusters)
        if distinct_texts(clusters, n) < FEWEST[name]:
            assert none((low, high))
        elif not none((low, high)):
            middle = values.mean() if name == "mean" else np.median(values)
            assert 0 <= low <= middle + 1e-9
            assert middle - 1e-9 <= high <= 1


def distinct_texts(clusters, n):
    return n if clusters is None else len(np.unique(clusters))


def test_a_seed_gives_the_same_interval():
    values = np.random.default_rng(0).normal(size=50)
    assert of_mean(values, seed=3) == of_mean(values, seed=3)
    assert of_mean(values, seed=3) != of_mean(values, seed=4)


@pytest.mark.parametrize("statistic", ["mean", "ratio", "median"])
def test_of_too_few_texts_there_is_none_and_it_says_so(statistic):
    fewest = FEWEST[statistic]
    values = np.random.default_rng(0).random(40 * fewest)
    few, enough = (np.arange(len(values)) % count for count in (fewest - 1, fewest))
    assert none(WITH_CLUSTERS[statistic](values, few))
    assert not none(WITH_CLUSTERS[statistic](values[:fewest]))
    assert not none(WITH_CLUSTERS[statistic](values, enough))
    assert "repeat so often" in why_none(FEWEST["median"], "median")
    said = why_none(fewest - 1, statistic)
    assert said == f"no interval of fewer than {fewest} distinct texts (here {fewest - 1})"


# --- repeated texts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WITH_CLUSTERS)
@pytest.mark.parametrize("n", [6, 12, 101])
def test_texts_that_all_occur_as_often_have_the_interval_of_the_texts(name, n):
    rng = np.random.default_rng(n)
    values = (rng.random(n) < 0.6).astype(float) if name == "share" else rng.random(n)
    of_texts = WITH_CLUSTERS[name](values)
    shuffled = rng.permutation(np.repeat(np.arange(n), 7))
    found = WITH_CLUSTERS[name](values[shuffled], shuffled)
    assert found == pytest.approx(of_texts)
    as_texts = WITH_CLUSTERS[name](values[shuffled])
    assert as_texts[1] - as_texts[0] < 0.7 * (of_texts[1] - of_texts[0])


def test_twelve_texts_repeated_fifty_times_are_twelve_texts():
    values = np.repeat(np.random.default_rng(0).normal(0.49, 0.26, 12), 50)
    clusters = np.repeat(np.arange(12), 50)
    low, high = of_mean(values, clusters, bounds=(-1.0, 1.0))
    before = percentile(values, np.mean, np.random.default_rng(0))
    assert high - low > 6 * (before[1] - before[0])


def test_a_text_weighs_as_often_as_it_occurs():
    """One text of 30 occurrences and 30 texts: the effective number is 60² / (30² + 30)."""
    clusters = np.array([0] * 30 + list(range(1, 31)))
    values = np.array([1.0] * 30 + [0.0] * 30)
    low, high = of_share(values, clusters)
    n = 3600 / 930
    assert stats.beta.cdf(low, n / 2, n / 2 + 1) == pytest.approx(0.025)
    assert high == pytest.approx(1 - low)


def test_the_standard_error_of_a_mean_counts_texts():
    values = np.random.default_rng(0).normal(size=20)
    error, n = standard_error(values)
    assert error == pytest.approx(stats.sem(values))
    assert n == 20
    again = standard_error(np.repeat(values, 9), np.repeat(np.arange(20), 9))
    assert again == (pytest.approx(error), 20)
    assert math.isnan(standard_error(np.ones(9), np.zeros(9, dtype=int))[0])


# --- coverage ---------------------------------------------------------------------------------------------

REPEATS = 500
SOME = (
    "share .98",
    "mean, AUC, 75 % at 1",
    "median, normal",
)  # one of each method
SLACK = 2.6 * math.sqrt(0.05 * 0.95 / REPEATS)  # of the simulation, at 1 %


@pytest.mark.slow
@pytest.mark.parametrize(
    "population",
    [
        pytest.param(one, id=one.name, marks=[pytest.mark.exhaustive] * (one.name not in SOME))
        for one in POPULATIONS
    ],
)
def test_intervals_hold_their_number_in_93_to_97_of_100_samples_or_by_clopper_and_pearson_in_95_or_more(
    population,
):
    exact = population.name.startswith("share") or population.name.endswith("at 1")
    least, most = (0.95, 1.0) if exact else (0.93, 0.97)
    for n, repeats in ((20, REPEATS), (100, REPEATS), (1000, REPEATS // 5)):
        slack = SLACK * math.sqrt(REPEATS / repeats)
        _, found = coverage(population, n, repeats)
        assert least - slack <= found <= most + slack, (population.name, n)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["share .5", "mean, tau of ten words", "ratio of sums", "median, normal"]
)
def test_repeated_texts_do_not_make_intervals_shorter(name):
    (population,) = (one for one in POPULATIONS if one.name == name)
    before, found = coverage(repeated(population, 5), 20, REPEATS)
    assert 0.93 - SLACK <= found <= 0.97 + SLACK
    assert before < 0.75


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "most"),
    [("share .98", 0.4), ("mean, AUC, 75 % at 1", 0.92), ("mean, freedom (beta 4, .5)", 0.93)],
)
def test_the_percentile_bootstrap_held_them_less_often(name, most):
    (population,) = (one for one in POPULATIONS if one.name == name)
    assert coverage(population, 20, REPEATS)[0] < most


# --- a smaller tail, where several intervals must hold together ---------------------------------------------


@pytest.mark.parametrize("name", WITH_CLUSTERS)
def test_the_smaller_the_tail_the_wider_the_interval(name):
    values = np.random.default_rng(0).random(60)
    values = (values < 0.3) * 1.0 if name == "share" else values
    bounds = {"bounds": UNIT} if name == "mean" else {}
    function = {"share": of_share, "mean": of_mean, "median": of_median, "ratio": of_mean}[name]
    low, high = function(values, **bounds)
    assert function(values, **bounds, tail=0.025) == (low, high)
    for tail in (0.01, 0.001, 1e-5):
        lower, higher = function(values, **bounds, tail=tail)
        assert lower < low < high < higher
        low, high = lower, higher


def test_a_share_with_a_smaller_tail_is_clopper_and_pearsons_at_that_level():
    wanted = stats.binomtest(7, 30).proportion_ci(confidence_level=0.998, method="exact")
    assert of_share(zeros_and_ones(7, 30), tail=0.001) == pytest.approx((wanted.low, wanted.high))


def test_of_many_values_of_a_normal_distribution_it_is_students_at_that_level():
    values = np.random.default_rng(0).normal(size=400)
    wanted = stats.t.interval(0.998, 399, values.mean(), values.std(ddof=1) / 20)
    assert of_mean(values, tail=0.001) == pytest.approx(wanted, abs=0.02)
