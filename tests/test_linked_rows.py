"""The marks of figures know their texts: as the tables do, and as the page's table counts them."""

import numpy as np
import pyarrow as pa
import pytest
from made_audits import make_audit

from heedmap.report.alternatives import alternative
from heedmap.report.densities import histogram
from heedmap.report.figures import figures
from heedmap.report.linked_rows import link, shown_rows


def drawn(figure):
    """All points of data that draw texts."""
    return [datum for data in figure.spec["datasets"].values() for datum in data if "rows" in datum]


@pytest.mark.parametrize("n", [40, 300])
@pytest.mark.parametrize("classes", [2, 5])
def test_a_figure_draws_each_text_that_has_a_number_once(n, classes):
    audit = make_audit(n=n, classes=classes)
    made = {figure.key: figure for figure in figures(audit)}
    taus = audit.tables["agreement"]["tau_attention_gradient"].to_numpy()
    long_enough = np.flatnonzero(audit.tables["instances"]["n_tokens"].to_numpy() >= 2).tolist()
    for key, expected in (
        ("tau-gradient", np.flatnonzero(np.isfinite(taus)).tolist()),
        ("adversary-histogram", long_enough),
        ("permutation", long_enough),
        ("entropy", long_enough),
        ("exact-search", sorted(2 * long_enough)),  # once for each method
    ):
        assert sorted(row for datum in drawn(made[key]) for row in datum["rows"]) == expected, key


def test_a_bin_has_the_rows_of_its_values():
    rng = np.random.default_rng(0)
    values = np.append(rng.uniform(-1.2, 1.2, 200).round(1), [np.nan, -1, 1])
    bins = histogram(values, -1, 1, 7, np.arange(len(values)) + 1000)
    edges = np.linspace(-1, 1, 8)
    expected, _ = np.histogram(np.clip(values[np.isfinite(values)], -1, 1), edges)
    assert [len(each["rows"]) for each in bins] == expected.tolist()
    assert [each["share"] for each in bins] == pytest.approx(expected / 202)
    for each in bins:
        for row in each["rows"]:
            assert each["start"] - 1e-4 <= np.clip(values[row - 1000], -1, 1) <= each["end"] + 1e-4


def test_rows_become_places_in_the_table_and_unlisted_texts_are_counted():
    instances = pa.table({"row": range(5)})
    places = shown_rows(instances, [0, 2, 4])
    spec = {
        "datasets": {
            "a": [{"x": 1, "rows": [2]}, {"x": 2, "rows": [1, 4], "xs": [0.1, 0.2]}, {"at": 0}]
        }
    }
    assert link(spec, places)["datasets"]["a"] == [
        {"x": 1, "rows": [1]},
        {"x": 2, "rows": [2], "xs": [0.2], "unlisted": 1},
        {"at": 0},
    ]
    assert link({"mark": "bar"}, places) == {"mark": "bar"}


def test_a_text_that_was_cut_into_windows_stands_for_all_of_them():
    places = shown_rows(pa.table({"text": [0, 0, 1, 2, 2]}), [0, 1, 2, 4])
    assert places == {0: [0, 1], 1: [2], 2: [3]}


def test_an_alternative_says_title_number_of_texts_range_and_legend():
    for figure in figures(make_audit(n=300)):
        text = alternative(figure)
        assert text.startswith(figure.title)
        assert figure.n in text
        assert "from " in text
        for key in figure.keys:
            assert key.label in text
