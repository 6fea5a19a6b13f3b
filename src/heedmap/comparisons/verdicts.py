"""The bottom lines side by side, and whether each holds over the seeds of its row."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from heedmap.comparisons.seed_rows import Row
from heedmap.experiments.bottom_line import ONE_TRAINING, BottomLine
from heedmap.terminal.output import some_of


@dataclass(frozen=True)
class RowVerdict:
    """The bottom lines of a row's runs, their sentences with the runs' names, and what they say together."""

    lines: Sequence[BottomLine]
    sentences: Sequence[str]
    sentence: str

    @property
    def answer(self) -> str:
        """The answer of all runs, or those that they give."""
        return " / ".join(dict.fromkeys(line.answer for line in self.lines))

    @property
    def line(self) -> BottomLine:
        """The first run's bottom line."""
        return self.lines[0]


def row_verdicts(rows: Sequence[Row]) -> list[RowVerdict]:
    """Return the verdict of each row."""
    verdicts = []
    for row in rows:
        lines = [run.audit.bottom_line for run in row.runs]
        sentences = [line.sentence for line in lines]
        if len(lines) > 1:  # what each says of other seeds, the others answer
            lines = [
                replace(line, trainings="") if line.trainings == ONE_TRAINING else line
                for line in lines
            ]
            sentences = [
                f"{run.name}: {line.sentence}" for run, line in zip(row.runs, lines, strict=True)
            ]
        verdicts.append(RowVerdict(lines, sentences, _over_seeds(row, lines)))
    return verdicts


def _over_seeds(row: Row, lines: Sequence[BottomLine]) -> str:
    """Say whether the verdict is the same in all seeds."""
    if len(lines) == 1:
        return "One seed: whether the verdict holds in others was not compared."
    names: dict[str, list[str]] = {}
    for run, line in zip(row.runs, lines, strict=True):
        names.setdefault(line.answer, []).append(run.name)
    if len(names) == 1:
        return f"The verdict holds over seeds: it is “{lines[0].answer}” in all {len(lines)}."
    counts = "; ".join(
        f"“{answer}” in {len(runs)} ({some_of(runs)})" for answer, runs in names.items()
    )
    return f"The verdict does not hold over seeds. Of {len(lines)}: {counts}."


def together(rows: Sequence[Row], verdicts: Sequence[RowVerdict]) -> str:
    """Say in one sentence whether the rows have the same verdict."""
    if len({verdict.answer for verdict in verdicts}) == 1:
        return f"The answer is “{verdicts[0].answer}” in every row."
    answers: dict[str, list[str]] = {}
    for row, verdict in zip(rows, verdicts, strict=True):
        answers.setdefault(verdict.answer, []).append(row.letter)
    listed = "; ".join(f"“{answer}” in {some_of(letters)}" for answer, letters in answers.items())
    return f"The answers differ: {listed}."
