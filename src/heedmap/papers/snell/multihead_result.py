"""Do heads that fail alone learn together, and does one that learns alone help them?"""

from dataclasses import dataclass

import pandas as pd

from heedmap.papers.kit.claims import verdict
from heedmap.papers.kit.reproduction import CellReproduction
from heedmap.papers.kit.result import Claim, Result, Table, changed_settings
from heedmap.papers.snell.copy_task import SEEN
from heedmap.papers.snell.copying_figures import lines
from heedmap.papers.snell.outcomes import (
    BOSCHLOO,
    LOOK,
    RULE,
    Training,
    rarer_or_more_often,
    share,
    trainings,
)
from heedmap.papers.snell.settings import MultiheadSettings

SINGLE, BAD_HEADS, ONE_GOOD, MIXED = "one head", "bad heads", "one good head", "any heads"
TOGETHER = (BAD_HEADS, ONE_GOOD, MIXED)
COLUMNS = {
    "group": "kind of the heads",
    "heads": "the heads by number",
    "order": "draw of sequences",
    **LOOK,
}


WORDS = {
    "length": "{} symbols in a sequence",
    "size": "{} units in a state",
    "batch_size": "{} sequences in a batch",
    "learning_rate": "{} as learning rate",
    "heads": "{} heads together",
    "orders": "{} draws of sequences for each head",
    "wanted": "{} heads of each kind",
    "combinations": "{} combinations of each kind",
}


@dataclass(frozen=True)
class Multihead(CellReproduction[MultiheadSettings]):
    """The trainings of single heads and of combinations so far."""

    def trainings(self, group: str) -> list[Training]:
        """Return the trainings of a group, one for some heads and a draw of sequences."""
        return [*self._by_heads(group).values()]

    def _by_heads(self, group: str) -> dict[tuple[str, int], Training]:
        rows = (row for row in self.rows if row["group"] == group)
        return trainings(rows, "heads", "order")

    def _alone(self) -> dict[int, list[str]]:
        """Return the outcomes of each head by itself."""
        outcomes: dict[int, list[str]] = {}
        for (head, _), training in self._by_heads(SINGLE).items():
            outcomes.setdefault(int(head), []).append(training.outcome)
        return outcomes

    def _always(self, outcome: str) -> list[int]:
        expected = [outcome] * self.settings.orders
        heads = [head for head, outcomes in self._alone().items() if outcomes == expected]
        return heads[: self.settings.wanted]

    @property
    def tried(self) -> int:
        """How many heads were tried."""
        return len(self._alone())

    @property
    def good(self) -> list[int]:
        """The first heads that learned from every draw of sequences, at most as many as are wanted."""
        return self._always("learned")

    @property
    def bad(self) -> list[int]:
        """The first heads that failed from every draw of sequences, at most as many as are wanted."""
        return self._always("failed")

    @property
    def has_enough(self) -> bool:
        """Whether there are as many good and bad heads as are wanted, and enough bad ones for a model."""
        needed = self.settings.wanted
        return len(self.good) >= needed and len(self.bad) >= max(needed, self.settings.heads)

    @property
    def differences(self) -> list[str]:
        """How it differs from the paper's settings."""
        return [
            *changed_settings(self.settings, WORDS),
            f"{SEEN} fresh sequences at a look instead of 400 that stay the same",
        ]


def result(multihead: Multihead) -> Result:
    """Make the result that all files of this part show."""
    settings = multihead.settings
    looks = [
        {**row, "series": row["group"], "training": f"heads {row['heads']}, draw {row['order']}"}
        for row in multihead.rows
        if row["group"] != SINGLE
    ]
    n = f"n = {settings.combinations} combinations of {settings.heads} heads of each kind"
    return multihead.make_result(
        "Snell et al.: several heads that learn to copy",
        [_outcomes(multihead), *_claims(multihead)],
        notes=_notes(multihead),
        figures=[lines(looks, "accuracy", "multihead", TOGETHER, n)] if looks else [],
        rows=pd.DataFrame(multihead.rows),
        columns=COLUMNS,
    )


def _notes(multihead: Multihead) -> list[str]:
    settings, good, bad = multihead.settings, multihead.good, multihead.bad
    too_few = [
        *([] if len(bad) >= settings.heads else [BAD_HEADS]),
        *([] if len(bad) >= settings.heads - 1 and good else [ONE_GOOD]),
    ]
    return [
        f"Of {multihead.tried} heads that were tried alone on {settings.orders} draws of sequences each, "
        f"{len(good)} always learned and {len(bad)} always failed; at most {settings.wanted} of "
        "each are counted and used.",
        f"Too few of them for the combinations {' and '.join(too_few)}." if too_few else "",
    ]


def _outcomes(multihead: Multihead) -> Table:
    size = multihead.settings.heads
    names = {
        SINGLE: "one head alone",
        BAD_HEADS: f"{size} that fail alone",
        ONE_GOOD: f"{size - 1} that fail alone, one that learns",
        MIXED: f"{size} of the first ones",
    }
    outcomes = {
        name: [training.outcome for training in multihead.trainings(group)]
        for group, name in names.items()
        if multihead.trainings(group)
    }
    return Table.of(
        "Who learns to copy permutations?",
        outcomes,
        {
            "heads": str,
            "trainings": lambda name: str(len(outcomes[name])),
            "learned": lambda name: str(outcomes[name].count("learned")),
            "between": lambda name: str(outcomes[name].count("between")),
            "failed": lambda name: str(outcomes[name].count("failed")),
            "learned, share [95 %]": lambda name: share(
                outcomes[name].count("learned"), len(outcomes[name])
            ),
        },
        RULE,
    )


def _claims(multihead: Multihead) -> list[Claim]:
    learned = {
        group: [training.outcome == "learned" for training in multihead.trainings(group)]
        for group in (SINGLE, *TOGETHER)
    }
    return [
        _more_often(
            "One head that learns alone makes heads learn that fail alone.",
            learned[ONE_GOOD],
            learned[BAD_HEADS],
        ),
        _more_often("More heads learn more often than one.", learned[MIXED], learned[SINGLE]),
    ]


def _more_often(text: str, learned: list[bool], reference: list[bool]) -> Claim:
    if not learned or not reference:
        return Claim(text, "undecided", ("too few heads of a kind for these combinations",))
    side, p = rarer_or_more_often(learned, reference)
    number = f"{sum(learned)} of {len(learned)} learned, and {sum(reference)} of {len(reference)}; p = {p:.2g}"
    return Claim(text, verdict([side]), (number, BOSCHLOO))
