"""What uniform attention costs: models of texts and of sequences in one form."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heedmap.experiments.seed_intervals import bounded_interval
from heedmap.papers.survey.numbers import SIGNED, SequenceModel, TextModel

TASKS = {"copy": "copying", "dictionary": "translation", "translation": "translation"}


@dataclass(frozen=True)
class Need:
    """A model's accuracies over seeds, with attention and without.

    `at_test` is what the trained model loses under uniform weights, with its interval: over texts for one
    training, over seeds for several.
    """

    task: str
    name: str
    learned: Sequence[float]
    uniform: Sequence[float]
    at_test: tuple[float, float, float]
    chance: float
    instances: str

    @property
    def costs(self) -> list[float]:
        """Accuracy lost by training with uniform weights, seed by seed."""
        return [a - b for a, b in zip(self.learned, self.uniform, strict=True)]

    @property
    def cost(self) -> float:
        """Their mean."""
        return float(np.mean(self.costs))


def needs(texts: Sequence[TextModel], sequences: Sequence[SequenceModel]) -> list[Need]:
    """Return the models that were trained with uniform weights too, those of texts first."""
    of_texts = [
        Need(
            model.task,
            model.name,
            model.accuracies("learned"),
            model.accuracies("uniform"),
            (
                float(model.cost_at_test.mean()),
                *model.interval(model.cost_at_test, SIGNED),
            ),
            model.commonest,
            f"{len(model.table)} texts",
        )
        for model in texts
        if model["retrained"]
    ]
    return [*of_texts, *_of_sequences(sequences)]


def _of_sequences(sequences: Sequence[SequenceModel]) -> list[Need]:
    by_key = {(model.data, model.attention, model.seed): model for model in sequences}
    found = []
    for data in dict.fromkeys(model.data for model in sequences):
        seeds = [
            model.seed
            for model in sequences
            if model.data == data
            and model.attention == "learned"
            and (data, "uniform", model.seed) in by_key
        ]
        if not seeds:
            continue
        learned, uniform = (
            [by_key[data, attention, seed] for seed in seeds]
            for attention in ("learned", "uniform")
        )
        lost = [model.accuracy - model.uniform_at_test for model in learned]
        found.append(
            Need(
                TASKS[data],
                sequence_name(data),
                [model.accuracy for model in learned],
                [model.accuracy for model in uniform],
                (float(np.mean(lost)), *bounded_interval(lost)),
                learned[0].chance,
                f"{learned[0].positions} sub-words",
            )
        )
    return found


def sequence_name(data: str) -> str:
    """Return what the tables call the models of some sequences."""
    return f"{data} lstm encoder-decoder"
