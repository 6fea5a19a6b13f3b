"""How a model is trained, and how a pretrained transformer is fine-tuned."""

from typing import Annotated, Literal

from pydantic import Field

from heedmap.settings.base import Positive, Seed, Settings, option


class TrainSettings(Settings):
    """How a model is trained. `first_epoch`: whether it may be the best one (not in the released code).

    `vectors_hash` is the hash of the file's bytes. `amsgrad` is of Adam.
    `selection` is the dev score by which the best epoch is chosen; ROC AUC is that of two classes.
    """

    seed: Seed = option("Seed of the weights and of the order of the texts.", 0)
    epochs: Positive = option(
        "Passes over the training texts; a model of our own stops at a perfect dev score.",
        8,
        shown="8; pairs and bags 25; fine-tuning 3",
    )
    batch_size: Positive = option("Texts per step.", 32, shown="32; pairs 100")
    learning_rate: Annotated[float, Field(gt=0)] = option(
        "Adam learning rate.", 1e-3, shown="0.001; fine-tuning 0.00003"
    )
    weight_decay: Annotated[float, Field(ge=0)] = option(
        "L2 penalty on all parameters except the attention's.",
        1e-5,
        shown="0.00001; fine-tuning 0.01",
    )
    min_df: Positive = option("Minimum document frequency of a word.", 2)
    vectors: str | None = option(
        "File of word vectors: a line `word v1 v2 ...` per word, .gz too.", None
    )
    vectors_hash: str | None = None
    first_epoch: bool = True
    amsgrad: bool = True
    selection: Literal["roc_auc", "accuracy"] = "roc_auc"
    record_dynamics: bool = option(
        "Record attention, relevance and influence while training.", False
    )


class FineTuneSettings(Settings):
    """How a pretrained transformer is fine-tuned: AdamW with warm-up and linear decay."""

    base: Annotated[str, Field(min_length=1)]
    seed: Seed = option("Seed of the weights and of the order of the texts.", 0)
    epochs: Positive = option("Passes over the training texts.", 3)
    batch_size: Positive = option("Texts per step.", 32)
    learning_rate: Annotated[float, Field(gt=0)] = option("AdamW learning rate.", 3e-5)
    weight_decay: Annotated[float, Field(ge=0)] = option("AdamW weight decay.", 0.01)
    max_positions: Positive = option(
        "Maximum sub-words of a text in training; longer texts are cut.", 128
    )
