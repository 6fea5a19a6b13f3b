"""The map of the same model from another training is a baseline of an audit."""

import numpy as np
import pytest
import torch
from conftest import small_corpus
from making import write_rows
from scipy import stats

from heedmap.data.corpus import Corpus
from heedmap.data.load import load
from heedmap.errors import InputError
from heedmap.runs.audit import audit
from heedmap.runs.other_seed import other_seed
from heedmap.runs.train import train

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
    return [train(corpus, **SIZES, seed=seed, out=place / f"seed{seed}") for seed in (0, 1)]


@pytest.fixture(scope="module")
def result(runs):
    one, other = runs
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
        other = model.trace(model.batch([text], [row])).heat[0].double().numpy()
        own = np.array(tables["instances"]["attention"][row].as_py())
        assert frame["tau_other_seed"][row] == pytest.approx(stats.kendalltau(own, other)[0])
        for name in ("gradient", "leave_one_out", "integrated_gradients"):
            importance = np.array(tables[name]["importance"][row].as_py())
            tau = stats.kendalltau(other, importance)[0]
            assert frame[f"tau_other_seed_{name}"][row] == pytest.approx(tau, nan_ok=True)
            share = other @ importance / importance.sum()
            assert frame[f"found_other_seed_{name}"][row] == pytest.approx(share, abs=1e-5)
        measured += 1
    assert measured >= 10


def test_its_share_stands_beside_the_maps_own(result):
    (found,) = (f for f in result.findings if f.key == "found_leave_one_out")
    shares = result.tables["baselines"]["found_other_seed_leave_one_out"].to_numpy()
    assert (
        f"{np.nanmean(shares):.2f} lies under the map of another seed (the two maps"
        in found.meaning
    )
    (agreement,) = (f for f in result.findings if f.key == "agreement_gradient")
    assert "the map of another seed" in agreement.meaning


def test_a_recorded_training_is_another_seed_only_if_its_seed_is_another(corpus, runs, tmp_path):
    recorded = {
        seed: train(corpus, **SIZES, seed=seed, record_dynamics=True, out=tmp_path / str(seed))
        for seed in (0, 1)
    }
    with pytest.raises(InputError, match="got the same seed"):
        other_seed(runs[0], str(recorded[0].folder))
    model = other_seed(runs[0], str(recorded[1].folder))
    assert all(map(torch.equal, model.parameters(), runs[1].model.parameters()))


def test_without_another_training_nothing_is_said_of_one(runs):
    result = audit(train(small_corpus(), **SIZES), **FEW)
    assert "tau_other_seed" not in result.tables["baselines"].column_names
    assert not any("another seed" in finding.meaning for finding in result.findings)


def test_a_run_that_is_not_there_is_told_before_the_training(heedmap, tmp_path):
    data = write_rows(tmp_path / "texts.csv")
    done = heedmap("audit", "--data", data, "--other-seed", "nowhere", "--out", tmp_path / "run")
    assert (done.code, done.out) == (2, "")
    assert "nowhere: no run there" in done.err
    assert not (tmp_path / "run").exists()


def test_a_run_with_the_same_seed_or_other_sizes_is_refused_and_nothing_is_lost(
    runs, result, corpus, tmp_path
):
    one, _ = runs
    larger = train(corpus, **{**SIZES, "hidden_size": 20}, seed=1, out=tmp_path / "larger")
    before = {path: path.read_bytes() for path in one.folder.rglob("*") if path.is_file()}
    for folder, message in (
        (one.folder, "got the same seed"),
        (larger.folder, "by its seed alone, got model.hidden_size: 20 -> 16"),
        (tmp_path / "none", "no run there"),
    ):
        with pytest.raises(InputError, match=message):
            audit(one, other_seed=str(folder), overwrite=True, **FEW)
    assert before == {path: path.read_bytes() for path in one.folder.rglob("*") if path.is_file()}
