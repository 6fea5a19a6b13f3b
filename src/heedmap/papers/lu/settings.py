"""Everything a reproduction of Lu et al. depends on, and its two budgets."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from heedmap.papers.lu.calibration import Fusion
from heedmap.settings.base import Positive, Settings, Size

FUSIONS: tuple[Fusion, ...] = ("none", "fixed", "annealed", "gated")
Share = Annotated[float, Field(ge=0, lt=1)]
# What is not named is as in the released code's example.
QUICK: dict[str, Any] = {
    "vocabulary": 1500,
    "size": 64,
    "layers": 3,
    "heads": 4,
    "feed_forward": 128,
    "dropout": 0.0,
    "learning_rate": 3e-3,
    "warm_up": 200,
    "batch_tokens": 512,
    "updates": 1200,
    "train_pairs": 6000,
    "bleu_pairs": 200,
    "aligned_pairs": 300,
    "seeds": 3,
}


class LuSettings(Settings):
    """The defaults are the example of the released code, whose model is fairseq's base Transformer.

    `seeds` is their number: 0, 1, ... Models of one seed have the same first weights and batches, whatever
    their fusion. `gold` is the fingerprint of sentences whose words people linked.
    """

    version: Literal[1] = 1
    fingerprint: str
    source: str
    target: str
    gold: str = ""
    fusions: tuple[Fusion, ...] = FUSIONS
    renormalise: bool = False
    penalty: Annotated[float, Field(ge=0)] = 0.03
    vocabulary: Annotated[int, Field(ge=20, le=32_767)] = 8000
    size: Annotated[Size, Field(ge=2, multiple_of=2)] = 512
    layers: Annotated[int, Field(ge=1, le=24)] = 6
    heads: Positive = 8
    feed_forward: Size = 2048
    dropout: Share = 0.3
    label_smoothing: Share = 0.1
    learning_rate: Annotated[float, Field(gt=0)] = 5e-4
    warm_up: Positive = 4000
    batch_tokens: Positive = 8192
    updates: Positive = 150_000
    train_pairs: Positive | None = None
    seeds: Annotated[int, Field(ge=1, le=100)] = 3
    beams: Annotated[int, Field(ge=1, le=100)] = 4
    length_penalty: Annotated[float, Field(ge=0)] = 0.6
    bleu_pairs: Positive = 1000
    aligned_pairs: Positive = 1000

    @model_validator(mode="after")
    def _heads_fit(self) -> "LuSettings":
        if self.size % self.heads:
            raise ValueError(f"size {self.size}: expected a multiple of the {self.heads} heads")
        return self
