"""Figures of models with layers, and the others on a transformer's tables, on small hand-made audits."""

import json
import re

import numpy as np
import pyarrow as pa
import pytest
from made_audits import make_audit

from heedmap.measures import LN2
from heedmap.report.examples import Example
from heedmap.report.figures import figures
from heedmap.report.head_maps import means
from heedmap.report.heatmaps import instance
from heedmap.report.page import page
from heedmap.runs.audited import Audit
from heedmap.settings.models import TransformerSettings

PER_HEAD = ("row", "received", "gradient", "effective")
LAYERS, HEADS = 3, 4
LAYERED = [
    "scan-leave-one-out",
    "layers-leave-one-out",
    "scan-gradient",
    "layers-gradient",
    "heads-mass",
    "heads-freedom",
    "heads-entropy",
    "heads-effective",
]


def transformer_audit(n=40, sampled=20, interface=True, **options):
    """The audit of `test_report`, its tables as a transformer's: nulls where a text was not sampled."""
    audit = make_audit(n=n, **options)
    rng = np.random.default_rng(1)
    length = audit.tables["instances"]["n_tokens"].to_numpy()
    views = [v for v in (*PER_HEAD, "rollout", "flow") if interface or v != "effective"]
    maps = [
        (view, layer, head)
        for view in views
        for layer in range(LAYERS)
        for head in (None, *(range(HEADS) if view in PER_HEAD else ()))
    ]
    scan = [(row, *m) for row in range(sampled) for m in maps]
    short = np.array([length[row] < 2 for row, *_ in scan])

    def taus():
        return np.where(short, np.nan, rng.uniform(-0.5, 1, len(scan)))

    spots = [(r, x, h) for r in range(sampled) for x in range(LAYERS) for h in range(HEADS)]
    positions = np.array([length[r] + 2 for r, *_ in spots])
    words = rng.uniform(0.2, 0.5, len(spots))
    heads = {
        "row": [r for r, *_ in spots],
        "positions": positions,
        "layer": [x for _, x, _ in spots],
        "head": [h for *_, h in spots],
        "share_words": words,
        "share_punctuation": np.zeros(len(spots)),
        "share_[CLS]": 1 - words,
        "share_[PAD]": np.zeros(len(spots)),
        "entropy": rng.random(len(spots)),
    }
    if interface:
        rank = np.minimum(positions, 8)
        heads |= {
            "rank": rank.astype(float),
            "free": (positions - rank).astype(float),
            "free_on_simplex": np.maximum(positions - rank - 1, 0).astype(float),
            "effective_share": rng.random(len(spots)),
        }
    old = audit.tables["adversary"].to_pydict()
    old["jsd_upper"] = [min(jsd + 0.05, LN2) if jsd else 0.0 for jsd in old["jsd"]]
    chosen = rng.permutation(n)[:sampled].tolist()

    def some(name, kind=None):
        values = [x if i in chosen else None for i, x in enumerate(old[name])]
        return pa.array(values, kind or pa.float64())

    adversary = {name: old[name] for name in ("predicted", "n_tokens", "max_attention")} | {
        "jsd": some("jsd"),
        "jsd_upper": some("jsd_upper"),
        "tvd": some("jsd"),
        "attention": some("attention", pa.list_(pa.float64())),
    }
    permutation = audit.tables["permutation"]
    for name in ("uniform_tvd", "uniform_flipped"):
        permutation = permutation.append_column(name, pa.array(rng.random(n)))
    tables = audit.tables | {
        "permutation": permutation,
        "adversary": pa.table(adversary),
        "scan": pa.table(
            {
                "row": [row for row, *_ in scan],
                "view": [view for _, view, *_ in scan],
                "layer": [layer for *_, layer, _ in scan],
                "head": pa.array([head for *_, head in scan], pa.int64()),
                "tau_leave_one_out": taus(),
                "tau_gradient": taus(),
            }
        ),
        "heads": pa.table(heads),
    }
    model = TransformerSettings(source="a/model", view="row", layer=-1, head="mean")
    asked = audit.settings.audit.model_copy(update={"gradient_path": "open"})
    settings = audit.settings.model_copy(update={"model": model, "train": None, "audit": asked})
    return Audit(settings, audit.classes, tables, audit.findings, audit.about)


@pytest.fixture(scope="module")
def audit():
    return transformer_audit()


@pytest.fixture(scope="module")
def made(audit):
    return {figure.key: figure for figure in figures(audit)}


def values(figure, key):
    """The rows of the dataset that has a column of this name."""
    return next(rows for rows in figure.spec["datasets"].values() if key in rows[0])


def test_every_layer_figure_is_there_with_its_n(made):
    assert [key for key in made if key.startswith(("scan", "layers", "heads"))] == LAYERED
    for key in LAYERED:
        assert made[key].n.startswith("n = 20 texts, a seeded sample of 40")
        assert made[key].caption.endswith(".")
    assert made["scan-gradient"].n.endswith("at least 15 in each mean")  # a fourth is one word


def test_cells_are_the_means_of_the_table(audit, made):
    scan = audit.tables["scan"].to_pandas()
    cells = values(made["scan-leave-one-out"], "strength")
    assert len(cells) == 4 * LAYERS * (HEADS + 1)
    one = scan[(scan.view == "received") & (scan.layer == 1) & (scan["head"] == 2)]
    mean = one.tau_leave_one_out.mean()
    (cell,) = [c for c in cells if (c["map"], c["layer"], c["head"]) == ("received", 1, "2")]
    assert cell["value"] == f"{mean:.2f}".replace("-", "−")
    top = float(made["scan-leave-one-out"].keys[0].label.removeprefix("τ "))
    assert cell["strength"] == pytest.approx(abs(mean) / top, abs=1e-3)
    assert all(0 <= c["strength"] <= 1 for c in cells)


def test_the_heat_map_on_trial_is_marked(made):
    keys = [key.label for key in made["scan-gradient"].keys]
    assert "the heat map on trial" in keys


def test_lines_have_intervals_around_their_means(made):
    points = values(made["layers-gradient"], "low")
    assert len(points) == 6 * LAYERS
    assert all(p["low"] <= p["mean"] <= p["high"] for p in points)
    assert {p["n"] for p in points} == {15}
    assert any("same texts" in key.label for key in made["layers-gradient"].keys)


def test_kinds_without_mass_are_named_and_not_drawn(made):
    maps = {c["map"] for c in values(made["heads-mass"], "strength")}
    assert {m.split(", ")[0] for m in maps} == {"words", "punctuation", "[CLS]"}
    assert "[PAD]" in made["heads-mass"].caption


def test_free_dimensions_against_length(audit, made):
    points = values(made["heads-freedom"], "heads")
    assert sum(p["heads"] for p in points) == audit.tables["heads"].num_rows
    assert "positions − 8" in made["heads-freedom"].caption


def test_texts_that_were_not_searched_are_counted(audit, made):
    jsd = audit.tables["adversary"]["jsd"].to_numpy(zero_copy_only=False)
    alone = audit.tables["instances"]["n_tokens"].to_numpy() < 2
    used = int((np.isfinite(jsd) & ~alone).sum())
    gone = int((~np.isfinite(jsd) & ~alone).sum())
    assert made["adversary"].n == (
        f"n = {used} texts, {int(alone.sum())} of one word left out, {gone} not sampled"
    )
    assert "at least" in made["adversary"].title
    assert "exact" not in made["adversary"].caption
    assert not {"exact-search", "curve"} & made.keys()


def test_the_page_of_a_transformer(audit):
    html = page(audit)
    assert "adversarial attention (best found)" in html
    assert "computed exactly" not in html
    assert "with the attention held fixed" not in html
    specs = re.findall(r'<script type="application/json" id="spec-[^>]*>(.*?)</script>', html, re.S)
    assert specs
    for spec in specs:
        assert json.loads(spec)["height"] > 0


def test_a_text_that_was_not_searched_has_no_row_for_it(audit):
    searched = audit.tables["adversary"]["jsd"].is_valid().to_pylist()
    alone = [n < 2 for n in audit.tables["instances"]["n_tokens"].to_pylist()]
    for row, found in enumerate(searched):
        one = instance(audit.tables, audit.classes, Example(row, "", ""))
        names = [r.name for r in one.rows]
        assert ("adversarial attention (best found)" in names) == found
        assert any(name == "largest JSD, at least" for name, _ in one.facts) == (
            found and not alone[row]
        )
        assert "uniform" not in " ".join(names)


def test_a_model_that_is_entered_by_its_softmax_has_fewer_figures():
    made = {figure.key: figure for figure in figures(transformer_audit(interface=False))}
    assert not {"heads-freedom", "heads-effective"} & made.keys()
    assert len({c["map"] for c in values(made["scan-gradient"], "strength")}) == 3
    assert len(values(made["layers-gradient"], "low")) == 5 * LAYERS


@pytest.mark.parametrize("lengths", [(1,), (1, 7)])
@pytest.mark.parametrize("n", [1, 2])
def test_tiny_audits_are_drawn(n, lengths):
    audit = transformer_audit(n=n, sampled=n, lengths=lengths)
    made = {figure.key: figure for figure in figures(audit)}
    assert "heads-mass" in made
    assert ("scan-gradient" in made) == (max(lengths[:n]) > 1)
    page(audit)


def test_nobody_searched_is_no_figure(audit):
    adversary = audit.tables["adversary"]
    for name in ("jsd", "jsd_upper", "tvd"):
        at = adversary.column_names.index(name)
        adversary = adversary.set_column(at, name, pa.nulls(len(adversary), pa.float64()))
    alone = Audit(
        audit.settings, audit.classes, audit.tables | {"adversary": adversary}, [], audit.about
    )
    assert "adversary" not in {figure.key for figure in figures(alone)}


def test_means_leave_out_what_is_not_defined():
    found = means(
        np.array([0, 0, 0, 1]), np.array([0, 0, 1, np.nan]), np.array([1, np.nan, np.nan, 5])
    )
    assert found[(0, 0)] == 1
    assert np.isnan(found[(0, 1)])
    assert found[(1, None)] == 5
