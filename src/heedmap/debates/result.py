"""The one page of a debate: each paper's claim, what the paper found, what these texts show, and the word."""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from heedmap.debates.parts import debate_parts
from heedmap.files.naming import page_path
from heedmap.files.storage import write_atomically
from heedmap.papers.kit.claims import FALLS, SURVIVES, UNDECIDED
from heedmap.papers.kit.debate_part import Budget, Part
from heedmap.papers.kit.learned import RULE
from heedmap.papers.kit.parts import ABOUT, read_about
from heedmap.papers.kit.render import page, terminal
from heedmap.papers.kit.result import MARK, Claim, Result, Table
from heedmap.report.wording import plural
from heedmap.settings.base import Settings
from heedmap.settings.data import DataSettings
from heedmap.terminal.output import show

ABOUT_FILES = (ABOUT,)
COLUMNS = {
    "part": "the part, as --parts takes it",
    "paper": "authors, year and title",
    "claim": "what the paper claims",
    "found": "what the paper reports, with its source; empty where that could not be read",
    "number": "which number of these texts is least in the claim's favour",
    "value": "that number",
    "low": "lower end of its interval",
    "high": "upper end",
    "edge": "what the claim says it to be above",
    "margin": "value less edge",
    "verdict": "survives, does not, or undecided, by the interval",
    "basis": "what the interval is over",
    "page": "the part's own page, in the debate's folder",
}
HOW = (
    "The word follows from intervals by one rule. Survives: every number that the claim is made of is "
    "certainly on its side. Does not: one is certainly on the other. Undecided: else. By how much: the number "
    "that is least in the claim's favour, with its interval, which the claim says to be above 0 or the given "
    "edge. Each claim is judged by itself at 95 %, so of twenty false ones about one may seem to survive. All "
    "numbers that a claim rests on are below, under its text."
)


class DebateSettings(Settings):
    """What a debate depends on; its parts keep their own settings."""

    version: int = 1
    fingerprint: str
    data: DataSettings
    budget: Budget
    forbidden: str | None = None


class State(NamedTuple):
    """Where a part stands: its result, or in words why there is none."""

    result: Result | None
    reason: str = ""

    @property
    def text(self) -> str:
        """The state in words."""
        return "finished" if self.result is not None else self.reason


class JudgedClaim(NamedTuple):
    """A claim and the part that it is of."""

    part: Part
    claim: Claim


@dataclass(frozen=True, repr=False)
class Debate:
    """A debate on a user's texts: its folder, its settings, and the state of every part."""

    folder: Path
    settings: DebateSettings
    states: Mapping[str, State]

    def __repr__(self) -> str:
        words = [judged.claim.verdict for judged in self.claims]
        counts = ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))
        return f"<Debate on {self.name}: {len(words)} claims ({counts or 'none'}), {self.folder}>"

    @property
    def name(self) -> str:
        """What the data are called."""
        return self._about[0]

    @property
    def notes(self) -> list[str]:
        """What was read, what was left out of it, and the impermissible words."""
        return self._about[1]

    @property
    def _about(self) -> tuple[str, list[str]]:
        about = read_about(self.folder, DebateSettings)
        assert about is not None
        return about[1], about[2]

    @property
    def claims(self) -> list[JudgedClaim]:
        """Every claim that was judged, with its part."""
        return [
            JudgedClaim(debate_parts()[name], claim)
            for name, state in self.states.items()
            if state.result is not None
            for claim in state.result.claims
        ]

    @property
    def stopped(self) -> dict[str, str]:
        """The parts that could not be finished, and why."""
        return {
            name: state.reason
            for name, state in self.states.items()
            if state.reason.startswith("stopped")
        }

    def to_dataframe(self) -> pd.DataFrame:
        """Return a row per claim: see `result.COLUMNS`."""
        return pd.DataFrame([_row(*judged) for judged in self.claims], columns=[*COLUMNS])

    def show(self) -> None:
        """Print the notes and the table of claims."""
        show(*terminal(replace(page_of(self), sections=())), width=200)

    def save(self, path: str | Path) -> Path:
        """Write the page to a file that ends in .html, with links to the parts' pages; return the path.

        Raises:
            InputError: another ending, or a place that cannot be written.
        """
        path = page_path(path, f"the whole debate is in {self.folder}")
        start = os.path.relpath(self.folder.resolve(), path.resolve().parent)
        write_atomically(path, page(page_of(self, Path(start))))
        return path


def _row(part: Part, claim: Claim) -> dict[str, Any]:
    number = claim.decisive
    values = (
        dict.fromkeys(("value", "low", "high", "edge", "margin"), math.nan)
        if number is None
        else {**number._asdict(), "margin": number.value - number.edge}
    )
    return {
        "part": part.name,
        "paper": part.title,
        "claim": claim.text,
        "found": claim.found,
        "number": values.pop("of", ""),
        **values,
        "verdict": claim.verdict,
        "basis": claim.basis,
        "page": f"{part.folder or part.name}/{part.page}",
    }


def page_of(debate: Debate, start: Path = Path()) -> Result:
    """Make the result that all files of a debate show; links to the parts begin at `start`."""
    claims, parts = debate.claims, debate_parts()
    table = _claims_table(debate, start)
    sections: list[Table | Claim] = [table, _states_table(debate, start)]
    for name, state in debate.states.items():
        if state.result is None:
            continue
        if not state.result.claims:
            sections.append(replace(state.result.summary, wraps=True))
        author = _author(parts[name])
        sections += [
            replace(claim, text=f"{author}: {claim.text}") for claim in state.result.claims
        ]
    not_learned = [
        f"{name}: {state.result.not_learned.removesuffix(RULE).strip()}"
        for name, state in debate.states.items()
        if state.result is not None and state.result.not_learned
    ]
    not_learned += [RULE] if not_learned else []
    answers = [
        text
        for state in debate.states.values()
        if state.result is not None and not state.result.claims
        for text in state.result.notes
    ]
    return Result(
        title=f"The attention debate on {debate.name}",
        notes=[*debate.notes, _budget(debate), *answers],
        summary=table,
        sections=sections,
        figures=[],
        rows=pd.DataFrame([_row(*judged) for judged in claims], columns=[*COLUMNS]),
        latex=table,
        columns=COLUMNS,
        not_learned=" ".join(not_learned),
        tally=_tally(debate),
        lead="Each paper's claim, whether it survives here and by how much, and what the paper found.",
    )


def _tally(debate: Debate) -> str:
    """Count the claims and their words, in one line."""
    words = [judged.claim.verdict for judged in debate.claims]
    survive, fall, undecided = map(words.count, (SURVIVES, FALLS, UNDECIDED))
    return (
        f"{plural(len(words), 'claim')}: {survive} {'survives' if survive == 1 else 'survive'}, "
        f"{fall} {'does' if fall == 1 else 'do'} not, {undecided} undecided."
    )


def _budget(debate: Debate) -> str:
    if debate.settings.budget == "paper":
        return "Budget: paper, the sizes that `heedmap reproduce` takes by default."
    return (
        "Budget: quick, with fewer seeds, epochs and test texts than the papers, so that more claims stay "
        "undecided; --budget paper takes more. Each part's page says how it differs."
    )


def _claims_table(debate: Debate, start: Path) -> Table:
    return Table.of(
        "Every claim",
        debate.claims,
        {
            "paper": lambda judged: _author(judged.part),
            "claim": lambda judged: judged.claim.text,
            "here": lambda judged: judged.claim.verdict,
            "by how much": lambda judged: _shown(judged.claim),
            "the paper found": lambda judged: judged.claim.found or "–",
        },
        HOW,
        labels=5,
        links=_links(debate, start),
        wraps=True,
    )


def _author(part: Part) -> str:
    return part.title.split(":")[0]


def _links(debate: Debate, start: Path) -> dict[str, str]:
    """Return the pages of the finished parts, by author and by the part's name."""
    finished = [debate_parts()[name] for name, state in debate.states.items() if state.result]
    pages = {part.name: f"{(part.place(start) / part.page).as_posix()}" for part in finished}
    return pages | {_author(part): pages[part.name] for part in finished}


def _shown(claim: Claim) -> str:
    """Return the number that decides, and how many are not counted; without one, what stands in its place."""
    if claim.decisive is None:
        return claim.numbers[0] if len(claim.numbers) == 1 else "nothing that counts: see below"
    if not_counted := sum(line.endswith(MARK) for line in claim.numbers):
        return (
            f"{claim.decisive.text}; {not_counted} of {plural(len(claim.numbers), 'number')} not counted: "
            f"a model that has not learned {MARK}"
        )
    return claim.decisive.text


def _states_table(debate: Debate, start: Path) -> Table:
    parts = debate_parts()
    return Table.of(
        "What was asked",
        debate.states,
        {
            "part": str,
            "paper": lambda name: parts[name].title,
            "question": lambda name: parts[name].question,
            "state": lambda name: debate.states[name].text,
        },
        "A part that is left out or stopped is run by the same command with its name in --parts.",
        labels=4,
        links=_links(debate, start),
        wraps=True,
    )
