"""`heedmap reproduce jain-wallace`: the command, what it saves and what it refuses."""

import csv
import json

import numpy as np
import pytest
from wording import refused, stopped

from heedmap.data.load import load
from heedmap.papers.jain_wallace.locations import DATASETS, check_apart, locate, needed
from heedmap.papers.jain_wallace.numbers import read
from heedmap.papers.jain_wallace.paper import _loaded
from heedmap.papers.jain_wallace.published import PUBLISHED_SIZES
from heedmap.papers.jain_wallace.settings import RECIPES, dataset_of
from heedmap.runs import defaults
from heedmap.runs.defaults import defaults_for, register
from heedmap.settings.audit import AuditSettings
from heedmap.settings.base import Settings
from heedmap.settings.data import DataSettings
from heedmap.settings.models import ModelSettings
from heedmap.settings.training import TrainSettings

QUICK = (
    "--encoders", "average", "--scores", "dot", "--seeds", "2", "--epochs", "2", "--instances", "15",
    "--workers", "1",
)  # fmt: skip


@pytest.fixture
def sst(tmp_path):
    """A small data set in SST's place, with a word that gives the label away."""
    rng = np.random.default_rng(0)
    place = tmp_path / "data" / "sst"
    place.mkdir(parents=True)
    for name, count in (("train", 80), ("dev", 20), ("test", 20)):
        rows = []
        for i in range(count):
            filler = " ".join(rng.choice(list("abcdefgh"), rng.integers(5, 9)))
            rows.append({"text": f"{'good' if i % 2 else 'bad'} {filler}", "label": i % 2})
        (place / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    return place


@pytest.mark.exhaustive
def test_other_models_are_refused_before_the_first_is_trained_unless_insisted_on(
    heedmap, sst, tmp_path
):
    out = tmp_path / "out"
    base = ("reproduce", "jain-wallace", "sst", "--data", sst, "--out", out)
    assert heedmap(*base, *QUICK).code == 0
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    other = (*base, "--encoders", "cnn,average", *QUICK[2:])
    for change, expected in (
        (("--instances", "9"), "instances: 15 -> 9"),
        (("--epochs", "1"), "epochs: 2 -> 1"),
        (("--test-texts", "18"), "other texts"),
        (("--rules", "code"), "rules: paper -> code"),
    ):
        said = heedmap(*other, *change)
        assert said.code == 2
        assert expected in said.err
        assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == before
    said = heedmap(*base, *QUICK, "--instances", "9", "--overwrite")
    assert said.code == 0, said.err
    assert {one.n for one in read(out)[0].numbers if one.quantity == "permutation: median TVD"} == {
        9
    }


@pytest.mark.exhaustive
def test_the_variants_are_made_from_vectors_that_have_moved_and_from_no_others(
    heedmap, sst, tmp_path
):
    there, elsewhere = tmp_path / "a.txt", tmp_path / "b.txt"
    there.write_text("good 1 2\nbad 2 1\n")
    base = (
        "reproduce", "jain-wallace", "sst", "--data", sst, "--encoders", "lstm", "--scores", "additive",
        "--seeds", "1", "--epochs", "1", "--instances", "10", "--out", tmp_path / "out",
    )  # fmt: skip
    assert heedmap(*base, "--vectors", there).code == 0
    there.rename(elsewhere)
    there.write_text("good 2 1\nbad 2 1\n")
    said = heedmap(*base, "--vectors", there, "--baselines")
    assert said.code == 2
    assert "other vectors" in said.err
    said = heedmap(*base, "--vectors", elsewhere, "--baselines")
    assert said.code == 0, said.err
    assert read(tmp_path / "out")[0].baselines
    assert "a.txt (pretrained for 2 of" not in (tmp_path / "out" / "result.md").read_text()
    assert "b.txt (pretrained for 2 of" in (tmp_path / "out" / "result.md").read_text()
    settings = (tmp_path / "out" / "sst" / "lstm-additive-0" / "settings.toml").read_text()
    assert str(elsewhere) in settings


@pytest.mark.slow
def test_the_command_trains_audits_and_tells_and_a_second_time_only_tells(heedmap, sst, tmp_path):
    out = tmp_path / "out"
    said = heedmap("reproduce", "jain-wallace", "sst", "--data", sst, *QUICK, "--out", out)
    assert said.code == 0, said.err
    assert "0.799" in said.out  # published: average, dot
    weights = out / "sst" / "average-dot-1" / "model.safetensors"
    made = weights.stat().st_mtime_ns
    before = {p.name: p.read_bytes() for p in out.glob("result.*")}
    assert sorted(before) == ["result.csv", "result.html", "result.md", "result.tex"]
    rows = list(csv.DictReader((out / "result.csv").read_text().splitlines()))
    f1 = next(row for row in rows if row["quantity"] == "f1")
    assert (f1["encoder"], f1["seeds"], f1["published"][:5]) == ("average", "2", "0.777")
    assert "average-dot-1/report.html" in before["result.html"].decode()
    again = heedmap("reproduce", "jain-wallace", "sst", "--data", sst.parent, *QUICK, "--out", out)
    assert again.code == 0, again.err
    assert weights.stat().st_mtime_ns == made
    assert {p.name: p.read_bytes() for p in out.glob("result.*")} == before
    drawn = heedmap("figures", out, "--format", "svg")
    assert drawn.code == 0, drawn.err
    assert (out / "figures" / "gradient-dot.svg").read_text().startswith("<svg")


@pytest.mark.exhaustive
def test_the_variants_stand_in_the_result_and_are_not_made_twice(heedmap, sst, tmp_path):
    arguments = (
        "reproduce", "jain-wallace", "sst", "--data", sst, "--encoders", "lstm", "--scores", "additive",
        "--seeds", "1", "--epochs", "2", "--instances", "10", "--baselines", "--out", tmp_path / "out",
    )  # fmt: skip
    said = heedmap(*arguments)
    assert said.code == 0, said.err
    told = (tmp_path / "out" / "result.md").read_text()
    for variant in ("logistic regression", "no attention", "log-odds at test", "regularised"):
        assert f"| sst | {variant} | 1 |" in told
    listed = heedmap("figures", tmp_path / "out", "--list").out
    assert "log-odds-violin-sst" in listed
    drawn = heedmap(
        "figures", tmp_path / "out", "--only", "log-odds-scatter-sst", "--format", "svg"
    )
    assert drawn.code == 0, drawn.err
    kept = tmp_path / "out" / "sst" / "baselines-0.json"
    before = kept.stat().st_mtime_ns
    assert heedmap(*arguments).code == 0
    assert kept.stat().st_mtime_ns == before
    assert (tmp_path / "out" / "result.md").read_text() == told


BABI = {"epochs": 100, "batch_size": 50, "min_df": 1}
CODE = {"epsilon": 0.05, "gradient_of": "probability"}


@pytest.mark.parametrize(
    ("data", "training", "model", "audit"),
    [
        ({"source": "x.csv"}, {}, {}, {}),
        ({"source": "reviews"}, {}, {}, {}),
        ({"source": "x", "dataset": "sst"}, {"min_df": 1}, {}, {}),
        ({"source": "x", "dataset": "snli"}, {"epochs": 25, "batch_size": 128, "min_df": 3}, {}, {}),
        ({"source": "x", "dataset": "cnn"}, {"epochs": 25, "batch_size": 90, "min_df": 8}, {}, {}),
        ({"source": "babi_qa2"}, BABI, {"embedding_size": 50, "hidden_size": 32}, {}),
        ({"source": "x", "dataset": "imdb", "rules": "code"}, {"min_df": 10, "first_epoch": False}, {}, CODE),
        ({"source": "x.csv", "rules": "code"}, {"first_epoch": False}, {}, CODE),
    ],
)  # fmt: skip
def test_a_data_set_of_the_paper_is_trained_and_audited_as_there(data, training, model, audit):
    settings = DataSettings(**data)
    assert defaults_for(settings, TrainSettings) == training
    assert defaults_for(settings, ModelSettings) == model
    assert defaults_for(settings, AuditSettings) == audit


def test_runs_know_no_paper_but_those_that_are_registered(monkeypatch):
    monkeypatch.setattr(defaults, "_registered", [])
    for rules in ("paper", "code"):
        data = DataSettings(source="x", dataset="sst", rules=rules)
        assert not defaults_for(data, TrainSettings) | defaults_for(data, AuditSettings)
    register(lambda data: {"epochs": 7} if data.dataset == "sst" else {})
    assert defaults_for(data, TrainSettings) == {"epochs": 7}
    assert defaults_for(DataSettings(source="sst"), TrainSettings) == {}


def test_every_recipe_and_size_is_of_a_data_set_of_the_catalog_and_of_settings_that_there_are():
    assert RECIPES.keys() == DATASETS.keys() >= PUBLISHED_SIZES.keys()
    groups: tuple[type[Settings], ...] = (ModelSettings, TrainSettings)
    for name in DATASETS:
        found = [defaults_for(DataSettings(source=name, dataset=name), group) for group in groups]
        for group, values in zip(groups, found, strict=True):
            group.of(**values)
        assert found[0] | found[1] == RECIPES[name]


@pytest.mark.exhaustive
def test_variants_wait_for_the_models_that_other_workers_train(heedmap, sst, tmp_path):
    for workers in (1, 2):
        said = heedmap(
            "reproduce", "jain-wallace", "sst", "--data", sst, "--encoders", "lstm", "--scores", "additive",
            "--seeds", "2", "--epochs", "1", "--instances", "10", "--baselines", "--workers", workers,
            "--out", tmp_path / str(workers),
        )  # fmt: skip
        assert said.code == 0, said.err
    one, two = (
        {p.relative_to(out): p.read_bytes() for p in out.rglob("*") if p.is_file()}
        for out in (tmp_path / "1", tmp_path / "2")
    )
    assert one == two
    assert sum(path.name.startswith("baselines-") for path in one) == 2


@pytest.mark.slow
def test_by_the_codes_rules_epsilon_the_gradient_and_the_first_epoch_are_the_codes(
    heedmap, sst, tmp_path
):
    out = tmp_path / "out"
    said = heedmap(
        "reproduce", "jain-wallace", "sst", "--data", sst, *QUICK, "--rules", "code", "--out", out
    )
    assert said.code == 0, said.err
    settings = (out / "sst" / "average-dot-0" / "settings.toml").read_text()
    for line in ("epsilon = 0.05", 'gradient_of = "probability"', "first_epoch = false"):
        assert line in settings


def test_without_a_name_the_data_sets_are_listed_with_what_they_need(heedmap, sst):
    said = heedmap("reproduce", "jain-wallace", "--data", sst.parent)
    assert said.code == 0
    for name, one in DATASETS.items():
        assert f"{name} ({one.title})" in said.out
    assert f"sst (SST): {sst}" in said.out
    assert "adr (ADR Tweets): not at hand" in said.out
    assert "imdb (IMDB): with --hub" in said.out


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("mnist",), ["mnist", "sst, imdb"]),
        (("diabetes",), ["DIAGNOSES_ICD.csv", "PhysioNet"]),
        (("sst", "--encoders", "rnn"), ["--encoders", "lstm, cnn", "rnn"]),
        (("babi_qa1", "--scores", ""), ["--scores", "additive"]),
        (("babi_qa1", "--seeds", "0"), ["--seeds", "1"]),
        (("babi_qa1", "--rules", "mine"), ["rules"]),
    ],
)
def test_what_cannot_be_run_is_refused_in_one_line(heedmap, tmp_path, arguments, named):
    said = heedmap(
        "reproduce", "jain-wallace", *arguments, "--data", tmp_path, "--out", tmp_path / "o"
    )
    stopped(said, *named)
    assert len(said.err.strip().splitlines()) == 1
    assert not (tmp_path / "o").exists()


def test_a_place_is_the_data_set_itself_or_holds_one_folder_for_each(sst):
    assert locate("sst", sst) == locate("sst", sst.parent) == str(sst)
    assert locate("imdb", sst.parent) is None
    assert locate("imdb", sst.parent, hub=True) == DATASETS["imdb"].hub
    assert locate("babi_qa1", sst.parent) == "babi_qa1"
    with refused("imdb", "--data", "--hub", "stanfordnlp/imdb"):
        needed("imdb", sst.parent)
    with refused(sst.parent / "mistyped", "babi_qa1"):
        needed("babi_qa1", sst.parent / "mistyped")


def test_only_data_sets_of_the_same_files_may_share_a_place(sst, tmp_path):
    check_apart({"babi_qa1": str(tmp_path), "babi_qa2": str(tmp_path), "sst": str(sst)})
    check_apart({"diabetes": str(tmp_path), "anemia": str(tmp_path)})  # one export of MIMIC
    with refused(sst / "train.jsonl", "babi_qa1 and babi_qa2"):
        check_apart({name: str(sst / "train.jsonl") for name in ("babi_qa1", "babi_qa2")})
    with refused(sst, "babi_qa1 and babi_qa2"):
        check_apart({"babi_qa1": str(sst), "babi_qa2": str(sst)})


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("sst", "--instances", "0"), ["instances = 0", "1"]),
        (("sst", "--epochs", "0"), ["epochs = 0", "1"]),
        (("sst", "--vectors", "none.txt"), ["none.txt"]),
        (("sst", "babi_qa1"), ["sst and babi_qa1", "one folder for each"]),
    ],
)
def test_what_is_wrong_is_said_before_the_first_model_is_trained(
    heedmap, sst, tmp_path, options, named
):
    said = heedmap("reproduce", "jain-wallace", *options, "--data", sst, "--out", tmp_path / "out")
    stopped(said, *named)
    assert len(said.err.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_a_file_is_no_folder_for_the_result(heedmap, sst, tmp_path):
    (tmp_path / "file").write_text("mine")
    said = heedmap("reproduce", "jain-wallace", "sst", "--data", sst, "--out", tmp_path / "file")
    stopped(said, "--out", tmp_path / "file", "a file")
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:babi_qa1. . of 6 classes")  # so few stories miss some
def test_the_result_says_in_what_it_is_smaller_than_the_papers(heedmap, sst, tmp_path):
    out = tmp_path / "out"
    said = heedmap(
        "reproduce", "jain-wallace", "sst", "babi_qa1", "--data", sst.parent, "--encoders", "average,average",
        "--scores", "dot", "--seeds", "1", "--epochs", "1", "--instances", "15", "--train-texts", "60",
        "--test-texts", "18", "--out", out,
    )  # fmt: skip
    assert said.code == 0, said.err
    for name in ("result.md", "result.html", "result.tex"):
        told = (out / name).read_text()
        assert "1 epoch instead of 8" in told
        assert "1 epoch instead of 100" in told
        assert "a sample of 60 of 9000 train texts" in told
        assert "15 of 18 test texts audited" in told
        assert "stories generated by heedmap, not the published ones" in told
    told = (out / "result.md").read_text()
    assert "[" not in told.split("## Performance")[1].split("Mean ±")[0]


def test_published_numbers_stand_beside_what_is_loaded_as_their_data_set(tmp_path, sst):
    own = tmp_path / "sst"
    own.mkdir()
    lines = [f"good text {i},{i % 2}" for i in range(60)]
    (own / "train.csv").write_text("\n".join(["text,label", *lines]))
    (own / "test.csv").write_text("\n".join(["text,label", *lines[:20]]))
    assert list(_loaded([load(own)], ())) == ["own-sst"]
    theirs = tmp_path / "a copy"
    sst.rename(theirs)
    assert list(_loaded([load(theirs, dataset="sst")], ())) == ["sst"]
    with refused("sst", "a name of its own"):
        _loaded([load(theirs, dataset="sst")], {"sst": None})


def test_a_recipe_is_for_the_data_set_that_is_named_and_not_for_files_called_so():
    named, called = DataSettings.of(source="x", dataset="imdb"), DataSettings.of(source="imdb")
    assert (dataset_of(named), dataset_of(called)) == ("imdb", None)
    assert dataset_of(DataSettings.of(source="babi_qa1")) == "babi_qa1"
    assert defaults_for(named, TrainSettings) == RECIPES["imdb"]
    assert defaults_for(called, TrainSettings) == {}
