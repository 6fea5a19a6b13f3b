"""What is followed of a text's answer when the text is read again, and what a guess has of it.

Of classes it is the probability of the answer, and a guess has 1 / C of it. A number is not likelier than
another one. Its guess is the mean m of all outputs, as in R², and what is followed is the distance from
there: how far a reading z is on the number's side of m, in standard deviations of all outputs. It is the whole
distance |f − m| where the number f stays, 0 where the reading is a guess, and less on the other side. It is
cut at the number's own distance on either side: a reading that goes farther, as with fewer words it often
does, has kept all of it, and texts near the mean do not outweigh those that are far from it.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import pyarrow as pa
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from heedmap.experiments.context import AuditContext
from heedmap.experiments.output_spread import stored_spread
from heedmap.experiments.text_tables import answer_probabilities, outputs_of_texts

SAME = 1e-6  # probabilities that differ by no more are equal
Column = NDArray[np.float64]


class FollowedAnswers(ABC):
    """The answers of all texts, by row.

    Attributes:
        whole: what each answer has of itself; its lead is what this is above `guessing`.
        guessing: what a guess has of it.
        towards: 1, or −1 where evidence for the answer is what lowers the output.
        described: further columns of the table `highlights`.
    """

    whole: Column
    guessing: Column
    towards: Column
    described: dict[str, Column]

    @abstractmethod
    def read(self, logits: Float[Tensor, "N C"]) -> Float[np.ndarray, "N O"]:
        """Return readings from the model's logits."""

    @abstractmethod
    def strength(self, readings: Float[np.ndarray, "N O"], row: int) -> Float[np.ndarray, " N"]:
        """Return what readings of one text have of its answer."""

    @abstractmethod
    def is_same(self, readings: Float[np.ndarray, "N O"], row: int) -> NDArray[np.bool_]:
        """Return whether readings of one text give its answer rather than a guess or another one."""


class _Classes(FollowedAnswers):
    def __init__(self, instances: pa.Table, classes: int) -> None:
        self.predicted = instances["predicted"].to_numpy()
        self.whole = answer_probabilities(instances)
        self.guessing = np.full(len(self.whole), 1 / classes)
        if "candidates" in instances.column_names:
            self.guessing = 1 / instances["candidates"].to_numpy()
        self.towards = np.ones(len(self.whole))
        self.described = {}

    def read(self, logits: Float[Tensor, "N C"]) -> Float[np.ndarray, "N O"]:
        probabilities: NDArray[Any] = logits.softmax(-1).numpy()
        return probabilities

    def strength(self, readings: Float[np.ndarray, "N O"], row: int) -> Float[np.ndarray, " N"]:
        return readings[:, self.predicted[row]]

    def is_same(self, readings: Float[np.ndarray, "N O"], row: int) -> NDArray[np.bool_]:
        is_likeliest: NDArray[np.bool_] = self.strength(readings, row) >= readings.max(1) - SAME
        return is_likeliest


class _Numbers(FollowedAnswers):
    def __init__(self, instances: pa.Table) -> None:
        outputs = outputs_of_texts(instances)
        spread = stored_spread(instances, outputs)
        self.mean, self.deviation = spread.mean, spread.deviation
        above = (outputs - self.mean) / self.deviation
        self.whole, self.guessing = np.abs(above), np.zeros(len(above))
        self.towards = np.where(above < 0, -1.0, 1.0)
        self.described = {"above": above}

    def read(self, logits: Float[Tensor, "N 1"]) -> Float[np.ndarray, "N O"]:
        outputs: NDArray[Any] = logits.double().numpy()
        return outputs

    def strength(self, readings: Float[np.ndarray, "N O"], row: int) -> Float[np.ndarray, " N"]:
        distance = self.towards[row] * (readings[:, 0] - self.mean) / self.deviation
        strength: Column = np.clip(distance, -self.whole[row], self.whole[row])
        return strength

    def is_same(self, readings: Float[np.ndarray, "N O"], row: int) -> NDArray[np.bool_]:
        return self.strength(readings, row) > 0


def followed_answers(context: AuditContext) -> FollowedAnswers:
    """Return the answers of the texts of an audit."""
    instances, classes = context.table("instances"), context.model.classes
    return _Classes(instances, len(classes)) if len(classes) > 1 else _Numbers(instances)
