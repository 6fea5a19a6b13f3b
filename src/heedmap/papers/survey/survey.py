"""The models of a survey that are finished, and which of them have learned."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from heedmap.papers.kit.learned import Learned, Score, accuracy
from heedmap.papers.kit.reproduction import CellReproduction
from heedmap.papers.survey.cells import cells
from heedmap.papers.survey.needs import Need, needs, sequence_name
from heedmap.papers.survey.numbers import (
    RankCorrelation,
    SequenceModel,
    TextModel,
    rank_correlation,
)
from heedmap.papers.survey.settings import SurveySettings
from heedmap.report.charts import Figure


@dataclass(frozen=True)
class Survey(CellReproduction[SurveySettings]):
    """The models that are finished."""

    @cached_property
    def texts(self) -> list[TextModel]:
        """The models of texts."""
        return [row for row in self.rows if isinstance(row, TextModel)]

    @cached_property
    def sequences(self) -> list[SequenceModel]:
        """The trainings on sequences."""
        return [row for row in self.rows if isinstance(row, SequenceModel)]

    @cached_property
    def retrained(self) -> list[TextModel]:
        """The models that were trained again."""
        return [model for model in self.texts if model["retrained"]]

    @cached_property
    def needs(self) -> list[Need]:
        """The models that were trained with uniform weights too."""
        return needs(self.texts, self.sequences)

    @cached_property
    def learned(self) -> Learned:
        """Which models have learned with their attention; a twin without it need not."""
        models: dict[str, dict[object, list[Score]]] = {}
        for model in self.texts:
            n = len(model.table)
            shares = [float(model.is_right.mean())]
            if model["retrained"]:
                shares += model.accuracies("learned")
            models[model.name] = {
                seed: [accuracy(share, model.commonest, n)] for seed, share in enumerate(shares)
            }
        for sequence in self.sequences:
            if sequence.attention == "learned":
                score = accuracy(sequence.accuracy, sequence.chance, sequence.positions)
                models.setdefault(sequence_name(sequence.data), {})[sequence.seed] = [score]
        return Learned(models)

    def counted(self, models: Sequence[TextModel]) -> list[TextModel]:
        """Return those that have learned."""
        return [model for model in models if model.name not in self.learned.failed]

    def named(self, model: TextModel) -> str:
        """Return what the tables call a model, with the mark if it has not learned."""
        return self.learned.marked(model.name, model.name)

    def failed_in(self, figure: Figure) -> list[str]:
        """Return the models in a figure that have not learned: of those that were trained again."""
        return [model.name for model in self.retrained if model.name in self.learned.failed]

    @property
    def missing(self) -> int:
        """How many models are still to be run."""
        return len(cells(self.settings)) - len(self.rows)

    def correlation(
        self,
        models: Sequence[TextModel],
        x: Callable[[TextModel], float],
        y: Callable[[TextModel], float],
    ) -> RankCorrelation:
        """Return the rank correlation of two numbers over the models that have learned."""
        counted = self.counted(models)
        return rank_correlation(
            [x(model) for model in counted],
            [y(model) for model in counted],
            [model["data"] for model in counted],
        )


def cost(model: TextModel) -> float:
    """Return the accuracy that training with uniform weights loses, mean over seeds."""
    return float(np.mean(model.costs))


def freedom(model: TextModel) -> float:
    """Return the adversary's mean JSD / ln 2."""
    values = model.freedom[np.isfinite(model.freedom)]
    return float(values.mean()) if len(values) else math.nan
