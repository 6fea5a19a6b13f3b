"""What became of trainings to copy (learned, failed, or neither); shares and exact tests of them."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from scipy import stats

from heedmap.papers.kit.claims import Side
from heedmap.papers.kit.parts import Row
from heedmap.papers.snell.copy_task import BAD, EVERY, GOOD, RELEASED

LAST = RELEASED - EVERY  # the released code's last look
LEVEL = 0.05
RULE = (
    f"Learned: more than {GOOD:.0%} of the symbols were right at a look; failed: fewer than {BAD:.0%} at the "
    f"last one, of step {LAST} (the released code's rule; it looks every {EVERY} steps). Intervals of shares "
    "are Clopper and Pearson's."
)
FINDS = 0.5  # share of the steps
BOSCHLOO = "p: Boschloo's exact test, one-sided"
LOOK = {
    "step": "of the training, at which it is looked at",
    "accuracy": "share of the symbols that are right",
    "attention": "share of the positions with the largest weight on the symbol to copy",
    "before": "share with it on the symbol before",
    "after": "share with it on the symbol after",
}
"""What the columns of a look hold."""


@dataclass(frozen=True)
class Training:
    """One training: its row per look, in order."""

    rows: list[Row]

    @property
    def learned_at(self) -> float:
        """The first step after which more than GOOD of the symbols are right; infinite if there is none."""
        return min((r["step"] for r in self.rows if r["accuracy"] > GOOD), default=math.inf)

    @property
    def last(self) -> Row:
        """The released code's last look."""
        return self.rows[LAST // EVERY - 1]

    @property
    def outcome(self) -> str:
        """What the released code would say at its last look: learned, failed, or between."""
        if self.learned_at <= LAST:
            return "learned"
        return "failed" if self.last["accuracy"] < BAD else "between"

    @property
    def attends(self) -> bool:
        """Whether the attention has found the symbol at the released code's last look, or one beside it.

        In more than FINDS of the steps the largest weight is there. A model may learn to copy without.
        """
        return any(self.last[name] > FINDS for name in ("attention", "before", "after"))


def trainings(rows: Iterable[Row], *columns: str) -> dict[tuple[Any, ...], Training]:
    """Return the trainings by the values of the columns that tell them apart."""
    looks: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        looks.setdefault(tuple(row[column] for column in columns), []).append(row)
    return {values: Training(training_rows) for values, training_rows in looks.items()}


def interval(count: int, total: int) -> tuple[float, float]:
    """Return Clopper and Pearson's 95 % interval of a share."""
    exact = stats.binomtest(count, total).proportion_ci(method="exact")
    return float(exact.low), float(exact.high)


def share(count: int, total: int) -> str:
    """Return a share and its interval.

    >>> share(10, 20)
    '0.50 [0.27, 0.73]'
    """
    low, high = interval(count, total)
    return f"{count / total:.2f} [{low:.2f}, {high:.2f}]"


def rarer_or_more_often(
    outcomes: Sequence[bool], reference: Sequence[bool], refuted_below: float = LEVEL
) -> tuple[Side, float]:
    """Return whether outcomes come more often, or more rarely, than others, and the p-value of more often."""
    p = more_often(outcomes, reference)
    return Side(p < LEVEL, more_often(reference, outcomes) < refuted_below), p


def more_often(outcomes: Sequence[bool], reference: Sequence[bool]) -> float:
    """Return the p-value of a larger share in the first: Boschloo's exact test, one-sided; 1 if all are equal.

    >>> round(more_often([True] * 10 + [False] * 10, [False] * 20), 5)
    0.0001
    """
    yes = [sum(outcomes), sum(reference)]
    no = [len(outcomes) - yes[0], len(reference) - yes[1]]
    if not any(yes) or not any(no):
        return 1.0
    return float(stats.boschloo_exact([yes, no], alternative="greater").pvalue)
