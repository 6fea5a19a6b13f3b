"""Findings: a question's number, its interval, and a graded reading.

BANDS and docs/verdict.md hold the rules of the readings.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from heedmap.experiments.columns import Columns
from heedmap.experiments.pooling import by_text
from heedmap.experiments.rates import Rates
from heedmap.experiments.rounding import number, told_apart
from heedmap.nouns import Nouns
from heedmap.settings.run import RunSettings
from heedmap.terminal.html import html_table

if TYPE_CHECKING:
    import pandas as pd

Level = Literal["for", "mixed", "against", "cannot tell", "for comparison"]

# Facts that calibration does not judge, per kind: (lower edge, level, words), from the top down. A value falls
# into the first band whose edge it reaches. Only skill has a level: is there anything to explain?
WEAK = "too weak to explain"
BANDS: dict[str, list[tuple[float, Level, str]]] = {
    "skill": [
        (0.5, "for", "good"),
        (0.1, "mixed", "modest"),
        (-math.inf, "against", WEAK),
    ],
    "words": [
        (0.7, "for comparison", "most of the attention falls on the words"),
        (0.3, "for comparison", "a good part falls on special tokens"),
        (-math.inf, "for comparison", "most of the attention falls on special tokens"),
    ],
    "identified": [
        (0.99, "for comparison", "all of it reaches the layer's output"),
        (0.8, "for comparison", "a part of it cancels out"),
        (-math.inf, "for comparison", "much of it cancels out"),
    ],
    "auc": [
        (0.9, "for comparison", "finds these words"),
        (0.7, "for comparison", "often finds these words"),
        (0.55, "for comparison", "seldom finds these words"),
        (-math.inf, "for comparison", "no better than chance"),
    ],
}
LEVEL_WORDS: dict[Level, str] = {
    "for": "speaks for the map",
    "mixed": "leaves it open",
    "against": "speaks against the map",
    "cannot tell": "is too uncertain to tell",
    "for comparison": "is for comparison only",
}
# What shows a level without its colour.
SIGNS: dict[Level, str] = {
    "for": "+",
    "mixed": "~",
    "against": "−",
    "cannot tell": "?",
    "for comparison": "·",
}

COLOURS: dict[Level, str] = {
    "for": "#3f86e0",
    "mixed": "#d9a520",
    "against": "#c2512f",
    "cannot tell": "#8a8f98",
    "for comparison": "#8a8f98",
}
"""Of a line beside a text in a notebook, seen on white and on black."""


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
UNJUDGED = "for comparison"  # a number without a chance level
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
    left_out = {nouns.reword(reason): count for reason, count in finding.left_out.items()}
    return replace(finding, **worded, left_out=left_out)


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


COLUMNS = Columns(
    "One row per finding, in the order of the card; null where a number is undefined.",
    {
        "key": ("text", "its short name, the same in every audit"),
        "question": ("text", "what is asked"),
        "kind": ("text", "what is measured"),
        "level": (
            "for, mixed, against, cannot tell, for comparison",
            "whether it speaks for showing the map",
        ),
        "answer": (
            "text",
            "the reading in words, as on the card; empty where there is only a number",
        ),
        "value": ("as `measure` says", "the number: a mean or median over texts"),
        "low": ("as `value`", "lower end of its 95 % interval over texts"),
        "high": ("as `value`", "upper end"),
        "n": ("count", "texts"),
        "distinct": ("count", "different texts among them"),
        "left_out": (
            "count",
            "texts left out, for all reasons together (`Finding.left_out` has each)",
        ),
        "chance": ("as `value`", "what chance reaches, on the texts where both ends are known"),
        "ceiling": ("as `value`", "what these weights reach at best, on the same texts"),
        "share": (
            "−1 to 1",
            "where the value stands between chance (0) and the ceiling (1): mean over these texts",
        ),
        "share_low": (
            "−1 to 1",
            "lower end of the 95 % interval of the share; the level follows from it",
        ),
        "share_high": ("−1 to 1", "upper end"),
        "measure": ("text", "what the value is"),
        "meaning": ("text", "how to read it"),
    },
)


def to_frame(findings: Sequence[Finding]) -> "pd.DataFrame":
    """Return a frame with a row per finding, and the columns of COLUMNS."""
    import pandas as pd

    names = [column.name for column in COLUMNS.described]
    nothing = Relative(math.nan, math.nan, math.nan, math.nan, math.nan, math.nan, 0)
    rows = []
    for finding in findings:
        relative = finding.relative or nothing
        rows.append(
            {
                **vars(finding),
                "answer": answer_text(finding),
                "left_out": sum(finding.left_out.values()),
                "chance": relative.chance,
                "ceiling": relative.ceiling,
                "share": relative.share,
                "share_low": relative.low,
                "share_high": relative.high,
            }
        )
    return pd.DataFrame(rows, columns=names)


CLASS_COLUMNS = Columns(
    "One row per finding and predicted class; null where a number is undefined.",
    {
        "key": ("text", "the finding's"),
        "class": ("text", "the predicted class's name"),
        "value": (
            "as the finding's",
            "the number over the texts that are predicted to be of this class",
        ),
        "n": ("count", "texts of the class"),
        "chance": (
            "as `value`",
            "what chance reaches on the class's texts where both ends are known",
        ),
        "ceiling": ("as `value`", "what these weights reach at best, on the same texts"),
        "compared": ("count", "texts where both are known"),
    },
)


def to_class_frame(findings: Sequence[Finding]) -> "pd.DataFrame":
    """Return a frame with a row per finding and predicted class, and the columns of CLASS_COLUMNS."""
    import pandas as pd

    rows = [
        {"key": finding.key, "class": name, **vars(class_number)}
        for finding in findings
        for name, class_number in finding.by_class.items()
    ]
    return pd.DataFrame(rows, columns=[column.name for column in CLASS_COLUMNS.described])


def to_json(findings: list[Finding]) -> list[dict[str, Any]]:
    """Convert findings to JSON values; undefined numbers are null."""

    def converted(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        return {k: _as_json(v) for k, v in pairs}

    return [asdict(f, dict_factory=converted) for f in findings]


def _as_json(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


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


def grade(kind: str, value: float, low: float, high: float) -> tuple[str, Level]:
    """Return reading and level: the value's band, or both ends' bands where the interval crosses an edge."""
    unsure: Level = "cannot tell" if kind == "skill" else "for comparison"
    if not math.isfinite(value):
        return "undefined", unsure
    if kind not in BANDS:
        return UNJUDGED, unsure

    def band(x: float) -> tuple[str, Level]:
        return next((words, level) for edge, level, words in BANDS[kind] if x >= edge)

    if not math.isfinite(low):
        return f"{band(value)[0]} (too few instances for an interval)", unsure
    (lower, lower_level), (upper, upper_level) = band(low), band(high)
    if lower == upper:
        return lower, lower_level
    if lower_level != upper_level:
        lower_level = "mixed" if {lower_level, upper_level} == {"mixed", "for"} else unsure
    return f"between “{lower}” and “{upper}”", lower_level
