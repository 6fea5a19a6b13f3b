"""The numbers of models of texts and of sequences, and how two numbers of models go together."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import stats

from heedmap.experiments import intervals
from heedmap.experiments.results import mean
from heedmap.experiments.seed_intervals import LEVEL
from heedmap.experiments.seeds import right
from heedmap.measures import LN2
from heedmap.papers.kit.reproduction import Cell

Numbers = NDArray[np.float64]
FEWEST = 4  # data sets of a rank correlation with an interval
SIGNED, SHARE = (-1.0, 1.0), (0.0, 1.0)


@dataclass(frozen=True)
class TextModel:
    """A model of texts: what its cell says, and a row per test text."""

    columns: Mapping[str, Any]
    table: pa.Table

    def __getitem__(self, column: str) -> Any:
        return self.columns[column]

    @property
    def name(self) -> str:
        """What the tables call it."""
        parts = (self["data"], self["encoder"], self["normaliser"], self["size"])
        return " ".join(map(str, parts))

    @property
    def task(self) -> str:
        """The kind of its task."""
        return str(self.table["task"][0])

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return int(self.table["classes"][0].as_py())

    def column(self, name: str) -> Numbers:
        """Return a column of numbers, null as NaN; all NaN where the model has no such column."""
        if name not in self.table.column_names:
            return np.full(len(self.table), np.nan)
        return np.asarray(self.table[name].to_numpy(zero_copy_only=False), dtype=np.float64)

    def mean(self, name: str) -> float:
        """Return the mean of a column over the texts that have a number."""
        return mean(self.column(name))

    def interval(self, values: Numbers, bounds: tuple[float, float]) -> tuple[float, float]:
        """Return the 95 % interval over texts of the mean of those that have a number."""
        defined = np.isfinite(values)
        clusters = self.table["text"].to_numpy()[defined]
        return intervals.of_mean(values[defined], clusters, 0, bounds)

    @cached_property
    def label(self) -> NDArray[np.int64]:
        """The label of each text."""
        return np.asarray(self.table["label"].to_numpy(), dtype=np.int64)

    @cached_property
    def is_right(self) -> Numbers:
        """Whether the model is right about each text."""
        return np.asarray(self.column("predicted") == self.label, dtype=np.float64)

    @cached_property
    def commonest(self) -> float:
        """Accuracy of the commonest class."""
        return float(np.bincount(self.label).max() / len(self.label))

    def accuracies(self, kind: str) -> list[float]:
        """Return the accuracy of each further training, `learned` or `uniform`."""
        return [float(share) for share in right(self.table[kind], self.label).mean(0)]

    @cached_property
    def costs(self) -> list[float]:
        """Accuracy lost by training with uniform weights, of each seed."""
        pairs = zip(self.accuracies("learned"), self.accuracies("uniform"), strict=True)
        return [learned - uniform for learned, uniform in pairs]

    @cached_property
    def cost_at_test(self) -> Numbers:
        """Of each text, whether this model is right less whether it is under uniform weights."""
        uniform = np.asarray(self.column("uniform_at_test") == self.label, dtype=np.float64)
        return np.asarray(self.is_right - uniform)

    @cached_property
    def instability(self) -> float:
        """Mean divergence of other seeds' maps as a share of that of shuffled weights, of the same texts."""
        return self.mean("seed_jsd") / self.mean("seed_jsd_chance")

    @cached_property
    def freedom(self) -> Numbers:
        """The adversary's divergence as a share of ln 2, of each text of more than one token."""
        short = self.column("n_tokens") < 2
        return np.asarray(np.where(short, np.nan, self.column("jsd") / LN2))

    @property
    def is_exact(self) -> bool:
        """Whether the adversary is the optimum: it is its own upper bound."""
        upper = self.column("jsd_upper")
        has_bound = np.isfinite(upper)
        return bool(has_bound.any()) and bool(
            np.allclose(upper[has_bound], self.column("jsd")[has_bound], atol=1e-9)
        )

    @cached_property
    def fractions(self) -> dict[str, Numbers]:
        """Share of a text's tokens erased at the flip, by ranking; infinite where it never comes.

        Of the texts that the smallest set flips, or where that is not known, any ranking.
        """
        counts = {
            name: self.column(f"count_{name}") for name in ("attention", "gradient", "product")
        }
        lists = self.table["count_random"].to_pylist()
        counts["random"] = np.array(
            [np.nan if row is None else row[0] for row in lists], dtype=float
        )
        exact = self.column("count_exact")
        if np.isfinite(exact).any():
            counts["exact"] = exact
            flips = exact > 0
        else:
            flips = np.any([count > 0 for count in counts.values()], axis=0)
        size = self.column("n_tokens")[flips]
        return {
            name: np.asarray(np.where(count[flips] > 0, count[flips] / size, np.inf))
            for name, count in counts.items()
        }


@dataclass(frozen=True)
class SequenceModel:
    """A training on sequences: its accuracy of the next sub-word, with its own and with uniform weights."""

    data: str
    attention: str
    seed: int
    accuracy: float
    uniform_at_test: float
    chance: float
    positions: int


def model_of(cell: Cell, table: pa.Table) -> list[Any]:
    """Return the model of a cell's table."""
    if "attention" in cell.columns:
        return [SequenceModel(**row) for row in table.to_pylist()]
    return [TextModel(cell.columns, table)]


@dataclass(frozen=True)
class RankCorrelation:
    """Spearman's ρ of two numbers of models with its 95 % interval, and the numbers of models and data sets."""

    value: float
    low: float
    high: float
    models: int
    data_sets: int


def rank_correlation(
    x: Sequence[float], y: Sequence[float], data: Sequence[str], level: float = LEVEL
) -> RankCorrelation:
    """Return Spearman's ρ of the models that have both numbers; `data` names each model's data set.

    The interval is Fisher's, tanh(artanh ρ ± z √((1 + ρ²/2) / (n − 3))) (Bonett & Wright 2000), where n is
    the number of data sets: models of one data set are not independent, and count as one here, which is
    too wide rather than too narrow. It would be a point at ρ = ±1: there it is that of the next smaller ρ of n
    ranks, 1 − 12 / (n³ − n), up to ±1. There is none of fewer than FEWEST data sets, or where a number is the
    same for all.
    """
    pairs = np.array([x, y], dtype=np.float64).reshape(2, -1)
    defined = np.flatnonzero(np.isfinite(pairs).all(axis=0))
    pairs = pairs[:, defined]
    models = pairs.shape[1]
    count = len({data[i] for i in defined.tolist()})
    if models < 2 or any(np.ptp(numbers) == 0 for numbers in pairs):
        return RankCorrelation(math.nan, math.nan, math.nan, models, count)
    rho = float(stats.spearmanr(pairs[0], pairs[1]).statistic)
    if count < FEWEST:
        return RankCorrelation(rho, math.nan, math.nan, models, count)
    edge = 1 - 12 / (count**3 - count)
    inner = max(-edge, min(edge, rho))
    half = float(stats.norm.ppf((1 + level) / 2)) * math.sqrt((1 + inner**2 / 2) / (count - 3))
    low, high = (math.tanh(math.atanh(inner) + side * half) for side in (-1, 1))
    return RankCorrelation(rho, min(low, rho), max(high, rho), models, count)
