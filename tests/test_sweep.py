"""Sweeps: real trainings in worker processes, their deaths, and what is left behind."""

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
import sweep_cells
import torch
from conftest import contents, watched
from wording import refused

from heedmap.errors import InputError
from heedmap.training.sweep import sweep

pytestmark = pytest.mark.slow  # a worker imports torch, which takes seconds


def gone(pid):
    """Whether a process ends within a few seconds."""
    for _ in range(500):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False


def test_no_cells_are_no_work():
    assert sweep([], sweep_cells.seen) == []


@pytest.mark.parametrize("workers", [0, -1])
def test_no_workers_are_refused(workers):
    with refused("workers", "1", workers):
        sweep([1], sweep_cells.seen, workers)


def test_results_come_in_the_order_of_the_cells_from_workers_of_one_thread(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    reported, passed = [], []
    with (
        pytest.warns(UserWarning, match="[abc]: only once"),
        watched(lambda *at: reported.append(at)),
    ):
        found = sweep(
            ["a", "b", "c"],
            sweep_cells.seen,
            2,
            after=lambda cell, result: passed.append((cell, result[0])),
        )
    assert [cell for cell, *_ in found] == ["a", "b", "c"]
    assert passed == [("a", "a"), ("b", "b"), ("c", "c")]
    assert {threads for _, threads, *_ in found} == {"1"}
    assert {parent for *_, parent in found} == {os.getpid()}
    assert len({worker for _, _, worker, _ in found} - {os.getpid()}) == 2
    assert all(gone(worker) for _, _, worker, _ in found)
    assert reported[0] == (0, "a; b")
    assert reported[-1][0] == 1
    assert (os.environ["OMP_NUM_THREADS"], "MKL_NUM_THREADS" in os.environ) == ("7", False)


@pytest.mark.exhaustive
def test_trainings_end_at_the_bytes_of_one_after_the_other_even_if_a_worker_is_killed(tmp_path):
    assert torch.get_num_threads() == 1
    alone, swept = tmp_path / "alone", tmp_path / "swept"
    for seed in range(3):
        sweep_cells.trained(alone, 3, seed)
    swept.mkdir()
    (swept / "kill-1").touch()
    work = partial(sweep_cells.trained, swept, 3)
    with refused("1: ", "SIGKILL"):
        sweep(range(3), work, 2)
    assert (swept / "seed-1" / "checkpoint.safetensors").exists()
    seen = []
    with watched(lambda done, text: seen.append(text)):
        found = sweep(range(3), work, 2)
    assert found == [(seed, [1]) for seed in range(3)]
    assert not any("1: training, epoch 1 " in text for text in seen), "its first epoch was kept"
    assert contents(swept) == contents(alone)


@pytest.mark.exhaustive
def test_the_bar_moves_within_a_workers_cell():
    seen = []
    with watched(lambda *at: seen.append(at)):
        sweep("ab", sweep_cells.halfway, 1)
    assert (0.25, "a: half") in seen
    assert (0.75, "b: half") in seen
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


@pytest.mark.parametrize(
    ("cell", "error", "said"),
    [
        (0, InputError, "0: expected this, got that; do so"),
        pytest.param(
            "bug", RuntimeError, "bug: ZeroDivisionError: a bug", marks=pytest.mark.exhaustive
        ),
        pytest.param(
            "full",
            OSError,
            "[Errno 28] No space left on device: 'there'",
            marks=pytest.mark.exhaustive,
        ),
    ],
)
def test_an_error_ends_the_sweep_and_its_workers(tmp_path, cell, error, said):
    with pytest.raises(error) as told:
        sweep([1, cell], partial(sweep_cells.slow_or_wrong, str(tmp_path)), 2)
    assert str(told.value) == said
    if error is RuntimeError:
        assert "slow_or_wrong" in told.value.__notes__[0]
    assert gone(int((tmp_path / "begun").read_text()))


def test_a_worker_that_ends_or_gives_nothing_is_said(tmp_path):
    with refused("x: ", "exit code 3"):
        sweep(["x"], sweep_cells.dead)
    with pytest.raises(RuntimeError, match=r"^x: .*pickle"):
        sweep(["x"], sweep_cells.unpicklable)


SCRIPT = """
import sys
from functools import partial

import sweep_cells
from heedmap.training.sweep import sweep

print("begun")
print([cell for cell, *_ in sweep("ab", sweep_cells.seen, 2)])
"""


def test_a_script_needs_no_guard_against_its_own_workers(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", script],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "begun\n['a', 'b']\n"


@pytest.mark.parametrize(("number", "code"), [
    (signal.SIGINT, 130), pytest.param(signal.SIGKILL, -9, marks=pytest.mark.exhaustive),
])  # fmt: skip
def test_workers_end_with_their_parent(tmp_path, number, code):
    command = [sys.executable, Path(__file__).with_name("sweep_cells.py"), tmp_path]
    with subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True) as parent:
        try:
            while not (tmp_path / "begun").exists():
                assert parent.poll() is None
                time.sleep(0.01)
            worker = int((tmp_path / "begun").read_text())
            # Ctrl-C reaches every process of the terminal.
            (os.killpg if number == signal.SIGINT else os.kill)(parent.pid, number)
            said = parent.communicate(timeout=30)[1].decode()
        finally:
            parent.kill()
    assert parent.returncode == code
    assert gone(worker)
    assert "Traceback" not in said
