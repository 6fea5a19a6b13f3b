"""Which rows of a source are for training, choosing and testing: seeded draws."""

from collections import Counter

import numpy as np

from heedmap.data.rows import Row
from heedmap.settings import DataSettings

# One file without splits: a fifth of each class is the test split, 15 % of the rest the dev split.
TEST_SHARE, DEV_SHARE = 0.20, 0.15


def complete(parts: dict[str, list[Row]], settings: DataSettings) -> dict[str, list[Row]]:
    """Train, dev and test: those that came, the missing ones drawn from the training rows."""
    train = [*parts.get("all", []), *parts.get("train", [])]
    rng = np.random.default_rng([settings.seed, 0x5B117])
    test = parts.get("test")
    if test is None:
        test, train = _draw(train, TEST_SHARE, rng)
    dev = parts.get("dev")
    if dev is None:
        dev, train = _draw(train, DEV_SHARE, rng)
    return {"train": train, "dev": dev, "test": test}


def _draw(rows: list[Row], share: float, rng: np.random.Generator) -> tuple[list[Row], list[Row]]:
    """A random share of every class, rounded to whole rows, and the rest; both in file order."""
    drawn: set[int] = set()
    members: dict[str, list[int]] = {}
    for i, row in enumerate(rows):
        members.setdefault(row.label, []).append(i)
    for _, places in sorted(members.items()):
        drawn.update(rng.permutation(places)[: round(share * len(places))].tolist())
    return (
        [row for i, row in enumerate(rows) if i in drawn],
        [row for i, row in enumerate(rows) if i not in drawn],
    )


def sampled(
    rows: list[Row], part: str, settings: DataSettings, left_out: Counter[str]
) -> list[Row]:
    """The sample of a split that the settings ask for, in file order; what is not drawn is counted."""
    count = settings.train_texts if part == "train" else settings.test_texts
    if count is None or count >= len(rows):
        return rows
    rng = np.random.default_rng([settings.seed, *part.encode()])
    left_out[f"{part}: not drawn into the sample"] += len(rows) - count
    return [rows[i] for i in np.sort(rng.permutation(len(rows))[:count])]
