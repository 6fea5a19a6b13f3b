"""Figures by predicted class, of differences and of entropy: what they count and show."""

import math
import re
import warnings
from dataclasses import replace
from xml.etree import ElementTree

import altair as alt
import numpy as np
import pyarrow as pa
import pytest
from jsonschema import ValidationError
from made_audits import make_audit
from tiny_audits import KINDS, tiny_audit

from heedmap.experiments.questions.adversary import is_exact, is_searched
from heedmap.report.adversary_figures import jsd_histograms
from heedmap.report.drawing import draw_with
from heedmap.report.entropy_figures import entropy
from heedmap.report.figures import figures
from heedmap.report.grouping import ALL, MOST
from heedmap.report.labelled_charts import CONFIG
from heedmap.report.page import page
from heedmap.runs.audited import Audit

BY_CLASS = (
    "tau-gradient", "tau-leave-one-out", "tau-integrated-gradients", "entropy", "permutation",
    "adversary", "adversary-histogram", "search-histogram",
)  # fmt: skip


def with_columns(audit: Audit, table: str, **columns: object) -> Audit:
    """The audit with some columns of a table replaced, or added; None takes a column away."""
    changed = audit.tables[table]
    for name, values in columns.items():
        if name in changed.column_names:
            changed = changed.drop_columns([name])
        if values is not None:
            changed = changed.append_column(name, pa.array(values))
    return replace(audit, tables={**audit.tables, table: changed})


def made(audit: Audit) -> dict:
    return {figure.key: figure for figure in figures(audit)}


def data(figure, column: str) -> list[dict]:
    """The rows of the figure's data set that has this column."""
    return next(rows for rows in figure.spec["datasets"].values() if rows and column in rows[0])


def n_of(text: str) -> int:
    return int(re.search(r"n = (\d+)", text)[1])


@pytest.mark.parametrize("key", ["adversary-histogram", "search-histogram"])
def test_the_bins_of_a_class_hold_all_its_texts(key):
    audit = make_audit(n=200)
    figure = made(audit)[key]
    assert n_of(figure.n) == 150
    assert figure.n == "n = 150 texts, 50 of one word left out"
    assert sum(n_of(k.label) for k in figure.keys) == 150
    bars = data(figure, "share")
    for i, label in enumerate(audit.classes):
        own = [bar for bar in bars if bar["series"] == label]
        assert len(own) == 40
        assert (own[0]["start"], own[-1]["end"]) == (0, 0.7)
        counts = [bar["share"] * n_of(figure.keys[i].label) for bar in own]
        assert sum(counts) == pytest.approx(n_of(figure.keys[i].label), abs=0.5)
        assert all(abs(count - round(count)) < 0.05 for count in counts)


def test_a_histogram_says_where_its_numbers_come_from():
    two, three, bare = (
        {figure.key: figure for figure in jsd_histograms(audit)}
        for audit in (
            make_audit(),
            make_audit(classes=3),
            with_columns(
                make_audit(), "adversary", search_jsd=None, search_found=None, curve_lower=None
            ),
        )
    )
    assert "exact optimum" in two["adversary-histogram"].title
    assert "at least" in three["adversary-histogram"].title
    assert "exact" not in three["adversary-histogram"].title
    assert "the paper's search" in two["search-histogram"].title
    found = make_audit().tables["adversary"]["search_found"].to_numpy(zero_copy_only=False)
    length = make_audit().tables["instances"]["n_tokens"].to_numpy()
    missed = int((~found & (length > 1)).sum())
    assert missed
    assert f"found nothing in {missed} texts" in two["search-histogram"].notes[0]
    assert "by search" in bare["adversary-histogram"].title
    assert "search-histogram" not in bare


@pytest.mark.parametrize(
    ("classes", "searched", "glossary"),
    [
        (2, False, "the most different weights are computed exactly"),
        (3, False, "With 3 classes the number is attained"),
        (2, True, "the\nbest that a search on the model itself meets"),
        (3, True, "the\nbest that a search on the model itself meets"),
    ],
)
def test_figures_page_and_heat_maps_agree_on_what_is_exact(classes, searched, glossary):
    audit = make_audit(classes=classes)
    if searched:
        audit = with_columns(audit, "adversary", curve_lower=None, curve_upper=None)
    columns = audit.tables["adversary"].column_names
    exact = classes == 2 and not searched
    assert (is_searched(columns), is_exact(columns, classes)) == (searched, exact)
    shown = made(audit)
    assert ("curve" in shown) != searched
    assert ("exact optimum" in shown["adversary-histogram"].title) == exact
    assert ("at least" in shown["adversary"].title) != exact
    assert ("by search" in shown["adversary-histogram"].title) == searched
    html = page(audit)
    assert ("adversarial attention (best found)" in html) != exact
    assert " ".join(glossary.split()) in " ".join(html.split())


def test_differences_are_those_of_the_table_and_the_undefined_are_counted():
    audit = make_audit(n=100)
    tau = audit.tables["agreement"]["tau_attention_gradient"].to_numpy().copy()
    tau[np.flatnonzero(np.isfinite(tau))[:5]] = np.nan
    audit = with_columns(audit, "agreement", tau_attention_gradient=tau)
    figure = made(audit)["tau-differences"]
    other = audit.tables["agreement"]["tau_gradient_leave_one_out"].to_numpy()
    difference = (other - tau)[np.isfinite(other - tau)]
    assert figure.n == "n = 75 texts, 25 without a τ left out"
    assert "(n = 75, 25 undefined)" in figure.keys[0].label
    assert "(n = 70, 30 undefined)" in figure.keys[1].label
    assert f"{(difference > 0).mean():.0%} above 0" in figure.keys[1].label
    assert any(row.get("at") == 0 for rows in figure.spec["datasets"].values() for row in rows)
    curves = [rows for rows in figure.spec["datasets"].values() if "density" in rows[0]]
    reach = max(abs(row["x"]) for rows in curves for row in rows)
    assert reach >= np.abs(difference).max()


def test_entropy_is_drawn_of_a_counted_sample_below_the_line_of_uniform_attention():
    audit = make_audit(n=1200)
    figure = entropy(audit)[0]
    points = [row for rows in figure.spec["datasets"].values() for row in rows if "series" in row]
    assert len(points) == 800
    assert figure.n == "n = 900 texts, 800 of them drawn, a seeded sample, 300 of one word left out"
    assert sum(n_of(key.label) for key in figure.keys[:-1]) == 900
    line = [
        row
        for rows in figure.spec["datasets"].values()
        for row in rows
        if "entropy" in row and "series" not in row
    ]
    assert {row["length"] for row in line} == {9, 20}
    for row in line:
        assert row["entropy"] == pytest.approx(math.log(row["length"]), abs=1e-3)
    assert figure == entropy(make_audit(n=1200))[0]
    assert "drawn" not in entropy(make_audit())[0].n


def test_an_undefined_entropy_is_counted():
    audit = make_audit()
    nats = audit.tables["instances"]["entropy"].to_numpy().copy()
    nats[0] = np.nan  # a text of twelve words
    (figure,) = entropy(with_columns(audit, "instances", entropy=nats))
    assert figure.n == "n = 29 texts, 10 of one word left out, 1 without an entropy left out"


def test_many_classes_are_one_series_in_every_figure_by_class():
    audit = make_audit(n=300, classes=40)
    predicted = len(set(audit.tables["instances"]["predicted"].to_pylist()))
    assert predicted > MOST
    shown = made(audit)
    for key in BY_CLASS:
        series = [k for k in shown[key].keys if not k.line]
        assert len(series) == 1
        assert series[0].label.startswith(f"{ALL} (n = {n_of(shown[key].n)}")
        assert any(str(predicted) in note for note in shown[key].notes), key
        assert "predicted class, each" not in shown[key].caption
    assert ", by predicted class (" in page(audit)


@pytest.mark.parametrize("classes", [2, 4, 10])
def test_some_classes_are_told_apart(classes):
    shown = made(make_audit(n=200, classes=classes))
    for key in BY_CLASS:
        assert len([k for k in shown[key].keys if not k.line]) == classes
        assert not any("too many" in note for note in shown[key].notes)


def test_few_predictions_of_many_classes_have_a_colour_each():
    audit = make_audit(n=200, classes=40)
    present = np.array([0, 10, 20, 30])[np.arange(200) // 4 % 4]
    audit = with_columns(audit, "instances", predicted=present)
    keys = made(audit)["tau-gradient"].keys
    assert [k.label.split(" (")[0] for k in keys] == [
        f"predicted {audit.classes[i]}" for i in (0, 10, 20, 30)
    ]
    assert len({k.colour for k in keys}) == 4


def test_pairs_of_texts_have_the_same_figures():
    audit = make_audit(n=60, classes=3)
    pairs = with_columns(audit, "instances", query=[["who", "<b>", "?"]] * 60)
    assert figures(pairs) == figures(audit)


def test_violins_show_quartiles():
    figure = made(make_audit(n=600))["permutation"]
    ticks = data(figure, "what")
    for start in range(0, len(ticks), 3):
        low, middle, high = ticks[start : start + 3]
        assert [t["what"] for t in (low, middle, high)] == [
            "lower quartile", "median", "upper quartile",
        ]  # fmt: skip
        assert low["x"] <= middle["x"] <= high["x"]


@pytest.mark.parametrize("spread", [0.0, 1e-4])
def test_values_that_lie_too_close_for_a_shape_are_still_seen(spread):
    audit = make_audit(n=200)
    tvd = spread * np.random.default_rng(0).random(200)
    figure = made(with_columns(audit, "permutation", median_tvd=tvd))["permutation"]
    marks = [row for rows in figure.spec["datasets"].values() for row in rows if "x" in row]
    groups = {(row["series"], row["bin"]) for row in marks}
    named = {(row["series"], row["bin"]) for row in data(figure, "text")}
    assert groups == named
    assert max(row["x"] for row in marks) <= 1e-3


def test_figures_by_class_name_the_predicted_classes_alone_and_count_the_others():
    audit = make_audit(classes=5)
    predicted = np.where(np.arange(40) % 2 == 0, 1, 4)
    tables = {
        name: table.set_column(table.column_names.index("predicted"), "predicted", [predicted])
        if "predicted" in table.column_names
        else table
        for name, table in audit.tables.items()
    }
    drawn = figures(replace(audit, tables=tables))
    by_class = [figure for figure in drawn if any("predicted" in k.label for k in figure.keys)]
    assert len(by_class) > 4
    for figure in by_class:
        assert "3 of 5 classes are predicted for no text" in figure.notes
        assert "[bold]third" not in str(figure.spec)


@pytest.mark.parametrize("kind", KINDS)
def test_every_figure_is_valid_vega_lite(kind):
    """The page does not check them, for that takes longer than to draw them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of tiny models, about themselves
        drawn = figures(tiny_audit(kind))
    assert drawn
    for figure in drawn:
        alt.Chart.from_dict(figure.spec)


def test_no_tick_is_labelled_with_a_rounded_value():
    """Between two ticks the labels grow as the places do, to a hundredth of the axis."""
    judged = set()
    for figure in figures(tiny_audit("own")):
        for ticks in axes(figure):
            if "symlog" in str(figure.spec) or "'log'" in str(figure.spec) or len(ticks) < 3:
                continue
            places, labels = np.array(ticks).T
            line = np.interp(places, places[[0, -1]], labels[[0, -1]])
            assert np.abs(labels - line).max() <= 0.01 * np.ptp(labels), (figure.key, labels)
            judged.add(figure.key)
    assert {"smallest-change", "relative-freedom", "permutation", "tau-gradient"} <= judged


def axes(figure) -> list[list[tuple[float, float]]]:
    """Each axis of numbers as Vega draws it: the place and the label of every tick, by place."""
    svg = draw_with("vegalite_to_svg", {**figure.spec, "width": 400}, config=CONFIG)
    drawn = []
    for group in ElementTree.fromstring(svg).iterfind(".//{*}g"):
        if "role-axis-label" not in group.get("class", ""):
            continue
        ticks = []
        for label in group:
            x, y = map(float, re.findall(r"-?[\d.]+", label.get("transform")))
            ticks.append((x, y, "".join(label.itertext()).replace("−", "-").rstrip("%")))
        if ticks and all(re.fullmatch(r"-?[\d.]+", text) for _, _, text in ticks):
            across = len({x for x, _, _ in ticks}) > 1
            drawn.append(sorted((x if across else -y, float(text)) for x, y, text in ticks))
    return drawn


def test_an_invalid_figure_is_found_by_that():
    with pytest.raises(ValidationError):
        alt.Chart.from_dict({"mark": "no such mark", "data": {"values": []}})
