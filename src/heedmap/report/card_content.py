"""The head of the verdict card as text, for pictures and papers: the answer and what it rests on."""

from dataclasses import dataclass
from importlib.metadata import version

from heedmap.experiments.bottom_line import bottom_line
from heedmap.experiments.findings import AuditResult, level_text, pooled
from heedmap.experiments.levels import SIGNS, Level
from heedmap.experiments.rates import packaged_rates
from heedmap.files.content_hash import tables_hash
from heedmap.report.card import INTERVALS, facts
from heedmap.report.wording import count_text, distinct_texts, few_texts, overview_number

TITLE = "Should you heed the heat map?"
CITED = (
    "data",
    "texts",
    "classes",
    "output",
    "model",
    "audited",
)  # facts that a reader of a slide needs
DIGITS = 16  # of the tables' hash, which tell one audit from another


@dataclass(frozen=True)
class Question:
    """A question that has a level: its sign and level in words, what is asked in short, number and n."""

    level: Level
    words: str
    topic: str
    number: str
    n: str


@dataclass(frozen=True)
class CardContent:
    """What a card says, line by line.

    `sentence` is the bottom line with its sign, `details` are what was measured and how often the rule errs,
    `facts` what was audited, by name; `intervals` says what those of the numbers are. `source` names heedmap's
    version and the tables' hash.
    """

    level: Level
    sentence: str
    details: list[str]
    questions: list[Question]
    facts: list[tuple[str, str]]
    intervals: str
    source: str


def card_content(audit: AuditResult) -> CardContent:
    """Return the content of an audit's card."""
    line = bottom_line(audit, audit.rates or packaged_rates())
    caution = few_texts(distinct_texts(pooled(audit)), audit.nouns)
    return CardContent(
        line.level,
        f"{SIGNS[line.level]} {line.sentence}",
        [*line.details, *([f"Caution: {caution}."] if caution else [])],
        [
            Question(
                finding.level,
                level_text(finding),
                finding.topic or finding.question,
                overview_number(finding),
                count_text(finding, audit.nouns),
            )
            for finding in audit.findings
            if finding.level != "for comparison"
        ],
        [(name, value) for name, value in facts(audit) if name in CITED],
        audit.nouns.reword(INTERVALS),
        f"heedmap {version('heedmap')}, tables sha256 {tables_hash(audit.tables)[:DIGITS]}",
    )
