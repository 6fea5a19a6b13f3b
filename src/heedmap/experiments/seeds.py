"""Numbers over several trainings: accuracy and F1 of each, and their mean with Student's interval."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from heedmap.experiments.seed_intervals import mean_interval
from heedmap.experiments.variants import Outcome

Lists: TypeAlias = pa.ChunkedArray


def predictions(outcomes: Sequence[Outcome]) -> pa.Array:
    """Return a list per text: the class that each of the models predicts."""
    classes = np.stack([outcome.predicted for outcome in outcomes], axis=1)
    return pa.array(list(classes), pa.list_(pa.int64()))


def matrix(lists: Lists) -> NDArray[np.int64]:
    """Return a column of predictions as an array (texts, models)."""
    rows = lists.to_pylist()
    return np.array(rows, dtype=np.int64).reshape(len(rows), -1)


def right(lists: Lists, label: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return whether each model is right about each text, (texts, models)."""
    return np.asarray(matrix(lists) == label[:, None], dtype=np.float64)


@dataclass(frozen=True)
class Seeds:
    """The predictions of one kind of model, trained from several seeds."""

    lists: Lists
    label: NDArray[np.int64]
    classes: Sequence[str]

    @property
    def count(self) -> int:
        """Return the number of trainings."""
        return int(matrix(self.lists).shape[1])

    @property
    def accuracy(self) -> list[float]:
        """Return the accuracy of each training."""
        return [float(share) for share in right(self.lists, self.label).mean(0)]

    @property
    def f1(self) -> list[float]:
        """Return the F1 of each training: of class 1 of two classes, else macro."""
        from sklearn.metrics import f1_score

        average = "binary" if len(self.classes) == 2 else "macro"
        return [
            float(f1_score(self.label, predicted, average=average, zero_division=0.0))
            for predicted in matrix(self.lists).T
        ]


def over_seeds(values: Sequence[float], digits: int = 3) -> str:
    """Return the mean of shares and its 95 % interval over seeds: x̄ ± t s / √k, cut at 0 and 1."""
    return seed_mean(values, digits, share=True)


def seed_mean(values: Sequence[float], digits: int = 3, *, share: bool = False) -> str:
    """Return a mean and its interval over seeds, of those that have the number; of a share cut at 0 and 1."""
    defined = [value for value in values if not math.isnan(value)]
    if not defined:
        return "–"
    low, high = mean_interval(defined)
    text = f"{np.mean(defined):.{digits}f}"
    if not math.isnan(low):
        if share:
            low, high = max(0.0, low), min(1.0, high)
        text += f" [{low:.{digits}f}, {high:.{digits}f}]"
    return text if len(defined) == len(values) else f"{text}, {len(defined)} of {len(values)}"
