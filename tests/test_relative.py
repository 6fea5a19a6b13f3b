"""A finding's share of the attainable, and the interval that its level is read from."""

import numpy as np
import pyarrow as pa
import pytest

from heedmap.experiments.intervals import of_mean
from heedmap.experiments.results import Results
from heedmap.settings import AuditSettings


def finding(values, chance, ceiling, **options):
    values = np.asarray(values, dtype=float)
    instances = {"predicted": [0] * len(values), "n_tokens": [9] * len(values)}
    results = Results({"instances": pa.table(instances)}, AuditSettings(), ["a"])
    return results.finding(
        "key", "fraction", values, {},
        question="?", measure="the share", meaning="0 to 1", chance=chance, ceiling=ceiling, **options,
    )  # fmt: skip


@pytest.mark.parametrize("lower", [False, True])
def test_a_map_that_is_worse_than_chance_has_an_interval_below_zero(lower):
    """It was cut at 0: the interval of a mean of −.68 read [0 %, −62 %]."""
    values = np.random.default_rng(0).uniform(0.0, 0.3, 40)
    values = 1 - values if lower else values
    found = finding(values, 0.5, 0.0 if lower else 1.0, lower=lower)
    shares = np.maximum((values - 0.5) / (-0.5 if lower else 0.5), -1)
    low, high = of_mean(shares, bounds=(-1.0, 1.0))
    relative = found.relative
    assert (relative.chance, relative.ceiling, relative.n) == (0.5, 0.0 if lower else 1.0, 40)
    expected = (shares.mean(), low, high)
    assert (relative.share, relative.low, relative.high) == pytest.approx(expected)
    assert low < shares.mean() < high < -0.5
    assert found.reading == "−68% of the attainable [−74%, −62%]"
