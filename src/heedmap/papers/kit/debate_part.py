"""A paper as a part of the debate on a user's own data: when it applies, how it runs, how long it takes.

papers/NAME/debate.py   `PARTS`, of the papers that ask their questions of any texts
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from heedmap.data.corpus import Corpus
from heedmap.papers.kit.registry import Paper
from heedmap.papers.kit.result import Result
from heedmap.papers.kit.timing import Timer

Budget = Literal["quick", "paper"]
Options = Mapping[str, Any]


@dataclass(frozen=True)
class DebateInput:
    """What a debate is about.

    `sentences` are the same texts in sentences, `forbidden` the impermissible words as `--forbidden` takes
    them. None of either has its reason in `missing`, by "sentences" and "forbidden".
    """

    corpus: Corpus
    sentences: Corpus | None = None
    forbidden: str | None = None
    missing: Mapping[str, str] = field(default_factory=dict)

    def refuse_pairs(self) -> str:
        """Return why a part of single texts does not apply, or nothing."""
        if self.corpus.pairs:
            return "it reads single texts, and these are pairs"
        return "it reads texts of words, and these are sentences" if self.corpus.sentences else ""


@dataclass(frozen=True)
class Part:
    """A part of the debate: a paper, or a part of one.

    `name` is what `--parts` takes, and the part's folder unless that is named; `year` orders the parts.
    `quick` are its options under the quick budget: under the paper's it has its own defaults. `refusal` says
    why it does not apply, or nothing; `run` trains and asks, resuming what is in a folder; `seconds` is its
    forecast. `read` returns the result in a folder once that is finished, else None. `page` is its own page.
    """

    name: str
    title: str
    question: str
    year: int
    quick: Options
    refusal: Callable[[DebateInput], str]
    run: Callable[[DebateInput, Path, Options, Options], None]
    seconds: Callable[[DebateInput, Options, Timer], float]
    read: Callable[[Path], Result | None]
    page: str = "result.html"
    folder: str = ""

    def options(self, budget: Budget) -> Options:
        """Return the options of the part under a budget."""
        return self.quick if budget == "quick" else {}

    def place(self, folder: Path) -> Path:
        """Return the part's folder in that of a debate."""
        return folder / (self.folder or self.name)


def reader(paper: Paper[Any]) -> Callable[[Path], Result | None]:
    """Return how a paper's result is read once nothing of it is missing."""
    return partial(_finished, paper)


def _finished(paper: Paper[Any], folder: Path) -> Result | None:
    reproduction = paper.read(folder) if folder.is_dir() else None
    if reproduction is None or reproduction.missing:
        return None
    return paper.result(reproduction)
