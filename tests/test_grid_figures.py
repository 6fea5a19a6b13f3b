"""Bars of many runs: the mean, the measured spread, and missing values."""

import io

import pandas as pd
import pytest
from wording import refused

from heedmap.report.export import render
from heedmap.report.grid_figures import bars

WORDS = {"key": "grid", "title": "Attention and the gradient", "measure": "mean τ"}


def run(dataset, series, seed, value):
    return {"dataset": dataset, "series": series, "seed": seed, "value": value}


GRID = [
    run(dataset, series, seed, base + seed / 10)
    for dataset, base in (("SST", 0.3), ("IMDB", -0.2))
    for series in ("LSTM", "average")
    for seed in (0, 1, 2)
]


def data(figure, column):
    return next((d for d in figure.spec["datasets"].values() if d and column in d[0]), [])


def spreads(figure):
    """The rows behind the lines on the bars."""
    layer = next(
        x for x in figure.spec["layer"] if x["mark"]["type"] == "rule" and "y" in x["encoding"]
    )
    return figure.spec["datasets"].get(layer["data"]["name"], [])


def test_a_bar_is_the_mean_and_its_line_the_smallest_and_largest_seed():
    figure = bars(GRID, **WORDS)
    bar = data(figure, "mean")
    assert [(b["dataset"], b["series"]) for b in bar] == [
        ("SST", "LSTM"), ("SST", "average"), ("IMDB", "LSTM"), ("IMDB", "average"),
    ]  # fmt: skip
    assert (bar[0]["low"], bar[0]["mean"], bar[0]["high"]) == pytest.approx((0.3, 0.4, 0.5))
    assert (bar[2]["low"], bar[2]["mean"], bar[2]["high"]) == pytest.approx((-0.2, -0.1, 0.0))
    assert len(spreads(figure)) == 4
    assert figure.n == "n = 12 runs, 3 seeds per bar"
    assert figure.notes == ["seeds 0, 1, 2"]
    assert any("smallest to largest seed" in key.label for key in figure.keys)


def test_one_seed_has_no_line_and_the_figure_says_so():
    figure = bars([r for r in GRID if r["seed"] == 0], **WORDS)
    assert not spreads(figure)
    assert figure.n == "n = 4 runs, 1 seed per bar"
    assert figure.notes == ["one seed only (0), no line"]
    assert not any("smallest" in key.label for key in figure.keys)
    some = bars([r for r in GRID if r["seed"] == 0 or r["dataset"] == "SST"], **WORDS)
    assert len(spreads(some)) == 2
    assert some.notes == [
        "seeds 0, 1, 2 where no others are named",
        "one seed only (0), no line: IMDB LSTM, IMDB average",
    ]
    assert some.n == "n = 8 runs, 1 to 3 seeds per bar"


def test_what_is_undefined_or_absent_is_said():
    rows = [r for r in GRID if (r["dataset"], r["series"]) != ("IMDB", "average")]
    rows[0] = {**rows[0], "value": None}
    rows[1] = {**rows[1], "value": float("nan")}
    figure = bars(rows, **WORDS)
    assert figure.n == "n = 7 runs, 1 to 3 seeds per bar, 2 runs without a value left out"
    assert "one seed only (2), no line: SST LSTM" in figure.notes
    assert "no run: IMDB average" in figure.notes
    empty = bars([*GRID, run("SST", "cnn", 0, None)], **WORDS)
    assert "no value: SST cnn" in empty.notes


def test_published_numbers_are_hollow_marks_with_their_source():
    theirs = [
        {"dataset": "SST", "series": "LSTM", "value": 0.35, "source": "a paper"},
        {"dataset": "ADR", "series": "LSTM", "value": 0.47, "source": "a paper"},
    ]
    figure = bars(GRID, **WORDS, published=theirs)
    assert [(m["dataset"], m["value"]) for m in data(figure, "source")] == [("SST", 0.35)]
    assert ("a paper", "hollow") in [(key.label, key.line) for key in figure.keys]
    assert any("not drawn: 1" in note for note in figure.notes)


def test_a_data_frame_does_as_well_and_the_picture_is_drawn():
    figure = bars(pd.DataFrame(GRID), **WORDS)
    assert figure == bars(GRID, **WORDS)
    image = pytest.importorskip("PIL.Image").open(io.BytesIO(render(figure, "png")))
    assert image.width == 1322  # 84 mm


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        ([], ["rows", "none"]),
        ([run("SST", "LSTM", 0, None)], ["rows", "none"]),
        ([{"dataset": "SST", "series": "LSTM", "value": 1}], ["row 0", "seed"]),
        ([run("SST", "LSTM", 0, "high")], ["row 0", "'high'"]),
        ([run("SST", "LSTM", 0, 0.1), run("SST", "LSTM", 0, 0.2)], ["seed 0", "twice"]),
        ([run("SST", f"m{i}", 0, 0.1) for i in range(11)], ["11 series", "10"]),
    ],
)
def test_bad_rows_are_refused(rows, named):
    with refused(*named):
        bars(rows, **WORDS)
