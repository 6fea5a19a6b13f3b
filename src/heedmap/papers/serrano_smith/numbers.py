"""The numbers of one model: its texts' table, and what of it the result compares."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import stats

from heedmap.experiments.questions.decision_flips import efficiency
from heedmap.experiments.results import mean

Numbers = NDArray[np.float64]
RANKINGS = ("random", "ascending", "leave_one_out", "attention", "gradient", "product")
WORDS = {
    "random": "random",
    "ascending": "least attended first",
    "leave_one_out": "leave-one-out",
    "attention": "attention",
    "gradient": "gradient",
    "product": "gradient × attention",
    "exact": "smallest set",
}
FLIPS = ("both", "top", "random", "neither")
SCORES = {"top": "random", "gradient": "random_gradient", "product": "random_product"}
"""By which score the first item is chosen, and the random item beside it."""


@dataclass(frozen=True)
class Trial:
    """A model of one seed and its texts after erasure: one row per test text, those of one item included."""

    model: str
    seed: int
    table: pa.Table

    def column(self, name: str) -> Numbers:
        """Return a column of numbers, null as NaN."""
        return np.asarray(self.table[name].to_numpy(zero_copy_only=False), dtype=np.float64)

    @cached_property
    def size(self) -> Numbers:
        """Items of each text: sentences or words."""
        return self.column("n_tokens")

    @cached_property
    def accuracy(self) -> float:
        """Share of the texts that the model is right about."""
        return float((self.column("label") == self.column("predicted")).mean())

    @cached_property
    def majority(self) -> float:
        """Accuracy of the commonest class."""
        label = self.column("label").astype(int)
        return float(np.bincount(label).max() / len(label))

    @cached_property
    def asked(self) -> NDArray[np.bool_]:
        """Texts of more than one item."""
        return self.size > 1

    def flip_table(self, score: str = "top") -> tuple[dict[str, float], float]:
        """Return the shares of FLIPS, and McNemar's exact p of top against random."""
        top, random = (
            self.column(f"flip_{name}")[self.asked] > 0 for name in (score, SCORES[score])
        )
        shares = (top & random, top & ~random, ~top & random, ~top & ~random)
        top_alone, random_alone = int(shares[1].sum()), int(shares[2].sum())
        either = top_alone + random_alone
        p = float(stats.binomtest(top_alone, either).pvalue) if either else 1.0
        share_of = {
            name: float(share.mean()) if len(share) else np.nan
            for name, share in zip(FLIPS, shares, strict=True)
        }
        return share_of, p

    @cached_property
    def differences(self) -> Numbers:
        """ΔJS of the most attended item over the random one."""
        return (self.column("js_top") - self.column("js_random"))[self.asked]

    @cached_property
    def smallest(self) -> Numbers:
        """Size of the smallest set that flips; 0 where there is none, NaN for texts of one item."""
        return self.column("count_exact")

    @cached_property
    def only_all(self) -> float:
        """Share of the texts asked that change with no item left, and not before: the bias decides."""
        return self._share((self.smallest == 0) & (self.column("empty_flips") > 0))

    @cached_property
    def certified(self) -> float:
        """Share of the texts asked that no set of items changes while one is left: a proof."""
        return self._share(self.smallest == 0)

    def _share(self, texts: NDArray[np.bool_]) -> float:
        """Return the share of the texts asked; NaN if none has a second item."""
        return mean(texts[self.asked].astype(float))

    def paper_counts(self, ranking: str) -> Numbers:
        """As `counts`, but as in the paper: of one shuffle, and all items where only that changes a text."""
        counts = self.counts(ranking)
        counts = counts if counts.ndim == 1 else counts[:, 0]
        only_all = (counts == 0) & (self.column("empty_flips") > 0)
        return np.asarray(np.where(only_all, self.size, counts))

    @cached_property
    def flippable(self) -> NDArray[np.bool_]:
        """Texts that some set of items flips: those that every ranking is judged on."""
        return self.smallest > 0

    def counts(self, ranking: str) -> Numbers:
        """Items erased at the flip, (texts,) or (texts, shuffles); 0 where it never comes."""
        if ranking != "random":
            return self.column(f"count_{ranking}")
        lists: list[Any] = self.table["count_random"].to_pylist()
        shuffles = max(
            (len(text_counts) for text_counts in lists if text_counts is not None), default=1
        )
        return np.array(
            [[np.nan] * shuffles if text_counts is None else text_counts for text_counts in lists]
        )

    def efficiency(self, ranking: str) -> Numbers:
        """k_min / k of each text, the mean over the shuffles of a random ranking; NaN where no set flips."""
        counts = self.counts(ranking)
        if counts.ndim == 1:
            return efficiency(self.smallest, counts)
        return np.asarray(
            np.mean([efficiency(self.smallest, shuffle) for shuffle in counts.T], axis=0)
        )

    def fractions(self, ranking: str) -> Numbers:
        """Share of a text's items erased at the flip, of flippable texts; infinite where it never comes."""
        counts = self.counts(ranking)[self.flippable]
        counts = counts if counts.ndim == 1 else counts[:, 0]  # as in the paper: of one shuffle
        size = self.size[self.flippable]
        return np.asarray(np.where(counts > 0, counts / size, np.inf))

    def removed(self, ranking: str) -> Numbers:
        """Attention on what is erased at the flip, of the texts that this ranking flips."""
        if ranking == "random":
            lists = self.table["mass_random"].to_pylist()
            masses = np.array(
                [np.nan if shuffles is None else shuffles[0] for shuffles in lists], dtype=float
            )
        else:
            masses = self.column(f"mass_{ranking}")
        return np.asarray(masses[np.isfinite(masses)])


def of_model(trials: Sequence[Trial], model: str) -> list[Trial]:
    """Return the trials of a model, one per seed."""
    return [trial for trial in trials if trial.model == model]


def quartiles(values: Numbers) -> tuple[float, float, float]:
    """Return the quartiles; infinite values count as the largest. NaN of no value."""
    if not len(values):
        return np.nan, np.nan, np.nan
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75], method="higher")
    return float(low), float(middle), float(high)
