"""The result of a reproduction: what all of its files show."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from heedmap.report.charts import Figure
from heedmap.report.phrases import plural

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Table:
    """A table of texts, and how to read it; the first `labels` columns are words, the others numbers."""

    title: str
    heads: Sequence[str]
    lines: Sequence[Sequence[str]]
    how: str = ""
    labels: int = 1


@dataclass(frozen=True)
class Claim:
    """One claim of the paper and its verdict: survives, does not, or undecided."""

    text: str
    verdict: str
    numbers: tuple[str, ...]


@dataclass(frozen=True)
class Result:
    """Published numbers beside ours.

    `notes` say what was read and left out, and how the reproduction differs from the paper; `summary` is for
    the terminal, `sections` for page and Markdown, `rows` for CSV, `latex` for LaTeX. `reports` are names and
    paths of the models' own pages, by the title of their group.
    """

    title: str
    notes: Sequence[str]
    summary: Table
    sections: Sequence[Table | Claim]
    figures: list[Figure]
    rows: "pd.DataFrame"
    latex: Table
    reports: Sequence[tuple[str, Sequence[tuple[str, str]]]] = field(default=())

    @property
    def claims(self) -> list[Claim]:
        """The paper's claims that were judged."""
        return [part for part in self.sections if isinstance(part, Claim)]


def unlike(differences: Sequence[str]) -> str:
    """Return the sentence for what differs from the paper's own run; empty where nothing does.

    >>> unlike(["1 epoch instead of 8", "no pretrained word vectors"])
    'Unlike the paper: 1 epoch instead of 8; no pretrained word vectors.'
    """
    return f"Unlike the paper: {'; '.join(differences)}." if differences else ""


def signed(number: float) -> str:
    """Return a number with its sign.

    >>> signed(0.25), signed(-0.1)
    ('+0.250', '−0.100')
    """
    return f"{number:+.3f}".replace("-", "−")


def with_unlike(figure: Figure, differences: Sequence[str]) -> Figure:
    """Return a figure with the differences as a note."""
    note = [f"unlike the paper: {'; '.join(differences)}"] if differences else []
    return replace(figure, notes=[*figure.notes, *note])


def unfinished(missing: int) -> str:
    """Return the sentence for models not run yet; empty where all were.

    >>> unfinished(2)
    'Not finished: 2 models are still to be run.'
    """
    if not missing:
        return ""
    return f"Not finished: {plural(missing, 'model')} {'is' if missing == 1 else 'are'} still to be run."
