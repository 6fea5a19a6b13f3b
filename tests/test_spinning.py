"""Threads of a training that leave their cores to other work while it wants them."""

import threading
import time

import pytest
import torch

from heedmap.training import spinning
from heedmap.training.spinning import _Bound, _Crowd, _gnu_openmp, spinning_bounded

needs_gnu = pytest.mark.skipif(
    _gnu_openmp() is None, reason="PyTorch does not use GNU's OpenMP here"
)


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def spun(rounds=60):
    """Processor seconds of a team of two that has almost nothing to do, and pauses in between."""
    values = torch.ones(1 << 16)
    start = time.process_time()
    for _ in range(rounds):
        values.add_(1.0)
        time.sleep(0.004)
    return time.process_time() - start


@needs_gnu
@pytest.mark.skipif(
    _gnu_openmp() is not None and _gnu_openmp().omp_get_num_procs() < 2,
    reason="on one core no thread spins",
)
def test_a_waiting_team_spins_by_itself_and_sleeps_beside_a_crowd(two_threads):
    by_itself = spun()
    crowd = _Crowd(_gnu_openmp())
    beside = spun()
    crowd.end()
    assert beside < 0.6 * by_itself
    assert beside < 0.7 * spun(), "it spins again"


@needs_gnu
def test_spinning_ends_while_other_work_takes_the_core_and_is_tried_again(two_threads, monkeypatch):
    threads = threading.active_count()
    bound = _Bound(_gnu_openmp())

    def crowds_after(seconds_of_sleep, **waits):
        for name, value in waits.items():
            monkeypatch.setattr(spinning, name, value)
        time.sleep(seconds_of_sleep)  # a thread that does not run
        bound.look()
        return threading.active_count() - threads

    assert crowds_after(0.02, LOOK_EVERY=3600.0, HOLD=3600.0) == 0, "too early to tell"
    assert crowds_after(0.02, LOOK_EVERY=0.0) == 1
    assert crowds_after(0.02) == 1
    assert crowds_after(0.0, HOLD=0.0) == 0
    monkeypatch.setattr(time, "thread_time", time.monotonic)
    bound = _Bound(_gnu_openmp())
    assert crowds_after(0.02) == 0, "the core was its own"


@needs_gnu
def test_a_training_ends_its_crowd_whatever_happens(two_threads, monkeypatch):
    monkeypatch.setattr(spinning, "LOOK_EVERY", 0.0)
    threads = threading.active_count()

    def interrupted():
        with spinning_bounded() as look:
            time.sleep(0.01)
            look()
            assert threading.active_count() == threads + 1
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert threading.active_count() == threads


def test_nothing_is_watched_on_one_thread(monkeypatch):
    monkeypatch.setattr(spinning, "LOOK_EVERY", 0.0)
    threads = threading.active_count()
    with spinning_bounded() as look:
        time.sleep(0.01)
        look()
    assert threading.active_count() == threads


@needs_gnu
def test_numbers_are_the_same_beside_a_crowd(two_threads):
    values = torch.randn(512, 512, generator=torch.Generator().manual_seed(0))
    plain = (values @ values).sum(0)
    crowd = _Crowd(_gnu_openmp())
    assert torch.equal((values @ values).sum(0), plain)
    crowd.end()
