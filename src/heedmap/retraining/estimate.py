"""What trainings will take, measured on a few steps of each kind before they begin."""

import time
from collections.abc import Sequence

import numpy as np

from heedmap.experiments.cost import duration
from heedmap.experiments.variants import Variant
from heedmap.retraining.trainer import Base
from heedmap.settings import TrainSettings
from heedmap.training.attention import AttentionObjective
from heedmap.training.initialisation import init_model, kind_for
from heedmap.training.sweep import one_thread, processes

STEPS = 3  # that are timed
STARTING = 8.0  # seconds until a worker process is ready
OVERHEAD = 1.15  # scoring dev after each epoch
OWN = 2.0  # seconds of a training's own: making the model, reading the texts, writing


def forecast_of(
    missing: Sequence[Sequence[Variant]], base: Base, workers: int | None
) -> str | None:
    """Return how many models will be trained and how long it will take; None if all are there.

    `missing` are the variants in rounds, each after the one before. Trainings that may end early count in full.
    """
    count = sum(map(len, missing))
    if not count:
        return None
    timing, cores, seconds = _Timing(base), processes(workers), 0.0
    for some in missing:
        each = [timing.seconds(variant) + OWN for variant in some]
        seconds += STARTING + max(sum(each) / min(cores, len(some)), *each)
    used = min(cores, max(map(len, missing)))
    return (
        f"{count} trainings, about {duration(seconds)} in {used} process{'es' if used > 1 else ''}"
    )


class _Timing:
    """Times a step of each architecture once."""

    def __init__(self, base: Base) -> None:
        self._base = base
        self._step: dict[tuple[str, str], float] = {}

    def seconds(self, variant: Variant) -> float:
        train = self._base.settings.train
        assert isinstance(train, TrainSettings)
        key = variant.encoder, variant.normaliser
        if key not in self._step:
            self._step[key] = self._timed(Variant(0, *key[:1], normaliser=key[1]))
        epochs = train.epochs if variant.adversary is None else variant.adversary.epochs
        steps = -(-len(self._base.corpus.splits["train"]) // train.batch_size)
        return self._step[key] * steps * epochs * OVERHEAD

    def _timed(self, variant: Variant) -> float:
        base, settings = self._base, self._base.settings_of(variant)
        corpus = base.corpus
        assert isinstance(settings.train, TrainSettings)
        model, settings, _ = init_model(corpus, settings, kind_for(corpus))
        assert isinstance(settings.train, TrainSettings)
        texts = corpus.splits["train"]
        encoded = model.encoded(texts.texts, texts.labels)
        objective = AttentionObjective(model, encoded, encoded, settings.train)
        middle = np.argsort(encoded.lengths, kind="stable")[len(encoded) // 2 :]
        batch = encoded.batch(middle[: settings.train.batch_size])
        times = []
        with one_thread():
            for _ in range(STEPS):
                start = time.perf_counter()
                objective.optimizer.zero_grad()
                objective.loss(model, batch).backward()  # type: ignore[no-untyped-call]
                objective.optimizer.step()
                times.append(time.perf_counter() - start)
        return min(times)
