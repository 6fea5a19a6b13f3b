"""Pruthi et al.'s results: accuracy and attention to impermissible words or positions, in per cent.

The authors' values as the ReScience replication reprints them, and the replication's own, five seeds with the
authors' code. "<1e-6" and the like are upper bounds.
"""

from collections.abc import Mapping
from typing import NamedTuple

from heedmap.papers.kit.sources import Source

_PLACE = "ReScience replication, doi 10.5281/zenodo.4834146"
_CODE = Source("released code", "danishpruthi/deceptive-attention 8c8823ef")
SOURCES = {
    "AUTHORS": Source("reprint", _PLACE),
    "REPLICATED": Source("replication", _PLACE),
    "EPOCHS": _CODE,
    "SEEDS": _CODE,
    "SEQUENCES": Source("reprint", _PLACE),
    "SEQUENCES_REPLICATED": Source("replication", _PLACE),
}


class Published(NamedTuple):
    """Accuracy, and attention mass where it is given."""

    accuracy: str
    mass: str = "–"


SOURCE = "Pruthi et al."
REPLICATION = "replication, five seeds"


def _numbers(cells: str) -> list[Published | None]:
    """Read `accuracy / mass; accuracy; ...`; None where there is nothing."""
    return [Published(*cell.split(" / ")) if cell else None for cell in cells.split("; ")]


def _texts(lines: Mapping[tuple[str, str], str]) -> dict[tuple[str, str, float | None], Published]:
    """Return the numbers of a line's task and model by penalty; None: without the impermissible words."""
    penalties = (None, 0.0, 0.1, 1.0)
    return {
        (task, model, penalty): numbers
        for (task, model), cells in lines.items()
        for penalty, numbers in zip(penalties, _numbers(cells), strict=True)
        if numbers is not None
    }


def _sequences(lines: Mapping[str, str]) -> dict[tuple[str, str, float], Published]:
    """Return the numbers of a line's task by attention and penalty."""
    kinds = (("learned", 0.0), ("uniform", 0.0), ("none", 0.0), ("learned", 0.1), ("learned", 1.0))
    return {
        (task, *kind): numbers
        for task, cells in lines.items()
        for kind, numbers in zip(kinds, _numbers(cells), strict=True)
        if numbers is not None
    }


AUTHORS = _texts({
    ("occupation", "embedding"): "93.8; 96.3 / 51.4; 96.2 / 4.6; 96.2 / 1.3",
    ("occupation", "bilstm"): "93.3; 96.4 / 50.3; 96.4 / .08; 96.7 / <1e-2",
    ("pronoun", "embedding"): "66.8; 100 / 99.2; 99.4 / 3.4; 99.2 / .8",
    ("pronoun", "bilstm"): "63.3; 100 / 96.8; 100 / <1e-6; 100 / <1e-6",
    ("sst-filler", "embedding"): "48.9; 70.7 / 48.4; 67.9 / 36.4; 48.4 / 8.7",
    ("sst-filler", "bilstm"): "49.1; 76.9 / 77.7; 60.6 / .04; 61.0 / .07",
    ("occupation", "bert-mean"): "95.0; 97.2 / 13.9; 97.2 / .001; 97.2 / <1e-3",
    ("occupation", "bert-max"): "; 97.2 / 99.7; 97.1 / <1e-3; 97.4 / <1e-3",
    ("pronoun", "bert-mean"): "72.8; 100 / 80.8; 99.9 / <1e-3; 99.9 / <1e-3",
    ("pronoun", "bert-max"): "; 100 / 99.7; 99.9 / <1e-3; 99.8 / <1e-4",
    ("sst-filler", "bert-mean"): "50.4; 90.8 / 59.0; 90.9 / <1e-2; 90.6 / <1e-3",
    ("sst-filler", "bert-max"): "; 90.8 / 96.2; 90.7 / <1e-2; 90.2 / <1e-3",
})  # fmt: skip
REPLICATED = _texts({
    ("occupation", "embedding"): "; 96.5 / 56.4; 96.3 / 5.7; 96.1 / 1.5",
    ("pronoun", "embedding"): "; 99.9 / 90.1; – / 8.8; – / 4.6",
    ("sst-filler", "embedding"): "; 68.1 ± 1.6 / 49.9 ± 2.2; 69.5 ± 1.4 / 17 ± 1; 51.8 ± 1.1 / 12.9 ± 2",
    ("sst-filler", "bilstm"): "; 76.4 ± .8 / 81.5 ± 7.5; 65.1 ± 4 / .99 ± 1.3; 64.9 ± 3.1 / .035 ± .02",
})  # fmt: skip
EPOCHS = {"occupation": 5}  # of others 15
SEEDS = 5
# Accuracy, or BLEU by compare-mt for translation (English to German).
SEQUENCES = _sequences({
    "bigram-flip": "100 / 94.5; 97.8 / 5.2; 96.4; 99.9 / 24.4; 99.8 / .03",
    "copy": "99.9 / 98.8; 93.8 / 5.2; 84.1; 100 / 27.3; 92.9 / .02",
    "reverse": "100 / 94.1; 88.1 / 4.7; 84.1; 100 / 27.6; 99.8 / .01",
    "translation": "24.42 / 20.66; 18.49 / 5.96; 14.89; 23.69 / 7.02; 20.66 / 1.16",
})  # fmt: skip
SEQUENCES_REPLICATED = _sequences({
    "bigram-flip": "– / 93.9; 95.1 / 4.71; 96.4; 100 / 15.2; 99.6 / .01",
    "copy": "100 / 94.1; 79.3 / 4.73; 87.3; 100 / 10.7; 99.9 / .014",
    "reverse": "100 / 94.0; 80.8 / 7.74; 87.2; – / 16.3; 99.9 / .014",
    "translation": "24.89 / 24.52; 18.37 / 5.96; 15.88; 24.30 / 16.77; 21.07 / 1.40",
})  # fmt: skip
