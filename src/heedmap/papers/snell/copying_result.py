"""How many trainings learn to copy, when, and whether the sequences make the difference."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from heedmap.data.sequences import Kind
from heedmap.experiments import intervals
from heedmap.papers.kit.claims import Side, verdict
from heedmap.papers.kit.reproduction import CellReproduction
from heedmap.papers.kit.result import Claim, Result, Table, changed_settings
from heedmap.papers.snell.copy_task import GOOD, SEEN
from heedmap.papers.snell.copying_figures import figures
from heedmap.papers.snell.outcomes import (
    BOSCHLOO,
    FINDS,
    LAST,
    LEVEL,
    LOOK,
    RULE,
    Training,
    interval,
    rarer_or_more_often,
    share,
    trainings,
)
from heedmap.papers.snell.published import FAILURES
from heedmap.papers.snell.settings import KINDS, VARIANTS, CopyingSettings

PUBLISHED = next(iter(VARIANTS))
COLUMNS = {
    "sequences": "kind of the sequences",
    "model": "as published, or a variant",
    "seed": "of the training",
    **LOOK,
}
WORDS = {
    "length": "{} symbols in a sequence",
    "symbols": "{} symbols that subsets are drawn from",
    "size": "{} units in a state",
    "batch_size": "{} sequences in a batch",
    "learning_rate": "{} as learning rate",
}
HALF = (0.25, 0.75)  # what may still be called about half
NAMES = {
    "permutations": "permutations of all symbols",
    "subsets": "different symbols out of more",
    "repeats": "independent symbols",
}


@dataclass(frozen=True)
class Copying(CellReproduction[CopyingSettings]):
    """The trainings to copy so far."""

    def trainings(self, kind: str, variant: str = PUBLISHED) -> list[Training]:
        """Return the trainings of a model on a kind of sequences."""
        rows = (row for row in self.rows if (row["sequences"], row["model"]) == (kind, variant))
        return [*trainings(rows, "seed").values()]

    @property
    def missing(self) -> int:
        """How many trainings are still to be run."""
        models = self.settings.seeds + (len(VARIANTS) - 1) * self.settings.variant_seeds
        return len(KINDS) * models - len(trainings(self.rows, "sequences", "model", "seed"))

    @property
    def differences(self) -> list[str]:
        """How it differs from the released code; more steps count as no difference."""
        return changed_settings(self.settings, WORDS)


def result(copying: Copying) -> Result:
    """Make the result that all files of this part show."""
    return copying.make_result(
        "Snell et al.: learning to copy",
        [_outcomes(copying), _when(copying), *_claims(copying)],
        figures=figures(copying.rows, copying.settings),
        rows=pd.DataFrame(copying.rows),
        columns=COLUMNS,
    )


@dataclass(frozen=True)
class _Group:
    """The trainings of a model on a kind of sequences."""

    variant: str
    kind: Kind
    trainings: list[Training]

    @property
    def published(self) -> str:
        """How many fail by the authors, and where they say so."""
        if self.variant != PUBLISHED:
            return "–"
        failures, source = FAILURES[self.kind]
        return f"{failures} ({source})"

    def count(self, outcome: str) -> int:
        """Return how many trainings had an outcome."""
        return sum(training.outcome == outcome for training in self.trainings)

    def mean(self, measure: str) -> str:
        """Return the mean of a measure at the last look of the released code."""
        return f"{np.mean([training.last[measure] for training in self.trainings]):.2f}"


def _outcomes(copying: Copying) -> Table:
    groups = (
        _Group(variant, kind, copying.trainings(kind, variant))
        for variant in VARIANTS
        for kind in KINDS
    )
    return Table.of(
        f"Who has learned to copy after {LAST} steps?",
        [group for group in groups if group.trainings],
        {
            "model": lambda group: group.variant,
            "sequences": lambda group: NAMES[group.kind],
            "trainings": lambda group: str(len(group.trainings)),
            "learned": lambda group: str(group.count("learned")),
            "between": lambda group: str(group.count("between")),
            "failed": lambda group: str(group.count("failed")),
            "failed, share [95 %]": lambda group: share(
                group.count("failed"), len(group.trainings)
            ),
            "published": lambda group: group.published,
            "without attention": lambda group: str(
                sum(not training.attends for training in group.trainings)
            ),
            "accuracy": lambda group: group.mean("accuracy"),
            "weight on it": lambda group: group.mean("attention"),
            "before it": lambda group: group.mean("before"),
            "after it": lambda group: group.mean("after"),
        },
        f"{RULE} Accuracy, and how often the largest weight is on the symbol to copy, the one before it or the "
        f"one after it: means at step {LAST}, under teacher forcing, of {SEEN} sequences per look. Without "
        f"attention: trainings in which none of these three is above {FINDS:.0%}; the states remember the "
        "sequence instead.",
        labels=2,
    )


def _when(copying: Copying) -> Table:
    """Return when sequences are copied: failed, or only slow?"""
    end = copying.settings.steps
    steps = {
        NAMES[kind]: np.array(
            [training.learned_at for training in copying.trainings(kind)], dtype=float
        )
        for kind in KINDS
        if copying.trainings(kind)
    }

    def median_interval(kind: str) -> str:
        low, high = intervals.of_median(steps[kind])
        return "–" if math.isnan(low) else f"{_step(low, end)} to {_step(high, end)}"

    return Table.of(
        f"When have they learned to? Failed, or only slow (up to step {end})",
        steps,
        {
            "sequences": str,
            "trainings": lambda kind: str(len(steps[kind])),
            "learned": lambda kind: str(int(np.isfinite(steps[kind]).sum())),
            "median step": lambda kind: _step(float(np.median(steps[kind])), end),
            "95 % interval": median_interval,
        },
        f"The first look at which more than {GOOD:.0%} are right. A training that has not learned by step "
        f"{end} is censored: it counts as later than all others. The interval of the median is between two of "
        "the steps (exact, by the binomial; none for fewer than six trainings).",
    )


def _step(step: float, end: int) -> str:
    """Return a step, or that it is after the last one.

    >>> _step(80.0, 400), _step(math.inf, 400)
    ('80', '> 400')
    """
    return f"{step:.0f}" if math.isfinite(step) else f"> {end}"


def _claims(copying: Copying) -> list[Claim]:
    """Judge both claims, of the model as published, by the released code's rule and by the attention."""
    groups = {kind: copying.trainings(kind) for kind in KINDS}
    if not all(groups.values()):
        return []
    failed = {
        kind: [training.outcome == "failed" for training in group] for kind, group in groups.items()
    }
    inattentive = {
        kind: [not training.attends for training in group] for kind, group in groups.items()
    }
    return [
        _half("About half of the trainings on permutations fail to copy.", failed["permutations"]),
        _half(
            "In about half of the trainings on permutations the attention does not find the symbol.",
            inattentive["permutations"],
        ),
        _easier(
            "Permutations fail more often than sequences with other symbols beside each other.",
            failed,
        ),
        _easier(
            "Of permutations the attention finds the symbol less often than of these.", inattentive
        ),
    ]


def _half(text: str, failed: Sequence[bool]) -> Claim:
    low, high = interval(sum(failed), len(failed))
    side = Side(HALF[0] <= low and high <= HALF[1], not low <= 0.5 <= high)
    number = (
        f"{sum(failed)} of {len(failed)}, {share(sum(failed), len(failed))}; survives within {HALF[0]} to "
        f"{HALF[1]}, does not without 0.5"
    )
    return Claim(text, verdict([side]), (number,))


def _easier(text: str, failed: Mapping[Kind, Sequence[bool]]) -> Claim:
    """Judge whether permutations fail more often than both other kinds; Boschloo's exact tests, one-sided."""
    permutations = failed["permutations"]
    numbers, sides = [], []
    for kind in KINDS[1:]:
        # One comparison that comes out the other way refutes the claim: half of the level for each of the two.
        side, p = rarer_or_more_often(permutations, failed[kind], LEVEL / 2)
        sides.append(side)
        numbers.append(
            f"{NAMES[kind]}: {sum(failed[kind])} of {len(failed[kind])}, permutations {sum(permutations)} of "
            f"{len(permutations)}, p = {p:.2g}"
        )
    return Claim(text, verdict(sides), (*numbers, BOSCHLOO))
