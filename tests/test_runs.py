import pytest
import torch
from conftest import small_corpus, watched
from wording import refused

from heedmap.data.load import load
from heedmap.errors import InputError
from heedmap.files import manifest
from heedmap.runs import audit as auditing
from heedmap.runs.audit import audit, open_audit
from heedmap.runs.listing import list_runs
from heedmap.runs.open import open_run
from heedmap.runs.train import train

SMALL = {"encoder": "average", "embedding_size": 8, "hidden_size": 8, "epochs": 1, "min_df": 1}


@pytest.fixture
def folder(tmp_path, csv_file):
    train(load(csv_file), out=tmp_path / "run", **SMALL)
    return tmp_path / "run"


def test_a_run_comes_back_from_its_folder(folder, csv_file):
    run = open_run(folder)
    before = (folder / "model.safetensors").stat().st_mtime_ns
    again = train(load(csv_file), out=folder, **SMALL)
    assert (folder / "model.safetensors").stat().st_mtime_ns == before, "not trained again"
    for name, value in run.model.state_dict().items():
        assert torch.equal(value, again.model.state_dict()[name])
    assert run.training == again.training
    assert list_runs(folder.parent) == [folder]


def test_other_settings_in_the_same_folder_are_refused_with_the_difference(folder, csv_file):
    before = {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}
    with refused("train.epochs: 1 -> 2", "--overwrite"):
        train(load(csv_file), out=folder, **{**SMALL, "epochs": 2})
    assert {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()} == before


def test_the_same_texts_in_another_place_are_the_same_run(folder, csv_file, tmp_path):
    weights = (folder / "model.safetensors").stat().st_mtime_ns
    (tmp_path / "elsewhere").mkdir()
    moved = csv_file.rename(tmp_path / "elsewhere" / csv_file.name)
    run = train(load(moved), out=folder, **SMALL)
    assert run.training is not None
    assert (folder / "model.safetensors").stat().st_mtime_ns == weights
    assert open_run(folder).settings.data.source == str(moved)


def test_of_texts_that_have_moved_it_is_said_where_to_write_their_place(folder, csv_file, tmp_path):
    moved = csv_file.rename(tmp_path / "moved.csv")
    with refused(csv_file, folder, "settings.toml"):
        open_run(folder)
    settings = folder / "settings.toml"
    settings.write_text(settings.read_text().replace(str(csv_file), str(moved)))
    assert open_run(folder).settings.data.source == str(moved)


def test_a_tilde_is_the_home_folder_even_where_no_shell_reads_it(csv_file, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    run = train(load(f"~/{csv_file.relative_to(tmp_path)}"), out="~/run", **SMALL)
    assert run.folder == tmp_path / "run"
    assert open_run("~/run").settings.data.source == str(csv_file)
    assert not (tmp_path / "~").exists()


def test_another_corpus_in_the_same_folder_is_refused(folder, csv_file):
    csv_file.write_text(csv_file.read_text() + "one more,pos\n")
    with refused("fingerprint: ", "--overwrite"):
        train(load(csv_file), out=folder, **SMALL)
    with refused(folder, csv_file):
        open_run(folder)


def test_overwriting_insists_and_leaves_foreign_files_alone(folder, csv_file):
    audit(open_run(folder))
    (folder / "notes.txt").write_text("mine")
    run = train(load(csv_file), out=folder, overwrite=True, **{**SMALL, "epochs": 2})
    assert len(run.training.scores) == 2
    assert (folder / "notes.txt").read_text() == "mine"
    assert not (folder / "tables").exists()


def test_overwriting_a_run_with_itself_keeps_it(folder, csv_file):
    audit(open_run(folder))
    made = (folder / "model.safetensors").stat().st_mtime_ns
    train(load(csv_file), out=folder, overwrite=True, **SMALL)
    assert (folder / "model.safetensors").stat().st_mtime_ns == made
    assert (folder / "tables").exists()


def test_overwriting_with_what_cannot_be_trained_loses_nothing(folder, csv_file, tmp_path):
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    (tmp_path / "vectors.txt").write_text("good 1 2\nbad 1\n")
    with refused("vectors.txt, line 2", "2 finite numbers", "'bad 1'"):
        train(load(csv_file), out=folder, overwrite=True, vectors=tmp_path / "vectors.txt", **SMALL)
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before


@pytest.mark.filterwarnings("default:.*not as heedmap wrote it")
@pytest.mark.parametrize("name", ["settings.toml", "model.safetensors", "vocabulary.json"])
def test_overwriting_a_damaged_run_trains_again(folder, csv_file, name):
    whole = (folder / "model.safetensors").read_bytes()
    (folder / name).write_bytes(b"rubbish")
    with pytest.raises(InputError):
        train(load(csv_file), out=folder, **SMALL)
    train(load(csv_file), out=folder, overwrite=True, **SMALL)
    assert (folder / "model.safetensors").read_bytes() == whole
    assert open_run(folder).training is not None


def test_overwriting_begins_an_unfinished_training_anew(folder, csv_file):
    (folder / "model.safetensors").unlink()
    manifest.write(folder / "checkpoint.safetensors", b"rubbish")
    with refused("checkpoint.safetensors", "--overwrite"):
        train(load(csv_file), out=folder, **SMALL)
    train(load(csv_file), out=folder, overwrite=True, **SMALL)
    assert open_run(folder).training is not None


def test_what_was_asked_of_a_model_that_is_gone_goes_with_it(folder, csv_file):
    audit(open_run(folder), instances=10)
    (folder / "model.safetensors").unlink()
    train(load(csv_file), out=folder, **SMALL)
    assert not (folder / "tables").exists()
    assert not (folder / "report.html").exists()
    assert audit(open_run(folder), instances=5).tables["instances"].num_rows == 5


def test_overwriting_refuses_to_delete_what_it_is_made_of(folder, csv_file):
    place = folder / "tables" / "texts.csv"
    place.parent.mkdir()
    place.write_text(csv_file.read_text())
    with refused(place, folder, "--overwrite", "--out"):
        train(load(place), out=folder, overwrite=True, **{**SMALL, "epochs": 2})
    assert place.exists()


def test_word_vectors_are_known_by_what_is_in_them(csv_file, tmp_path):
    small = {name: value for name, value in SMALL.items() if name != "embedding_size"}
    place = tmp_path / "vectors.txt"
    place.write_text("good 1 2\n")
    train(load(csv_file), out=tmp_path / "run", vectors=place, **small)
    made = (tmp_path / "run" / "model.safetensors").stat().st_mtime_ns
    moved = place.rename(tmp_path / "elsewhere.txt")
    train(load(csv_file), out=tmp_path / "run", vectors=moved, **small)
    assert (tmp_path / "run" / "model.safetensors").stat().st_mtime_ns == made
    moved.write_text("good 2 1\n")
    with refused("train.vectors_hash: "):
        train(load(csv_file), out=tmp_path / "run", vectors=moved, **small)


def test_a_folder_that_is_no_run_is_not_touched(tmp_path):
    (tmp_path / "thesis.txt").write_text("precious")
    with refused(tmp_path, "--out"):
        train(small_corpus(), out=tmp_path, **SMALL)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("model.safetensors", b"rubbish"),
        ("vocabulary.json", b"{"),
        ("vocabulary.json", b'{"words": ["a"], "classes": ["neg", "pos"]}'),
        ("training.json", b"[]"),
        ("settings.toml", b"version = 1\n"),
        ("settings.toml", b"= what"),
    ],
)
def test_a_damaged_run_is_one_clear_line(folder, name, content):
    (folder / name).write_bytes(content)
    with pytest.raises(InputError) as caught:
        open_run(folder)
    assert "\n" not in str(caught.value)
    assert str(folder) in str(caught.value)


def test_a_run_of_another_version_is_refused(folder):
    path = folder / "settings.toml"
    path.write_text(path.read_text().replace("version = 1", "version = 99"))
    with refused("settings.toml", "format 99", "1"):
        open_run(folder)


def test_an_unknown_setting_is_an_error(folder):
    path = folder / "settings.toml"
    path.write_text(path.read_text().replace("[train]", "[train]\nmomentum = 0.9"))
    with refused("settings.toml", "momentum = 0.9"):
        open_run(folder)


def test_an_audit_goes_on_after_the_last_finished_table(folder, monkeypatch):
    class Stop(Exception):
        pass

    def stop(name):
        if name == "permutation":
            raise Stop

    with pytest.raises(Stop), watched(step=stop):
        audit(open_run(folder))
    done = sorted(p.stem for p in (folder / "tables").glob("*.parquet"))
    # The weights are shuffled for `alternatives`, which asks whether the map has a yes.
    assert done == [
        "gradient", "highlights", "importance_mass", "instances", "integrated_gradients", "leave_one_out",
    ]  # fmt: skip
    names = []
    with watched(step=names.append):
        resumed = audit(open_run(folder))
    asked = ["alternatives", "permutation", "baselines", "agreement", "opposing_mass"]
    later = [
        "erasure",
        "decision_flips",
        "class_erasure",
        "eraser",
        "adversary",
        "relevance",
        "smallest_change",
        "better_maps",
    ]
    assert names == [*asked, *later, "report"]
    whole = audit(train(load(resumed.settings.data.source), **SMALL))
    for name in whole.tables:  # as they are written: an undefined number in a list equals nothing
        assert repr(whole.tables[name].to_pylist()) == repr(resumed.tables[name].to_pylist()), name
    assert whole.findings == resumed.findings


def test_an_audit_with_other_settings_is_refused_unless_insisted_on(folder):
    run = open_run(folder)
    audit(run)
    with refused("audit.epsilon: 0.01 -> 0.05"):
        audit(run, epsilon=0.05)
    assert audit(run, epsilon=0.05, overwrite=True).settings.audit.epsilon == 0.05


def test_two_runs_with_one_seed_give_byte_identical_tables(tmp_path, csv_file):
    for name in "ab":
        audit(train(load(csv_file), out=tmp_path / name, seed=3, **SMALL), seed=3)
    for path in sorted((tmp_path / "a").rglob("*.*")):
        other = tmp_path / "b" / path.relative_to(tmp_path / "a")
        # The first two name the folder, and the manifest has their hashes.
        if path.name not in ("findings.json", "report.html", "manifest.json"):
            assert path.read_bytes() == other.read_bytes()


def test_findings_are_a_function_of_the_tables_alone(folder):
    result = audit(open_run(folder))
    assert open_audit(folder).findings == result.findings
    report = (folder / "report.html").read_bytes()
    (folder / "report.html").unlink()
    (folder / "findings.json").unlink()
    auditing.rewrite(folder)
    assert (folder / "report.html").read_bytes() == report


def test_a_larger_test_split_is_sampled_and_the_sample_is_named(folder):
    result = audit(open_run(folder), instances=7)
    assert result.tables["instances"].num_rows == 7
    assert result.about["audited"] == 7
    assert result.about["test_texts"] == 18
    again = audit(train(load(result.settings.data.source), **SMALL), instances=7)
    assert again.tables["instances"]["key"] == result.tables["instances"]["key"]


def test_an_audit_in_memory_is_saved_as_a_page_or_as_a_run(tmp_path, csv_file):
    result = audit(train(load(csv_file), **SMALL))
    for name in ("page.html", "page.htm"):
        assert result.save(tmp_path / name).read_text().startswith("<!doctype html>")
    with refused("page.pdf", ".html"):
        result.save(tmp_path / "page.pdf")
    result.save(tmp_path / "run")
    assert open_audit(tmp_path / "run").findings == result.findings
    assert open_run(tmp_path / "run").settings == result.settings


def test_a_missing_table_is_named_and_nothing_is_rewritten(folder):
    audit(open_run(folder))
    before = (folder / "findings.json").read_bytes()
    (folder / "tables" / "adversary.parquet").unlink()
    with refused("adversary.parquet", "heedmap audit --run"):
        auditing.rewrite(folder)
    assert (folder / "findings.json").read_bytes() == before


def test_a_run_that_is_not_audited_has_no_report(folder):
    with refused(folder, "heedmap audit --run"):
        open_audit(folder)


def test_a_table_that_is_not_there_is_named(folder):
    with refused("'seeds'", "instances"):
        audit(open_run(folder)).to_dataframe("seeds")
