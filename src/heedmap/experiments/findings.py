"""Findings: a question's number, its interval, and a graded reading.

BANDS and docs/verdict.md hold the rules of the readings.
"""

import math
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import pyarrow as pa

from heedmap.experiments.pooling import by_text
from heedmap.settings import RunSettings

Level = Literal["for", "mixed", "against", "undecided"]

# Per kind of question: (lower edge, level, words), from the top down. A value falls into the first band
# whose edge it reaches.
BANDS: dict[str, list[tuple[float, Level, str]]] = {
    "skill": [
        (0.5, "for", "good"),
        (0.1, "mixed", "modest"),
        (-math.inf, "against", "too weak to explain"),
    ],
    "tau": [
        (0.7, "for", "strong agreement"),
        (0.4, "mixed", "moderate agreement"),
        (0.15, "against", "weak agreement"),
        (-math.inf, "against", "no agreement"),
    ],
    "tvd": [
        (0.25, "for", "the weights matter"),
        (0.05, "mixed", "the weights matter a little"),
        (-math.inf, "against", "the weights hardly matter"),
    ],
    "freedom": [
        (0.8, "against", "almost any other heat map does as well"),
        (0.4, "against", "very different heat maps do as well"),
        (0.1, "mixed", "somewhat different heat maps do as well"),
        (-math.inf, "for", "the weights are pinned down"),
    ],
    "words": [
        (0.7, "for", "most of the attention falls on the words"),
        (0.3, "mixed", "a good part falls on special tokens"),
        (-math.inf, "against", "most of the attention falls on special tokens"),
    ],
    "identified": [
        (0.99, "for", "all of it reaches the layer's output"),
        (0.8, "mixed", "a part of it cancels out"),
        (-math.inf, "against", "much of it cancels out"),
    ],
    "auc": [
        (0.9, "for", "finds the deciding words"),
        (0.7, "mixed", "often finds the deciding words"),
        (0.55, "against", "seldom finds the deciding words"),
        (-math.inf, "against", "no better than chance"),
    ],
}


BOUNDS = {"tau": (-1.0, 1.0)}  # of a text's number, by kind; of the others 0 and 1


@dataclass(frozen=True)
class Finding:
    """One question and its answer.

    `kind` is its key in BANDS. [`low`, `high`] is the 95 % interval of `value` over texts, for this one trained
    model (`heedmap.experiments.intervals`); where both are NaN, `no_interval` says why. Of the n instances,
    `distinct` are different texts. `left_out` counts the excluded instances by reason; `level` says whether
    the finding speaks for or against showing the heat map ("undecided" also where it is for comparison only).
    """

    key: str
    kind: str
    question: str
    measure: str
    value: float
    low: float
    high: float
    n: int
    left_out: dict[str, int]
    reading: str
    level: Level
    meaning: str
    distinct: int
    no_interval: str = ""
    by_class: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class AuditResult:
    """The content of card and report: settings, tables by name, findings, and facts about the run."""

    settings: RunSettings
    classes: list[str]
    tables: dict[str, pa.Table]
    findings: list[Finding]
    about: dict[str, Any]


def pooled(audit: AuditResult) -> AuditResult:
    """Return the same audit with windows pooled by text, as in the findings."""
    return replace(audit, tables=by_text(audit.tables))


def to_json(findings: list[Finding]) -> list[dict[str, Any]]:
    """Convert findings to JSON values; undefined numbers are null."""
    return [
        {
            k: None if isinstance(v, float) and not math.isfinite(v) else v
            for k, v in asdict(f).items()
        }
        for f in findings
    ]


def grade(kind: str, value: float, low: float, high: float) -> tuple[str, Level]:
    """Return reading and level: the value's band, or both ends' bands where the interval crosses an edge."""
    if not math.isfinite(value):
        return "undefined", "undecided"

    def band(x: float) -> tuple[str, Level]:
        return next((words, level) for edge, level, words in BANDS[kind] if x >= edge)

    if not math.isfinite(low):
        return f"{band(value)[0]} (too few instances for an interval)", "undecided"
    (lower, first), (upper, second) = band(low), band(high)
    if lower == upper:
        return lower, first
    return f"between “{lower}” and “{upper}”", first if first == second else "undecided"
