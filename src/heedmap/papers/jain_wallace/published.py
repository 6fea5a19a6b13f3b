"""The authors' own numbers: the result files in their repository.

`performance.csv` and `correlation.csv` are those of AttentionExplanation (commit 425a89a), one line per cell
of their grid; they are later runs than the paper's tables, with a dev split. A cell is one run: the
`std` of a correlation is over test texts, not seeds. `NaN` is in their files (a class whose probability
rounds to 1 has no gradient).
"""

import csv
import math
from dataclasses import dataclass
from functools import cache
from importlib import resources

from heedmap.papers.kit.sources import Source

SOURCE = "Jain & Wallace's result files (AttentionExplanation, 425a89a)"
SOURCES = {
    "performance.csv": Source("result files", "successar/AttentionExplanation 425a89a"),
    "correlation.csv": Source("result files", "successar/AttentionExplanation 425a89a"),
    "PUBLISHED_SIZES": Source(
        "result files", "the same; the training texts of SST by running the released code"
    ),
}
PUBLISHED_SIZES: dict[str, dict[str, tuple[int, ...]]] = {
    "sst": {"train": (3034, 3321), "test": (863, 862)},
    "imdb": {"test": (2184, 2172)},
    "adr": {"test": (3636, 487)},
    "news20_baseball_hockey": {"test": (179, 178)},
    "ag_news": {"test": (1900, 1898)},
    "diabetes": {"test": (1296, 319)},
    "anemia": {"test": (460, 802)},
}
"""Texts by split and class, as the authors' own files confirm them."""
_SCORES = {"tanh": "additive", "dot": "dot"}
PERFORMANCE = ("accuracy", "f1", "roc_auc")
COMPARED = ("attention~gradient", "attention~leave_one_out")

Key = tuple[str, str, str, str, str]
"""Data set, encoder, score, quantity, and predicted class (a number, or "Overall")."""


@dataclass(frozen=True)
class Published:
    """One number; of a correlation also its standard deviation over texts, and the share with p ≤ .05."""

    value: float
    std: float = math.nan
    significant: float = math.nan


NONE = Published(math.nan)


@cache
def published() -> dict[Key, Published]:
    """Return every published number by cell, quantity and class."""
    numbers: dict[Key, Published] = {}
    for row in _lines("performance.csv"):
        cell = (row["dataset"], row["encoder"], _SCORES[row["attention"]])
        for name, column in zip(PERFORMANCE, ("accuracy", "f1_class1", "roc_auc"), strict=True):
            if row[column]:
                numbers[*cell, name, "Overall"] = Published(float(row[column]))
    for row in _lines("correlation.csv"):
        cell = (row["dataset"], row["encoder"], _SCORES[row["attention"]])
        numbers[*cell, row["compared"], row["predicted_class"]] = Published(
            *(float(row[column] or "nan") for column in ("mean", "std", "significant_fraction"))
        )
    return numbers


def _lines(name: str) -> list[dict[str, str]]:
    text = resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
