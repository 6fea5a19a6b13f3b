"""How many trainings learn to copy, when, and whether the sequences make the difference."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from heedmap.data.sequences import Kind
from heedmap.experiments import intervals
from heedmap.papers.kit.parts import Row
from heedmap.papers.kit.result import Claim, Result, Table, unfinished, unlike, with_unlike
from heedmap.papers.snell.copy_task import GOOD, SEEN
from heedmap.papers.snell.copying_figures import figures
from heedmap.papers.snell.outcomes import (
    FINDS,
    LAST,
    LEVEL,
    LOOK,
    RULE,
    Training,
    interval,
    more_often,
    share,
)
from heedmap.papers.snell.published import FAILURES
from heedmap.papers.snell.settings import KINDS, VARIANTS, CopyingSettings

OWN = next(iter(VARIANTS))
COLUMNS = {
    "sequences": "kind of the sequences",
    "model": "as published, or a variant",
    "seed": "of the training",
    **LOOK,
}
HALF = (0.25, 0.75)  # what may still be called about half
NAMES = {
    "permutations": "permutations of all symbols",
    "subsets": "different symbols out of more",
    "repeats": "independent symbols",
}


@dataclass(frozen=True)
class Copying:
    """The trainings so far."""

    settings: CopyingSettings
    rows: list[Row]
    folder: Path

    def trainings(self, kind: str, variant: str = OWN) -> list[Training]:
        """Return the trainings of a model on a kind of sequences."""
        by_seed: dict[int, list[Row]] = {}
        for row in self.rows:
            if (row["sequences"], row["model"]) == (kind, variant):
                by_seed.setdefault(row["seed"], []).append(row)
        return [Training(tuple(some)) for some in by_seed.values()]

    @property
    def missing(self) -> int:
        """How many trainings are still to be run."""
        done = {(r["sequences"], r["model"], r["seed"]) for r in self.rows}
        settings = self.settings
        others = len(VARIANTS) - 1
        return len(KINDS) * (settings.seeds + others * settings.variant_seeds) - len(done)


def result(found: Copying) -> Result:
    """Make the result that all files of this part show."""
    table, differs = _table(found), differences(found.settings)
    return Result(
        title="Snell et al.: learning to copy",
        notes=[note for note in (unlike(differs), unfinished(found.missing)) if note],
        summary=table,
        sections=[table, _when(found), *_claims(found)],
        figures=[with_unlike(one, differs) for one in figures(found.rows, found.settings)],
        rows=pd.DataFrame(found.rows),
        latex=table,
        columns=COLUMNS,
    )


def differences(settings: CopyingSettings) -> list[str]:
    """List in words how a reproduction differs from the released code; more steps count as no difference."""
    published = CopyingSettings()
    words = {
        "length": "symbols in a sequence",
        "symbols": "symbols that subsets are drawn from",
        "size": "units in a state",
        "batch_size": "sequences in a batch",
        "learning_rate": "as learning rate",
    }
    return [
        f"{getattr(settings, name):g} {text} instead of {getattr(published, name):g}"
        for name, text in words.items()
        if getattr(settings, name) != getattr(published, name)
    ]


def _table(found: Copying) -> Table:
    lines = []
    for variant in VARIANTS:
        for kind in KINDS:
            some = found.trainings(kind, variant)
            if not some:
                continue
            count = Counter(one.outcome for one in some)
            last = [one.last for one in some]
            published, source = FAILURES[kind] if variant == OWN else ("–", "")
            line = [
                variant, NAMES[kind], str(len(some)),
                *(str(count[name]) for name in ("learned", "between", "failed")),
                share(count["failed"], len(some)), f"{published} ({source})" if source else published,
                str(sum(not one.attends for one in some)),
            ]  # fmt: skip
            shown = ("accuracy", "attention", "before", "after")
            lines.append([*line, *(f"{np.mean([row[at] for row in last]):.2f}" for at in shown)])
    heads = [
        "model", "sequences", "trainings", "learned", "between", "failed", "failed, share [95 %]", "published",
        "without attention", "accuracy", "weight on it", "before it", "after it",
    ]  # fmt: skip
    return Table(
        f"Who has learned to copy after {LAST} steps?",
        heads,
        lines,
        f"{RULE} Accuracy, and how often the largest weight is on the symbol to copy, the one before it or the "
        f"one after it: means at step {LAST}, under teacher forcing, of {SEEN} sequences per look. Without "
        f"attention: trainings in which none of these three is above {FINDS:.0%}; the states remember the "
        "sequence instead.",
        labels=2,
    )


def _when(found: Copying) -> Table:
    """Return when sequences are copied: failed, or only slow?"""
    last = found.settings.steps
    lines = []
    for kind in KINDS:
        some = found.trainings(kind)
        if some:
            steps = np.array([one.learned_at for one in some], dtype=np.float64)
            low, high = intervals.of_median(steps)
            line = [NAMES[kind], str(len(some)), str(int(np.isfinite(steps).sum()))]
            inside = "–" if math.isnan(low) else f"{_step(low, last)} to {_step(high, last)}"
            lines.append([*line, _step(float(np.median(steps)), last), inside])
    return Table(
        f"When have they learned to? Failed, or only slow (up to step {last})",
        ["sequences", "trainings", "learned", "median step", "95 % interval"],
        lines,
        f"The first look at which more than {GOOD:.0%} are right. A training that has not learned by step "
        f"{last} is censored: it counts as later than all others. The interval of the median is between two of "
        "the steps (exact, by the binomial; none for fewer than six trainings).",
    )


def _step(step: float, last: int) -> str:
    """Return a step, or that it is after the last one.

    >>> _step(80.0, 400), _step(math.inf, 400)
    ('80', '> 400')
    """
    return f"{step:.0f}" if math.isfinite(step) else f"> {last}"


def _claims(found: Copying) -> list[Claim]:
    """Judge both claims, of the model as published, by the released code's rule and by the attention."""
    trainings = {kind: found.trainings(kind) for kind in KINDS}
    if not all(trainings.values()):
        return []
    failed = {kind: [one.outcome == "failed" for one in some] for kind, some in trainings.items()}
    lost = {kind: [not one.attends for one in some] for kind, some in trainings.items()}
    return [
        _half("About half of the trainings on permutations fail to copy.", failed["permutations"]),
        _half(
            "In about half of the trainings on permutations the attention does not find the symbol.",
            lost["permutations"],
        ),
        _easier(
            "Permutations fail more often than sequences with other symbols beside each other.",
            failed,
        ),
        _easier("Of permutations the attention finds the symbol less often than of these.", lost),
    ]


def _half(text: str, failed: Sequence[bool]) -> Claim:
    low, high = interval(sum(failed), len(failed))
    verdict = "undecided"
    if HALF[0] <= low and high <= HALF[1]:
        verdict = "survives"
    elif not low <= 0.5 <= high:
        verdict = "does not"
    numbers = (
        f"{sum(failed)} of {len(failed)}, {share(sum(failed), len(failed))}; survives within {HALF[0]} to "
        f"{HALF[1]}, does not without 0.5"
    )
    return Claim(text, verdict, (numbers,))


def _easier(text: str, failed: Mapping[Kind, Sequence[bool]]) -> Claim:
    """Judge whether permutations fail more often than both other kinds; Boschloo's exact tests, one-sided."""
    own = failed["permutations"]
    numbers, more, less = [], [], []
    for kind in KINDS[1:]:
        other = failed[kind]
        p, q = more_often(own, other), more_often(other, own)
        more.append(p < LEVEL)
        less.append(q < LEVEL / 2)
        numbers.append(
            f"{NAMES[kind]}: {sum(other)} of {len(other)}, permutations {sum(own)} of {len(own)}, p = {p:.2g}"
        )
    verdict = "survives" if all(more) else "does not" if any(less) else "undecided"
    return Claim(text, verdict, (*numbers, "p: Boschloo's exact test, one-sided"))
