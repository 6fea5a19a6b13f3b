"""What trainings will take, measured on a few steps of each kind before they begin."""

import time
from collections.abc import Sequence

import numpy as np

from heedmap.experiments.variants import Variant
from heedmap.retraining.base import Base
from heedmap.retraining.trainer import prepare
from heedmap.settings.training import TrainSettings
from heedmap.terminal.displays import span
from heedmap.training.objective import Objective
from heedmap.training.sweep import one_thread, processes

STEPS = 3  # that are timed
STARTING = 8.0  # seconds until a worker process is ready
OVERHEAD = 1.15  # scoring dev after each epoch
OWN = 2.0  # seconds of a training's own: making the model, reading the texts, writing


def forecast_of(
    missing: Sequence[Sequence[Variant]], base: Base, workers: int | None
) -> tuple[str, float]:
    """Return how many models will be trained and how long it will take, in words and in seconds.

    `missing` are the variants in rounds, each after the one before. Trainings that may end early count in full.
    """
    count = sum(map(len, missing))
    if not count:
        return "", 0.0
    timing = _Timing(base)
    seconds = sum(
        side_by_side([timing.seconds(variant) + OWN for variant in variants], workers)
        for variants in missing
    )
    process_count = min(processes(workers), max(map(len, missing)))
    processes_text = f"in {process_count} process{'es' if process_count > 1 else ''}"
    return f"{count} trainings, about {span(seconds)} {processes_text}", seconds


def side_by_side(seconds_each: Sequence[float], workers: int | None) -> float:
    """Return how long trainings of so many seconds each take in worker processes; one needs no worker."""
    if not seconds_each:
        return 0.0
    cores = min(processes(workers), len(seconds_each))
    starting = STARTING if cores > 1 else 0.0
    return starting + max(sum(seconds_each) / cores, *seconds_each)


def training_seconds(objective: Objective, epochs: int | None = None) -> float:
    """Return how long all epochs of a training will take, by a few of its steps; its model is moved by them.

    A training that ends early counts in full, unless `epochs` says otherwise.
    """
    steps = -(-len(objective.lengths) // objective.batch_size)
    epoch_count = objective.epochs if epochs is None else epochs
    return step_seconds(objective) * steps * epoch_count * OVERHEAD + OWN


def step_seconds(objective: Objective) -> float:
    """Return how long a step takes on texts of typical length."""
    middle = np.argsort(objective.lengths, kind="stable")[len(objective.lengths) // 2 :]
    rows, times = middle[: objective.batch_size], []
    with one_thread():
        for _ in range(STEPS):
            start = time.perf_counter()
            objective.optimizer.zero_grad()
            objective.loss(objective.model, objective.batch(rows)).backward()  # type: ignore[no-untyped-call]
            objective.optimizer.step()
            times.append(time.perf_counter() - start)
    return min(times)


class _Timing:
    """Times a step of each architecture once."""

    def __init__(self, base: Base) -> None:
        self._base = base
        self._step: dict[tuple[str, str], float] = {}

    def seconds(self, variant: Variant) -> float:
        train = self._base.settings.train
        assert train is not None
        key = variant.encoder, variant.normaliser
        if key not in self._step:
            self._step[key] = self._timed(variant)
        epochs = train.epochs if variant.adversary is None else variant.adversary.epochs
        steps = -(-len(self._base.corpus.splits["train"]) // train.batch_size)
        return self._step[key] * steps * epochs * OVERHEAD

    def _timed(self, variant: Variant) -> float:
        of_words = isinstance(self._base.settings.train, TrainSettings)
        plain = Variant(0, variant.encoder, normaliser=variant.normaliser)
        objective = prepare(plain if of_words else variant.control(), self._base).objective
        return step_seconds(objective)
