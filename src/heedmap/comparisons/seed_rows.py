"""Put runs whose settings differ in seeds alone into one row."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import Any

import numpy as np

from heedmap.comparisons.sources import NamedAudit
from heedmap.experiments.findings import Finding
from heedmap.files.identity import PLACES
from heedmap.report.wording import plural
from heedmap.settings.base import FREE
from heedmap.settings.run import RunSettings
from heedmap.settings.training import FineTuneSettings

SEEDS = ("train.seed", "data.seed", "audit.seed")
FOLLOWING = (
    "audit.other_seed",
    "fingerprint",
)  # other in a run of another seed, and no setting of its own
TRAINED = ("model.weights", "model.source")  # those that a fine-tuning made


@dataclass(frozen=True)
class Row:
    """The runs of one setting, one per seed. `letter` names the row in pictures and sentences."""

    letter: str
    runs: Sequence[NamedAudit]

    @property
    def name(self) -> str:
        """What the runs are called: one's name, or the beginning that all have in common."""
        names = [run.name for run in self.runs]
        if len(names) == 1:
            return names[0]
        alike = takewhile(lambda letters: len({*letters}) == 1, zip(*names, strict=False))
        start = "".join(letters[0] for letters in alike).rstrip("-_./ ")
        return f"{start or names[0]} ({plural(len(names), 'seed')})"

    @property
    def title(self) -> str:
        """The letter and the name."""
        return f"{self.letter}: {self.name}"

    @cached_property
    def findings(self) -> list[dict[str, Finding]]:
        """Each run's findings by key."""
        return [{finding.key: finding for finding in run.audit.findings} for run in self.runs]

    def values(self, key: str) -> list[float]:
        """Each run's number of a question; NaN where a run lacks it."""
        return [
            findings[key].value if key in findings else float("nan") for findings in self.findings
        ]

    def mean(self, key: str) -> float:
        """The mean over the runs of a question's number, of those that have it; NaN without any."""
        defined = [value for value in self.values(key) if np.isfinite(value)]
        return float(np.mean(defined)) if defined else float("nan")


def seed_rows(runs: Sequence[NamedAudit]) -> list[Row]:
    """Return one row per setting, in the order of the first run of each."""
    groups: list[list[NamedAudit]] = []
    for run in runs:
        for group in groups:
            if all(_differ_in_seed_alone(run, member) for member in group):
                group.append(run)
                break
        else:
            groups.append([run])
    return [Row(letter(i), group) for i, group in enumerate(groups)]


def letter(index: int) -> str:
    """Return A, B, ..., Z, AA, AB, ...

    >>> letter(0), letter(25), letter(26)
    ('A', 'Z', 'AA')
    """
    return (letter(index // 26 - 1) if index >= 26 else "") + chr(ord("A") + index % 26)


def _differ_in_seed_alone(run: NamedAudit, other: NamedAudit) -> bool:
    """Return whether two runs have the same settings and another seed of the training or of the split."""
    mine, theirs = run.audit.settings, other.audit.settings
    if _without_seeds(mine) != _without_seeds(theirs):
        return False
    # Another seed of the split makes other texts of the same source.
    is_split_anew = mine.data.seed != theirs.data.seed and mine.data.source == theirs.data.source
    if mine.fingerprint != theirs.fingerprint and not is_split_anew:
        return False
    flat, other_flat = mine.flat(), theirs.flat()
    return any(flat.get(name) != other_flat.get(name) for name in SEEDS[:2])


def _without_seeds(settings: RunSettings) -> dict[str, Any]:
    made = TRAINED if isinstance(settings.train, FineTuneSettings) else ()
    hidden = {*SEEDS, *FOLLOWING, *PLACES, *FREE, *made}
    return {name: value for name, value in settings.flat().items() if name not in hidden}
