"""What a reproduction of Vashishth et al. depends on, and its tasks."""

from typing import Annotated, Literal

from pydantic import Field

from heedmap.settings.base import Positive, Settings, Size

# By what the attention chooses from, and given what.
TASKS = {
    "single": "single sequence",
    "pair": "pair of sequences",
    "generation": "generation",
}
ATTENTIONS = ("learned", "uniform", "permuted")


class VashishthSettings(Settings):
    """The sizes are ours: the paper's could not be read. A task without a fingerprint is left out.

    Classifiers are LSTMs with additive attention, `hidden_size` per direction; the translator is an LSTM of one
    layer. `draws` is how often weights are permuted at test.
    """

    version: Literal[1] = 1
    single: str = ""
    pair: str = ""
    generation: str = ""
    seeds: Annotated[int, Field(ge=1, le=100)] = 3
    train_texts: Positive | None = 6000
    test_texts: Positive | None = 1000
    epochs: Positive = 6
    hidden_size: Annotated[Size, Field(ge=4)] = 64
    embedding_size: Size = 100
    batch_size: Positive = 32
    learning_rate: Annotated[float, Field(gt=0)] = 1e-3
    vocabulary: Annotated[int, Field(ge=50, le=32_767)] = 2000
    translator_size: Size = 128
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.2
    draws: Positive = 5

    @property
    def tasks(self) -> list[str]:
        """The tasks that there are data for."""
        return [task for task in TASKS if getattr(self, task)]
