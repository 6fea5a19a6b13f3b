"""On which texts do two maps differ most? The total variation distance of a text's weights in two runs.

It is ½ Σ |a − b| of the weights, each map divided by its sum: the share of the weight that lies on other words.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from heedmap.comparisons.same_texts import TextIds
from heedmap.experiments.pooling import TEXT

ALL_PAIRS = 6  # runs; of more, each is compared with the first alone
OTHER_TOKENS = "other tokens"
ONE_TOKEN = "one token, which has all the weight"
UNDEFINED = "a weight is undefined or negative, or all are 0"

IN_WINDOWS = "read in several windows, each with a map of its own"

Weights = NDArray[np.float64]
TextMap = tuple[Sequence[str], Weights]  # tokens, and a weight of each
Maps = Mapping[int, TextMap | None]
"""A run's maps by text id; None of texts that have no single map."""


@dataclass(frozen=True)
class MapDifferences:
    """The texts that two runs share, with how far their maps are apart.

    `distances` are by text id, the largest first; `skipped` counts the texts that cannot be compared, by
    reason.
    """

    first: int
    second: int
    distances: Mapping[int, float]
    skipped: Mapping[str, int]

    @property
    def mean(self) -> float:
        """The mean distance; NaN without a text."""
        return float(np.mean([*self.distances.values()])) if self.distances else math.nan


def map_pairs(count: int) -> list[tuple[int, int]]:
    """Return the pairs of runs whose maps are compared: all, or of many runs each with the first."""
    if count <= ALL_PAIRS:
        return list(combinations(range(count), 2))
    return [(0, run) for run in range(1, count)]


def map_differences(maps: Sequence[Maps], pairs: Sequence[tuple[int, int]]) -> list[MapDifferences]:
    """Compare the maps of the texts that two runs share."""
    return [_compare(maps, *pair) for pair in pairs]


def _compare(maps: Sequence[Maps], run: int, other_run: int) -> MapDifferences:
    distances: dict[int, float] = {}
    skipped: Counter[str] = Counter()
    for text in sorted(maps[run].keys() & maps[other_run].keys()):
        text_map, other_map = maps[run][text], maps[other_run][text]
        if text_map is None or other_map is None:
            skipped[IN_WINDOWS] += 1
            continue
        (tokens, weights), (other_tokens, other_weights) = text_map, other_map
        if [*map(str.casefold, tokens)] != [*map(str.casefold, other_tokens)]:
            skipped[OTHER_TOKENS] += 1
        elif len(tokens) < 2:
            skipped[ONE_TOKEN] += 1
        elif not math.isfinite(distance := weight_distance(weights, other_weights)):
            skipped[UNDEFINED] += 1
        else:
            distances[text] = distance
    ordered = sorted(distances.items(), key=lambda item: (-item[1], item[0]))
    return MapDifferences(run, other_run, dict(ordered), dict(skipped))


def weight_distance(weights: Weights, other_weights: Weights) -> float:
    """Return ½ Σ |a − b| of two maps, each divided by its sum; NaN where a map is no distribution.

    >>> weight_distance(np.array([0.5, 0.5]), np.array([3.0, 1.0]))
    0.25
    """
    for values in (weights, other_weights):
        if not np.isfinite(values).all() or (values < 0).any() or not values.sum() > 0:
            return math.nan
    return float(np.abs(weights / weights.sum() - other_weights / other_weights.sum()).sum() / 2)


def maps_of(instances: pa.Table, texts: TextIds) -> Maps:
    """Return tokens and weights of each text by its id; None of texts that are read in several windows.

    `texts`: of the same run, one per text; `instances` has one row per window.
    """
    count = instances.num_rows
    numbers = instances[TEXT].to_numpy() if TEXT in instances.column_names else np.arange(count)
    windows = np.bincount(numbers, minlength=len(texts.ids))
    tokens, attention = instances["tokens"].to_pylist(), instances["attention"].to_pylist()
    return {
        int(texts.ids[number]): None
        if windows[number] > 1
        else (
            words,
            np.array([math.nan if w is None else w for w in weights], dtype=np.float64),
        )
        for number, words, weights in zip(numbers, tokens, attention, strict=True)
    }
