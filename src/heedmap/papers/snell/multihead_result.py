"""Do heads that fail alone learn together, and does one that learns alone help them?"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from heedmap.papers.kit.parts import Row
from heedmap.papers.kit.result import Claim, Result, Table, unlike, with_unlike
from heedmap.papers.snell.copy_task import SEEN
from heedmap.papers.snell.copying_figures import lines
from heedmap.papers.snell.outcomes import LEVEL, LOOK, RULE, Training, more_often, share
from heedmap.papers.snell.settings import MultiheadSettings

SINGLE, BAD_HEADS, ONE_GOOD, MIXED = "one head", "bad heads", "one good head", "any heads"
TOGETHER = (BAD_HEADS, ONE_GOOD, MIXED)
COLUMNS = {
    "group": "kind of the heads",
    "heads": "the heads by number",
    "order": "draw of sequences",
    **LOOK,
}


@dataclass(frozen=True)
class Multihead:
    """The trainings so far."""

    settings: MultiheadSettings
    rows: list[Row]
    folder: Path

    def trainings(self, group: str) -> dict[tuple[str, int], Training]:
        """Return the trainings of a group by their heads and their draw of sequences."""
        found: dict[tuple[str, int], list[Row]] = {}
        for row in self.rows:
            if row["group"] == group:
                found.setdefault((row["heads"], row["order"]), []).append(row)
        return {key: Training(tuple(some)) for key, some in found.items()}

    def _alone(self) -> dict[int, list[str]]:
        """Return the outcomes of each head by itself."""
        found: dict[int, list[str]] = {}
        for (head, _), training in self.trainings(SINGLE).items():
            found.setdefault(int(head), []).append(training.outcome)
        return found

    def _always(self, outcome: str) -> list[int]:
        needed = self.settings.orders
        found = [head for head, some in self._alone().items() if some == [outcome] * needed]
        return found[: self.settings.wanted]

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
        wanted = self.settings.wanted
        return len(self.good) >= wanted and len(self.bad) >= max(wanted, self.settings.heads)


def result(found: Multihead) -> Result:
    """Make the result that all files of this part show."""
    table, differs = _table(found), differences(found.settings)
    drawn = [
        {**row, "series": row["group"], "training": f"heads {row['heads']}, draw {row['order']}"}
        for row in found.rows
        if row["group"] != SINGLE
    ]
    n = f"n = {found.settings.combinations} combinations of {found.settings.heads} heads of each kind"
    figures = [lines(drawn, "accuracy", "multihead", TOGETHER, n)] if drawn else []
    return Result(
        title="Snell et al.: several heads that learn to copy",
        notes=[note for note in (*_heads(found), unlike(differs)) if note],
        summary=table,
        sections=[table, *_claims(found)],
        figures=[with_unlike(one, differs) for one in figures],
        rows=pd.DataFrame(found.rows),
        latex=table,
        columns=COLUMNS,
    )


def differences(settings: MultiheadSettings) -> list[str]:
    """List in words how a reproduction differs from the paper's settings."""
    published = MultiheadSettings()
    words = {
        "length": "symbols in a sequence",
        "size": "units in a state",
        "batch_size": "sequences in a batch",
        "learning_rate": "as learning rate",
        "heads": "heads together",
        "orders": "draws of sequences for each head",
        "wanted": "heads of each kind",
        "combinations": "combinations of each kind",
    }
    return [
        *(
            f"{getattr(settings, name):g} {text} instead of {getattr(published, name):g}"
            for name, text in words.items()
            if getattr(settings, name) != getattr(published, name)
        ),
        f"{SEEN} fresh sequences at a look instead of 400 that stay the same",
    ]


def _heads(found: Multihead) -> list[str]:
    settings = found.settings
    note = (
        f"Of {found.tried} heads that were tried alone on {settings.orders} draws of sequences each, "
        f"{len(found.good)} always learned and {len(found.bad)} always failed; at most {settings.wanted} of "
        "each are counted and used."
    )
    few = [
        *([] if len(found.bad) >= settings.heads else [BAD_HEADS]),
        *([] if len(found.bad) >= settings.heads - 1 and found.good else [ONE_GOOD]),
    ]
    missing = f"Too few of them for the combinations {' and '.join(few)}." if few else ""
    return [note, missing]


def _table(found: Multihead) -> Table:
    rows = []
    size = found.settings.heads
    names = {
        SINGLE: "one head alone",
        BAD_HEADS: f"{size} that fail alone",
        ONE_GOOD: f"{size - 1} that fail alone, one that learns",
        MIXED: f"{size} of the first ones",
    }
    for group, name in names.items():
        outcomes = [one.outcome for one in found.trainings(group).values()]
        if outcomes:
            count = Counter(outcomes)
            each = [str(count[outcome]) for outcome in ("learned", "between", "failed")]
            rows.append([name, str(len(outcomes)), *each, share(count["learned"], len(outcomes))])
    return Table(
        "Who learns to copy permutations?",
        ["heads", "trainings", "learned", "between", "failed", "learned, share [95 %]"],
        rows,
        RULE,
    )


def _claims(found: Multihead) -> list[Claim]:
    learned = {
        group: [one.outcome == "learned" for one in found.trainings(group).values()]
        for group in (SINGLE, *TOGETHER)
    }
    return [
        _claim(
            "One head that learns alone makes heads learn that fail alone.",
            learned[ONE_GOOD],
            learned[BAD_HEADS],
        ),
        _claim("More heads learn more often than one.", learned[MIXED], learned[SINGLE]),
    ]


def _claim(text: str, some: list[bool], others: list[bool]) -> Claim:
    if not some or not others:
        return Claim(text, "undecided", ("too few heads of a kind for these combinations",))
    p, q = more_often(some, others), more_often(others, some)
    verdict = "survives" if p < LEVEL else "does not" if q < LEVEL else "undecided"
    numbers = f"{sum(some)} of {len(some)} learned, and {sum(others)} of {len(others)}; p = {p:.2g}"
    return Claim(text, verdict, (numbers, "p: Boschloo's exact test, one-sided"))
