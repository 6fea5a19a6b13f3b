"""The verdict card on the page, with each finding on its scale."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from heedmap.experiments.findings import BOUNDS, AuditResult, Finding, answer_text, counted_classes
from heedmap.experiments.levels import BANDS, SIGNS, Level, bands_between
from heedmap.experiments.results import signed_percent
from heedmap.experiments.rounding import number
from heedmap.report.wording import (
    caveat,
    column,
    count_text,
    counts,
    distinct_texts,
    interval_text,
    overview_number,
    scale_text,
)

LONGEST_SCALE = (
    2.0  # where an interval alone is longer: of a few texts it would leave the bands no room
)
UNBANDED: list[tuple[float, Level, str]] = [(-math.inf, "for comparison", "for comparison")]


@dataclass(frozen=True)
class Zone:
    """A stretch of the scale with one reading, in percent of its width; `span` names its limits."""

    start: float
    width: float
    level: Level
    words: str
    span: str
    sign: str


@dataclass(frozen=True)
class Verdict:
    """A finding with the texts and positions that the page draws; `ticks` are those of classes."""

    finding: Finding
    sign: str
    topic: str
    overview: str
    value: str
    interval: str
    n: str
    answer: str
    low_end: str
    high_end: str
    dot: float | None
    middle: float
    width: float
    goes_on: str
    zones: list[Zone]
    ticks: list[tuple[float, str]]
    scale: str | None
    caveat: str | None
    left_out: str
    by_class: list[tuple[str, str]]


def verdicts(audit: AuditResult) -> list[Verdict]:
    """Return all findings, in the order of the card."""
    texts = distinct_texts(audit)
    return [_verdict(audit, finding, texts) for finding in audit.findings]


def _verdict(audit: AuditResult, f: Finding, texts: int) -> Verdict:
    """Draw a finding from chance to the best possible map, or a fact on the scale of its values."""
    if f.relative is not None:
        value, ends = f.relative.share, (f.relative.low, f.relative.high)
        # The scale begins below chance only if the map or its interval does, and then at a full tenth.
        lowest = min(value, *(end for end in ends if math.isfinite(end)), 0.0)
        low = math.floor(10 * lowest) / 10 if math.isfinite(lowest) else 0.0
        low_end = f"chance {number(f.relative.chance)}"
        if low < 0:
            low_end = f"{low:z.0%} (0% is {low_end})".replace("-", "−")
        high = _tenth_above(value, *ends)
        high_end = f"at best {number(f.relative.ceiling)}"
        if high > 1:
            high_end = f"{high:.0%} (100% is {high_end})"
        bands = UNBANDED
    else:
        value, ends, low = f.value, (f.low, f.high), BOUNDS.get(f.kind, (0.0, 1.0))[0]
        high = min(_tenth_above(value, *ends), max(_tenth_above(value), LONGEST_SCALE))
        low_end, high_end = f"{low:g}".replace("-", "−"), f"{high:g}"
        of_kind = BANDS.get(f.kind, UNBANDED) if f.edges is None else bands_between(f.edges)
        bands = [(_on_scale(audit, f.kind, edge), level, words) for edge, level, words in of_kind]

    def percent(x: float) -> float:
        return round(100 * min(max((x - low) / (high - low), 0.0), 1.0), 2)

    start, end = (percent(ends[0]), percent(ends[1])) if math.isfinite(ends[0]) else (0.0, 0.0)
    zones = []
    upper_edge = math.inf
    for edge, level, words in bands:
        top, bottom = percent(min(upper_edge, high)), percent(max(edge, low))
        if edge < upper_edge:
            zones.append(
                Zone(
                    bottom,
                    round(top - bottom, 2),
                    level,
                    audit.nouns.reword(words),
                    _span(edge, upper_edge, signed_percent if f.relative else number),
                    SIGNS[level],
                )
            )
        upper_edge = edge
    return Verdict(
        finding=f,
        sign=SIGNS[f.level],
        topic=f.topic or f.question,
        overview=overview_number(f),
        value=number(f.value),
        interval=interval_text(f),
        n=count_text(f, audit.nouns),
        answer=answer_text(f),
        low_end=low_end,
        high_end=high_end,
        dot=percent(value) if math.isfinite(value) else None,
        middle=round((start + end) / 2, 2),
        width=round(end - start, 2),
        goes_on=_goes_on(ends, low, high),
        zones=zones,
        ticks=[(percent(x), f"{name}: {number(x)}") for name, x in counted_classes(f).items()],
        scale=scale_text(f, audit.nouns),
        caveat=caveat(f, texts, audit.nouns),
        left_out=counts(f.left_out),
        by_class=[
            (name, audit.nouns.reword(class_finding.words))
            for name, class_finding in f.by_class.items()
        ],
    )


def _tenth_above(*values: float) -> float:
    """Return where a scale ends: at 1, or at the full tenth above the largest of these numbers."""
    largest = max((x for x in values if math.isfinite(x)), default=1.0)
    return max(1.0, math.ceil(round(10 * largest, 9)) / 10)


def _goes_on(ends: tuple[float, float], low: float, high: float) -> str:
    """Name the sides on which an interval goes on beyond its scale, as classes of the page's style."""
    sides = {"before": ends[0] < low, "beyond": ends[1] > high}
    return " ".join(name for name, is_so in sides.items() if is_so)


def _span(edge: float, upper_edge: float, format_edge: Callable[[float], str]) -> str:
    """Name the limits of a zone; return an empty text if it is the whole scale."""
    if math.isinf(edge):
        return "" if math.isinf(upper_edge) else f"below {format_edge(upper_edge)}"
    return f"from {format_edge(edge)}" + (
        "" if math.isinf(upper_edge) else f" to {format_edge(upper_edge)}"
    )


def _on_scale(audit: AuditResult, kind: str, edge: float) -> float:
    """Convert a band's edge to the value's scale: skill is graded as gain over the commonest class."""
    if kind != "skill":
        return edge
    label = column(audit.tables, "instances", "label")
    if np.isnan(label).any():  # no labels: the value is not drawn either
        return edge
    majority = float(np.bincount(label.astype(int)).max() / len(label))
    return edge if math.isinf(edge) else majority + edge * (1 - majority)
