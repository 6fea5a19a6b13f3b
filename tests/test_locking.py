"""One writer at a time in a folder; a killed process leaves no lock behind."""

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from conftest import contents
from wording import refused, stopped

from heedmap.data.load import load
from heedmap.files import locking
from heedmap.files.locking import BusyError, whole_command, writing
from heedmap.files.storage import write_atomically
from heedmap.runs import open as opening
from heedmap.runs.audit import open_audit
from heedmap.runs.open import open_run
from heedmap.runs.train import train


@pytest.fixture(params=["folder", "elsewhere"])
def how(request, monkeypatch, tmp_path_factory):
    """A lock on the folder itself, and the one where there are none of that kind."""
    if request.param == "elsewhere":
        monkeypatch.setattr(locking, "fcntl", None)
        monkeypatch.setenv("TMPDIR", str(tmp_path_factory.mktemp("temporary")))
        monkeypatch.setattr("tempfile.tempdir", None)
    elif locking.fcntl is None:
        pytest.skip("folders cannot be locked here")
    return request.param


def test_a_second_process_is_refused_in_one_line_until_the_first_is_done(hold, how, tmp_path):
    other = hold(tmp_path / "run", how)
    with (
        refused(tmp_path / "run", "another heedmap", "--out", kind=BusyError),
        writing(tmp_path / "run"),
    ):
        pass
    other.communicate("done\n")
    with writing(tmp_path / "run"):
        pass


def test_a_killed_process_leaves_no_lock_and_no_file(hold, how, tmp_path):
    other = hold(tmp_path / "run", how)
    other.kill()
    other.wait()
    with writing(tmp_path / "run"):
        assert os.listdir(tmp_path / "run") == []


def test_within_one_thread_a_folder_is_taken_again_and_let_go_last(hold, how, tmp_path):
    folder = tmp_path / "run"
    with writing(folder):
        with writing(folder):
            write_atomically(folder / "a", "")
        with pytest.raises(AssertionError):
            hold(folder, how)
    hold(folder, how)


def test_another_thread_is_refused_in_the_same_folder_and_free_in_others(how, tmp_path):
    said = []

    def other():
        with writing(tmp_path / "b"):
            said.append("b")
        try:
            with writing(tmp_path / "a"):
                said.append("a")
        except BusyError:
            said.append("busy")

    with writing(tmp_path / "a"):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert said == ["b", "busy"]


def test_a_whole_command_holds_what_it_took_to_its_end(hold, tmp_path):
    with whole_command():
        with writing(tmp_path / "run"):
            write_atomically(tmp_path / "run" / "a", "")
        with pytest.raises(AssertionError):
            hold(tmp_path / "run")
    hold(tmp_path / "run")


def test_a_folder_that_was_made_for_nothing_is_gone_again(how, tmp_path):
    with writing(tmp_path / "new" / "run"):
        assert (tmp_path / "new" / "run").is_dir()
    assert os.listdir(tmp_path) == []
    (tmp_path / "old").mkdir()
    with writing(tmp_path / "old"):
        pass
    with writing(tmp_path / "new"):
        write_atomically(tmp_path / "new" / "a", "")
    assert sorted(os.listdir(tmp_path)) == ["new", "old"], "what was there or is used stays"


def test_a_file_in_the_folders_place_is_one_clear_line(tmp_path):
    (tmp_path / "file").write_text("mine")
    for place in (tmp_path / "file", tmp_path / "file" / "run"):
        with refused("a file", "--out"), writing(place):
            pass
    assert (tmp_path / "file").read_text() == "mine"


def test_a_moments_work_waits_for_others_and_is_over_at_once(hold, tmp_path):
    other = hold(tmp_path)
    timer = threading.Timer(0.2, lambda: other.communicate("done\n"))
    timer.start()
    with whole_command():
        with writing(tmp_path, wait=True):
            pass
        assert hold(tmp_path).poll() is None, "another holds it while the command goes on"
    timer.join()


WRITE = """
import sys
from pathlib import Path
from heedmap.files.storage import write_atomically
path = Path(sys.argv[1])
for size in [300_000] * 40 + [1] * 1500:  # long ones could be torn, short ones meet more often
    write_atomically(path, sys.argv[2] * size)
    text = path.read_text()
    assert len(text) in (1, 300_000) and len(set(text)) == 1
"""


@pytest.mark.exhaustive
def test_several_that_write_one_file_at_the_same_time_each_write_it_whole(tmp_path):
    path = tmp_path / "page.html"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITE, str(path), letter]) for letter in "abc"
    ]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    assert os.listdir(tmp_path) == ["page.html"]


def test_what_a_killed_writer_left_is_written_over(tmp_path):
    (tmp_path / ".a.txt.partial").write_text("half of something longer")
    write_atomically(tmp_path / "a.txt", "new")
    assert {p.name: p.read_text() for p in Path(tmp_path).iterdir()} == {"a.txt": "new"}


OWN = (
    "--encoder", "average", "--epochs", "1", "--embedding-size", "8", "--hidden-size", "8",
    "--instances", "9", "--permutations", "2",
)  # fmt: skip


def test_while_one_writes_others_are_refused_and_readers_see_what_is_whole(
    heedmap, csv_file, hold, tmp_path
):
    run = tmp_path / "run"
    audited = ("audit", "--data", csv_file, "--out", run, *OWN)
    assert heedmap(*audited).code == 0
    before = contents(run)
    other = hold(run)
    for command in (
        audited,
        (*audited, "--seed", "1", "--overwrite"),
        ("audit", "--run", run, *OWN[-4:]),
        ("train", "--data", csv_file, "--out", run, *OWN[:-4]),
        ("report", run),
        ("reproduce", "drozdyuk", "--data", csv_file, "--out", run),
    ):
        done = heedmap(*command)
        assert (done.code, done.err.count("\n")) == (2, 1), done.err
        stopped(done, run, "another heedmap", "--out")
    assert contents(run) == before
    assert json.loads(heedmap("list", tmp_path, "--json").out)[0]["state"] == "audited"
    assert heedmap("figures", run, "--list").code == 0
    other.communicate("done\n")
    assert heedmap("report", run).code == 0


@pytest.mark.slow
def test_of_two_commands_at_once_in_one_folder_one_is_refused_and_nothing_is_mixed(
    csv_file, tmp_path
):
    run = tmp_path / "run"
    started = [
        subprocess.Popen(
            [
                *(sys.executable, "-c", "from heedmap.cli import main; main()"),
                *("audit", "--data", csv_file, "--out", run, *OWN, "--seed", str(seed)),
            ],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for seed in (0, 1, 2)
    ]  # fmt: skip
    said = [(process.communicate()[1], process.returncode) for process in started]
    codes = [code for _, code in said]
    assert codes.count(0) == 1, said
    for err, code in said:
        assert code == 0 or "is being written" in err or "train.seed" in err
    seed = open_run(run).settings.train.seed
    assert codes[seed] == 0
    assert open_audit(run).settings.audit.seed == seed


def test_a_run_that_is_replaced_while_it_is_read_is_said_to_be(csv_file, tmp_path, monkeypatch):
    small = {"encoder": "average", "epochs": 1, "embedding_size": 8, "hidden_size": 8}
    train(load(csv_file), out=tmp_path / "run", **small)
    train(load(csv_file), out=tmp_path / "other", seed=1, **small)
    original = opening.open_own

    def slow(folder, settings):
        found = original(folder, settings)
        shutil.copy(tmp_path / "other" / "settings.toml", folder.path / "settings.toml")
        return found

    monkeypatch.setattr(opening, "open_own", slow)
    with refused(tmp_path / "run", "while it was read"):
        open_run(tmp_path / "run")


def test_a_folder_that_cannot_be_made_is_refused_and_not_tried_for_ever(tmp_path, monkeypatch):
    def mkdir(self, *arguments, **named):
        raise FileNotFoundError(2, "No such file or directory")  # as below /proc

    monkeypatch.setattr(Path, "mkdir", mkdir)
    with refused(tmp_path / "run", "--out"), writing(tmp_path / "run"):
        raise AssertionError("never held")
