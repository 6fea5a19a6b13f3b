"""Labelled texts on their way into a corpus: limits of length, splits and samples."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heedmap.data.tokens import cut
from heedmap.settings import DataSettings

TEXT_COLUMNS = ("text", "sentence", "review", "content", "document")
LABEL_COLUMNS = ("label", "labels", "sentiment", "class", "category", "stars")
# One file without splits: a fifth of each class is the test split, 15 % of the rest the dev split.
TEST_SHARE, DEV_SHARE = 0.20, 0.15


@dataclass
class Row:
    """A labelled text, or a pair: attention is paid to `tokens`, given `query`.

    `label` is its class by name, empty where the data say none. `rationale` says which tokens are known to
    decide the label; `candidates` are the labels that are possible answers for this row, None where all are.
    `written` is the text before it became tokens.
    """

    key: str
    tokens: list[str]
    label: str
    rationale: NDArray[np.bool_] | None = None
    query: list[str] | None = None
    candidates: tuple[str, ...] | None = None
    written: str | None = None


Parts = dict[str, list[Row]]
"""Rows by split; those of a source without splits are `all`."""


@dataclass(frozen=True)
class ColumnSpec:
    """Names that a column may have, the first that is there, and how a text becomes tokens.

    Without a name for the label none is read.
    """

    text: Sequence[str] = TEXT_COLUMNS
    label: Sequence[str] = LABEL_COLUMNS
    query: Sequence[str] = ()
    tokenize: Callable[[str], list[str]] | None = None


def within_limits(rows: list[Row], settings: DataSettings, left_out: Counter[str]) -> list[Row]:
    """Leave out and count empty and short texts; cut and count long ones."""
    found = []
    for row in rows:
        if not row.tokens:
            left_out["empty text"] += 1
        elif row.query is not None and not row.query:
            left_out["empty query"] += 1
        elif len(row.tokens) < settings.min_tokens:
            left_out[f"fewer than {settings.min_tokens} tokens"] += 1
        else:
            if len(row.tokens) > settings.max_tokens:
                left_out[f"cut to {settings.max_tokens} tokens (kept)"] += 1
                _cut(row, settings)
            found.append(row)
    return found


def _cut(row: Row, settings: DataSettings) -> None:
    most = settings.max_tokens
    row.tokens = row.tokens[:most]
    if row.rationale is not None:
        row.rationale = row.rationale[:most]
    if row.written is not None and settings.dataset is None:  # a data set has its own tokens
        row.written = cut(row.written, settings.tokenizer, most)


def complete(parts: Parts, settings: DataSettings) -> Parts:
    """Return train, dev and test: draw those that are missing from the training rows."""
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
    """Draw a share of every class, rounded to whole rows; return it and the rest, both in file order."""
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
    """Draw the sample of a split that the settings ask for, in file order; count the rest."""
    count = settings.train_texts if part == "train" else settings.test_texts
    if count is None or count >= len(rows):
        return rows
    rng = np.random.default_rng([settings.seed, *part.encode()])
    left_out[f"{part}: not drawn into the sample"] += len(rows) - count
    return [rows[i] for i in np.sort(rng.permutation(len(rows))[:count])]


def text_key(row: Row) -> str:
    """Return what is the same of two texts that are the same: their tokens, and those of their queries.

    White space at the end of a text makes no difference.
    """
    return "\x1e".join(["\x1f".join(row.tokens).rstrip(), *(row.query or ())])


def also_in(test: Sequence[Row], others: Parts) -> dict[str, int]:
    """Count the test texts, with their query, that occur in each of the other splits too."""
    texts = [text_key(row) for row in test]
    known = set(texts)
    counts = {}
    for name, rows in others.items():
        shared = known.intersection(map(text_key, rows))
        counts[name] = sum(text in shared for text in texts)
    return counts
