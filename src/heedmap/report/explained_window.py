"""The numbers of one text, or of one window of a long text, that an explanation shows."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heedmap.experiments.methods.flip_sets import FlipSet

Floats = NDArray[np.float64]
MOST_ATTENDED = 3
SAME = 1e-6  # relative difference of two weights below which they count as equal: rounding


@dataclass(frozen=True)
class Adversary:
    """The most different `weights` found that leave the answer within ε.

    `jsd` is their distance from the model's own, `jsd_upper` a bound that no weights exceed; if `exact`, both
    are the global optimum.
    """

    weights: Floats
    jsd: float
    jsd_upper: float
    exact: bool


@dataclass(frozen=True)
class Picture:
    """A small picture as a data URI, and the column and row of each of its patches."""

    uri: str
    columns: list[int]
    rows: list[int]


@dataclass(frozen=True)
class Window:
    """The numbers of a text, or of one window of a text that is longer than the model reads.

    Arrays have one value per token (`probabilities`: per class), as in the audit's tables. `signed` is what the
    answer loses without the token. `read_out` is what the token's state says for the answer,
    `read_out_attention` the same times its weight (the gradient of the log-odds by the weight).
    `importance_mass` is the share of importance by leave-one-out under the map, `largest_mass` that of the same
    weights in the best order.
    `adversary` is None where it is not searched for. `flip` is the smallest set of tokens that flips the answer
    when their weights are erased, None if there is none; `smallest` says whether that is exact or the best of
    several rankings. `flip_along_map` is the number of tokens it takes in the map's order, 0 if it never flips.
    `picture` is what the tokens are patches of, in their columns and rows; None of a text.
    """

    tokens: list[str]
    unknown: NDArray[np.bool_]
    probabilities: Floats
    attention: Floats
    gradient: Floats
    leave_one_out: Floats
    signed: Floats
    read_out: Floats
    read_out_attention: Floats
    importance_mass: float
    largest_mass: float
    adversary: Adversary | None
    flip: FlipSet | None
    smallest: bool
    flip_along_map: int
    picture: Picture | None = None

    @property
    def is_number(self) -> bool:
        """Return whether the model gives a number: `probabilities` hold it alone, and nothing flips."""
        return len(self.probabilities) == 1

    def most_attended(self) -> list[int]:
        """Return the positions of the most attended tokens, in descending order: up to three, without ties."""
        order = np.argsort(-self.attention, kind="stable")
        weights = self.attention[order]
        for count in range(min(MOST_ATTENDED, len(order) - 1), 0, -1):
            if weights[count - 1] - weights[count] > SAME * weights[count - 1]:
                return [int(position) for position in order[:count]]
        return []
