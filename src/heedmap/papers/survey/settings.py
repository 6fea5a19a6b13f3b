"""Everything that the answers to the survey's open questions depend on, as in its settings.toml."""

from typing import Annotated, Literal

from pydantic import Field

from heedmap.settings.base import Positive, Settings
from heedmap.settings.data import DataSettings

Encoder = Literal["lstm", "cnn", "average", "gru"]
Normaliser = Literal["softmax", "entmax15", "sparsemax"]
Names = Annotated[tuple[str, ...], Field(min_length=1)]
Size = Annotated[int, Field(ge=4)]
SEQUENCES = ("copy", "dictionary")


class SurveySettings(Settings):
    """Which models are trained on which data; all numbers are ours.

    A model of the first size and a softmax is trained `seeds` times more, and as often with uniform weights.
    `names` are what the data sets are called, `pairs` is a hash of sentences in two languages.
    """

    version: Literal[1] = 1
    names: Names
    fingerprints: Names
    data: tuple[DataSettings, ...]
    pairs: str = ""
    encoders: Annotated[tuple[Encoder, ...], Field(min_length=1)] = ("lstm", "cnn", "average")
    normalisers: Annotated[tuple[Normaliser, ...], Field(min_length=1)] = ("softmax", "sparsemax")
    sizes: Annotated[tuple[Size, ...], Field(min_length=1)] = (16, 64)
    embedding_size: Size = 50
    seeds: Annotated[int, Field(ge=2, le=100)] = 3
    epochs: Positive | None = None
    adversary_texts: Positive = 30
    train_pairs: Positive = 1500
    pair_epochs: Positive = 15
    seed: Annotated[int, Field(ge=0)] = 0
