"""How long trainings and audits of a user's texts will take, measured on untrained models before they begin."""

import tempfile
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from heedmap.data.corpus import Corpus
from heedmap.experiments.context import AuditContext
from heedmap.experiments.registry import estimate, registered
from heedmap.models.attention_classifier import AttentionClassifier
from heedmap.retraining.base import base_of
from heedmap.retraining.estimate import forecast_of, side_by_side, training_seconds
from heedmap.retraining.trainer import Trainer
from heedmap.runs.audit_defaults import audit_defaults, audited_split
from heedmap.runs.defaults import defaults_for
from heedmap.settings.audit import AuditSettings
from heedmap.settings.base import Settings
from heedmap.settings.models import ModelSettings
from heedmap.settings.retraining import RetrainSettings
from heedmap.settings.run import RunSettings
from heedmap.settings.training import TrainSettings
from heedmap.training.attention import AttentionObjective
from heedmap.training.dynamics import EARLY, EVERY, ClassifierRecorder
from heedmap.training.initialisation import init_model, kind_for
from heedmap.training.sweep import one_thread

REPORT = 3.0  # seconds of an audit's own: opening, findings, the page


class Timer:
    """Times trainings and audits of a corpus; what was timed is not timed again.

    `options` of its methods are those of `heedmap.train`.
    """

    def __init__(self, corpus: Corpus, workers: int | None = None) -> None:
        self.corpus, self.workers = corpus, workers
        self._models: dict[str, tuple[AttentionClassifier, RunSettings]] = {}
        self._seconds: dict[str, float] = {}
        self._audits: dict[str, dict[str, float]] = {}

    def side_by_side(self, seconds_each: Sequence[float]) -> float:
        """Return how long work of so many seconds each takes in worker processes."""
        return side_by_side(seconds_each, self.workers)

    def training(self, **options: Any) -> float:
        """Return the seconds of a training; with `record_dynamics`, of what it records too."""
        model, settings = self._model(options)
        train = settings.train
        assert isinstance(train, TrainSettings)
        bare = train.model_copy(update={"epochs": 1, "record_dynamics": False})
        key = f"{settings.model!r} {bare!r}"
        if key not in self._seconds:
            self._seconds[key] = training_seconds(self._objective(model, bare), 1)
        seconds = self._seconds[key] * train.epochs
        return seconds + self._recording(model, train) if train.record_dynamics else seconds

    def audit(self, instances: int, names: Collection[str] = (), **options: Any) -> float:
        """Return the seconds of an audit of so many texts, or of some of its questions."""
        key = f"{instances} {options!r}"
        if key not in self._audits:
            model, _ = self._model(options)
            defaults = audit_defaults(model, self.corpus.settings)
            settings = AuditSettings.of(**{**defaults, "instances": instances})
            texts = audited_split(self.corpus, settings)
            with one_thread():
                self._audits[key] = estimate(AuditContext(model, texts, settings, registered()))
        costs = self._audits[key]
        return sum(costs.get(name, 0.0) for name in names or costs) + REPORT

    def retraining(
        self, names: Sequence[str], settings: RetrainSettings, instances: int, **options: Any
    ) -> float:
        """Return the seconds of the trainings that questions ask for."""
        model, run_settings = self._model(options)
        audit_settings = AuditSettings.of(instances=instances)
        texts = audited_split(self.corpus, audit_settings)
        with tempfile.TemporaryDirectory() as folder, one_thread():
            base = base_of(model, self.corpus, run_settings, texts, Path(folder))
            trainer = Trainer(base, settings, self.workers)
            variants = [
                variant
                for name in names
                for variant in registered()[name].variants(trainer)  # type: ignore[misc]
            ]
            return forecast_of(trainer.plan(variants), base, self.workers)[1]

    def _model(self, options: dict[str, Any]) -> tuple[AttentionClassifier, RunSettings]:
        data = self.corpus.settings

        def options_of(group: type[Settings]) -> dict[str, Any]:
            chosen = {name: value for name, value in options.items() if name in group.model_fields}
            return {**defaults_for(data, group), **chosen}

        settings = RunSettings(
            fingerprint=self.corpus.fingerprint(),
            data=data,
            model=ModelSettings.of(**options_of(ModelSettings)),
            train=TrainSettings.of(**options_of(TrainSettings)),
        )
        key = settings.to_toml()
        if key not in self._models:
            model, sized, _ = init_model(
                self.corpus, settings, kind_for(self.corpus, settings.model)
            )
            self._models[key] = model, sized
        return self._models[key]

    def _objective(self, model: AttentionClassifier, train: TrainSettings) -> AttentionObjective:
        texts, dev = (
            model.encoded(split.texts, split.labels)
            for split in (self.corpus.splits["train"], self.corpus.splits["dev"])
        )
        return AttentionObjective(model, texts, dev, train)

    def _recording(self, model: AttentionClassifier, train: TrainSettings) -> float:
        splits = self.corpus.splits
        recorder = ClassifierRecorder(model, splits["test"], splits["dev"], None, 0)
        model.eval()
        start = time.perf_counter()
        with one_thread():
            recorder.read(1)
        seconds = time.perf_counter() - start
        model.train()
        steps = -(-len(splits["train"]) // train.batch_size) * train.epochs
        return seconds * (sum(step < steps for step in EARLY) + steps // EVERY + train.epochs)
