"""Jobs on any executor: the bytes of one process, whatever is lost on the way."""

import inspect
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from threading import Event
from time import sleep

import pytest
from conftest import contents, small_corpus, watched
from executor_jobs import Processes, squared
from tiny_debates import TINY
from wording import refused, stopped

import heedmap as hm
from heedmap.errors import InputError, KindError
from heedmap.files.manifest import Manifest
from heedmap.papers.drozdyuk.paper import reproduce
from heedmap.runs.retrain import retrain
from heedmap.training import remote
from heedmap.training.jobs import run_jobs
from heedmap.training.remote import on_executor, takes_executor
from heedmap.training.shards import jobs_folder, only_run


class Kept:
    """A folder with a manifest, whose jobs are squares."""

    def __init__(self, folder):
        self.folder, self.found = folder, []
        folder.mkdir()
        Manifest(folder).start()

    def run(self, executor, jobs=range(4), **fates):
        for job, fate in fates.items():
            (self.folder / f"{job[1:]}.fate").write_text(fate)
        with on_executor(executor):
            run_jobs(
                [*jobs], partial(squared, folder=self.folder), lambda *pair: self.found.append(pair),
                folder=self.folder, is_finished=lambda job: (self.folder / f"{job}.txt").exists(),
            )  # fmt: skip


@pytest.fixture
def kept(tmp_path):
    return Kept(tmp_path / "out")


@pytest.mark.parametrize("executor", [1, object(), "dask://localhost:8786"])
def test_what_takes_no_jobs_is_refused_before_there_is_one(executor, tmp_path):
    with refused(
        "executor", "submit(function, *arguments)", type(executor).__name__, kind=KindError
    ):
        reproduce(small_corpus(), out=tmp_path / "out", executor=executor, **TINY["drozdyuk"])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_jobs_give_the_folder_of_one_process_in_their_order(kept, tmp_path, kind):
    alone = Kept(tmp_path / "alone")
    alone.run(None)
    kept.run(None, jobs=[2])
    kept.found.clear()
    pool = (
        ThreadPoolExecutor(1)
        if kind == "threads"
        else ProcessPoolExecutor(2, mp_context=get_context("spawn"))
    )
    with pool:
        kept.run(pool)
    assert kept.found == alone.found == [(job, job * job) for job in range(4)]
    assert contents(kept.folder) == contents(alone.folder)
    assert not jobs_folder(kept.folder).exists()


def test_a_job_whose_worker_is_lost_is_submitted_again(kept):
    kept.run(Processes(), jobs=[3], _3="killed")
    assert kept.found == [(3, 9)]


def test_a_finished_job_is_read_when_the_worker_that_wrote_it_has_ended(kept):
    kept.run(None, jobs=[3])
    kept.found.clear()
    ended = Event()

    def hold():
        with only_run(3, kept.folder):
            held.set()
            sleep(0.3)
            assert not kept.found
            ended.set()

    with ThreadPoolExecutor(1) as worker:
        held = Event()
        holding = worker.submit(hold)
        held.wait(10)
        kept.run(Processes(), jobs=[3])
        assert ended.is_set()
        holding.result()
    assert kept.found == [(3, 9)]


def test_a_job_that_is_lost_each_time_is_one_line_and_the_others_are_kept(kept, monkeypatch):
    monkeypatch.setattr(remote, "TIMES_LOST", 1)
    with refused("3: ", "lost 1 times", "again to resume"):
        kept.run(Processes(), jobs=[2, 3], _3="killed")
    assert kept.found == [(2, 4)]
    kept.run(None, jobs=[2, 3])
    assert kept.found[1:] == [(2, 4), (3, 9)]


def test_warnings_and_progress_of_jobs_are_shown_here(kept):
    said = []
    with watched(lambda *told: said.append(told)), pytest.warns(UserWarning, match="1: mind this"):
        kept.run(ThreadPoolExecutor(1), jobs=[0, 1], _0="slow", _1="warns")
    assert (0.25, "0: half") in said
    assert said[-1][0] == 1


@pytest.mark.parametrize(
    ("fate", "kind", "words"),
    [
        ("input", InputError, "^1: expected this, got that$"),
        ("disk", OSError, "No space left"),
        ("wrong", RuntimeError, "^1: ZeroDivisionError: by zero"),
    ],
)
def test_the_error_of_a_job_is_raised_with_its_name(kept, fate, kind, words):
    with pytest.raises(kind, match=words) as error:
        kept.run(ThreadPoolExecutor(1), jobs=[0, 1, 2], _1=fate)
    if kind is RuntimeError:
        assert "in squared" in error.value.__notes__[0]
    assert kept.found == [(0, 0)]


def test_an_executor_that_takes_no_jobs_is_one_line(kept):
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with refused("0: ", "takes no job", "again"):
        kept.run(pool)


def test_functions_with_jobs_take_an_executor():
    for function in (retrain, hm.debate, hm.calibrate, reproduce):
        assert "executor" in inspect.signature(function).parameters
    with ThreadPoolExecutor(1) as pool:
        assert takes_executor(remote.current_executor)(executor=pool) is pool
    assert remote.current_executor() is None


@pytest.mark.exhaustive
def test_a_reproduction_on_an_executor_has_the_bytes_of_one_process(tmp_path):
    corpus = small_corpus()
    for out, executor in (("one", None), ("out", Processes())):
        reproduce(corpus, out=tmp_path / out, workers=1, executor=executor, **TINY["drozdyuk"])
    assert contents(tmp_path / "out") == contents(tmp_path / "one")


def test_the_folder_is_named_absolutely_for_workers_elsewhere(kept, monkeypatch):
    monkeypatch.chdir(kept.folder.parent)
    with ThreadPoolExecutor(1) as pool, on_executor(pool):
        run_jobs(
            [1], partial(squared, folder=Path("out").absolute()), lambda *pair: None,
            folder=Path("out"), is_finished=lambda job: False,
        )  # fmt: skip
    assert not jobs_folder(kept.folder).exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--engine", "mosix"), ("--engine", "dask://HOST:PORT", "mosix")),
        (("--engine", "dask://"), ("--engine", "dask://HOST:PORT")),
        (("--engine", "slurm", "--shard", "1/2"), ("--shard", "--engine")),
        (("--engine", "slurm", "--workers", "2"), ("--workers", "--engine")),
    ],
)
def test_an_engine_that_is_none_is_refused(heedmap, tmp_path, options, words):
    stopped(heedmap("calibrate", "--out", tmp_path / "out", *options), *words)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [
        ("dask://a:1", "distributed", "dask"),
        ("slurm", "submitit", "slurm"),
        ("ray://a:1", "ray", "ray"),
    ],
)
def test_an_engine_that_is_not_installed_is_one_line(heedmap, monkeypatch, name, package, extra):
    monkeypatch.setattr("heedmap.errors.find_spec", lambda _: None)
    said = heedmap("calibrate", "--out", "out", "--engine", name)
    stopped(said, package, f'pip install "heedmap[{extra}]"')


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[slurm", ("engines.toml", "TOML")),
        ("slurm = 1", ("engines.toml", "[slurm]")),
        ('[slurm]\ncluster = "local"\nwrong = 1', ("engines.toml", "AutoExecutor", "wrong")),
    ],
)
def test_wrong_options_of_slurm_are_one_line(heedmap, monkeypatch, tmp_path, content, words):
    pytest.importorskip("submitit")
    monkeypatch.chdir(tmp_path)
    Path("engines.toml").write_text(content)
    stopped(heedmap("calibrate", "--out", "out", "--engine", "slurm"), *words)


class Changing(ThreadPoolExecutor):
    """Finds another file in the place of the driver's."""

    def submit(self, function, work, *arguments):
        Path(work).write_bytes(b"cos\nsystem\n(S'true'\ntR.")
        return super().submit(function, work, *arguments)


def test_no_file_is_unpickled_that_the_driver_did_not_write(kept):
    with Changing(1) as pool, refused("pickle", "not as the driver wrote it"):
        kept.run(pool)
    assert not [*kept.folder.glob("*.txt")]
