"""How a figure groups the texts: by predicted class, or all texts as one group."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heedmap.experiments.findings import AuditResult
from heedmap.experiments.rounding import number
from heedmap.report.charts import PALETTE, Key
from heedmap.report.phrases import column

MOST = len(PALETTE)  # classes that are drawn apart
ALL = "all texts"


@dataclass(frozen=True)
class Division:
    """The series of a figure, and the index of each text's; `note` says which classes are none of them.

    Classes are predicted ones, as in Jain & Wallace's code (the paper does not say whether predicted or gold).
    """

    labels: list[str]
    of: NDArray[np.int64]
    by_class: bool
    note: str = ""

    def name(self, i: int) -> str:
        """Return the name of a series in the legend."""
        return f"predicted {self.labels[i]}" if self.by_class else self.labels[i]

    def key(self, i: int, values: NDArray[np.float64], mean: bool = True) -> Key:
        """Return the legend's entry for a series with these values."""
        counts = f"n = {len(values)}" + (f", mean {number(float(values.mean()))}" if mean else "")
        return Key(f"{self.name(i)} ({counts})", PALETTE[i])

    @property
    def notes(self) -> list[str]:
        """The note as a list, empty without one."""
        return [self.note] if self.note else []


def division(audit: AuditResult) -> Division:
    """Return one series per class that is predicted for a text, or for more than MOST one of all texts.

    Jain & Wallace group by class up to three classes and show all texts together from four on. These figures
    have room for up to MOST classes.
    """
    predicted = column(audit.tables, "instances", "predicted").astype(int)
    present = np.unique(predicted)
    if len(present) > MOST:
        why = f"{len(present)} classes are predicted, too many to tell apart: all texts are one"
        return Division([ALL], np.zeros_like(predicted), False, why)
    labels = [audit.classes[i] for i in present]
    return Division(
        labels, np.searchsorted(present, predicted), True, unpredicted(len(present), audit.classes)
    )


def unpredicted(count: int, classes: Sequence[str]) -> str:
    """Say how many classes are predicted for no text, `count` being those that are; empty if all are.

    >>> unpredicted(3, ["a", "b", "c", "d", "e"]), unpredicted(2, ["a", "b"])
    ('2 of 5 classes are predicted for no text', '')
    """
    missing = len(classes) - count
    verb = "is" if missing == 1 else "are"
    return f"{missing} of {len(classes)} classes {verb} predicted for no text" if missing else ""


def texts(n: int, left_out: Mapping[str, int]) -> str:
    """Return the number of texts, and of those left out by reason.

    >>> texts(30, {"of one word left out": 10, "not sampled": 0})
    'n = 30 texts, 10 of one word left out'
    """
    return ", ".join([f"n = {n} texts", *(f"{c} {why}" for why, c in left_out.items() if c)])


def of_words(
    audit: AuditResult, values: NDArray[np.float64], missing: str = "not sampled"
) -> tuple[NDArray[np.float64], str]:
    """Return the values with NaN for texts of one word, where attention is trivial, and a phrase for n.

    `missing`: what the texts without a number are.
    """
    short = column(audit.tables, "instances", "n_tokens") < 2
    masked = np.where(short, np.nan, values)
    used = np.isfinite(masked)
    others = {"of one word left out": int(short.sum()), missing: int((~used & ~short).sum())}
    return masked, texts(int(used.sum()), others)
