"""Labelled texts on their way into a corpus: limits of length, splits and samples."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from heedmap.data.item_vectors import ItemVectors
from heedmap.data.texts import text_hashes
from heedmap.data.tokens import cut
from heedmap.nouns import BAGS, Nouns
from heedmap.settings import DataSettings

TEXT_COLUMNS = ("text", "sentence", "review", "content", "document")
LABEL_COLUMNS = ("label", "labels", "sentiment", "class", "category", "stars")
AMOUNT_COLUMNS = (*LABEL_COLUMNS, "score", "rating", "similarity")
# One file without splits: a fifth of each class is the test split, 15 % of the rest the dev split.
TEST_SHARE, DEV_SHARE = 0.20, 0.15


@dataclass(frozen=True, slots=True)
class Row:
    """A labelled text, or a pair: attention is paid to `tokens`, given `query`.

    `label` is its class by name, empty where the data say none. `rationale` says which tokens are known to
    decide the label; `candidates` are the labels that are possible answers for this row, None where all are.
    `written` is the text before it became tokens. `target` is the place of the word that a model is asked
    about, if it is asked of words, and `choices` the two words of which one is hidden there. `amount` is the
    label where that is a number, not a class.
    """

    key: str
    tokens: list[str]
    label: str
    rationale: NDArray[np.bool_] | None = None
    query: list[str] | None = None
    candidates: tuple[str, ...] | None = None
    written: str | None = None
    target: int | None = None
    choices: tuple[str, str] | None = None
    amount: float | None = None


Parts = dict[str, list[Row]]
"""Rows by split; those of a source without splits are `all`."""


@dataclass(frozen=True)
class LabelledTexts:
    """Rows by split, with counts of what was left out by its reason, and notes on how they were read.

    `columns` are the names of the columns that were read, by the names of their settings, where all tables have
    the same. `vectors` are those of the items, where the texts are bags or pictures; `nouns` says which.
    """

    parts: Parts
    left_out: Mapping[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    vectors: ItemVectors | None = None
    nouns: Nouns = BAGS


@dataclass(frozen=True)
class ColumnSpec:
    """Names that a column may have, the first that is there, and how a text becomes tokens.

    The first name of the text may be of several columns that are joined: title,content. Without a name for the
    label none is read. `clean` changes a text before it becomes tokens. `role`: what the column of the text is
    called, which of bags has their ids.
    """

    text: Sequence[str] = TEXT_COLUMNS
    label: Sequence[str] = LABEL_COLUMNS
    query: Sequence[str] = ()
    tokenize: Callable[[str], list[str]] | None = None
    clean: Callable[[str], str] | None = None
    role: str = "text"


def within_limits(rows: Sequence[Row], settings: DataSettings) -> tuple[list[Row], Counter[str]]:
    """Leave out empty and short texts and cut long ones; return the others, and counts by reason."""
    left_out: Counter[str] = Counter()
    fitting = []
    for row in rows:
        if not row.tokens:
            left_out["empty text"] += 1
        elif row.query is not None and not row.query:
            left_out["empty query"] += 1
        elif len(row.tokens) < settings.min_tokens:
            left_out[f"fewer than {settings.min_tokens} tokens"] += 1
        elif len(row.tokens) > settings.max_tokens:
            left_out[f"cut to {settings.max_tokens} tokens (kept)"] += 1
            fitting.append(_cut(row, settings))
        else:
            fitting.append(row)
    return fitting, left_out


def _cut(row: Row, settings: DataSettings) -> Row:
    length, written = settings.max_tokens, row.written
    if written is not None and settings.dataset is None:  # a data set has its own tokens
        written = cut(written, settings.tokenizer, length)
    rationale = None if row.rationale is None else row.rationale[:length]
    return replace(row, tokens=row.tokens[:length], rationale=rationale, written=written)


def parts_within_limits(parts: Parts, settings: DataSettings) -> tuple[Parts, Counter[str]]:
    """Apply `within_limits` to each split."""
    left_out: Counter[str] = Counter()
    fitting: Parts = {}
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
) -> Parts:
    """Return train, dev and test: draw those that are missing from the training rows, dev from what is left."""
    train = [*parts.get("all", []), *parts.get("train", [])]
    rng = np.random.default_rng([settings.seed, 0x5B117])
    test = parts.get("test")
    if test is None:
        test, train = _draw(train, test_share, rng)
    dev = parts.get("dev")
    if dev is None:
        dev, train = _draw(train, dev_share, rng)
    return {"train": train, "dev": dev, "test": test}


def _draw(rows: list[Row], share: float, rng: np.random.Generator) -> tuple[list[Row], list[Row]]:
    """Draw a share of every class, rounded to whole rows; return it and the rest, both in file order."""
    sample: set[int] = set()
    members: dict[str, list[int]] = {}
    for i, row in enumerate(rows):
        members.setdefault(row.label, []).append(i)
    for _, indices in sorted(members.items()):
        sample.update(rng.permutation(indices)[: round(share * len(indices))].tolist())
    return (
        [row for i, row in enumerate(rows) if i in sample],
        [row for i, row in enumerate(rows) if i not in sample],
    )


def sampled(rows: list[Row], part: str, settings: DataSettings) -> tuple[list[Row], dict[str, int]]:
    """Draw the sample of a split that the settings ask for, in file order; count the rest."""
    count = settings.train_texts if part == "train" else settings.test_texts
    if count is None or count >= len(rows):
        return rows, {}
    rng = np.random.default_rng([settings.seed, *part.encode()])
    sample = [rows[i] for i in np.sort(rng.permutation(len(rows))[:count])]
    return sample, {f"{part}: not drawn into the sample": len(rows) - count}


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
