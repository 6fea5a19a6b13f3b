"""Groups of the texts of a figure: one per predicted class, or all texts as one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heedmap.experiments.findings import AuditResult
from heedmap.experiments.rounding import number
from heedmap.report.charts import PALETTE, Key
from heedmap.report.wording import column

MOST = len(PALETTE)  # classes that are drawn apart
ALL = "all texts"


@dataclass(frozen=True)
class Division:
    """The labels of a figure's series, and each text's series by its index; `note` names classes without one.

    Classes are predicted ones, as in Jain & Wallace's code (the paper does not say whether predicted or gold).
    """

    labels: list[str]
    series: NDArray[np.int64]
    by_class: bool
    note: str = ""

    def name(self, i: int) -> str:
        """Return the name of a series in the legend."""
        return f"predicted {self.labels[i]}" if self.by_class else self.labels[i]

    def key(self, i: int, values: NDArray[np.float64], mean: bool = True) -> Key:
        """Return the legend's entry for a series with these values."""
        counts = f"n = {len(values):,}" + (f", mean {number(float(values.mean()))}" if mean else "")
        return Key(f"{self.name(i)} ({counts})", PALETTE[i])

    @property
    def notes(self) -> list[str]:
        """Return the note as a list, which is empty without one."""
        return [self.note] if self.note else []


def division(audit: AuditResult) -> Division:
    """Return one series per predicted class, or if these are more than MOST, one of all texts.

    Jain & Wallace group by class up to three classes and show all texts together from four on. These figures
    have room for up to MOST classes.
    """
    predicted = column(audit.tables, "instances", "predicted").astype(int)
    present = np.unique(predicted)
    if len(audit.classes) == 1:  # a number, of which there are no classes
        return Division([ALL], np.zeros_like(predicted), False)
    if len(present) > MOST:
        note = f"{len(present)} classes are predicted, too many to tell apart, so all texts are shown as one"
        return Division([ALL], np.zeros_like(predicted), False, note)
    labels = [audit.classes[i] for i in present]
    return Division(
        labels, np.searchsorted(present, predicted), True, unpredicted(len(present), audit.classes)
    )


def unpredicted(count: int, classes: Sequence[str]) -> str:
    """Count the classes that are predicted for no text; `count` are predicted. Empty if all are.

    >>> unpredicted(3, ["a", "b", "c", "d", "e"]), unpredicted(2, ["a", "b"])
    ('2 of 5 classes are predicted for no text', '')
    """
    missing = len(classes) - count
    verb = "is" if missing == 1 else "are"
    return f"{missing} of {len(classes)} classes {verb} predicted for no text" if missing else ""


def texts(n: int, left_out: Mapping[str, int]) -> str:
    """Return the number of texts, and how many were left out for each reason.

    >>> texts(30, {"of one word left out": 10, "not sampled": 0})
    'n = 30 texts, 10 of one word left out'
    """
    return ", ".join(
        [
            f"n = {n:,} texts",
            *(f"{count:,} {reason}" for reason, count in left_out.items() if count),
        ]
    )


def of_words(
    audit: AuditResult, values: NDArray[np.float64], missing: str = "not sampled"
) -> tuple[NDArray[np.float64], str]:
    """Return the values, NaN for texts of one word where attention is trivial, and a phrase that states n.

    `missing`: why a text has no number.
    """
    short = column(audit.tables, "instances", "n_tokens") < 2
    masked = np.where(short, np.nan, values)
    defined = np.isfinite(masked)
    left_out = {"of one word left out": int(short.sum()), missing: int((~defined & ~short).sum())}
    return masked, texts(int(defined.sum()), left_out)
