"""Audits of many texts in shards: after the merge the folder has the bytes of one process."""

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from conftest import contents
from wording import stopped

from heedmap.experiments import chunks
from heedmap.experiments.registry import registered
from heedmap.training.shards import jobs_folder

SMALL = ("--embedding-size", "8", "--hidden-size", "8", "--min-df", "1", "--encoder", "average")
QUICK = ("--epochs", "1", "--permutations", "30")


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(chunks, "TEXTS", 4)


@pytest.fixture
def command(csv_file):
    return ("audit", "--data", csv_file, *SMALL, *QUICK, "--out")


@pytest.fixture
def whole(heedmap, command, tmp_path):
    """The files of an audit without shards, with the name of those in shards."""
    assert heedmap(*command, tmp_path / "one/run").code == 0
    return contents(tmp_path / "one/run")


@pytest.mark.slow
def test_an_audit_in_shards_has_the_bytes_of_one_process(heedmap, command, whole, tmp_path):
    out = tmp_path / "run"
    first = heedmap(*command, out, "--shard", "1/3")
    assert first.code == 0, first.err
    assert "shard 1/3: its 2 of 5 jobs are finished, 3 of other shards are not" in first.out
    assert {path.name for path in (out / "tables/chunks").iterdir()} == {"00000", "00003"}
    assert not (out / "findings.json").exists()
    other = heedmap(*command, out, "--permutations", "20", "--shard", "2/3")
    stopped(other, out, "other settings", "permutations")
    missing = heedmap("merge", out)  # of the command that was not refused
    stopped(missing, "3 of 5 jobs", "texts 5 to 8; texts 9 to 12; texts 17 to 18")
    for number in (3, 2):
        assert heedmap(*command, out, f"--shard={number}/3").code == 0
    merged = heedmap("merge", out)
    assert merged.code == 0, merged.err
    assert contents(out) == whole
    assert not jobs_folder(out).exists()


@pytest.mark.exhaustive
def test_a_trained_run_in_shards_of_which_one_was_stopped(heedmap, command, tmp_path, monkeypatch):
    run, asked = tmp_path / "run", []
    assert heedmap("train", *command[1:-3], "--out", run).code == 0
    shutil.copytree(run, tmp_path / "one/run")
    audit = ("audit", "--permutations", "30", "--run")
    assert heedmap(*audit, tmp_path / "one/run").code == 0
    make = chunks._ChunkContext._make

    def note(context, name):
        asked.append((context._first_row, name))
        return make(context, name)

    def stop(context, name):
        if len(asked) == 20:
            raise KeyboardInterrupt
        return note(context, name)

    monkeypatch.setattr(chunks._ChunkContext, "_make", stop)
    assert heedmap(*audit, run, "--shard", "1/2").code == 130
    done = {*asked}
    asked.clear()
    monkeypatch.setattr(chunks._ChunkContext, "_make", note)
    for number in (2, 1):
        assert heedmap(*audit, run, "--shard", f"{number}/2").code == 0
    assert not done & {*asked}, "nothing is asked twice"
    assert heedmap("merge", run).code == 0
    assert contents(run) == contents(tmp_path / "one/run")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--minutes", "1"), ("--shard", "--minutes")),
        (("--drawn", "5"), ("--shard", "--drawn")),
        (("--retrain",), ("--retrain", "retrain --shard")),
        (("--overwrite",), ("--shard", "--overwrite")),
    ],
)
def test_what_has_no_parts_is_refused_before_anything_is_written(
    heedmap, command, tmp_path, options, said
):
    before = contents(tmp_path)
    stopped(heedmap(*command, tmp_path / "run", *options, "--shard", "1/2"), *said)
    assert contents(tmp_path) == before
    assert not jobs_folder(tmp_path / "run").exists()


def test_shards_need_the_folder_that_they_work_for(heedmap, csv_file, tmp_path):
    stopped(heedmap("audit", "--data", csv_file, "--shard", "1/2"), "--out")
    variant = heedmap("audit", "--run", tmp_path, "--variant", "uniform", "--shard", "1/2")
    stopped(variant, "--variant", "--out")


@pytest.mark.slow
def test_few_texts_are_audited_by_the_shard_that_comes_first(
    heedmap, command, tmp_path, monkeypatch
):
    monkeypatch.setattr(chunks, "TEXTS", 10_000)
    assert heedmap(*command, tmp_path / "together/run").code == 0
    out = tmp_path / "run"
    for number in (1, 2):
        said = heedmap(*command, out, "--shard", f"{number}/2")
        assert "so few texts have no parts" in said.err
        assert "no jobs to divide" in said.out
    assert heedmap("merge", out).code == 0
    assert contents(out) == contents(tmp_path / "together/run")


@pytest.mark.slow
def test_chunks_read_no_tables_of_all_texts_but_those_made_before(
    heedmap, command, tmp_path, monkeypatch
):
    table, read = chunks._ChunkContext.table, set()

    def spy(context, name):
        read.add(name)
        return table(context, name)

    monkeypatch.setattr(chunks._ChunkContext, "table", spy)
    assert heedmap(*command, tmp_path / "run").code == 0
    of_all = {name for name in read if not registered()[name].in_chunks}
    assert of_all == {name for name, asked in registered().items() if asked.before_chunks}


PATCHED = """
from heedmap.experiments import chunks
chunks.TEXTS = 4
from heedmap.cli.main import main
main()
"""


@pytest.mark.exhaustive
def test_shards_at_the_same_time_of_which_one_is_killed(command, whole, tmp_path):
    options = {"cwd": tmp_path, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    out = tmp_path / "run"

    def shard(number):
        arguments = [*command, out, "--shard", f"{number}/2"]
        return subprocess.Popen(
            [sys.executable, "-c", PATCHED, *map(str, arguments)], env={**os.environ}, **options
        )

    shards = [shard(1), shard(2)]
    while not list(out.glob("tables/chunks/0000[024]/*.parquet")):
        assert None in [process.poll() for process in shards]
        time.sleep(0.01)
    shards[0].kill()
    assert shards[0].wait() == -signal.SIGKILL
    assert [process.wait() for process in (shards[1], shard(1))] == [0, 0]
    merge = [sys.executable, "-c", PATCHED, "merge", str(out)]
    subprocess.run(merge, check=True, **options)
    assert contents(out) == whole
