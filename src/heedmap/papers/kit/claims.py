"""The verdict of a paper's claim, from what each check of it shows.

A claim *survives* if every check is on its side, it *does not* if one is on the other side, and it is
*undecided* else. A model that has not learned is shown and not counted: it can neither refute a claim nor let
it survive.
"""

from collections.abc import Sequence
from typing import NamedTuple

from heedmap.papers.kit.learned import Learned
from heedmap.papers.kit.result import MARK, Claim

SURVIVES, FALLS, UNDECIDED = "survives", "does not", "undecided"


class Side(NamedTuple):
    """Whether a check is on a claim's side, or on the other."""

    holds: bool
    fails: bool


NEITHER = Side(False, False)


def above(interval: tuple[float, float], edge: float = 0.0) -> Side:
    """Return on which side a number is that a claim says to be above an edge: it fails up to the edge."""
    low, high = interval
    return Side(low > edge, high <= edge)


def apart(interval: tuple[float, float], edge: float = 0.0) -> Side:
    """Return the same where a claim is refuted by the opposite alone, a number that is below the edge."""
    low, high = interval
    return Side(low > edge, high < edge)


def verdict(sides: Sequence[Side]) -> str:
    """Return the verdict of a claim that says all of this; undecided if nothing was checked."""
    if sides and all(side.holds for side in sides):
        return SURVIVES
    return FALLS if any(side.fails for side in sides) else UNDECIDED


class Check(NamedTuple):
    """One check of a claim: a line about it, its side, and the models that it rests on."""

    line: str
    side: Side
    models: Sequence[str] = ()


def judged(
    text: str, checks: Sequence[Check], learned: Learned, *, basis: str = "", task: str = ""
) -> Claim:
    """Judge a claim by its checks, those of models that have not learned (their `task`) left out."""
    lines, sides = [], []
    for line, side, models in checks:
        failed = any(model in learned.failed for model in models)
        lines.append(f"{line}; not learned{task}, not counted {MARK}" if failed else line)
        sides.append(NEITHER if failed else side)
    return Claim(text, verdict(sides), tuple(lines), basis)
