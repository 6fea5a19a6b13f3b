"""Findings: a question's number, its interval, and a graded reading.

BANDS and docs/verdict.md hold the rules of the readings.
"""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import stats

from heedmap.experiments.pooling import by_text
from heedmap.settings import RunSettings

Level = Literal["for", "mixed", "against", "undecided"]
RESAMPLES = 2000
CONFIDENCE = 0.95
FEWEST = 5  # a bootstrap of fewer values is meaningless

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


@dataclass(frozen=True)
class Relative:
    """A value as a share of the way from chance (0) to the best attainable (1), on the same texts.

    `chance` and `ceiling` are means (or medians, as the value) over the texts where both are known. `share` is
    the mean over the `n` texts of (value − chance) / (ceiling − chance), each between −1 and 1; [`low`, `high`]
    is its 95 % interval.
    """

    chance: float
    ceiling: float
    share: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Finding:
    """One question and its answer.

    `kind` is its key in BANDS. [`low`, `high`] is the 95 % interval of `value` (bootstrap over the n
    instances); `left_out` counts the excluded instances by reason; `level` says whether the finding speaks
    for or against showing the heat map ("undecided" also where it is for comparison only).
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
    by_class: dict[str, float] = field(default_factory=dict)
    relative: Relative | None = None


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

    def defined(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in pairs}

    return [asdict(f, dict_factory=defined) for f in findings]


def interval(
    values: NDArray[np.float64],
    statistic: Callable[..., Any],
    seed: int,
) -> tuple[float, float]:
    """Return the 95 % percentile bootstrap interval over instances; NaN for fewer than FEWEST."""
    if len(values) < FEWEST:
        return math.nan, math.nan
    bootstrap = stats.bootstrap(
        (values,),
        statistic,
        n_resamples=RESAMPLES,
        confidence_level=CONFIDENCE,
        method="percentile",
        vectorized=True,
        batch=max(1, 2_000_000 // len(values)),
        rng=np.random.default_rng([seed, len(values)]),
    ).confidence_interval
    return float(bootstrap.low), float(bootstrap.high)


def grade(kind: str, value: float, low: float, high: float) -> tuple[str, Level]:
    """Return reading and level: the value's band, or both ends' bands where the interval crosses an edge."""
    if not math.isfinite(value):
        return "undefined", "undecided"
    if kind not in BANDS:
        return "no bands", "undecided"

    def band(x: float) -> tuple[str, Level]:
        return next((words, level) for edge, level, words in BANDS[kind] if x >= edge)

    if not math.isfinite(low):
        return f"{band(value)[0]} (too few instances for an interval)", "undecided"
    (lower, first), (upper, second) = band(low), band(high)
    if lower == upper:
        return lower, first
    return f"between “{lower}” and “{upper}”", first if first == second else "undecided"
