"""How many of the published correlations are where another seed of ours would be, beside a constant's share.

The paper's standard deviations are over texts and mostly .1 to .25. Within one of them are 53 of 71 of our
means, but also 38 times the constant .20: that says little about a reproduction, so it is not counted here.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from heedmap.experiments.seed_intervals import LEVEL
from heedmap.papers.jain_wallace.lines import Line
from heedmap.papers.kit.result import Table, outside
from heedmap.report.wording import plural

COUNTED = ("yes", "no")
SAID = {"one seed": "one seed, the spread is not known"}
HEADS = (
    "data", "means", "inside", "expected inside", "a constant inside", "between seeds",
    "expected between", "a constant between", "not counted",
)  # fmt: skip


@dataclass(frozen=True)
class Inside:
    """The published correlations over all classes, those that are `counted` and those that are not.

    `constant` is the mean of those counted: what a reproduction that knows nothing of the cells could answer
    everywhere. It is judged with the widths of our own intervals and ranges, moved to it.
    """

    counted: Sequence[Line]
    others: Sequence[Line]
    constant: float

    @classmethod
    def of(cls, lines: Iterable[Line]) -> "Inside":
        """Take the correlations over all classes that can be compared, or could with more seeds."""
        compared = [line for line in lines if line.predicted == "Overall" and line.inside]
        counted = [line for line in compared if line.inside in COUNTED]
        uncounted = [line for line in compared if line.inside not in COUNTED]
        constant = float(np.mean([line.published for line in counted])) if counted else np.nan
        return cls(counted, uncounted, constant)

    def sentence(self) -> str:
        """Return the counts over all data sets in words; empty where nothing can be compared."""
        if not self.counted:
            return (
                f"No published mean can be counted: {_reasons(self.others)}." if self.others else ""
            )
        n, inside_count, expected, constant, between, by_chance, constant_between, _ = self._row(
            self.counted, self.others
        )
        return (
            f"Of {n} published mean taus over all classes {inside_count} are where another seed of ours would "
            f"be (95 % t interval; {expected} expected if theirs were one), with the constant "
            f"{self.constant:.2f} in place of ours {constant}; between our least and our largest seed are "
            f"{between} ({by_chance} expected), with the constant {constant_between}. "
            f"Not counted: {_reasons(self.others) or 'none'}. "
            + outside(
                (f"{' '.join(x.model)}, {x.quantity}", x.published, (x.next_low, x.next_high))
                for x in self.counted
            )
        ).strip()

    def tables(self) -> list[Table]:
        """Return a table of the counts per data set and over all; none where nothing is counted."""
        if not self.counted:
            return []
        datasets = dict.fromkeys(line.dataset for line in (*self.counted, *self.others))
        body = [
            [
                name,
                *self._row(
                    [line for line in self.counted if line.dataset == name],
                    [line for line in self.others if line.dataset == name],
                ),
            ]
            for name in datasets
        ]
        if len(datasets) > 1:
            body.append(["all", *self._row(self.counted, self.others)])
        explanation = (
            'Published mean taus over all classes. "Inside": in the 95 % t interval of one more seed of '
            'ours. "Between seeds": between our least and our largest, where (k − 1) / (k + 1) of the '
            "numbers would be if theirs were one more of our k seeds, whatever their distribution. "
            f'"A constant": the same with the mean of the published ({self.constant:.2f}) in place of our '
            "mean, and our widths. Not counted: cells with one seed, whose spread is not known, and those "
            "of which a training of ours, or theirs, has not learned (see the notes)."
        )
        return [Table("How many published means are inside", HEADS, body, explanation)]

    def _row(self, counted: Sequence[Line], uncounted: Sequence[Line]) -> list[str]:
        """Return the cells of one row, in the order of `HEADS` without the first."""
        move = [self.constant - line.ours for line in counted]
        is_inside = [line.next_low <= line.published <= line.next_high for line in counted]
        is_between = [line.ours_min <= line.published <= line.ours_max for line in counted]
        by_constant = [
            line.next_low + by <= line.published <= line.next_high + by
            for line, by in zip(counted, move, strict=True)
        ]
        constant_between = [
            line.ours_min + by <= line.published <= line.ours_max + by
            for line, by in zip(counted, move, strict=True)
        ]
        by_chance = sum((line.seeds - 1) / (line.seeds + 1) for line in counted)
        return [
            str(len(counted)),
            str(sum(is_inside)),
            f"{LEVEL * len(counted):.1f}",
            str(sum(by_constant)),
            str(sum(is_between)),
            f"{by_chance:.1f}",
            str(sum(constant_between)),
            _reasons(uncounted),
        ]


def _reasons(uncounted: Sequence[Line]) -> str:
    """Return how many are not counted, by reason.

    >>> _reasons([])
    ''
    """
    counts = Counter(line.inside for line in uncounted)
    return "; ".join(
        f"{SAID.get(reason, reason)}: {plural(n, 'mean')}" for reason, n in counts.items()
    )
