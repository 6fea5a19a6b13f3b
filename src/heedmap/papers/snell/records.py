"""A recorded training as arrays, and what Snell et al. read off several of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from heedmap.experiments.methods.kendall import tau_against
from heedmap.measures import top_match

QUANTITIES = ("attention", "relevance", "influence")


@dataclass(frozen=True)
class Record:
    """What was recorded of a training after each of its S recorded steps, about N test texts.

    `right` (S, N) are answers, `dev` (S,) accuracies on the dev split.
    """

    steps: Int[np.ndarray, " S"]
    tokens: list[list[str]]
    labels: Int[np.ndarray, " N"]
    mask: Bool[Tensor, "N T"]
    values: dict[str, Float[Tensor, "S N T"]]
    right: Bool[np.ndarray, "S N"]
    dev: Float[np.ndarray, " S"]

    @cached_property
    def accuracy(self) -> Float[np.ndarray, " S"]:
        """Accuracy on the recorded test texts."""
        return np.asarray(self.right.mean(1), dtype=np.float64)

    @property
    def best(self) -> int:
        """The first checkpoint of the best accuracy on the test texts, which the paper chooses."""
        return int(self.accuracy.argmax())

    @property
    def best_on_dev(self) -> int:
        """The first checkpoint of the best accuracy on the dev split."""
        return int(self.dev.argmax())

    def at(self, step: float) -> int:
        """Return the last checkpoint up to a step: a training that has ended stays as it is."""
        return int(np.searchsorted(self.steps, step, side="right")) - 1


def record_of(recorded: pa.Table) -> Record:
    """Make the arrays of one training's record (see `heedmap.training.dynamics`)."""
    keys = [("step", "ascending"), ("row", "ascending")]
    test = recorded.filter(pc.equal(recorded["split"], "test")).sort_by(keys)
    dev = recorded.filter(pc.equal(recorded["split"], "dev")).sort_by(keys)
    steps = np.unique(test["step"].to_numpy()).astype(np.int64)
    tokens = test["tokens"].slice(0, len(test) // len(steps)).to_pylist()
    lengths = torch.tensor([len(text_tokens) for text_tokens in tokens])
    mask = torch.arange(int(lengths.max())) < lengths[:, None]
    values = {}
    for name in QUANTITIES:
        flat = test[name].combine_chunks().flatten().to_numpy(zero_copy_only=False)
        values[name] = torch.zeros(len(steps), *mask.shape)
        values[name][:, mask] = torch.tensor(flat, dtype=torch.float32).view(len(steps), -1)

    def right(part: pa.Table) -> NDArray[np.bool_]:
        is_right = part["predicted"].to_numpy() == part["label"].to_numpy()
        return np.asarray(is_right.reshape(len(steps), -1), dtype=np.bool_)

    labels = test["label"].to_numpy()[: len(tokens)].astype(np.int64)
    return Record(steps, tokens, labels, mask, values, right(test), right(dev).mean(1))


def padded(
    values: Sequence[Float[np.ndarray, " _"]], mask: Bool[Tensor, "N T"]
) -> Float[Tensor, "N T"]:
    """Return vectors as a matrix, 0 beyond their ends."""
    matrix = torch.zeros(mask.shape)
    matrix[mask] = torch.from_numpy(np.concatenate(values)).float()
    return matrix


class Agreement(NamedTuple):
    """A(u, v) and its chance, the standard error over texts, and Kendall's tau-b where it is defined."""

    match: float
    chance: float
    error: float
    tau: float


def agreement(
    chosen_map: Float[Tensor, "N T"], compared_map: Float[Tensor, "N T"], mask: Bool[Tensor, "N T"]
) -> Agreement:
    """Compare two maps text by text."""
    match, chance = top_match(chosen_map, compared_map, mask)
    defined = match[~match.isnan()]
    tau = tau_against(chosen_map.unsqueeze(1), compared_map.unsqueeze(1), mask).flatten()
    error = float(defined.std() / len(defined) ** 0.5) if len(defined) > 1 else np.nan
    return Agreement(
        float(match.nanmean()), float(chance.nanmean()), error, float(tau.nanmean())
    )  # fmt: skip


def matches(
    chosen_map: Float[Tensor, "N T"],
    compared_maps: Float[Tensor, "S N T"],
    mask: Bool[Tensor, "N T"],
) -> Float[np.ndarray, " S"]:
    """Return A(u, v) at every checkpoint of v."""
    agreements = [
        float(top_match(chosen_map, checkpoint_map, mask)[0].nanmean())
        for checkpoint_map in compared_maps
    ]
    return np.array(agreements, dtype=np.float64)


class Crossing(NamedTuple):
    """Where a curve first exceeds a level, and another curve there: at a checkpoint, and interpolated."""

    step: float
    value: float
    between: float
    value_between: float


def crossing(
    steps: Int[np.ndarray, " S"],
    curve: Float[np.ndarray, " S"],
    level: float,
    second_curve: Float[np.ndarray, " S"],
) -> Crossing:
    """Return the first checkpoint at which `curve` exceeds `level`, NaN if there is none.

    `between` is where the straight line from the checkpoint before it reaches the level. Curves need not be
    monotone: the first crossing counts, as in the paper.
    """
    above = np.flatnonzero(curve > level)
    if not len(above):
        return Crossing(np.nan, np.nan, np.nan, np.nan)
    index = int(above[0])
    step, value = float(steps[index]), float(second_curve[index])
    if index == 0:
        return Crossing(step, value, step, value)
    share = (level - curve[index - 1]) / (curve[index] - curve[index - 1])
    between = steps[index - 1] + share * (steps[index] - steps[index - 1])
    return Crossing(
        step,
        value,
        float(between),
        float(second_curve[index - 1] + share * (second_curve[index] - second_curve[index - 1])),
    )
