"""A labelled text on its way into a corpus."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heedmap.settings import DataSettings

TEXT_COLUMNS = ("text", "sentence", "review", "content", "document")
LABEL_COLUMNS = ("label", "labels", "sentiment", "class", "category", "stars")


@dataclass
class Row:
    """A labelled text on its way into a split, or a pair: attention is paid to `tokens`, given `query`.

    `label` is its class by name. `rationale` says which tokens are known to decide the label; `candidates`
    are the labels that are possible answers for this row, None where all are.
    """

    key: str
    tokens: list[str]
    label: str
    rationale: NDArray[np.bool_] | None = None
    query: list[str] | None = None
    candidates: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Reading:
    """Which columns may hold what, the first that is there, and how a text becomes tokens."""

    text: Sequence[str] = TEXT_COLUMNS
    label: Sequence[str] = LABEL_COLUMNS
    query: Sequence[str] = ()
    tokenize: Callable[[str], list[str]] | None = None


def kept(rows: list[Row], settings: DataSettings, left_out: Counter[str]) -> list[Row]:
    """The rows that are long enough, cut where they are too long."""
    kept = []
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
                row.tokens = row.tokens[: settings.max_tokens]
                if row.rationale is not None:
                    row.rationale = row.rationale[: settings.max_tokens]
            kept.append(row)
    return kept
