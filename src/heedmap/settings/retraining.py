"""Which further models are trained for a run, and what a guided one reads with."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from heedmap.settings.base import Positive, Settings, option
from heedmap.settings.models import ModelSettings


def _numbers(value: object) -> object:
    parts = [part for part in value.split(",") if part.strip()] if isinstance(value, str) else value
    try:
        numbers = tuple(float(part) for part in parts)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        numbers = ()
    if not numbers or not all(0 <= number < float("inf") for number in numbers):
        raise PydanticCustomError("numbers", "expected numbers from 0, with commas: 0,0.1,1")
    return numbers


Strengths = Annotated[tuple[float, ...], BeforeValidator(_numbers)]  # of penalties


class RetrainSettings(Settings):
    """Which further models are trained, to be compared with the run's.

    `guided` is the encoder of the model that is guided by others' weights. `lambdas` are of the trained
    adversary, `penalties` of the deception. `forbidden` are the impermissible words, or a file of them, one
    per line, or `marked`: the tokens that the data mark.
    """

    seeds: Annotated[int, Field(ge=2, le=100)] = option("Trainings of each kind; at least two.", 5)
    lambdas: Strengths = option(
        "Strengths of the trained adversary's penalty, besides 0.",
        (0.0003, 0.001, 0.003, 0.01),
        shown="0.0003,0.001,0.003,0.01",
    )
    adversary_epochs: Positive = option("Maximum epochs of the trained adversary.", 30)
    patience: Positive = option(
        "Stop the adversary after this many epochs without a better one.", 10
    )
    forbidden: str | None = option(
        "Impermissible words: he,she,..., a file of them, or marked for the words that the data mark.",
        None,
    )
    penalties: Strengths = option(
        "Strengths of the penalty on attention to impermissible words, besides 0.",
        (0.1, 1.0),
        shown="0.1,1",
    )
    heads: Literal["mean", "max", "both"] = option(
        "Penalise a transformer's mean over the heads, or the head that shows most.", "mean"
    )
    rule: Literal["paper", "code"] = option(
        "How the deceptive checkpoint is chosen: least attention with accuracy within 2 %, or most accurate.",
        "paper",
    )


GuideWeights = Literal["attention", "gradient", "leave_one_out", "read_out"]
"""A guide's own weights, or its importances scaled to sum to 1."""


class GuideSettings(Settings):
    """What a guided model reads a text with: weights of another model, whose settings are `model`."""

    weights: GuideWeights
    model: ModelSettings

    @property
    def description(self) -> str:
        """Say whose weights the model reads with."""
        name = "map" if self.weights == "attention" else self.weights.replace("_", "-")
        return f"guided by the {name} of another model ({self.model.encoder}, {self.model.score})"
