"""The numbers of one cell of the grid, one per quantity and predicted class."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from heedmap.errors import InputError
from heedmap.files import manifest
from heedmap.models.attention_classifier import AttentionClassifier
from heedmap.papers.jain_wallace.published import PERFORMANCE
from heedmap.runs.audited import Audit
from heedmap.runs.folder import RunFolder
from heedmap.runs.run import Run
from heedmap.training.evaluation import evaluate

TEST = "test.json"
TAUS = {
    "attention~gradient": "attention_gradient",
    "attention~leave_one_out": "attention_leave_one_out",
    "gradient~leave_one_out": "gradient_leave_one_out",
}
# Shown in the paper's figures only, without numbers.
DISTANCES = {
    "permutation: median TVD": ("permutation", "median_tvd"),
    "uniform: TVD": ("permutation", "uniform_tvd"),
    "adversary: max JSD": ("adversary", "jsd"),
    "adversary: JSD by the paper's search": ("adversary", "search_jsd"),
}
MOST_CLASSES = 3  # the paper separates the classes of at most three


@dataclass(frozen=True)
class Cell:
    """One model of the grid."""

    dataset: str
    encoder: str
    score: str
    seed: int

    def __str__(self) -> str:
        return f"{self.dataset} {self.encoder} {self.score}, seed {self.seed}"

    def folder(self, out: Path) -> Path:
        """Return the path of its run folder."""
        return out / self.dataset / f"{self.encoder}-{self.score}-{self.seed}"


@dataclass(frozen=True)
class Measured:
    """One number of one cell: a mean over `n` texts; `undefined` further texts have none.

    `predicted` is a class's number, or "Overall"; `std` is over texts (population), `significant` the share
    with p ≤ .05.
    """

    cell: Cell
    quantity: str
    predicted: str
    value: float
    std: float
    significant: float
    n: int
    undefined: int


def measured(cell: Cell, audit: Audit) -> list[Measured]:
    """Return all numbers of a cell: performance on the whole test split, the rest on the audited texts."""
    assert audit.run is not None
    scores = _test_scores(audit.run)
    performance = [
        Measured(cell, name, "Overall", scores[name], np.nan, np.nan, int(scores["n"]), 0)
        for name in PERFORMANCE
        if name in scores
    ]
    return [*performance, *numbers_of(cell, audit.tables, audit.classes)]


def numbers_of(
    cell: Cell, tables: Mapping[str, pa.Table], classes: Sequence[str]
) -> list[Measured]:
    """Return the numbers of the audited texts: correlations by predicted class, then distances."""
    numbers: list[Measured] = []
    predicted = tables["instances"]["predicted"].to_numpy()
    for name, columns in TAUS.items():
        tau, p = (
            tables["agreement"][f"{kind}_{columns}"].to_numpy().astype(np.float64)
            for kind in ("tau", "p")
        )
        numbers += [
            _mean(cell, name, which, tau[rows], p[rows])
            for which, rows in _groups(predicted, classes)
        ]
    # A text of one token has only one heat map.
    too_short = tables["instances"]["n_tokens"].to_numpy() < 2
    for name, (table, column) in DISTANCES.items():
        if column in tables[table].column_names:
            values = tables[table][column].to_numpy().astype(np.float64)
            undefined = too_short
            if column == "search_jsd":  # 0 where it finds nothing
                search_found = tables[table]["search_found"].to_pandas()
                undefined = too_short | ~search_found.fillna(False).to_numpy(dtype=bool)
            values = np.where(undefined, np.nan, values)
            numbers.append(_mean(cell, name, "Overall", values, np.full(len(values), np.nan)))
    return numbers


def _groups(
    predicted: NDArray[np.int64], classes: Sequence[str]
) -> list[tuple[str, NDArray[np.bool_]]]:
    groups = [("Overall", np.ones(len(predicted), dtype=bool))]
    if len(classes) <= MOST_CLASSES:
        groups = [(str(i), predicted == i) for i in range(len(classes))] + groups
    return groups


def _mean(
    cell: Cell, quantity: str, which: str, values: NDArray[np.float64], p: NDArray[np.float64]
) -> Measured:
    """Average the finite values and count the others; NaN without any."""
    defined = np.isfinite(values)
    n = int(defined.sum())
    mean, std = (
        (float(values[defined].mean()), float(values[defined].std())) if n else (np.nan, np.nan)
    )
    tested = defined & np.isfinite(p)
    significant = float((p[tested] <= 0.05).mean()) if tested.any() else np.nan
    return Measured(cell, quantity, which, mean, std, significant, n, int((~defined).sum()))


def _test_scores(run: Run) -> dict[str, float]:
    """Return the scores on the whole test split, saved in the run folder."""
    assert run.folder is not None
    assert isinstance(run.model, AttentionClassifier)
    path = RunFolder(run.folder).extra / TEST
    if not path.exists():
        split = run.corpus.splits["test"]
        scores = {**evaluate(run.model, run.encoded(split)), "n": float(len(split))}
        if run.corpus.pairs:
            scores = {name: scores[name] for name in ("accuracy", "n")}
        manifest.write(path, json.dumps(scores))
    try:
        scores = {name: float(value) for name, value in json.loads(manifest.read(path)).items()}
        if "n" not in scores:
            raise ValueError("no n")
        return scores
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise InputError(f"{path}: damaged; delete it and run again") from error
