"""By predicted class, or all texts as one: how a figure divides the texts."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heedmap.experiments.findings import AuditResult
from heedmap.report.charts import PALETTE, Key
from heedmap.report.phrases import column, number

MOST = len(PALETTE)  # classes that are told apart
ALL = "all texts"


@dataclass(frozen=True)
class Division:
    """The series of a figure, and the number of each text's; `note` says why if they are not classes.

    Predicted classes, as in Jain & Wallace's code (they do not say that it is not the gold label).
    """

    labels: list[str]
    of: NDArray[np.int64]
    by_class: bool
    note: str = ""

    def name(self, i: int) -> str:
        """What the legend calls a series."""
        return f"predicted {self.labels[i]}" if self.by_class else self.labels[i]

    def key(self, i: int, values: NDArray[np.float64], mean: bool = True) -> Key:
        """The legend's entry for a series of these values."""
        told = f"n = {len(values)}" + (f", mean {number(float(values.mean()))}" if mean else "")
        return Key(f"{self.name(i)} ({told})", PALETTE[i])

    @property
    def notes(self) -> list[str]:
        """The note, if there is one."""
        return [self.note] if self.note else []


def division(audit: AuditResult) -> Division:
    """One series a predicted class, up to MOST of them; more are one series of all texts.

    Jain & Wallace go by class up to three and show all together from four on; with up to MOST we stay
    with the classes, since the figures have room for them.
    """
    predicted = column(audit.tables, "instances", "predicted").astype(int)
    present = np.unique(predicted)
    if len(present) > MOST:
        why = f"{len(present)} classes are predicted, too many to tell apart: all texts are one"
        return Division([ALL], np.zeros_like(predicted), False, why)
    if len(audit.classes) <= MOST:
        return Division(audit.classes, predicted, True)
    labels = [audit.classes[i] for i in present]
    return Division(labels, np.searchsorted(present, predicted), True)


def texts(n: int, left_out: Mapping[str, int]) -> str:
    """How many, and how many not.

    >>> texts(30, {"of one word left out": 10, "not sampled": 0})
    'n = 30 texts, 10 of one word left out'
    """
    return ", ".join([f"n = {n} texts", *(f"{c} {why}" for why, c in left_out.items() if c)])


def of_words(audit: AuditResult, values: NDArray[np.float64]) -> tuple[NDArray[np.float64], str]:
    """The values with NaN for texts of one word, which have nothing to weigh; and their n in words."""
    short = column(audit.tables, "instances", "n_tokens") < 2
    kept = np.where(short, np.nan, values)
    used = np.isfinite(kept)
    gone = {"of one word left out": int(short.sum()), "not sampled": int((~used & ~short).sum())}
    return kept, texts(int(used.sum()), gone)
