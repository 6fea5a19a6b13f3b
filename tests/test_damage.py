"""Run folders that are damaged, older or foreign are refused in one line, and nothing is rewritten."""

import json
import os
import shutil
import warnings
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from conftest import QUICK, WORDS, contents, stamped, watched
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from wording import refused, warned

from heedmap.data.load import load
from heedmap.errors import InputError
from heedmap.files.listing import File
from heedmap.files.manifest import Manifest
from heedmap.files.tables import write_table
from heedmap.papers.drozdyuk.interventions import SCHEMA
from heedmap.papers.jain_wallace.numbers import read
from heedmap.papers.kit.reproduction import Cell, read_part
from heedmap.runs.audit import audit, open_audit
from heedmap.runs.open import open_run
from heedmap.runs.train import train

AUDIT = ("--instances", "9", "--permutations", "2")
DEEP = "[" * 100_000


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A finished, audited run, one of another seed, and the texts of both."""
    place = tmp_path_factory.mktemp("made")
    rng = np.random.default_rng(0)
    rows = []
    for i in range(60):
        words = " ".join(WORDS[j] for j in rng.integers(0, 40, 4))
        rows.append(f"{'good' if i % 2 else 'bad'} {words},{'pos' if i % 2 else 'neg'}")
    (place / "texts.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    for seed, name in enumerate(("run", "other")):
        small = {"encoder": "average", "embedding_size": 8, "hidden_size": 8, "epochs": 1}
        run = train(load(place / "texts.csv"), out=place / name, **small, seed=seed)
        audit(run, instances=9, permutations=2)
    return place


@pytest.fixture
def place(made, tmp_path, monkeypatch):
    """A copy of all that, in which the command runs."""
    shutil.copytree(made, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    return Path("run")


def write(name, content):
    def damage(run):
        (run / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    return damage


def change(name, **values):
    """Other values in a JSON file; a value of None takes its key away."""

    def damage(run):
        old = json.loads((run / name).read_text())
        new = {k: v for k, v in {**old, **values}.items() if v is not None}
        (run / name).write_text(json.dumps(new))

    return damage


def from_other(*names):
    """Files of the other run in this one's place."""

    def damage(run):
        for name in names:
            shutil.copy(Path("other", name), run / name)

    return damage


def gone(*names):
    def damage(run):
        for name in names:
            (run / name).unlink()

    return damage


def weights(alter):
    def damage(run):
        path = run / "model.safetensors"
        tensors = load_file(path)
        alter(tensors)
        save_file(tensors, path)

    return damage


def table(alter, name="instances"):
    def damage(run):
        path = run / "tables" / f"{name}.parquet"
        pq.write_table(alter(pq.read_table(path)), path)

    return damage


def first(tensors):
    return tensors[sorted(tensors)[0]]


def swapped(run):
    path = run / "vocabulary.json"
    known = json.loads(path.read_text())
    path.write_text(json.dumps({**known, "classes": known["classes"][::-1]}))


def reordered(run):
    path = run / "vocabulary.json"
    known = json.loads(path.read_text())
    path.write_text(json.dumps({**known, "words": known["words"][::-1]}))


def settings(old, new):
    def damage(run):
        path = run / "settings.toml"
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    return damage


# What makes a run unreadable to all that read its model.
MODEL = {
    "NaN weights": weights(lambda t: first(t).view(-1)[:1].fill_(float("nan"))),
    "weights of another shape": weights(lambda t: t.update({sorted(t)[0]: torch.zeros(3, 3)})),
    "a weight fewer": weights(lambda t: t.pop(sorted(t)[0])),
    "a weight more": weights(lambda t: t.update(more=torch.zeros(1))),
    "other weights": weights(lambda t: first(t).view(-1)[:1].add_(1)),
    "another seed's model": from_other("model.safetensors"),
    "another seed's model and scores": from_other("model.safetensors", "training.json"),
    "half a model": lambda run: write("model.safetensors", (run / "model.safetensors").read_bytes()[:99])(run),
    "no vocabulary": gone("vocabulary.json"),
    "a deep vocabulary": write("vocabulary.json", DEEP),
    "a vocabulary of numbers": change("vocabulary.json", words=[1, 2]),
    "fewer words": change("vocabulary.json", words=["good"]),
    "words in another order": reordered,
    "swapped classes": swapped,
    "one class more": change("vocabulary.json", classes=["neg", "pos", "so-so"]),
    "no scores": gone("training.json"),
    "deep scores": write("training.json", DEEP),
    "scores that are a list": write("training.json", "[]"),
    "scores without epochs": change("training.json", scores=[]),
    "scores of another type": change("training.json", scores="good"),
    "a best epoch that there was not": change("training.json", best_epoch=7),
    "another identity": change("training.json", identity="0" * 16),
    "an identity of another type": change("training.json", identity=7),
}  # fmt: skip
SETTINGS = {
    "deep settings": write("settings.toml", "x = " + DEEP),
    "settings that are no text": write("settings.toml", b"\xff\xfe"),
    "empty settings": write("settings.toml", ""),
    "settings without data": write("settings.toml", "version = 1\n"),
    "another version": settings("version = 1", "version = 99"),
    "an unknown setting": settings("[train]", "[train]\nmomentum = 0.9"),
    "another type": settings("epochs = 1", 'epochs = "many"'),
    "other texts": settings('fingerprint = "', 'fingerprint = "0'),
}
# What makes its tables unfit to be told.
TABLES = {
    "other columns": table(lambda t: t.rename_columns([f"x{i}" for i in range(t.num_columns)])),
    "fewer rows": table(lambda t: t.slice(0, 4)),
    "no rows": table(lambda t: t.slice(0, 0)),
    "other numbers": table(lambda t: t.slice(0, 4), "agreement"),
    "another run's tables": lambda run: (
        shutil.rmtree(run / "tables"), shutil.copytree("other/tables", run / "tables"),
    ),
    "one table of another run": from_other("tables/agreement.parquet"),
    "no table": gone("tables/permutation.parquet"),
    "half a table": write("tables/permutation.parquet", b"PAR1"),
    "no about": gone("tables/about.json"),
    "a deep about": write("tables/about.json", DEEP),
    "an about that is a list": write("tables/about.json", "[1]"),
    "an about of other types": change("tables/about.json", tables={"instances": 1}),
    "an about without classes": change("tables/about.json", classes=None),
    "an about with swapped classes": change("tables/about.json", classes=["pos", "neg"]),
    "an about that leaves out a table": change("tables/about.json", tables=["instances"]),
    "an about with a table from elsewhere": change("tables/about.json", tables=["../../x"]),
    "another model": lambda run: [
        from_other(name)(run) for name in ("model.safetensors", "vocabulary.json", "training.json")
    ],
    "other settings of the audit": settings("permutations = 2", "permutations = 3"),
    "other settings of the training": settings("learning_rate = 0.001", "learning_rate = 0.002"),
}  # fmt: skip
# What makes it unknown which files are heedmap's.
MANIFESTS = {
    "a deep list": write("manifest.json", DEEP),
    "an odd list": write("manifest.json", "[]"),
    "another program's list": write("manifest.json", '{"name": "app", "icons": []}'),
    "an emptied list": write("manifest.json", "{}"),
    "a list of no files": change("manifest.json", files={}),
    "a list of files elsewhere": change(
        "manifest.json", files={"../texts.csv": {"size": 1, "sha256": "0"}}
    ),
    "sizes that are no numbers": change("manifest.json", files={"settings.toml": {"size": "x"}}),
    "no list": gone("manifest.json"),
}


def refused_and_unchanged(done, before):
    assert done.code == 2, (done.out, done.err)
    assert done.err.startswith("heedmap: ")
    assert len(done.err.strip().splitlines()) == 1
    assert "internal error" not in done.err
    assert stamped(".") == before, "nothing is rewritten"


@pytest.mark.parametrize("what", MANIFESTS)
def test_a_folder_whose_list_is_damaged_is_refused_in_one_line_and_nothing_is_rewritten(
    heedmap, place, what
):
    MANIFESTS[what](place)
    before = stamped(".")
    refused_and_unchanged(heedmap("report", "run"), before)
    refused_and_unchanged(heedmap("audit", "--run", "run", *AUDIT), before)
    other = (*QUICK, *AUDIT, "--seed", "7", "--overwrite")
    refused_and_unchanged(heedmap("audit", "--data", "texts.csv", "--out", "run", *other), before)


def special(name):
    def damage(run):
        (run / name).unlink()
        os.mkfifo(run / name)

    return damage


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (write("settings.toml", ""), "settings.toml: expected the settings of a run, found a file"),
        (write("settings.toml", 'version = "2.0"'), "of another program, or an emptied one"),
        (write("manifest.json", "{}"), "manifest.json: expected the list of the files"),
        (special("findings.json"), "findings.json: no file; move away what is there, and"),
    ],
)
def test_what_is_not_heedmaps_is_named_as_that(heedmap, place, damage, said):
    damage(place)
    assert said in heedmap("list", "run").out.replace("\n", " ")


def test_a_pipe_in_the_place_of_the_findings_is_named_where_they_are_written(heedmap, place):
    special("findings.json")(place)
    done = heedmap("report", "run")
    assert done.code == 2
    assert (
        "findings.json: expected a place for a file of heedmap's, found a pipe, a socket"
        in done.err
    )


@pytest.mark.parametrize("what", MODEL)
def test_a_damaged_model_whose_files_are_listed_as_they_are_is_refused(place, what):
    MODEL[what](place)
    for name in ("model.safetensors", "vocabulary.json", "training.json"):
        if (place / name).exists():
            relist(place, name)
    with refused(place.name):
        open_run(place)


@pytest.mark.parametrize("what", [*MODEL, *SETTINGS])
def test_a_damaged_run_is_refused_in_one_line_and_nothing_is_rewritten(heedmap, place, what):
    (MODEL | SETTINGS)[what](place)
    refused_and_unchanged(heedmap("audit", "--run", "run", *AUDIT), stamped("."))
    # From a place that has moved, which the settings would name.
    shutil.move("texts.csv", "moved.csv")
    refused_and_unchanged(
        heedmap("audit", "--data", "moved.csv", "--out", "run", *QUICK, *AUDIT), stamped(".")
    )


@pytest.mark.parametrize("what", [*TABLES, *SETTINGS])
def test_tables_that_are_not_known_to_be_the_models_are_not_told(heedmap, place, what):
    (TABLES | SETTINGS)[what](place)
    before = stamped(".")
    refused_and_unchanged(heedmap("report", "run"), before)
    refused_and_unchanged(heedmap("figures", "run", "--format", "svg"), before)
    with pytest.raises(InputError):
        open_audit("run")
    assert stamped(".") == before


@pytest.mark.parametrize(
    "what", [k for k in TABLES if not k.startswith(("other settings", "another model"))]
)
def test_an_audit_computes_again_what_is_not_known_to_be_its_own(made, place, what):
    def tables():
        files = (p for p in (place / "tables").iterdir() if not p.name.endswith(".changed"))
        return {p.name: p.read_bytes() for p in files}

    whole = tables()
    TABLES[what](place)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        audit(open_run("run"), instances=9, permutations=2)
    assert tables() == whole
    assert open_audit("run").about["audited"] == 9


def test_tables_of_another_model_are_computed_again_with_a_warning(place):
    TABLES["another run's tables"](place)
    run = open_run("run")
    with warned(".changed"):
        result = audit(run, instances=9, permutations=2)
    assert result.findings == open_audit("run").findings


def test_a_run_is_not_audited_into_a_folder_that_another_model_has_taken(place):
    run = open_run("run")
    for name in ("model.safetensors", "vocabulary.json", "training.json"):
        from_other(name)(place)
    before = contents(".")
    with refused("model.safetensors", "manifest.json"):
        audit(run, instances=9, permutations=2)
    from_other("settings.toml", "manifest.json")(place)
    with refused("train.seed: 1 -> 0"):
        audit(run, instances=9, permutations=2)
    for name in ("settings.toml", "manifest.json"):
        (place / name).write_bytes(before[place / name])
    assert contents(".") == before


def checkpoint(alter):
    def damage(run):
        path = run / "checkpoint.safetensors"
        with safe_open(path, "pt") as file:
            about = json.loads(file.metadata()["progress"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        about = alter(tensors, about) or about
        save_file(tensors, path, {"progress": json.dumps(about)})

    return damage


def put(part, value):
    def alter(tensors, about):
        name = next(n for n in sorted(tensors) if n.startswith(part) and tensors[n].ndim == 2)
        tensors[name] = value(tensors[name]).contiguous()

    return alter


CHECKPOINTS = {
    "rubbish": write("checkpoint.safetensors", b"rubbish"),
    "a model of another shape": checkpoint(put("model/", lambda t: torch.zeros(3, 3))),
    "a best model of another shape": checkpoint(put("best/", lambda t: torch.zeros(3, 3))),
    "moments of another shape": checkpoint(put("optimizer/", lambda t: torch.zeros(3, 3))),
    "NaN weights": checkpoint(put("model/", lambda t: t * float("nan"))),
    "NaN in the best weights": checkpoint(put("best/", lambda t: t * float("nan"))),
    "NaN moments": checkpoint(put("optimizer/", lambda t: t * float("nan"))),
    "no moments": checkpoint(
        lambda tensors, about: [tensors.pop(n) for n in [*tensors] if n[0] == "o"] and None
    ),
    "another training's": checkpoint(
        lambda tensors, about: {**about, "settings": {**about["settings"], "seed": 7}}
    ),
    "an older version's": checkpoint(
        lambda tensors, about: {k: v for k, v in about.items() if k != "settings"}
    ),
    "epochs that were not done": checkpoint(lambda tensors, about: {**about, "epochs_done": 9}),
    "no scores": checkpoint(lambda tensors, about: {**about, "scores": [{}]}),
    "a best epoch that was not": checkpoint(lambda tensors, about: {**about, "best_epoch": 5}),
    "an about of another type": checkpoint(lambda tensors, about: [1]),
}


def relist(run, name):
    """List a file as it is now: as if heedmap had written it so."""

    def change(listing):
        listing.files[name] = File.at(run / name)

    Manifest(run).change(change)


class Stop(Exception):
    pass


@pytest.mark.parametrize("what", CHECKPOINTS)
def test_a_checkpoint_of_something_else_is_refused_before_anything_is_cleared(what, made, tmp_path):
    corpus, run = load(made / "texts.csv"), tmp_path / "run"
    small = {"embedding_size": 8, "hidden_size": 8, "encoder": "average", "epochs": 3}
    small["learning_rate"] = 1e-4

    def stop(done, text):
        if "epoch 2 " in text:
            raise Stop

    with pytest.raises(Stop), watched(stop):
        train(corpus, out=run, **small)
    CHECKPOINTS[what](run)
    relist(run, "checkpoint.safetensors")
    before = stamped(run)
    with refused("checkpoint.safetensors", "--overwrite"):
        train(corpus, out=run, **small)
    assert stamped(run) == before
    train(corpus, out=run, overwrite=True, **small)
    assert open_run(run).training is not None


def test_after_a_training_that_diverged_the_advice_works_in_the_same_folder(
    heedmap, made, tmp_path
):
    command = ("train", "--data", made / "texts.csv", "--out", tmp_path / "run", *QUICK)
    done = heedmap(*command, "--learning-rate", "1e30")
    assert done.code == 2
    assert "try a smaller --learning-rate" in done.err
    assert not (tmp_path / "run").exists()
    assert heedmap(*command, "--learning-rate", "1e-3").code == 0


def test_a_finished_run_loses_what_killed_ones_left_beside_it(heedmap, place):
    whole = set(Path(".").rglob("*"))
    for name in (".manifest.json.partial", ".settings.toml.partial", ".model.safetensors.partial"):
        (place / name).write_text("")
    (place / "tables" / ".agreement.parquet.partial").write_text("")
    (place / ".model.partial").mkdir()
    assert heedmap("report", "run").code == 0
    assert set(Path(".").rglob("*")) == whole


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        DEEP,
        '{"dataset": "imdb", "rules": "paper"}',
        '{"dataset": "sst", "rules": "paper", "missing": [{"dataset": "sst", "encoder": "rnn", '
        '"score": "dot", "seed": 0}]}',
        '{"dataset": "sst", "rules": 7}',
    ],
)
def test_damaged_numbers_of_a_reproduction_are_one_line(tmp_path, content):
    (tmp_path / "sst").mkdir()
    (tmp_path / "sst" / "numbers.json").write_text(content)
    with refused("numbers.json"):
        read(tmp_path)


def test_a_part_of_a_reproduction_that_is_not_its_own_is_one_line(tmp_path):
    rows = [{"data": "x", "activation": "softmax", "seed": 0, "intervention": "original"}]
    whole = SCHEMA.empty_table().from_pylist(rows, schema=SCHEMA)
    path = tmp_path / "softmax-0.parquet"
    for content, asked in (
        (whole, ("softmax", 1)),
        (whole, ("entmax15", 0)),
        (whole.slice(0, 0), ("softmax", 0)),
        (whole.drop_columns(["n"]), ("softmax", 0)),
    ):
        write_table(path, content)
        with refused(path):
            read_part(path, SCHEMA, Cell("", {"activation": asked[0], "seed": asked[1]}))
    write_table(path, whole)
    assert len(read_part(path, SCHEMA, Cell("", {"activation": "softmax", "seed": 0}))) == 1
