"""The result of a reproduction: what all of its files show."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from heedmap.report.charts import Figure
from heedmap.report.wording import plural
from heedmap.settings.base import Settings

if TYPE_CHECKING:
    import pandas as pd


T = TypeVar("T")
_COUNTED = re.compile(r"\{(\w*)\}")
MARK = "†"
"""Stands beside the name of a model that has not learned (see `heedmap.papers.kit.learned`)."""
MARKED = f"{MARK}: not learned, see the notes."


@dataclass(frozen=True)
class Table:
    """A table of texts, and how to read it; the first `labels` columns are words, the others numbers.

    Every column has a name of its own. `links` are the places of cells, by their text; a table of sentences
    `wraps` its lines.
    """

    title: str
    heads: Sequence[str]
    lines: Sequence[Sequence[str]]
    note: str = ""
    labels: int = 1
    links: Mapping[str, str] = field(default_factory=dict)
    wraps: bool = False

    @classmethod
    def of(
        cls,
        title: str,
        subjects: Iterable[T],
        columns: Mapping[str, Callable[[T], str]],
        note: str = "",
        labels: int = 1,
        *,
        links: Mapping[str, str] | None = None,
        wraps: bool = False,
    ) -> "Table":
        """Make a table with a line per subject: each column's head, and the function that fills its cells."""
        lines = [[show(subject) for show in columns.values()] for subject in subjects]
        return cls(title, [*columns], lines, note, labels, links or {}, wraps)

    def __post_init__(self) -> None:
        if not all(self.heads) or len(set(self.heads)) < len(self.heads):
            raise ValueError(f"{self.title}: expected a name of its own for each of {self.heads}")
        if odd := [line for line in self.lines if len(line) != len(self.heads)]:
            raise ValueError(f"{self.title}: expected {len(self.heads)} cells, got {odd[0]}")

    @property
    def is_marked(self) -> bool:
        """Whether a model of the table has not learned."""
        cells = (text for line in (self.heads, *self.lines) for text in line)
        return any(MARK in text for text in (self.title, *cells))

    @property
    def reading(self) -> str:
        """How to read it, and what the mark means where it is."""
        return " ".join(
            [*([self.note] if self.note else []), *([MARKED] if self.is_marked else [])]
        )


class Estimate(NamedTuple):
    """A number with its interval, and the edge that a claim says it to be above; `of` says what it is."""

    of: str
    value: float
    low: float
    high: float
    edge: float = 0.0

    @property
    def text(self) -> str:
        """The number, its interval if there is one, and the edge where that is not 0.

        >>> Estimate("softmax", 0.25, 0.125, 0.5, 0.1).text
        'softmax: +0.250 [+0.125, +0.500], to be above +0.100'
        >>> Estimate("softmax", 0.25, math.nan, math.nan).text
        'softmax: +0.250 (no interval)'
        """
        of = f"{self.of}: " if self.of else ""
        edge = f", to be above {signed(self.edge)}" if self.edge else ""
        return f"{of}{signed(self.value)} {bracketed(self.low, self.high)}{edge}"


@dataclass(frozen=True)
class Claim:
    """One claim of the paper and its verdict: survives, does not, or undecided; `basis` is what decides it.

    `found` is what the paper reports, with its source; empty where that could not be read. `decisive` is the
    number that is least in the claim's favour, of those that are counted.
    """

    text: str
    verdict: str
    numbers: tuple[str, ...]
    basis: str = ""
    found: str = ""
    decisive: Estimate | None = None


@dataclass(frozen=True)
class Result:
    """Published numbers beside ours.

    `notes` say what was read and left out, and how the reproduction differs from the paper; `summary` is for
    the terminal, `sections` for page and Markdown, `rows` for CSV, `latex` for LaTeX. `columns` says what each
    column of `rows` holds. `reports` are names and paths of the models' own pages, by the title of their group.
    `not_learned` says which models have not learned; their names have the mark. `lead` begins the page, and
    `tally` counts the verdicts, where there are so many claims that a reader would. Where `answers_first`, the
    summary stands on the page before the figures.
    """

    title: str
    notes: Sequence[str]
    summary: Table
    sections: Sequence[Table | Claim]
    figures: list[Figure]
    rows: "pd.DataFrame"
    latex: Table
    columns: Mapping[str, str]
    reports: Sequence[tuple[str, Sequence[tuple[str, str]]]] = field(default=())
    not_learned: str = ""
    lead: str = "Model by model, beside published numbers where there are any."
    tally: str = ""
    answers_first: bool = False

    def __post_init__(self) -> None:
        if unknown := [name for name in self.rows.columns if name not in self.columns]:
            raise ValueError(
                f"{self.title}: expected what the columns hold, got nothing of {unknown}"
            )

    @property
    def remarks(self) -> list[str]:
        """The tally, the notes, and which models have not learned."""
        return [note for note in (self.tally, *self.notes, self.not_learned) if note]

    @property
    def parts(self) -> list[Table | Claim]:
        """The sections, and what the columns of the CSV file hold."""
        lines = [[name, self.columns[name]] for name in self.rows.columns]
        heads = ["column", "what it holds"]
        legend = [Table("Columns of result.csv", heads, lines, labels=2)] if lines else []
        return [*self.sections, *legend]

    @property
    def claims(self) -> list[Claim]:
        """The paper's claims that were judged."""
        return [part for part in self.sections if isinstance(part, Claim)]


def changed_settings(
    settings: Settings, words: Mapping[str, str], published: Mapping[str, Any] | None = None
) -> list[str]:
    """Say in words which settings are not the published ones, by default those that a paper's class has.

    In `words`, `{}` stands for the number, and a noun in braces for the number of what it names.

    >>> from heedmap.settings.training import TrainSettings
    >>> changed_settings(TrainSettings(epochs=1), {"epochs": "{epoch}", "batch_size": "batches of {}"})
    ['1 epoch instead of 8']
    """
    options = type(settings).model_fields
    changed = []
    for name, template in words.items():
        value = getattr(settings, name)
        usual = options[name].default if published is None else published[name]
        if value != usual:
            text = _COUNTED.sub(lambda noun: _counted(value, noun[1]), template)  # noqa: B023
            changed.append(f"{text} instead of {_shortened(usual)}")
    return changed


def _counted(value: Any, noun: str) -> str:
    return plural(value, noun) if noun else _shortened(value)


def _shortened(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def unlike(differences: Sequence[str]) -> str:
    """Return the sentence for what differs from the paper's own run; empty where nothing does.

    >>> unlike(["1 epoch instead of 8", "no pretrained word vectors"])
    'Unlike the paper: 1 epoch instead of 8; no pretrained word vectors.'
    """
    return f"Unlike the paper: {'; '.join(differences)}." if differences else ""


def signed(number: float) -> str:
    """Return a number with its sign, `none` where there is none.

    >>> signed(0.25), signed(-0.1), signed(math.nan)
    ('+0.250', '−0.100', 'none')
    """
    if math.isnan(number):
        return "none"
    return f"{number:+z.3f}".replace("-", "−")


def bracketed(low: float, high: float) -> str:
    """Return the interval that stands behind a number, or that there is none.

    >>> bracketed(0.125, 0.5), bracketed(math.nan, math.nan)
    ('[+0.125, +0.500]', '(no interval)')
    """
    if math.isnan(low) or math.isnan(high):
        return "(no interval)"
    return f"[{signed(low)}, {signed(high)}]"


def outside(numbers: Iterable[tuple[str, float, tuple[float, float]]]) -> str:
    """Name the published numbers, each beside our interval, that are not in it; empty if all are.

    >>> outside([("ξ", 0.434, (0.097, 0.269)), ("A", 0.31, (0.195, 0.412)), ("τ", 0.2, (math.nan, math.nan))])
    'Published and outside our interval: ξ 0.434.'
    """
    told = [f"{name} {x:.3f}" for name, x, (low, high) in numbers if x < low or x > high]
    return f"Published and outside our interval: {'; '.join(told)}." if told else ""


def with_unlike(figure: Figure, differences: Sequence[str], failed: Iterable[str] = ()) -> Figure:
    """Return a figure with the differences, and the models that have not learned, as notes."""
    notes = {"unlike the paper": "; ".join(differences), "not learned": ", ".join(failed)}
    added = [f"{name}: {text}" for name, text in notes.items() if text]
    return replace(figure, notes=[*figure.notes, *added])


def over_texts(seeds: int) -> str:
    """Return what decides a claim that is judged by an interval over texts.

    >>> over_texts(3)
    'By an interval over the test texts, of means over 3 seeds: the spread over trainings is not in it.'
    """
    if seeds == 1:
        ending = "of these models alone: with one seed the spread over trainings is not known."
    else:
        ending = f"of means over {seeds} seeds: the spread over trainings is not in it."
    return f"By an interval over the test texts, {ending}"


def unfinished(missing: int) -> str:
    """Return the sentence for models not run yet; empty where all were.

    >>> unfinished(2)
    'Not finished: 2 models are still to be run.'
    """
    if not missing:
        return ""
    return f"Not finished: {plural(missing, 'model')} {'is' if missing == 1 else 'are'} still to be run."
