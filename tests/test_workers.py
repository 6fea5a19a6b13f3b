"""Reproductions in worker processes give the bytes of one process, however often they are killed."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import psutil
import pytest
from conftest import WORDS

# Models are trained, and workers take seconds to start. In every run of the tests `test_sweep` kills some.
pytestmark = pytest.mark.exhaustive

COMMAND = (sys.executable, "-c", "from heedmap.cli import main; main()", "reproduce")
WALLACE = (
    "jain-wallace", "sst", "--data", "sst", "--encoders", "average,cnn", "--scores", "dot", "--seeds", "1",
    "--epochs", "12", "--instances", "6", "--out",
)  # fmt: skip
DROZDYUK = (
    "drozdyuk", "--data", "reviews", "--activations", "softmax,entmax15", "--seeds", "1", "--epochs", "3",
    "--adversary-epochs", "2", "--train-texts", "96", "--test-texts", "20", "--max-tokens", "30", "--out",
)  # fmt: skip
PRUTHI = (
    "pruthi", "pronoun", "--models", "bilstm", "--seeds", "2", "--epochs", "6", "--penalties", "1",
    "--train-texts", "96", "--test-texts", "20", "--out",
)  # fmt: skip
# What stands while a cell is in the middle of a training.
UNFINISHED = {
    WALLACE: "sst/*/checkpoint.safetensors",
    DROZDYUK: "parts/*.checkpoints/*",
    PRUTHI: "bilstm/retrained/*/*.checkpoints/*",
}


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A folder with a paper's data set."""
    place = tmp_path_factory.mktemp("workers")
    (place / "sst").mkdir()
    for name, count in (("train", 320), ("dev", 16), ("test", 16)):
        lines = [
            json.dumps(
                {"text": f"{'good' if i % 2 else 'bad'} a b c d {WORDS[i % 40]}", "label": i % 2}
            )
            for i in range(count)
        ]
        (place / "sst" / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    return place


@pytest.fixture(
    scope="module",
    params=[DROZDYUK, WALLACE, PRUTHI],
    ids=lambda arguments: arguments[0],
)
def arguments(request):
    return request.param


@pytest.fixture(scope="module")
def alone(here, arguments):
    """What one process makes, that may use two threads."""
    out = here / f"alone-{arguments[0]}"
    with command(here, arguments, out, workers=1, threads=2) as process:
        said = process.communicate()[1]
    assert process.returncode == 0, said
    return contents(out)


def command(here, arguments, out, workers=2, threads=1):
    return subprocess.Popen(
        [*COMMAND, *arguments, out.name, "--workers", str(workers)],
        cwd=here, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "OMP_NUM_THREADS": str(threads)},
    )  # fmt: skip


def contents(out):
    return {str(p.relative_to(out)): p.read_bytes() for p in out.rglob("*") if p.is_file()}


def workers_of(process):
    """The processes that run its cells; the one that tracks multiprocessing's resources is none."""
    children = psutil.Process(process.pid).children()
    return [child for child in children if "spawn_main" in " ".join(child.cmdline())]


@pytest.mark.parametrize("victim", ["a worker", "the parent"])
def test_a_reproduction_that_is_killed_in_a_training_ends_at_the_bytes_of_one_process(
    here, arguments, alone, victim
):
    out = here / f"{arguments[0]}-{victim.split()[1]}"
    with command(here, arguments, out) as process:
        try:
            while not list(out.glob(UNFINISHED[arguments])):
                assert process.poll() is None, process.stderr.read()
                time.sleep(0.005)
            workers = workers_of(process)
            assert len(workers) == 2
            killed = process.pid if victim == "the parent" else workers[0].pid
            os.kill(killed, signal.SIGKILL)
            said = process.communicate(timeout=120)[1]
        finally:
            process.kill()
    assert not psutil.wait_procs(workers, timeout=30)[1], "no worker outlives its parent"
    if victim == "a worker":
        errors = [one for one in said.splitlines() if re.match("heedmap: (?!note: )", one)]
        assert (process.returncode, len(errors)) == (2, 1), said
        assert "its worker process was killed (SIGKILL" in said
    else:
        assert process.returncode == -signal.SIGKILL
    left = contents(out)
    assert left != alone, "it was killed before its end"
    with command(here, arguments, out) as process:
        said = process.communicate()[1]
    assert process.returncode == 0, said
    assert contents(out) == alone
