"""The verdict card on the page: each finding on its scale."""

import math
from dataclasses import dataclass

import numpy as np

from heedmap.experiments.findings import BANDS, AuditResult, Finding, Level
from heedmap.report.phrases import column, counts, interval_text, number

# Scales run from 0 to 1, except that of a correlation.
BEGINS = {"tau": -1.0}


@dataclass(frozen=True)
class Zone:
    """A stretch of the scale with one reading; all positions are in percent of its width."""

    left: float
    width: float
    level: Level
    words: str


@dataclass(frozen=True)
class Verdict:
    """A finding with the texts and positions that the page draws."""

    finding: Finding
    value: str
    interval: str
    low_end: str
    at: float | None
    left: float
    width: float
    zones: list[Zone]
    left_out: str
    by_class: list[tuple[str, str]]


def verdicts(audit: AuditResult) -> list[Verdict]:
    """Return all findings, in the order of the card."""
    return [_verdict(audit, finding) for finding in audit.findings]


def _verdict(audit: AuditResult, f: Finding) -> Verdict:
    kind, low = f.kind, BEGINS.get(f.kind, 0.0)

    def at(x: float) -> float:
        return round(100 * min(max((x - low) / (1 - low), 0.0), 1.0), 2)

    left, right = (at(f.low), at(f.high)) if math.isfinite(f.low) else (0.0, 0.0)
    zones = []
    above = 1.0
    for edge, level, words in BANDS.get(kind, []):
        below = max(_on_scale(audit, kind, edge), low)
        zones.append(Zone(at(below), round(at(above) - at(below), 2), level, words))
        above = below
    return Verdict(
        finding=f,
        value=number(f.value),
        interval=interval_text(f),
        low_end=f"{low:g}".replace("-", "−"),
        at=at(f.value) if math.isfinite(f.value) else None,
        left=left,
        width=round(right - left, 2),
        zones=zones,
        left_out=counts(f.left_out),
        by_class=[(name, number(x)) for name, x in f.by_class.items()],
    )


def _on_scale(audit: AuditResult, kind: str, edge: float) -> float:
    """Convert a band's edge to the value's scale: skill is graded as gain over the commonest class."""
    if kind != "skill":
        return edge
    label = column(audit.tables, "instances", "label").astype(int)
    majority = float(np.bincount(label).max() / len(label))
    return majority + max(edge, -1e9) * (1 - majority)
