"""The same questions side by side: each row's number and level, and a sentence that says what is certain."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from heedmap.comparisons.differences import Difference, RunNumbers, compared_pairs, differences
from heedmap.comparisons.same_texts import TextIds
from heedmap.comparisons.seed_rows import Row
from heedmap.experiments.findings import Finding
from heedmap.experiments.levels import SIGNS
from heedmap.experiments.registry import numbers_by_finding
from heedmap.experiments.rounding import number
from heedmap.terminal.output import some_of

SEVERAL = "levels differ"
LISTED = 4  # pairs of rows in a sentence
NO_NUMBERS = "the package that asks it keeps no number per text"


@dataclass(frozen=True)
class Answer:
    """One row's answer to a question: the mean over its runs, and the range where there are several.

    `level` is that of all runs, or SEVERAL. `asked` counts the runs that have the question, `defined` those in
    which it has a number, of `runs` in all. `n` is the smallest number of texts.
    """

    value: float
    lowest: float
    highest: float
    level: str
    runs: int
    asked: int
    defined: int
    n: int

    @property
    def text(self) -> str:
        """Sign, number and range over seeds."""
        if not self.asked:
            return "missing"
        if not self.defined:
            return f"{self.sign} undefined"
        several = self.defined > 1
        spread = f" ({number(self.lowest)} to {number(self.highest)})" if several else ""
        part = f", in {self.defined} of {self.runs} seeds" if self.defined < self.runs else ""
        return f"{self.sign} {number(self.value)}{spread}{part}"

    @property
    def sign(self) -> str:
        """The level as a sign; ≠ where the runs' levels differ."""
        return next((sign for level, sign in SIGNS.items() if level == self.level), "≠")


@dataclass(frozen=True)
class ComparedQuestion:
    """A question with the rows' answers, the differences between them, and what these show in words."""

    finding: Finding
    answers: Sequence[Answer]
    differences: Sequence[Difference]
    sentence: str

    @property
    def key(self) -> str:
        """The question's short name."""
        return self.finding.key

    @property
    def topic(self) -> str:
        """What is asked, in a few words."""
        return self.finding.topic or self.finding.question


def compared_questions(
    rows: Sequence[Row], texts: Sequence[Sequence[TextIds]]
) -> list[ComparedQuestion]:
    """Compare the rows in every question that one of their runs was asked; `texts`: of each run, by row."""
    findings = _in_order(rows)
    numbers = _numbers(rows, texts, list(findings))
    shown = {key for key in findings if _is_same_measure(rows, key)}
    compared = differences(
        {key: numbers[key] for key in findings if key in shown}, compared_pairs(len(rows))
    )
    questions = []
    for key, finding in findings.items():
        answers = [_answer(row, key) for row in rows]
        found = [difference for difference in compared if difference.key == key]
        sentence = _sentence(rows, key, answers, found, key in shown)
        questions.append(ComparedQuestion(finding, answers, found, sentence))
    return questions


def _in_order(rows: Sequence[Row]) -> dict[str, Finding]:
    """Return one finding of each question, in the order of the cards."""
    ordered: list[str] = []
    findings: dict[str, Finding] = {}
    for run_findings in (run for row in rows for run in row.findings):
        findings = {**run_findings, **findings}
        if not ordered:
            ordered = [*run_findings]
        for place, key in enumerate(keys := [*run_findings]):
            if key not in ordered:
                ordered.insert(ordered.index(keys[place - 1]) + 1 if place else 0, key)
    return {key: findings[key] for key in ordered}


def _is_same_measure(rows: Sequence[Row], key: str) -> bool:
    """Return whether the number means the same in all runs; a better map's is that of the best one."""
    measures = {
        (findings[key].measure, findings[key].of_median)
        for row in rows
        for findings in row.findings
        if key in findings
    }
    return len(measures) == 1


def _numbers(
    rows: Sequence[Row], texts: Sequence[Sequence[TextIds]], keys: Sequence[str]
) -> dict[str, list[list[RunNumbers] | None]]:
    """Return by question the numbers per text of each row's runs that have any; None where no run has."""
    tables = [
        [
            numbers_by_finding(
                run.audit.tables,
                run.audit.settings.audit,
                run.audit.classes,
                run.audit.settings.model,
                run.audit.rates,
            )
            for run in row.runs
            if run.audit.settings.audit is not None
        ]
        for row in rows
    ]
    numbers: dict[str, list[list[RunNumbers] | None]] = {}
    for key in keys:
        numbers[key] = []
        for run_tables, run_texts in zip(tables, texts, strict=True):
            runs = [
                RunNumbers(table[key], ids)
                for table, ids in zip(run_tables, run_texts, strict=True)
                if key in table
            ]
            numbers[key].append([run for run in runs if run.is_known.any()] or None)
    return numbers


def _answer(row: Row, key: str) -> Answer:
    findings = [run[key] for run in row.findings if key in run]
    values = [finding.value for finding in findings if math.isfinite(finding.value)]
    levels = {finding.level for finding in findings}
    return Answer(
        value=row.mean(key),
        lowest=min(values, default=math.nan),
        highest=max(values, default=math.nan),
        level=levels.pop() if len(levels) == 1 else SEVERAL if levels else "missing",
        runs=len(row.runs),
        asked=len(findings),
        defined=len(values),
        n=min((finding.n for finding in findings), default=0),
    )


def _sentence(
    rows: Sequence[Row],
    key: str,
    answers: Sequence[Answer],
    found: Sequence[Difference],
    is_same_measure: bool,
) -> str:
    """Say which differences are certain, which are not, and where there is nothing to compare."""
    named = [(row.letter, answer) for row, answer in zip(rows, answers, strict=True)]
    missing = [letter for letter, answer in named if not answer.asked]
    undefined = [letter for letter, answer in named if answer.asked and not answer.defined]
    parts = []
    if not is_same_measure:
        measures = {
            run[key].measure: row.letter for row in rows for run in row.findings if key in run
        }
        listed = "; ".join(f"{letter}: {measure}" for measure, letter in measures.items())
        parts.append(f"Not compared, for the rows measure another thing. {listed}.")
    certain = [difference for difference in found if difference.certain]
    parts += _listed("Certain", [_said(rows, difference) for difference in certain])
    uncertain = [difference for difference in found if not difference.certain]
    if len(uncertain) > 1 and not certain:
        parts.append("No certain difference.")
    elif len(uncertain) == 1:
        parts += _listed("Not certain", [_said(rows, difference) for difference in uncertain])
    else:
        pairs = [
            f"{rows[difference.first].letter} and {rows[difference.second].letter}"
            for difference in uncertain
        ]
        parts += _listed("Not certain", pairs)
    if missing:
        parts.append(f"Missing in {some_of(missing)}: not asked there.")
    if undefined:
        parts.append(f"Undefined in {some_of(undefined)}.")
    if not parts:
        parts.append(f"Not compared: {NO_NUMBERS}.")
    return " ".join(parts)


def _listed(head: str, sayings: Sequence[str]) -> list[str]:
    return [f"{head}: {'; '.join([some_of(sayings, LISTED)])}."] if sayings else []


def _said(rows: Sequence[Row], difference: Difference) -> str:
    """Say one difference: who is above whom, by how much, with the interval that holds for all together."""
    first, second = rows[difference.first].letter, rows[difference.second].letter
    value, low, high = difference.value, difference.strict_low, difference.strict_high
    if value < 0 and difference.certain:
        first, second, value, low, high = second, first, -value, -high, -low
    if not math.isfinite(low):
        between = f" ({difference.no_interval})" if difference.no_interval else ""
    else:
        between = f" [{number(low)}, {number(high)}]"
    if difference.certain:
        return f"{first} is above {second} by {number(value)}{between}"
    overlap = ""
    if difference.excludes_zero:
        overlap = ", but their seeds overlap"
    return f"{first} − {second} = {number(value)}{between}{overlap}"
