"""Everything a reproduction of Brunner et al. depends on, as in its settings.toml."""

from typing import Annotated, Literal

from pydantic import Field

from heedmap.settings.base import Positive, Settings
from heedmap.settings.data import DataSettings

Rate = Annotated[float, Field(gt=0)]


class BrunnerSettings(Settings):
    """All numbers are ours: the paper's are not at hand.

    `weights` is a hash of the model's parameters. `seed` draws the samples of texts, the random weights of the
    control, the maps' first weights, the order of batches, and the directions of the derivatives.
    """

    version: Literal[1] = 1
    fingerprint: str
    data: DataSettings
    model: Annotated[str, Field(min_length=1)]
    weights: str
    train_texts: Positive = 1000
    test_texts: Positive = 200
    attributed_texts: Positive = 40
    max_length: Annotated[int, Field(ge=3)] = 128
    directions: Positive = 16
    epochs: Positive = 10
    batch_size: Positive = 16
    learning_rate: Rate = 1e-3
    seed: Annotated[int, Field(ge=0)] = 0
