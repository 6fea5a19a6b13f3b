"""The default folder of a run: next to others of its name, or its own if it exists."""

import shutil
from pathlib import Path

import pytest
from conftest import QUICK, WORDS
from wording import refused

from heedmap.files.locking import BusyError
from heedmap.runs.folder import RUN_FILES
from heedmap.runs.listing import list_runs
from heedmap.runs.run_paths import DefaultPlace, is_free, reserve_folder

NAME = "texts-average-additive-softmax-0"


@pytest.fixture
def two(tmp_path, monkeypatch):
    """Two files of one name with other texts, and no runs yet."""
    monkeypatch.chdir(tmp_path)
    for folder in "ab":
        Path(folder).mkdir()
        rows = [f"{'good' if i % 2 else 'bad'} {folder} {WORDS[i]},{i % 2}" for i in range(40)]
        Path(folder, "texts.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
    return "a/texts.csv", "b/texts.csv"


def names():
    return [path.name for path in list_runs(Path("runs"))]


def test_two_commands_with_one_default_name_do_not_meet_and_each_finds_its_own_again(heedmap, two):
    for data, name in zip(two, (NAME, f"{NAME}-2"), strict=True):
        done = heedmap("train", "--data", data, *QUICK)
        assert done.code == 0, done.err
        assert f"Run folder: runs/{name}\n" in done.out
    made = {path: path.stat().st_mtime_ns for path in Path("runs").rglob("*")}
    for data in two:
        assert heedmap("train", "--data", data, *QUICK).code == 0
    assert {path: path.stat().st_mtime_ns for path in Path("runs").rglob("*")} == made
    heedmap("train", "--data", two[0], *QUICK, "--min-df", 1)
    assert names() == [NAME, f"{NAME}-2", f"{NAME}-3"]
    shutil.rmtree(f"runs/{NAME}-2")
    heedmap("train", "--data", two[0], *QUICK, "--min-df", 1)
    assert names() == [NAME, f"{NAME}-3"], "found again behind the gap"
    heedmap("train", "--data", two[1], *QUICK)
    assert names() == [NAME, f"{NAME}-2", f"{NAME}-3"], "the gap is filled"


def test_overwriting_without_a_name_replaces_no_other_run(heedmap, two):
    heedmap("train", "--data", two[0], *QUICK)
    kept = Path("runs", NAME, "model.safetensors").read_bytes()
    assert heedmap("train", "--data", two[1], *QUICK, "--overwrite").code == 0
    assert Path("runs", NAME, "model.safetensors").read_bytes() == kept
    assert names() == [NAME, f"{NAME}-2"]


def test_a_run_that_is_just_beginning_is_not_met(hold, tmp_path):
    place = DefaultPlace(tmp_path / "run")
    hold(tmp_path / "run")
    with reserve_folder(place, lambda folder: False, RUN_FILES) as folder:
        assert folder == tmp_path / "run-2"
        (folder / "settings.toml").write_text("")
    with (
        refused("another heedmap", kind=BusyError),
        reserve_folder(place, lambda folder: folder == tmp_path / "run", RUN_FILES),
    ):
        pass


def test_what_a_killed_run_left_is_nothing_and_a_users_file_is_something(tmp_path):
    assert is_free(tmp_path / "none", RUN_FILES)
    assert is_free(tmp_path, RUN_FILES)
    for name in (".settings.toml.partial", ".model.safetensors.partial", ".model.partial"):
        (tmp_path / name).write_text("")
        assert is_free(tmp_path, RUN_FILES)
    (tmp_path / ".thesis.tex.partial").write_text("")
    assert not is_free(tmp_path, RUN_FILES)
