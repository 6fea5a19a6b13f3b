"""Commands in shards: whatever runs where, the folder has the bytes of one process after the merge."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from conftest import WORDS, contents, small_corpus
from few_plants import two_plants as two_plants  # noqa: PLC0414 - a fixture
from tiny_debates import TINY, frame
from toy_paper import toy as toy  # noqa: PLC0414
from wording import refused, stopped

import heedmap as hm
from heedmap.calibration.calibrate import calibrate
from heedmap.debates import debate as debates
from heedmap.debates import result as debate_result
from heedmap.debates.parts import debate_parts
from heedmap.errors import InputError
from heedmap.files import lock_file as locks
from heedmap.files.lock_file import is_held, lock_file
from heedmap.files.locking import BusyError, is_sole_writer, sharing, writing
from heedmap.files.manifest import MANIFEST, Manifest, listed_apart
from heedmap.papers.jain_wallace import paper as jain_wallace
from heedmap.papers.snell import classification
from heedmap.papers.wiegreffe_pinter import paper as wiegreffe_pinter
from heedmap.training.merging import gathered
from heedmap.training.shards import MissingJobs, Shard, ShardEnd, in_shard, jobs_folder, merging

MOST_PASSES = 4
# An audit, what trains further in its folder, and plain jobs.
DEBATED = ("audit", "retrain", "drozdyuk")


def in_shards(command, out, count=2):
    """Run all shards of a command until none of its jobs is missing, then merge; return what shards said."""
    said = []
    for _ in range(MOST_PASSES):
        for number in range(1, count + 1):
            with pytest.raises(ShardEnd) as end, in_shard(Shard(number, count, out)):
                command(out)
            said.append(str(end.value))
        try:
            with merging(), gathered(out):
                command(out)
        except MissingJobs:
            continue
        assert not jobs_folder(out).exists()
        return said
    raise AssertionError("jobs are missing still")


# Commands


def test_a_command_in_shards_writes_the_bytes_of_one_process(heedmap, toy, tmp_path):
    arguments = ("reproduce", "toy-paper", "--seeds", "5", "--out")
    assert heedmap(*arguments, tmp_path / "one").code == 0
    out = tmp_path / "out"
    first = heedmap(*arguments, out, "--shard", "1/3")
    assert first.code == 0, first.err
    assert "shard 1/3: its 2 of 5 jobs are finished, 3 of other shards are not" in first.out
    assert f"heedmap merge {out}" in first.out
    assert {path.stem for path in (out / "parts").iterdir()} == {"0", "3"}
    assert not (out / "result.md").exists()
    missing = heedmap("merge", out)
    assert (missing.code, missing.err.count("\n")) == (2, 1)
    assert "3 of 5 jobs are not finished: 1; 2; 4; run their shards again" in missing.err
    for number in (2, 3):
        assert heedmap(*arguments, out, f"--shard={number}/3").code == 0
    again = heedmap(*arguments, out, "--shard", "3/3")
    assert "its 1 of 5 jobs is finished. When" in again.out
    merged = heedmap("merge", out)
    assert merged.code == 0, merged.err
    assert "Claim: Squares grow" in merged.out
    assert contents(out) == contents(tmp_path / "one")
    assert {path.name for path in tmp_path.iterdir()} == {"elsewhere", "one", "out"}
    stopped(heedmap("merge", out), out, "--shard", "merged already")


def test_the_command_without_shard_finishes_what_shards_began(heedmap, toy, tmp_path):
    arguments = ("reproduce", "toy-paper", "--seeds", "3", "--out")
    assert heedmap(*arguments, tmp_path / "one").code == 0
    assert heedmap(*arguments, tmp_path / "out", "--shard", "2/2").code == 0
    assert heedmap(*arguments, tmp_path / "out").code == 0
    assert contents(tmp_path / "out") == contents(tmp_path / "one")
    assert not jobs_folder(tmp_path / "out").exists()


@pytest.mark.parametrize("shard", ["0/2", "3/2", "1", "a/b", "1/0", "-1/2"])
def test_a_shard_that_is_none_is_refused(heedmap, toy, tmp_path, shard):
    said = heedmap("reproduce", "toy-paper", "--out", tmp_path / "out", f"--shard={shard}")
    stopped(said, "--shard", "I/N", shard)
    assert not (tmp_path / "out").exists()


def test_a_shard_needs_a_folder_and_replaces_nothing(heedmap, toy, tmp_path):
    asked = ("reproduce", "drozdyuk", "--data", "reviews", "--shard", "1/2")
    stopped(heedmap(*asked), "--shard 1/2", "--out")
    options = ("--out", tmp_path / "out", "--overwrite", "--shard", "1/2")
    stopped(heedmap("reproduce", "toy-paper", *options), "--overwrite")
    assert list(tmp_path.iterdir()) == [tmp_path / "elsewhere"]


def test_what_no_shard_has_ended_for_is_refused_with_the_cause(heedmap, tmp_path):
    out, file = tmp_path / "out", tmp_path / "texts.csv"
    file.write_text("text,label\n")
    stopped(heedmap("merge", out), out, "none of this name", "--shard")
    stopped(heedmap("merge", file), file, "a file", "--shard")
    jobs_folder(out).mkdir()  # as a shard makes it when it begins
    stopped(heedmap("merge", out), out, "none has ended yet", jobs_folder(out))


def test_a_folder_that_was_moved_or_damaged_is_refused(heedmap, toy, tmp_path):
    out = tmp_path / "out"
    assert heedmap("reproduce", "toy-paper", "--out", out, "--shard", "1/1").code == 0
    for place in (out, jobs_folder(out)):
        shutil.copytree(place, place.with_name(place.name.replace("out", "moved")))
    stopped(heedmap("merge", tmp_path / "moved"), tmp_path / "moved", out)
    (jobs_folder(out) / "command.json").write_text("[]")
    stopped(heedmap("merge", out), "command.json")


@pytest.mark.exhaustive
def test_a_grid_of_runs_and_what_needs_them_in_shards(tmp_path):
    def command(out):
        jain_wallace.reproduce(
            [small_corpus()], encoders=["lstm", "average"], scores=["additive"], seeds=1, epochs=1,
            instances=10, baselines=True, out=out, workers=1,
        )  # fmt: skip

    command(tmp_path / "one")
    said = in_shards(command, tmp_path / "out")
    assert "further jobs need them" in said[0], "variants are trained after the grid"
    assert contents(tmp_path / "out") == contents(tmp_path / "one")


@pytest.mark.exhaustive
def test_further_trainings_in_rounds_in_shards(tmp_path):
    def command(out):
        wiegreffe_pinter.reproduce(
            small_corpus(),
            out=out,
            seeds=2,
            epochs=1,
            adversary_epochs=1,
            lambdas=(0.5,),
            workers=1,
        )

    command(tmp_path / "one")
    in_shards(command, tmp_path / "out", 3)
    assert contents(tmp_path / "out") == contents(tmp_path / "one")


@pytest.mark.slow
def test_runs_that_are_compared_afterwards_in_shards(tmp_path):
    def command(out):
        classification.reproduce(small_corpus(), out=out, workers=1, **TINY["snell"])

    command(tmp_path / "one")
    in_shards(command, tmp_path / "out")
    assert contents(tmp_path / "out") == contents(tmp_path / "one")


@pytest.mark.slow
def test_retrain_in_shards(heedmap, csv_file, tmp_path):
    run = tmp_path / "run"
    options = ("--epochs", "1", "--embedding-size", "8", "--hidden-size", "8", "--min-df", "1")
    assert heedmap("train", "--data", csv_file, *options, "--out", run).code == 0
    shutil.copytree(run, tmp_path / "kept")
    command = ("retrain", "stability", "--run", run, "--seeds", "3")
    assert heedmap(*command, "--workers", "1").code == 0
    expected = contents(run)
    shutil.rmtree(run)
    (tmp_path / "kept").rename(run)
    for number in (1, 2):
        assert heedmap(*command, "--shard", f"{number}/2").code == 0
    assert not (run / "report.html").exists()
    merged = heedmap("merge", run)
    assert merged.code == 0, merged.err
    assert contents(run) == expected


@pytest.mark.slow
@pytest.mark.filterwarnings("default:.*too few to choose thresholds")
@pytest.mark.usefixtures("two_plants")
def test_calibrate_in_shards(tmp_path):
    data = frame(520)
    data["text"] = [" ".join([text, *WORDS[:6]]) for text in data["text"]]
    corpus = hm.load(data)

    def command(out):
        calibrate(out, [corpus], seeds=1, workers=1, progress=False)

    command(tmp_path / "one")
    in_shards(command, tmp_path / "out")
    assert contents(tmp_path / "out") == contents(tmp_path / "one")


@pytest.mark.exhaustive
def test_a_debate_in_shards(monkeypatch, tmp_path):
    parts = debate_parts()
    tiny = {name: replace(parts[name], quick=TINY[name]) for name in DEBATED}
    for module in (debates, debate_result):
        monkeypatch.setattr(module, "debate_parts", lambda: tiny)

    def command(out):
        hm.debate(frame(), out=out, workers=1, progress=False)

    command(tmp_path / "one")
    in_shards(command, tmp_path / "out")
    assert contents(tmp_path / "out") == contents(tmp_path / "one")


@pytest.mark.exhaustive
def test_shards_at_the_same_time_of_which_one_is_killed_and_given_again(tmp_path):
    command = [
        sys.executable, "-m", "heedmap", "reproduce", "drozdyuk", "--data", "reviews", "--activations",
        "softmax,entmax15", "--seeds", "2", "--epochs", "1", "--adversary-epochs", "1", "--train-texts", "64",
        "--test-texts", "10", "--max-tokens", "20", "--quiet", "--out",
    ]  # fmt: skip
    options = {"cwd": tmp_path}
    subprocess.run(
        [*command, "one", "--workers", "1"], check=True, stdout=subprocess.PIPE, **options
    )

    def shard(number):
        return subprocess.Popen(
            [*command, "out", "--shard", f"{number}/2"], stdout=subprocess.PIPE, **options
        )

    shards = [shard(1), shard(2)]
    while not list(tmp_path.glob("out/parts/*.checkpoints/*")):
        assert None in [process.poll() for process in shards]
        time.sleep(0.01)
    shards[0].kill()
    assert shards[0].wait() == -signal.SIGKILL
    again = shard(1)
    assert [process.wait() for process in (shards[1], again)] == [0, 0]
    for process in (*shards, again):
        process.stdout.close()
    merge = [sys.executable, "-m", "heedmap", "merge", "out", "--quiet"]
    subprocess.run(merge, check=True, stdout=subprocess.PIPE, **options)
    assert contents(tmp_path / "out") == contents(tmp_path / "one")


# Locks in shared folders


HOLDER = """
import sys, time
from pathlib import Path
from heedmap.files.lock_file import lock_file

with lock_file(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_lock_has_one_holder_and_goes_with_it(tmp_path):
    path = tmp_path / "a.lock"
    with subprocess.Popen([sys.executable, "-c", HOLDER, path], stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        assert is_held(path)
        waited = []

        def stop(name):
            waited.append(name)
            holder.kill()

        with lock_file(path, stop):
            assert waited
            assert is_held(path)
    assert list(tmp_path.iterdir()) == []
    assert not is_held(path)


def test_the_lock_of_another_machine_is_taken_when_it_is_no_longer_touched(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "STALE_AFTER", 0.5)
    monkeypatch.setattr(locks, "LOOK_EVERY", 0.05)
    path = tmp_path / "a.lock"
    path.write_text("another/1 123 456")
    touches = iter([True] * 15)  # for .75 seconds, longer than a lock stays without a touch

    def touch(name):
        assert name == "another/1"
        if next(touches, False):
            os.utime(path)

    began = time.monotonic()
    with lock_file(path, touch):
        assert time.monotonic() - began > 1.0
        assert not path.read_text().startswith("another")
    assert list(tmp_path.iterdir()) == []


def test_a_lock_that_was_taken_over_is_not_removed_by_its_first_holder(tmp_path):
    path = tmp_path / "a.lock"
    with lock_file(path):
        path.write_text("another/1 123 456")
    assert path.read_text() == "another/1 123 456"


def test_those_who_share_a_folder_are_many_and_a_writer_is_alone(hold, tmp_path):
    other = hold(tmp_path / "run", "shared")
    with sharing(), writing(tmp_path / "run"):
        assert not is_sole_writer(tmp_path / "run")
    with refused("another heedmap", kind=BusyError), writing(tmp_path / "run"):
        pass
    other.communicate("done\n")
    with writing(tmp_path / "run"):
        assert is_sole_writer(tmp_path / "run")


# Manifests of jobs


def test_jobs_list_apart_and_the_manifest_folds_what_they_list(tmp_path):
    whole = Manifest(tmp_path)
    whole.start()
    whole.write(tmp_path / "a", "1")
    with listed_apart("one"):
        whole.write(tmp_path / "b", "2")
        whole.write(tmp_path / "a", "3")
    with listed_apart("two"):
        whole.write(tmp_path / "c", "4")
        assert whole.read(tmp_path / "b") == b"2", "it reads what other jobs have finished"
        whole.remove("c")
    assert {path.name for path in whole.of_jobs()} == {"manifest.one.json", "manifest.two.json"}
    assert json.loads((tmp_path / MANIFEST).read_text())["files"].keys() == {"a"}
    assert whole.load().files.keys() == {"a", "b"}
    whole.settle()
    assert whole.of_jobs(), "a job may be writing"
    whole.fold(lambda job: job == "two")
    assert [path.name for path in whole.of_jobs()] == ["manifest.two.json"]
    whole.fold()
    whole.settle()
    assert whole.read(tmp_path / "a") == b"3"
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["a", "b", MANIFEST]


def test_a_folder_that_a_job_locks_has_its_manifest_alone(tmp_path):
    with listed_apart("one"), writing(tmp_path):
        Manifest(tmp_path).write(tmp_path / "a", "1")
    assert not Manifest(tmp_path).of_jobs()


def test_a_damaged_manifest_of_a_job_is_named(tmp_path):
    Manifest(tmp_path).start()
    (tmp_path / "manifest.one.json").write_text("{")
    with pytest.raises(InputError, match=r"manifest\.one\.json"):
        Manifest(tmp_path).load()
