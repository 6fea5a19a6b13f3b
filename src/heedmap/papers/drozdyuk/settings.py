"""Everything a reproduction of Drozdyuk et al. depends on, as in its settings.toml."""

from typing import Annotated, Literal

from pydantic import Field

from heedmap.settings.base import Positive, Settings
from heedmap.settings.data import DataSettings

ActivationName = Literal["softmax", "entmax15", "sparsemax"]
Rate = Annotated[float, Field(gt=0)]

TransformerName = Literal["small", "larger"]
DatasetName = Literal["imdb", "sst"]
# What is read with the larger transformer, unless an option says otherwise; it is made for IMDB, cut to 128
# words and two marks.
LARGER_DATA = {"max_length": 130, "train_texts": 5000, "test_texts": 1000}


class DrozdyukSettings(Settings):
    """The paper gives the learning rate, the adversary's hidden size and its loss; the rest is ours.

    `seeds` is their number: 0, 1, ... Each draws the initial weights, the order of batches, the dropout, the
    adversaries and the shuffles; the texts are the same for all. `alpha` weighs the loss: α · CE − (1 − α) ·
    distance, the distance clipped at `radius` because it is unbounded. `layers`, `size` and `feed_forward` are
    those of the small transformer. The larger one is the paper's future work, "a larger model on more data", of
    which it gives no number: it has twice of each. `dataset` says which texts like the paper's these are: it
    does not name its own, two classes like IMDB's. Published numbers stand beside no others.
    """

    version: Literal[1] = 1
    fingerprint: str
    data: DataSettings
    dataset: DatasetName | None = None
    model: Annotated[str, Field(min_length=1)] | None = None
    transformers: tuple[TransformerName, ...] = ("small",)
    activations: tuple[ActivationName, ...] = ("softmax", "entmax15", "sparsemax")
    seeds: Positive = 3
    train_texts: Positive | None = None
    test_texts: Positive | None = None
    per_layer: bool = False
    pooling: Literal["mean", "first"] = "mean"
    words: Positive = 20_000
    min_df: Positive = 1
    max_length: Annotated[int, Field(ge=3)] = 256
    size: Annotated[int, Field(ge=4)] = 128
    layers: Positive = 2
    heads: Positive = 4
    feed_forward: Positive = 512
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1
    epochs: Positive = 20
    patience: Positive = 3
    batch_size: Positive = 64
    learning_rate: Rate = 1e-4
    adversary_hidden: Positive = 256
    adversary_epochs: Positive = 5
    adversary_learning_rate: Rate = 1e-3
    alpha: Annotated[float, Field(gt=0, le=1)] = 0.5
    radius: Rate = 2.0

    def of_transformer(self, name: str) -> "DrozdyukSettings":
        """Return the settings of one transformer: the larger one has twice the layers and the widths."""
        if name != "larger":
            return self
        doubled = {field: 2 * getattr(self, field) for field in ("layers", "size", "feed_forward")}
        return self.model_copy(update=doubled)
