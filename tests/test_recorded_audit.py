"""What an audit makes of a recorded training: how the map came about, drawn with a slider."""

import math

import numpy as np
import pytest
from conftest import QUICK, small_corpus
from making import left_over

from heedmap.experiments.registry import applicable
from heedmap.report.dynamics_figures import LONGEST, agreement, texts
from heedmap.runs.audit import audit, open_audit
from heedmap.runs.train import train

SMALL = {"encoder": "lstm", "embedding_size": 6, "hidden_size": 8, "epochs": 2, "min_df": 1}


@pytest.fixture(scope="module")
def judged():
    run = train(small_corpus(), record_dynamics=True, batch_size=8, **SMALL)
    return audit(run, instances=20, permutations=5)


@pytest.fixture(scope="module")
def rows(judged):
    return judged.tables["dynamics"].to_pylist()


def by_hand(final, values):
    best = final.index(max(final))
    above = sum(value > values[best] for value in values)
    return above < math.ceil(0.05 * len(values))


def test_every_description_of_the_record_is_of_a_column_that_there_is(judged):
    assert not left_over({"dynamics": judged.tables["dynamics"].column_names})


def test_only_a_recorded_training_is_asked_how_the_map_came_about():
    run = train(small_corpus(), **SMALL)
    split = run.corpus.splits["test"]
    assert "dynamics" not in applicable(run.model, split)
    assert "dynamics" in applicable(run.model, split, True)
    assert "dynamics" not in audit(run, instances=20, permutations=5).tables


@pytest.mark.parametrize("name", ["attention", "relevance", "influence"])
def test_the_match_with_the_final_attention_is_counted_as_by_hand(rows, name):
    last = max(row["step"] for row in rows)
    final = {row["row"]: row["attention"] for row in rows if row["step"] == last}
    assert len(rows) > len(final)
    for row in rows:
        expected = by_hand(final[row["row"]], row[name])
        assert row[f"match_{name}"] == expected
        top = sum(by_hand([float(i == j) for j in range(len(row[name]))], row[name])
                  for i in range(len(row[name])))  # fmt: skip
        assert row[f"chance_{name}"] == pytest.approx(top / len(row[name]))


def test_the_final_attention_foretells_itself(rows):
    last = max(row["step"] for row in rows)
    assert all(row["match_attention"] == 1 for row in rows if row["step"] == last)


def test_the_curves_are_the_means_of_the_table(judged, rows):
    (figure,) = agreement(judged)
    lines, _ = figure.spec["layer"]
    drawn = {(one["series"], one["step"]): one["value"] for one in _values(figure, lines)}
    for step in {row["step"] for row in rows}:
        mean = np.mean([row["match_attention"] for row in rows if row["step"] == step])
        assert drawn["attention", step] == pytest.approx(mean, abs=1e-3)


def _values(figure, layer):
    data = layer.get("data") or figure.spec["data"]
    return figure.spec["datasets"][data["name"]]


def test_the_slider_goes_through_all_records_of_a_text(judged, rows):
    steps = sorted({row["step"] for row in rows})
    figures = texts(judged)
    assert figures
    for figure in figures:
        (slider,) = figure.spec["params"]
        assert slider["bind"]["max"] == slider["value"] == len(steps) - 1
        points, said = (_values(figure, layer) for layer in figure.spec["layer"])
        assert [one["said"] for one in said] == [f"after {step} steps" for step in steps]
        tokens = {one["token"] for one in points}
        assert 3 <= len(tokens) <= LONGEST
        assert len(points) == len(tokens) * len(steps) * 3
        assert max(abs(one["value"]) for one in points) == 1


@pytest.mark.slow
def test_the_command_audits_what_it_recorded(heedmap, csv_file, tmp_path):
    out = tmp_path / "run"
    heedmap("train", "--data", csv_file, "--record-dynamics", "--out", out, *QUICK)
    assert heedmap("audit", "--run", out, "--permutations", 5).code == 0
    assert "What comes first, relevance or attention?" in (out / "report.html").read_text()
    again = open_audit(out)
    assert again.tables["dynamics"].num_rows > 0
