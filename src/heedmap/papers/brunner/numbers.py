"""Numbers over the test texts, with 95 % intervals, from the rows of single texts."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd

from heedmap.experiments.intervals import of_median, of_ratio
from heedmap.papers.kit.parts import Row

SHARE, SIGNED = (0.0, 1.0), (-1.0, 1.0)
# Of a head's row: the bounds of the interval of its mean.
HEAD_MEASURES = {
    "effective_share": SHARE, "special_raw": SHARE, "special_effective": SHARE, "special_control": SHARE,
    "tau_raw": SIGNED, "tau_effective": SIGNED,
}  # fmt: skip
MATRICES = ("contribution", "attention", "rollout", "uniform")


class Number(NamedTuple):
    """A mean, a share or a median over so many texts; low and high are NaN where there is no interval."""

    value: float
    low: float = math.nan
    high: float = math.nan
    texts: int = 0

    @property
    def interval(self) -> tuple[float, float]:
        """The two ends of the interval."""
        return self.low, self.high

    def per_cent(self) -> str:
        """Return `81.2 (80.1–82.3)`, times 100; the value alone without an interval."""
        return self.times(100, 1)

    def times(self, factor: float = 1.0, digits: int = 2) -> str:
        """Return value and interval, multiplied; a dash for no number."""
        if not math.isfinite(self.value):
            return "–"
        value, low, high = (f"{factor * x:z.{digits}f}".replace("-", "−") for x in self[:3])
        return f"{value} ({low}–{high})" if math.isfinite(self.low) else value


NO_NUMBER = Number(math.nan)


def mean(values: pd.Series, bounds: tuple[float, float]) -> Number:
    """Return the mean over texts that have a number."""
    defined = values.dropna().to_numpy(dtype=np.float64)
    return _share(defined.tobytes(), np.ones(len(defined)).tobytes(), bounds)


class Lookup(NamedTuple):
    """How tokens are recovered: after which map, by which distance, among which candidates."""

    map: str
    distance: str
    candidates: str


@dataclass(frozen=True)
class Numbers:
    """The rows of one model, trained or random; frames have one row per text in each group."""

    rows: Sequence[Row]

    def _part(self, name: str) -> pd.DataFrame:
        frame = pd.DataFrame([row for row in self.rows if row["part"] == name])
        return frame if frame.empty else frame.dropna(axis=1, how="all")

    @cached_property
    def tokens(self) -> Mapping[tuple[str, str, str, int], pd.DataFrame]:
        """Counts of recovered tokens by map, distance, candidates and layer."""
        frame = self._part("tokens")
        names = ["map", "distance", "candidates", "layer"]
        return {} if frame.empty else dict(iter(frame.set_index("text").groupby(names)))  # type: ignore[arg-type]

    @cached_property
    def contributions(self) -> Mapping[int, pd.DataFrame]:
        """Masses by layer."""
        frame = self._part("contributions")
        return {} if frame.empty else dict(iter(frame.set_index("text").groupby("layer")))  # type: ignore[arg-type]

    @cached_property
    def heads(self) -> Mapping[int, pd.DataFrame]:
        """Facts of heads by layer."""
        frame = self._part("heads")
        return {} if frame.empty else dict(iter(frame.groupby("layer")))  # type: ignore[arg-type]

    @property
    def layers(self) -> list[int]:
        """The layers of which tokens were recovered; 0 is what enters the first."""
        return sorted({layer for *_, layer in self.tokens})

    def recovered(self, lookup: Lookup, layer: int) -> Number:
        """Return the share of the tokens that are recovered."""
        frame = self.tokens.get((*lookup, layer))
        return NO_NUMBER if frame is None else _ratio(frame["right"], frame["n"])

    def chance(self, lookup: Lookup, layer: int) -> Number:
        """Return the share that the same lookups recover if the text's tokens change places."""
        frame = self.tokens.get((*lookup, layer))
        return NO_NUMBER if frame is None else _ratio(frame["chance"], frame["n"])

    def recovered_new(self, lookup: Lookup, layer: int) -> Number:
        """Return the share of the tokens that no training text has."""
        frame = self.tokens.get((*lookup, layer))
        if frame is None or not frame["new"].sum():
            return NO_NUMBER
        return _ratio(frame["new_right"], frame["new"])

    def difference(self, plus: tuple[Lookup, int], minus: tuple[Lookup, int]) -> Number:
        """Return how much larger a share of tokens one lookup recovers than another, paired by text."""
        more, less = (self.tokens.get((*lookup, layer)) for lookup, layer in (plus, minus))
        if more is None or less is None:
            return NO_NUMBER
        return _ratio(more["right"] - less["right"], more["n"], SIGNED)

    def mass(self, matrix: str, layer: int, place: int = 0) -> Number:
        """Return the mean mass on a range of distances, the first being the token itself."""
        frame = self.contributions.get(layer)
        if frame is None:
            return NO_NUMBER
        return mean(frame[matrix].map(lambda masses: masses[place]), SHARE)

    def median(self, layer: int) -> Number:
        """Return the median over texts of the median of the tokens' contributions to their own states."""
        frame = self.contributions.get(layer)
        if frame is None:
            return NO_NUMBER
        values = frame["median"].to_numpy(dtype=np.float64)
        return Number(float(np.median(values)), *of_median(values), len(values))

    def not_largest(self, layer: int) -> Number:
        """Return the share of the tokens to whose state another token contributes more."""
        frame = self.contributions.get(layer)
        return NO_NUMBER if frame is None else _ratio(frame["not_largest"], frame["n"])

    def of_heads(self, measure: str, layer: int, head: int | None = None) -> Number:
        """Return the mean of a measure: over heads with its interval, or of one head without."""
        frame = self.heads.get(layer)
        if frame is None or measure not in frame:
            return NO_NUMBER
        if head is not None:
            values = frame.loc[frame["head"] == head, measure].dropna()
            return Number(float(values.mean()), texts=len(values))
        return mean(frame.groupby("text")[measure].mean(), HEAD_MEASURES[measure])

    @property
    def all_heads(self) -> pd.DataFrame:
        """One row per text, layer and head."""
        return pd.concat(list(self.heads.values())) if self.heads else pd.DataFrame()


def _ratio(above: pd.Series, below: pd.Series, bounds: tuple[float, float] = SHARE) -> Number:
    """Return Σ above / Σ below over texts; texts without any token below are left out."""
    counted = below > 0
    numerator, denominator = (part[counted].to_numpy(dtype=np.float64) for part in (above, below))
    return _share(numerator.tobytes(), denominator.tobytes(), bounds)


@cache
def _share(above: bytes, below: bytes, bounds: tuple[float, float]) -> Number:
    """Return the same of float64 numbers: tables, claims, figures and files ask for it again and again."""
    numerator, denominator = (np.frombuffer(part) for part in (above, below))
    if not len(numerator):
        return NO_NUMBER
    value = float(numerator.sum() / denominator.sum())
    return Number(value, *of_ratio(numerator, denominator, bounds=bounds), len(numerator))
