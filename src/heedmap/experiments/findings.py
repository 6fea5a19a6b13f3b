"""Findings: a question's number, its interval, and a graded reading."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import pyarrow as pa

from heedmap.experiments.levels import COLOURS, LEVEL_WORDS, SIGNS, UNJUDGED, Level, bands_between
from heedmap.experiments.pooling import by_text
from heedmap.experiments.rates import Rates
from heedmap.experiments.rounding import number, told_apart
from heedmap.experiments.rule import FEWEST
from heedmap.nouns import Nouns
from heedmap.settings.run import RunSettings
from heedmap.terminal.html import html_table


class ByValue:
    """Equal to another of its class with the same values, NaN beside NaN among them.

    From Python 3.13 on, dataclasses compare field by field, where a NaN is not even itself.
    """

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and [*vars(self).values()] == [*vars(other).values()]

    def __hash__(self) -> int:
        return hash(tuple(vars(self).values()))


@dataclass(frozen=True, eq=False)
class Relative(ByValue):
    """A value as a share of the way from chance (0) to the best attainable (1), on the same texts.

    `value`, `chance` and `ceiling` are means (or medians) over the `n` texts where all are known. `share` is
    the mean over these of (value − chance) / (ceiling − chance), each between −1 and 1; [`low`, `high`] is its
    95 % interval.
    """

    value: float
    chance: float
    ceiling: float
    share: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, eq=False)
class ClassNumber(ByValue):
    """A finding's number over the `n` texts of one predicted class, beside that class's own chance.

    `chance` and `ceiling` are over the `compared` texts of the class where both are known, and there the number
    is `beside`; NaN without any. A class of short texts, or of texts with one deciding word, has another chance
    than all texts together.
    """

    value: float
    n: int
    chance: float = math.nan
    ceiling: float = math.nan
    compared: int = 0
    beside: float = math.nan

    @property
    def words(self) -> str:
        """Put the number in words, beside the class's own chance and ceiling where they are known.

        >>> ClassNumber(0.29, 12, 0.169, 0.612, 12).words, ClassNumber(0.29, 12).words
        ('0.29 (chance 0.17, at best 0.61)', '0.29')
        >>> ClassNumber(0.29, 12, 0.169, 0.612, 9, 0.31).words, ClassNumber(0.29, 12, 0.169, compared=12).words
        ('0.29 (on 9 of 12 texts 0.31, chance 0.17, at best 0.61)', '0.29 (chance 0.17)')
        """
        if not self.compared:
            return number(self.value)
        chance, ceiling = told_apart(self.chance, self.ceiling)
        best = f", at best {ceiling}" if math.isfinite(self.ceiling) else ""
        subset = f"on {self.compared} of {self.n} texts {number(self.beside)}, " * (
            self.compared < self.n
        )
        return f"{number(self.value)} ({subset}chance {chance}{best})"


LISTED = 12  # classes that a finding shows
# Of a text's number, by kind; of the others 0 and 1. A "relative" one is a share of the attainable.
BOUNDS = {
    "tau": (-1.0, 1.0),
    "relative": (-1.0, 1.0),
    "change": (-1.0, 1.0),
    "deviations": (0.0, math.inf),
}


@dataclass(frozen=True, repr=False, eq=False)
class Finding(ByValue):
    """One question and its answer.

    Attributes:
        key: its short name, the same in every audit.
        kind: what is measured: a key of BANDS, or a measure with a chance level.
        question: what is asked, a sentence.
        topic: the same in a few words.
        measure: what `value` is, in words.
        value: the mean over texts, or with `of_median` the median; NaN if undefined.
        low: the lower end of its 95 % interval over texts, for this one trained model
            (`heedmap.experiments.intervals`). Where it is NaN, `no_interval` says why.
        high: the upper end.
        n: the texts that have a value.
        left_out: the others, counted by reason.
        reading: the number in words.
        level: whether it speaks for or against showing the heat map: "cannot tell" where too few texts leave
            that open, "for comparison" where calibration gives the question no level.
        meaning: how to read the value, and numbers to compare it with.
        distinct: how many of the n texts are different.
        by_class: the value over the texts of each predicted class, with the class's own chance, by its name.
        relative: where the value stands between chance and the best possible map, if both are known.
        because: the finding as a clause of the bottom line.
        edges: the value below which it speaks against the map, and that from which on it speaks for it.
        of_median: value, chance and ceiling are medians over texts, else means.
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
    topic: str = ""
    no_interval: str = ""
    by_class: dict[str, ClassNumber] = field(default_factory=dict)
    relative: Relative | None = None
    because: str = ""
    edges: tuple[float, float] | None = None
    of_median: bool = False

    def __repr__(self) -> str:
        return f"<Finding {self.key}: {level_text(self)}; {self.question} {self.number}; {self.reading}>"

    def _repr_html_(self) -> str:
        rows = [
            ("level", level_text(self)),
            ("answer", answer_text(self)),
            ("value", self.number),
            ("measure", f"{self.measure}: {self.meaning}"),
            *((f"left out: {reason}", count) for reason, count in self.left_out.items()),
            *(
                (f"predicted {name}", class_number.words)
                for name, class_number in list(self.by_class.items())[:LISTED]
            ),
        ]
        return html_table(rows, title=self.question, marks=[COLOURS[self.level]] * len(rows))

    @property
    def number(self) -> str:
        """Put the value in words, with its interval and n."""
        value = "undefined" if math.isnan(self.value) else _digits(self.value)
        between = "" if math.isnan(self.low) else f" [{_digits(self.low)}, {_digits(self.high)}]"
        return f"{value}{between}, n = {self.n}"


def reworded(finding: Finding, nouns: Nouns, names: Sequence[str]) -> Finding:
    """Return a finding with these nouns for texts and words; `names` are those of classes, which stay."""
    worded: dict[str, Any] = {
        name: nouns.reword(getattr(finding, name), names)
        for name in ("question", "topic", "measure", "reading", "meaning", "because", "no_interval")
    }
    left_out: Counter[str] = Counter()  # words and tokens, say, are both items
    for reason, count in finding.left_out.items():
        left_out[nouns.reword(reason)] += count
    return replace(finding, **worded, left_out=dict(left_out))


def _digits(x: float) -> str:
    return f"{x:z.3g}".replace("-", "−")


@dataclass(frozen=True, repr=False)
class AuditResult:
    """The content of card and report: settings, tables by name, findings, and facts about the run."""

    settings: RunSettings
    classes: list[str]
    tables: dict[str, pa.Table]
    findings: list[Finding]
    about: dict[str, Any]
    rates: Rates | None = None

    @property
    def nouns(self) -> Nouns:
        """Return what the audited instances and their items are called."""
        return self.settings.nouns


def pooled(audit: AuditResult) -> AuditResult:
    """Return the same audit with windows pooled by text, as in the findings."""
    return replace(audit, tables=by_text(audit.tables))


def to_json(findings: list[Finding]) -> list[dict[str, Any]]:
    """Convert findings to JSON values; undefined numbers are null."""

    def converted(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        return {k: _as_json(v) for k, v in pairs}

    return [asdict(f, dict_factory=converted) for f in findings]


def _as_json(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def judged(finding: Finding, edges: tuple[float, float], can_tell: bool) -> Finding:
    """Return a finding with the level of the band that its number falls into.

    It is mixed where the interval reaches the opposite band, or a class that counts is in the lowest one.
    """
    finding = replace(finding, edges=edges, level="cannot tell")
    if not can_tell or not math.isfinite(finding.value):
        return finding
    level = next(level for edge, level, _ in bands_between(edges) if finding.value >= edge)
    is_below = any(x < edges[0] for x in (finding.low, *counted_classes(finding).values()))
    if (level == "for" and is_below) or (level == "against" and finding.high >= edges[1]):
        level = "mixed"
    return replace(finding, level=level)


def counted_classes(finding: Finding) -> dict[str, float]:
    """Return the numbers of the predicted classes that count in a finding's level."""
    classes = finding.by_class if finding.edges is not None else {}
    return {k: x.value for k, x in classes.items() if x.n >= FEWEST and math.isfinite(x.value)}


def level_text(finding: Finding) -> str:
    """Return the level as a sign and a word."""
    return f"{SIGNS[finding.level]} {finding.level}"


def answer_text(finding: Finding) -> str:
    """Return the reading in words, beside the level; empty if there is only a number."""
    if finding.reading == UNJUDGED:
        return ""
    if finding.edges is not None and finding.level != "cannot tell":
        return f"{LEVEL_WORDS[finding.level]}, {finding.reading}"
    return finding.reading
