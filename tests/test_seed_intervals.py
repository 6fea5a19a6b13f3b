"""Intervals over seeds."""

import math

import numpy as np
import pytest
from scipy import stats

from heedmap.experiments.seed_intervals import (
    bounded_interval,
    interval_over_texts,
    mean_interval,
    next_interval,
)
from heedmap.experiments.seeds import seed_mean
from heedmap.papers.kit.claims import UNDECIDED, above, verdict


@pytest.mark.parametrize("interval", [mean_interval, next_interval])
@pytest.mark.parametrize("values", [[], [0.3]])
def test_one_seed_has_no_interval(interval, values):
    low, high = interval(values)
    assert math.isnan(low)
    assert math.isnan(high)


@pytest.mark.parametrize("seeds", [2, 3, 7])
def test_the_interval_of_the_mean_is_students(seeds):
    values = np.random.default_rng(seeds).normal(size=seeds).tolist()
    expected = stats.t.interval(0.9, seeds - 1, np.mean(values), stats.sem(values))
    assert mean_interval(values, 0.9) == pytest.approx(expected)


@pytest.mark.parametrize("interval", [mean_interval, bounded_interval, next_interval])
@pytest.mark.parametrize("values", [[0.5, 0.5], [0.1, 0.1, 0.1], [0.0] * 20])
def test_equal_seeds_have_no_interval_for_their_spread_is_not_seen(interval, values):
    assert all(map(math.isnan, interval(values)))


def test_texts_that_are_all_alike_have_an_interval_of_one_point():
    assert interval_over_texts([0.5] * 20) == (0.5, 0.5)
    assert interval_over_texts([0.1, 0.4, 0.3]) == mean_interval([0.1, 0.4, 0.3])


def test_equal_seeds_let_no_claim_survive_or_fall():
    assert verdict([above(mean_interval([0.5, 0.5, 0.5]))]) == UNDECIDED
    assert verdict([above(mean_interval([-0.5, -0.5, -0.5]))]) == UNDECIDED
    assert seed_mean([0.5, 0.5, 0.5]) == "0.500"


@pytest.mark.parametrize("seeds", [2, 3, 20])
def test_one_seed_more_is_in_its_interval_as_often_as_it_says(seeds):
    rng = np.random.default_rng(0)
    drawn = rng.normal(0.3, 0.1, size=(4000, seeds + 1))
    within = [low <= x <= high for *old, x in drawn for low, high in [next_interval(old)]]
    assert np.mean(within) == pytest.approx(0.95, abs=0.015)  # four standard errors
