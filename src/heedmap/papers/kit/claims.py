"""The verdict of a paper's claim, from what each check of it shows.

A claim *survives* if every check is on its side, it *does not* if one is on the other side, and it is
*undecided* else. A model that has not learned is shown and not counted: it can neither refute a claim nor let
it survive.
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from heedmap.papers.kit.learned import Learned, not_counted
from heedmap.papers.kit.result import Claim, Estimate

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


def verdict_of_any(sides: Sequence[Side]) -> str:
    """Return the verdict of a claim that something can be done, which one try shows; undecided without any.

    Each side must be of an interval of its own level (`level_of`). The claim falls only if every one fails.
    """
    if any(side.holds for side in sides):
        return SURVIVES
    return FALLS if sides and all(side.fails for side in sides) else UNDECIDED


def verdict_of_most(sides: Sequence[Side]) -> str:
    """Return the verdict of a claim about what happens as a rule: what more than half of the tries show.

    Each side must be of an interval of its own level (`level_of`); one that decides nothing is a try, too.
    """
    if 2 * sum(side.holds for side in sides) > len(sides):
        return SURVIVES
    return FALLS if 2 * sum(side.fails for side in sides) > len(sides) else UNDECIDED


def least(estimates: Iterable[Estimate | None]) -> Estimate | None:
    """Return the number that is least in a claim's favour: the nearest to its edge, or the farthest below."""
    numbers = [e for e in estimates if e is not None and not math.isnan(e.value)]
    return min(numbers, key=lambda e: e.value - e.edge, default=None)


class Check(NamedTuple):
    """One check of a claim: a line about it, its side, the models that it rests on, and its number."""

    line: str
    side: Side
    models: Sequence[str] = ()
    estimate: Estimate | None = None


def judged(
    text: str,
    checks: Sequence[Check],
    learned: Learned,
    *,
    basis: str = "",
    task: str = "",
    found: str = "",
) -> Claim:
    """Judge a claim by its checks, those of models that have not learned (their `task`) left out."""
    lines, sides, estimates = [], [], []
    for line, side, models, estimate in checks:
        failed = any(model in learned.uncounted for model in models)
        lines.append(not_counted(line, task) if failed else line)
        sides.append(NEITHER if failed else side)
        estimates.append(None if failed else estimate)
    return Claim(text, verdict(sides), tuple(lines), basis, found, least(estimates))
