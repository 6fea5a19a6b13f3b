"""`heedmap calibrate`, as a user runs it."""

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import WORDS, contents
from few_plants import two_plants as two_plants  # noqa: PLC0414 - a fixture
from wording import stopped

from heedmap.experiments.rates import FILE, packaged_rates
from heedmap.files.identity import source_identity


def reviews(folder, rows, words=9):
    rng = np.random.default_rng(0)
    others = [" ".join(WORDS[j] for j in rng.integers(0, 40, words - 1)) for _ in range(rows)]
    lines = [f"{('dreadful', 'lovely')[i % 2]} {other},{i % 2}" for i, other in enumerate(others)]
    path = folder / "mine.csv"
    path.write_text("text,label\n" + "\n".join(lines) + "\n")
    return path


@pytest.mark.slow
@pytest.mark.filterwarnings("default:.*too few to choose thresholds")
@pytest.mark.usefixtures("two_plants")
def test_a_calibration_on_a_users_texts_is_resumed_and_used_by_a_later_audit(
    heedmap, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    data = reviews(tmp_path, 520)
    # Two plants are too few, which every command says.
    done = heedmap("calibrate", "--data", data, "--seeds", "1", "--workers", "1")
    assert done.code == 0, done.err
    assert "2 planted models" in done.err
    assert "2 planted models, planted on synthetic texts and mine." in done.out
    folder = tmp_path / "runs" / "calibration-mine"
    written = contents(folder)
    assert {"rates.json", "calibration.md"} <= {str(name) for name in written}
    # The same bytes from what is there, and from a part of it.
    next((folder / "numbers").rglob("*random-words*.parquet")).unlink()
    (folder / FILE).unlink()
    options = ("--seeds", "1", "--workers", "1", "--json")
    again = heedmap("calibrate", "--data", data, *options)
    assert contents(folder) == written
    rates = json.loads(written[Path(FILE)])
    del rates["sha256"]
    assert json.loads(again.out) == {"folder": "runs/calibration-mine", **rates}

    options = ("--epochs", "1", "--encoder", "average", "--instances", "12")
    passed = heedmap("audit", "--data", data, *options, "--out", "runs/first")
    assert passed.code == 0
    assert "passed over" in passed.err
    assert "2 planted models" in passed.err
    first = json.loads((tmp_path / "runs" / "first" / "findings.json").read_text())
    assert first["rates"]["name"] == packaged_rates().name
    own = packaged_rates().model_copy(update={"data": source_identity(str(data)), "name": "mine"})
    (folder / FILE).write_text(own.to_json())
    assert heedmap("audit", "--data", data, *options, "--out", "runs/mine").code == 0
    found = json.loads((tmp_path / "runs" / "mine" / "findings.json").read_text())
    assert found["rates"]["name"] == "mine"
    # The report needs the calibration's folder no more.
    (folder / FILE).unlink()
    assert heedmap("report", "runs/mine").code == 0
    assert json.loads((tmp_path / "runs" / "mine" / "findings.json").read_text()) == found


def test_rates_of_another_version_of_the_rules_are_refused_by_an_audit(
    heedmap, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    data = reviews(tmp_path, 60)
    old = packaged_rates().model_copy(update={"rules": 0, "data": source_identity(str(data))})
    (tmp_path / "runs" / "calibration-mine").mkdir(parents=True)
    (tmp_path / "runs" / "calibration-mine" / FILE).write_text(old.to_json())
    options = ("--epochs", "1", "--encoder", "average", "--instances", "12", "--out", "runs/mine")
    done = heedmap("audit", "--data", data, *options)
    stopped(done, FILE, "version 0", "heedmap calibrate")


@pytest.mark.parametrize(("rows", "words", "long"), [(60, 9, 40), (300, 5, 0)])
def test_a_corpus_too_small_to_plant_on_is_one_line(
    heedmap, tmp_path, monkeypatch, rows, words, long
):
    monkeypatch.chdir(tmp_path)
    done = heedmap("calibrate", "--data", reviews(tmp_path, rows, words))
    stopped(done, "100 texts of 8 words", long)
    assert done.err.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def test_a_class_that_never_occurs_is_refused(heedmap, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = reviews(tmp_path, 300)
    path.write_text(path.read_text().replace(",1\n", ",0\n"))
    done = heedmap("calibrate", "--data", path)
    stopped(done, path, "two classes", "1 (0)")


@pytest.mark.parametrize("option", [("--seeds", "0"), ("--workers", "0"), ("--seeds", "many")])
def test_bad_options_are_refused(heedmap, tmp_path, monkeypatch, option):
    monkeypatch.chdir(tmp_path)
    assert heedmap("calibrate", *option).code == 2
