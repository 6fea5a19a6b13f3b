"""The same model from other trainings: their maps are a baseline, and the rule is applied to them, too."""

import json
import re
import shutil
from dataclasses import astuple
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from conftest import small_corpus
from made_audits import Elements, printed
from made_numbers import RIGHT, WRONG, model
from making import write_rows
from packed_texts import unpacked
from scipy import stats
from wording import refused, stopped

from heedmap.data.corpus import Corpus
from heedmap.data.load import load
from heedmap.experiments.questions.instances import is_doubtful
from heedmap.experiments.questions.trainings import OF_CLASS, numbers_of, told_of_trainings
from heedmap.experiments.rule import Thresholds, map_numbers, texts_of
from heedmap.report.page import page
from heedmap.report.text_data import pack_texts
from heedmap.runs.audit import audit
from heedmap.runs.folder import RunFolder
from heedmap.runs.other_seed import _names, other_seeds
from heedmap.runs.train import train
from heedmap.settings.audit import AuditSettings
from heedmap.settings.training import TrainSettings

SIZES = {"encoder": "lstm", "embedding_size": 12, "hidden_size": 16, "epochs": 3, "min_df": 1}
FEW = {"permutations": 3, "instances": 20}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Corpus:
    folder = tmp_path_factory.mktemp("small")
    for name, split in small_corpus().splits.items():
        pairs = zip(split.tokens, split.labels.tolist(), strict=True)
        rows = [{"text": " ".join(text), "label": label} for text, label in pairs]
        write_rows(folder / f"{name}.jsonl", rows)
    return load(folder)


@pytest.fixture(scope="module")
def runs(corpus, tmp_path_factory):
    place = tmp_path_factory.mktemp("runs")
    return [train(corpus, **SIZES, seed=seed, out=place / f"seed{seed}") for seed in (0, 1, 2)]


@pytest.fixture(scope="module")
def result(runs):
    one, other, _ = runs
    return audit(one, other_seed=str(other.folder), **FEW)


def test_its_map_is_laid_over_the_importance_of_the_model_on_trial(runs, result):
    tables = result.tables
    texts = tables["instances"]["tokens"].to_pylist()
    frame = tables["baselines"].to_pandas()
    model = runs[1].model
    measured = 0
    for row, text in enumerate(texts):
        if len(text) < 2 or np.isnan(frame["tau_other_seed"][row]):
            continue
        other = model.trace(model.batch([text], [row])).heatmap[0].double().numpy()
        own = np.array(tables["instances"]["attention"][row].as_py())
        assert frame["tau_other_seed"][row] == pytest.approx(stats.kendalltau(own, other)[0])
        for name in ("gradient", "leave_one_out", "integrated_gradients"):
            importance = np.array(tables[name]["importance"][row].as_py())
            tau = stats.kendalltau(other, importance)[0]
            assert frame[f"tau_other_seed_{name}"][row] == pytest.approx(tau, nan_ok=True)
            share = other @ importance / importance.sum()
            assert frame[f"mass_other_seed_{name}"][row] == pytest.approx(share, abs=1e-5)
        measured += 1
    assert measured >= 10


def test_its_map_is_kept_of_each_text_that_was_asked(runs, of_three):
    frame, tables = of_three.tables["baselines"], of_three.tables
    texts, asked = tables["instances"]["tokens"].to_pylist(), 0
    for seed in (1, 2):
        model = runs[seed].model
        for row, text in enumerate(texts):
            weights = frame[f"attention_seed_{seed}"][row].as_py()
            assert (weights is None) == (frame["tau_largest_gradient"][row].as_py() is None) or len(
                text
            ) == 1
            if weights is not None:
                alone = model.trace(model.batch([text], [row])).heatmap[0].tolist()
                assert weights == pytest.approx(alone, abs=1e-6)
                asked += 1
    assert asked >= 20


def test_its_map_stands_in_the_page_and_the_files_under_its_seed(of_three):
    rows = of_three.tables["baselines"]["attention_seed_2"].to_pylist()
    index, packed = unpacked(pack_texts(of_three.tables, of_three.classes, []))
    name = "attention, seed 2"
    assert [head["kind"] for head in index["maps"] if head["name"] == name] == ["attention"]
    maps = of_three.maps
    for row, weights in enumerate(rows):
        in_file = maps["attention_seed_2"][maps["row"] == row].to_numpy()
        if weights is None:  # the page says of this text that it has none
            assert packed[row][name] is None
            assert np.isnan(in_file).all()
        else:
            largest, values = packed[row][name]
            assert values == pytest.approx(weights, abs=largest / 254 + 1e-9)
            assert in_file == pytest.approx(weights)


def test_trainings_whose_seeds_are_not_known_are_named_by_their_place():
    known, elsewhere = TrainSettings(seed=3), None
    assert _names([TrainSettings(), known]) == ["seed_0", "seed_3"]
    assert _names([elsewhere, elsewhere, elsewhere]) == ["training_1", "training_2", "training_3"]
    assert _names([known, known]) == ["training_1", "training_2"]  # another split


def test_its_share_stands_beside_the_maps_own(result):
    (found,) = (f for f in result.findings if f.key == "mass_leave_one_out")
    shares = result.tables["baselines"]["mass_other_seed_leave_one_out"].to_numpy()
    assert (
        f"{np.nanmean(shares):.2f} lies under the maps of other seeds (their τ with this one: mean"
        in found.meaning
    )
    (agreement,) = (f for f in result.findings if f.key == "agreement_gradient")
    assert "the maps of other seeds" in agreement.meaning


def test_a_recorded_training_is_another_seed_only_if_its_seed_is_another(corpus, runs, tmp_path):
    recorded = {
        seed: train(corpus, **SIZES, seed=seed, record_dynamics=True, out=tmp_path / str(seed))
        for seed in (0, 1)
    }
    with refused("--other-seed", "same seed", "--seed"):
        other_seeds(runs[0], [str(recorded[0].folder)])
    ((name, model),) = other_seeds(runs[0], [str(recorded[1].folder)]).items()
    assert name == "seed_1"
    assert all(map(torch.equal, model.parameters(), runs[1].model.parameters()))


def test_without_another_training_nothing_is_said_of_one(runs):
    result = audit(train(small_corpus(), **SIZES), **FEW)
    assert "tau_other_seed" not in result.tables["baselines"].column_names
    assert not any("other seeds" in finding.meaning for finding in result.findings)
    assert "trainings" not in result.tables
    assert "other training seeds" in result.bottom_line.not_tested


def test_a_run_that_is_not_there_is_told_before_the_training(heedmap, tmp_path):
    data = write_rows(tmp_path / "texts.csv")
    done = heedmap("audit", "--data", data, "--other-seed", "nowhere", "--out", tmp_path / "run")
    assert done.out == ""
    stopped(done, "nowhere", "settings.toml")
    assert not (tmp_path / "run").exists()


def test_a_run_with_the_same_seed_or_other_sizes_is_refused_and_nothing_is_lost(
    runs, result, corpus, tmp_path
):
    one, *_ = runs
    larger = train(corpus, **{**SIZES, "hidden_size": 20}, seed=1, out=tmp_path / "larger")
    before = {path: path.read_bytes() for path in one.folder.rglob("*") if path.is_file()}
    for folder, named in (
        (one.folder, ["--other-seed", one.folder, "same seed"]),
        (larger.folder, ["--other-seed", larger.folder, "model.hidden_size: 20 -> 16"]),
        (tmp_path / "none", [tmp_path / "none", "settings.toml"]),
    ):
        with refused(*named):
            audit(one, other_seed=str(folder), overwrite=True, **FEW)
    assert before == {path: path.read_bytes() for path in one.folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def of_three(runs):
    one, *others = runs
    return audit(one, other_seed=[str(other.folder) for other in others], overwrite=True, **FEW)


def test_settings_keep_one_run_as_its_name_and_several_as_a_list():
    one, several = (AuditSettings.of(other_seed=given) for given in ("a", ["a", "b"]))
    assert one == AuditSettings.of(other_seed=["a"]) == AuditSettings.of(other_seed=Path("a"))
    assert one.model_dump(mode="json")["other_seed"] == "a"  # as in versions that took only one
    assert several.model_dump(mode="json")["other_seed"] == ["a", "b"]
    assert AuditSettings.of(other_seed=[]) == AuditSettings()


def test_settings_of_several_are_read_again(runs, of_three):
    audited = RunFolder(runs[0].folder).settings().audit
    assert audited == of_three.settings.audit
    assert audited.other_seed == tuple(str(other.folder) for other in runs[1:])


def test_the_tau_of_several_maps_is_their_mean(runs, of_three):
    tables = of_three.tables
    taus = tables["baselines"]["tau_other_seed"].to_pylist()
    rows = [row for row, tau in enumerate(taus) if tau is not None]
    for row in rows:
        text = tables["instances"]["tokens"][row].as_py()
        own = np.array(tables["instances"]["attention"][row].as_py())
        others = [
            run.model.trace(run.model.batch([text], [row])).heatmap[0].double().numpy()
            for run in runs[1:]
        ]
        each = [stats.kendalltau(own, other)[0] for other in others]
        assert taus[row] == pytest.approx(np.mean(each))
    assert len(rows) >= 10


def test_the_numbers_of_each_training_are_those_of_an_audit_of_its_own(corpus, of_three):
    rows = of_three.tables["trainings"].to_pylist()
    assert len(rows) == 2
    for seed, row in zip((1, 2), rows, strict=True):
        alone = audit(train(corpus, **SIZES, seed=seed), **FEW)
        expected, found = map_numbers(texts_of(alone.tables)), numbers_of(row)
        assert found.weights == pytest.approx(expected.weights)
        assert len(found.classes) == len(expected.classes) > 0
        for one, other in zip(found.classes, expected.classes, strict=True):
            assert astuple(one) == pytest.approx(astuple(other), nan_ok=True)
        assert row["is_weak"] == is_doubtful(alone.findings[0])


def of_trainings(*models, is_weak=False):
    """The table of trainings of which the rule reads these numbers."""
    classes = {
        f"class_{name}": [[getattr(x, name) for x in one.classes] for one in models]
        for name in OF_CLASS
    }
    weights = [one.weights for one in models]
    return pa.table({"is_weak": [is_weak] * len(models), "weights": weights, **classes})


def told(trainings, taus=(0.6, 0.64, None, 0.62, 0.58, 0.66)):
    tables = {
        "trainings": trainings,
        "baselines": pa.table({"tau_other_seed": pa.array(taus, pa.float64())}),
        "instances": pa.table({"tokens": [[str(i)] for i in range(len(taus))]}),
    }
    return told_of_trainings("yes", tables, Thresholds(), 0)


def test_it_is_said_in_how_many_trainings_the_answer_holds_and_how_alike_the_maps_are():
    right, words = model(RIGHT, RIGHT), model(RIGHT, RIGHT, weights=0.0)
    said = told(of_trainings(right, words, model(RIGHT, WRONG)))
    assert said.startswith(
        "The answer holds in 2 of 4 trainings (yes, yes, the right words, in part); "
    )
    assert re.search(r"the mean τ is 0\.62 \[0\.5\d, 0\.6\d\] \(1 = the same order\)\.$", said)
    assert "how alike the maps are is not known" in told(of_trainings(right), (None,) * 3)


def test_of_a_training_that_predicts_badly_nothing_is_told():
    assert "(yes, cannot tell)" in told(of_trainings(model(RIGHT, RIGHT), is_weak=True))


def test_the_bottom_line_is_about_the_setting_then(of_three):
    line = of_three.bottom_line
    assert f"of 3 trainings ({line.answer}, " in line.sentence
    assert "other training seeds" not in line.not_tested
    assert line.to_json()["trainings"] in printed(of_three, 4000)
    assert line.trainings in " ".join(" ".join(Elements(page(of_three)).text).split())


def test_the_same_training_twice_is_refused(runs):
    folder = str(runs[1].folder)
    with refused("--other-seed", "same seed", "--seed"):
        other_seeds(runs[0], [folder, folder])


@pytest.mark.slow
def test_the_option_may_be_given_several_times(heedmap, runs, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(runs[0].folder, copy)
    others = [part for run in runs[1:] for part in ("--other-seed", run.folder)]
    few = ("--instances", "20", "--permutations", "3", "--overwrite", "--json")
    done = heedmap("audit", "--run", copy, *others, *few)
    assert done.code == 0, done.err
    assert "of 3 trainings" in json.loads(done.out)["bottom_line"]["trainings"]
