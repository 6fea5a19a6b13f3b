"""Which rows go into which split of a corpus: limits of length, shares and samples."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from heedmap.data.corpus import KEPT
from heedmap.data.rows import Parts, Row, column, gathered
from heedmap.data.texts import text_hashes
from heedmap.data.tokens import cut
from heedmap.settings.data import DataSettings

# One file without splits: a fifth of each class is the test split, 15 % of the rest the dev split.
TEST_SHARE, DEV_SHARE = 0.20, 0.15


def within_limits(
    rows: Sequence[Row], settings: DataSettings
) -> tuple[Sequence[Row], Counter[str]]:
    """Leave out empty and short texts and cut long ones; return the others, and counts by reason."""
    counts = Counter(reason for row in rows if (reason := _reason(row, settings)))
    if not counts:
        return rows, counts
    fitting = (row for row in rows if (_reason(row, settings) or KEPT).endswith(KEPT))
    longest = settings.max_tokens
    return gathered(
        row if len(row.tokens) <= longest else _cut(row, settings) for row in fitting
    ), counts


def _reason(row: Row, settings: DataSettings) -> str | None:
    """Return why a row is left out, or that it is cut; None if neither."""
    if not row.tokens:
        return "empty text"
    if row.query is not None and not row.query:
        return "empty query"
    if len(row.tokens) < settings.min_tokens:
        return f"fewer than {settings.min_tokens} tokens"
    if len(row.tokens) > settings.max_tokens:
        return f"cut to {settings.max_tokens} tokens{KEPT}"
    return None


def _cut(row: Row, settings: DataSettings) -> Row:
    length, written = settings.max_tokens, row.written
    if written is not None and settings.dataset is None:  # a data set has its own tokens
        written = cut(written, settings.tokenizer, length)
    rationale = None if row.rationale is None else row.rationale[:length]
    return replace(row, tokens=row.tokens[:length], rationale=rationale, written=written)


def parts_within_limits(parts: Parts, settings: DataSettings) -> tuple[Parts, Counter[str]]:
    """Apply `within_limits` to each split."""
    left_out: Counter[str] = Counter()
    fitting: dict[str, Sequence[Row]] = {}
    for name, rows in parts.items():
        fitting[name], counts = within_limits(rows, settings)
        left_out.update(counts)
    return fitting, left_out


def fill_splits(
    parts: Parts,
    settings: DataSettings,
    *,
    test_share: float = TEST_SHARE,
    dev_share: float = DEV_SHARE,
) -> dict[str, Sequence[Row]]:
    """Return train, dev and test: draw those that are missing from the training rows, dev from what is left."""
    of_training: list[Sequence[Row]] = [parts[name] for name in ("all", "train") if name in parts]
    # One part stays the object that it is: many rows are not unpacked.
    train = (
        of_training[0] if len(of_training) == 1 else [row for rows in of_training for row in rows]
    )
    rng = np.random.default_rng([settings.seed, 0x5B117])
    test = parts.get("test")
    if test is None:
        test, train = _draw(train, test_share, rng)
    dev = parts.get("dev")
    if dev is None:
        dev, train = _draw(train, dev_share, rng)
    return {"train": train, "dev": dev, "test": test}


def _draw(
    rows: Sequence[Row], share: float, rng: np.random.Generator
) -> tuple[Sequence[Row], Sequence[Row]]:
    """Draw a share of every class, rounded to whole rows; return it and the rest, both in file order."""
    sample: set[int] = set()
    members: dict[str, list[int]] = {}
    for i, label in enumerate(column(rows, "label")):
        members.setdefault(label, []).append(i)
    for _, indices in sorted(members.items()):
        sample.update(rng.permutation(indices)[: round(share * len(indices))].tolist())
    return (
        gathered(row for i, row in enumerate(rows) if i in sample),
        gathered(row for i, row in enumerate(rows) if i not in sample),
    )


def sampled(
    rows: Sequence[Row], part: str, settings: DataSettings
) -> tuple[Sequence[Row], dict[str, int]]:
    """Draw the sample of a split that the settings ask for, in file order; count the rest."""
    count = settings.train_texts if part == "train" else settings.test_texts
    if count is None or count >= len(rows):
        return rows, {}
    rng = np.random.default_rng([settings.seed, *part.encode()])
    drawn = np.sort(rng.permutation(len(rows))[:count]).tolist()
    return gathered(rows[i] for i in drawn), {
        f"{part}: not drawn into the sample": len(rows) - count
    }


def text_key(row: Row) -> str:
    """Return what is the same of two texts that are the same: their tokens, their queries', and what is asked.

    White space at the end of a text makes no difference.
    """
    asked = [] if row.target is None else [str(row.target), *(row.choices or ())]
    return "\x1e".join(["\x1f".join(row.tokens).rstrip(), *(row.query or ()), *asked])


def also_in(test: Sequence[Row], other_splits: Parts) -> dict[str, int]:
    """Count the test texts, with their query, that occur in each of the other splits too."""
    texts = text_hashes(map(text_key, test))
    return {
        name: int(np.isin(texts, text_hashes(map(text_key, rows))).sum())
        for name, rows in other_splits.items()
    }
