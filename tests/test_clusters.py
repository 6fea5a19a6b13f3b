"""A sweep of 8 runs on Dask, submitit and Ray: a worker and then the driver are killed, and it resumes."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from importlib.util import find_spec

import psutil
import pytest
from conftest import contents

pytestmark = pytest.mark.slow

PLAN = """
data = ["texts.csv"]
encoders = ["average", "none"]
normalisers = ["softmax", "sparsemax"]
seeds = [0, 1]

[train]
epochs = 2
embedding_size = 8
hidden_size = 8

[audit]
instances = 4
"""
LOCAL = '[slurm]\ncluster = "local"\ntimeout_min = 60\n'
DASK = """
import time
from distributed import LocalCluster

if __name__ == "__main__":
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, scheduler_port={port}, dashboard_address=None
    ):
        print("ready", flush=True)
        time.sleep(3600)
"""
PATIENCE = 600  # seconds until something is wrong


@contextmanager
def dask(folder):
    pytest.importorskip("distributed")
    port = 20_000 + os.getpid() % 10_000
    (folder / "cluster.py").write_text(DASK.format(port=port))
    with subprocess.Popen(
        [sys.executable, "cluster.py"], cwd=folder, stdout=subprocess.PIPE
    ) as cluster:
        try:
            assert cluster.stdout.readline() == b"ready\n"
            yield f"dask://127.0.0.1:{port}", lambda: family(cluster.pid)
        finally:
            end(family(cluster.pid))


@contextmanager
def slurm(folder):
    pytest.importorskip("submitit")
    (folder / "engines.toml").write_text(LOCAL)
    try:
        yield "slurm", lambda: in_folder(folder, "submitit.core._submit")
    finally:
        end(in_folder(folder, "submitit.core._submit"))


@contextmanager
def ray(folder):
    if find_spec("ray") is None:
        pytest.skip("Ray is not installed")
    before = {process.pid for process in psutil.process_iter()}
    base = 30_000 + os.getpid() % 10_000
    command = [
        sys.executable, "-c", "from ray.scripts.scripts import main; main()", "start", "--head",
        "--num-cpus=2", f"--port={base}", f"--ray-client-server-port={base + 1}",
        "--include-dashboard=false",
    ]  # fmt: skip
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)

    def started():
        return [
            process
            for process in psutil.process_iter(["cmdline"])
            if process.pid not in before and "ray" in " ".join(process.info["cmdline"] or [])
        ]

    try:
        yield f"ray://127.0.0.1:{base + 1}", started
    finally:
        end(started())


def family(pid):
    parent = psutil.Process(pid)
    return [*parent.children(recursive=True), parent]


def in_folder(folder, words):
    """The processes of one kind that were started for a folder."""
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if (line := " ".join(process.info["cmdline"] or []))
        and words in line
        and str(folder) in line
    ]


def end(processes):
    for process in processes:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(processes, timeout=30)


def holders(folder):
    """The processes that run jobs, by their locks."""
    pids = []
    for lock in folder.glob(".*.jobs/*.lock"):
        try:
            pids.append(int(lock.read_text().split()[1]))
        except (OSError, IndexError):
            continue
    return [pid for pid in pids if pid != os.getpid() and psutil.pid_exists(pid)]


def until(happens, driver):
    began = time.monotonic()
    while not (found := happens()):
        assert driver.poll() is None, driver.communicate()
        assert time.monotonic() - began < PATIENCE
        time.sleep(0.05)
    return found


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clusters")
    lines = [f"{'good' if i % 2 else 'bad'} a b {'c' * (1 + i % 5)},{i % 2}" for i in range(90)]
    (folder / "texts.csv").write_text("text,label\n" + "\n".join(lines) + "\n")
    (folder / "grid.toml").write_text(PLAN)
    with sweep(folder, "one", "--workers", "1") as alone:
        said = alone.communicate()[1]
    assert alone.returncode == 0, said
    return folder


def sweep(folder, out, *options):
    return subprocess.Popen(
        [sys.executable, "-m", "heedmap", "sweep", "grid.toml", "--out", out, *options],
        cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.exhaustive
@pytest.mark.parametrize("cluster", [dask, slurm, ray], ids=["dask", "slurm", "ray"])
def test_a_sweep_that_loses_a_worker_and_its_driver_ends_with_the_bytes_of_one_process(
    desk, cluster
):
    out = desk / f"on-{cluster.__name__}"

    def finished():
        return len(list(out.glob("*/report.html")))

    with cluster(desk) as (engine, processes):
        with sweep(desk, out.name, "--engine", engine) as driver:
            try:
                # At once, for some executors run all jobs together, which then end together.
                worker = until(lambda: holders(desk), driver)[0]
                assert worker in {process.pid for process in processes()}
                os.kill(worker, signal.SIGKILL)
                until(lambda: finished() >= 1, driver)
            finally:
                driver.kill()
                driver.wait()  # not for its pipes, which jobs that go on hold open
        assert driver.returncode == -signal.SIGKILL
        assert finished() < 8, "it was killed before its end"
        with sweep(desk, out.name, "--engine", engine) as again:
            said = again.communicate(timeout=PATIENCE)[1]
        assert again.returncode == 0, said
    assert contents(out) == contents(desk / "one")
    assert not (desk / f".{out.name}.jobs").exists()
