"""Intervals over seeds."""

import math

import numpy as np
import pytest
from scipy import stats

from heedmap.experiments.seed_intervals import mean_interval, next_interval


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


def test_seeds_that_agree_have_an_interval_of_one_point():
    assert mean_interval([0.5, 0.5]) == next_interval([0.5, 0.5]) == (0.5, 0.5)


@pytest.mark.parametrize("seeds", [2, 3, 20])
def test_one_seed_more_is_in_its_interval_as_often_as_it_says(seeds):
    rng = np.random.default_rng(0)
    drawn = rng.normal(0.3, 0.1, size=(4000, seeds + 1))
    within = [low <= x <= high for *old, x in drawn for low, high in [next_interval(old)]]
    assert np.mean(within) == pytest.approx(0.95, abs=0.015)  # four standard errors
