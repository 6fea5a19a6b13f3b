"""A finding's share of the attainable, and its interval."""

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from made_audits import make_audit

from heedmap.experiments.intervals import of_mean, of_median
from heedmap.experiments.results import Results
from heedmap.report.verdict import _tenth_above, _verdict
from heedmap.report.wording import scale_text
from heedmap.settings.audit import AuditSettings

AUDIT = make_audit()


def finding(values, chance=None, ceiling=None, *, times=1, **options):
    """Of distinct texts, each of which occurs so many `times`."""
    values = np.repeat(np.asarray(values, dtype=float), times)
    tokens = [[str(i // times)] * 9 for i in range(len(values))]
    instances = {"tokens": tokens, "predicted": [0] * len(values), "n_tokens": [9] * len(values)}
    results = Results({"instances": pa.table(instances)}, AuditSettings(), ["a"])
    return results.finding(
        "key",
        "fraction",
        values,
        {},
        question="?",
        topic="the map",
        measure="the share",
        meaning="0 to 1",
        chance=chance,
        ceiling=ceiling,
        **options,
    )


def of_shares(shares):
    """A text counts as equal to another by three digits of its share."""
    return of_mean(np.array([round(share, 3) for share in shares.tolist()]), bounds=(-1.0, 1.0))


@pytest.mark.parametrize("lower", [False, True])
def test_a_map_that_is_worse_than_chance_has_an_interval_below_zero(lower):
    """It was cut at 0: the interval of a mean of −.68 read [0 %, −62 %]."""
    values = np.random.default_rng(0).uniform(0.0, 0.3, 40)
    values = 1 - values if lower else values
    found = finding(values, 0.5, 0.0 if lower else 1.0, lower=lower)
    shares = np.maximum((values - 0.5) / (-0.5 if lower else 0.5), -1)
    low, high = of_shares(shares)
    relative = found.relative
    assert (relative.chance, relative.ceiling, relative.n) == (0.5, 0.0 if lower else 1.0, 40)
    expected = (shares.mean(), low, high)
    assert (relative.share, relative.low, relative.high) == pytest.approx(expected)
    assert low < shares.mean() < high < -0.5
    assert found.reading == "−68% of the attainable [−74%, −62%]"


@pytest.mark.parametrize(("statistic", "interval"), [(np.mean, of_mean), (np.median, of_median)])
def test_texts_that_all_occur_ten_times_have_the_interval_of_the_texts(statistic, interval):
    values = np.random.default_rng(1).uniform(0.2, 0.8, 14)
    found = finding(values, 0.1, 0.9, statistic=statistic, times=10)
    assert (found.low, found.high) == pytest.approx(interval(values))
    assert (found.n, found.distinct, found.relative.n) == (140, 14, 140)
    expected = of_shares((values - 0.1) / 0.8)
    assert (found.relative.low, found.relative.high) == pytest.approx(expected)


def test_on_the_page_a_scale_reaches_below_chance_where_the_map_does():
    below = finding(np.random.default_rng(0).uniform(0.0, 0.3, 40), 0.5, 1.0)
    drawn = _verdict(AUDIT, below, 40)
    assert drawn.low_end == "−80% (0% is chance 0.50)"
    half = drawn.width / 2
    assert 0 < drawn.middle - half < drawn.dot < drawn.middle + half < 100
    above = _verdict(AUDIT, finding(np.full(9, 0.7) + 0.01 * np.arange(9), 0.5, 1.0), 9)
    assert (above.low_end, above.high_end) == ("chance 0.50", "at best 1.00")


def test_what_the_share_is_of_is_said_where_it_does_not_follow_from_the_numbers_beside_it():
    values = 0.5 + 0.001 * np.arange(9)
    assert (
        scale_text(finding(values, 0.1, 0.9)) == "Chance reaches 0.10, these weights at best 0.90."
    )
    assert "a difference of 0.02 counts as the whole way" in scale_text(finding(values, 0.5, 0.51))
    assert "mean over the texts, not the share of these medians" in scale_text(
        finding(values, 0.1, 0.9, statistic=np.median)
    )


@pytest.mark.parametrize(
    ("value", "ends", "scale", "goes_on"),
    [
        (0.54, (-0.57, 9.29), ("0", "2"), "before beyond"),
        (0.54, (0.1, 1.24), ("0", "1.3"), ""),
        (2.41, (0.1, 7.2), ("0", "2.5"), "beyond"),
    ],
)
def test_a_long_interval_goes_on_beyond_its_scale(value, ends, scale, goes_on):
    """A scale as long as the interval of a few texts would leave its bands no room."""
    long = replace(finding(np.full(9, 0.5), 0.1, 0.9), relative=None)
    drawn = _verdict(AUDIT, replace(long, value=value, low=ends[0], high=ends[1]), 9)
    assert (drawn.low_end, drawn.high_end) == scale
    assert drawn.goes_on == goes_on


@pytest.mark.parametrize(
    ("numbers", "end"), [((0.4, 0.2, 1.0), 1.0), ((1.17, 1.03, 1.34), 1.4), ((math.nan,), 1.0)]
)
def test_a_scale_ends_where_its_numbers_do_and_not_before_one(numbers, end):
    assert _tenth_above(*numbers) == end
