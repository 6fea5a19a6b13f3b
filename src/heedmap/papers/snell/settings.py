"""What each part of a reproduction of Snell et al. depends on, and what its quick budget is."""

from typing import Annotated, Any, Literal

from pydantic import Field

from heedmap.data.sequences import Kind
from heedmap.papers.snell.copy_task import EVERY, RELEASED
from heedmap.settings.base import Positive, Settings, Size
from heedmap.settings.data import DataSettings

KINDS: tuple[Kind, ...] = ("permutations", "subsets", "repeats")
# The released code's switches; the first is the model itself.
VARIANTS: dict[str, dict[str, Any]] = {
    "as published": {},
    "bidirectional": {"bidirectional": True},
    "uniform attention": {"attention": "uniform"},
    "no attention": {"attention": "none"},
}
_SMALL = {"size": 128, "batch_size": 64, "learning_rate": 2e-3}
# By part; what is not named is as published.
QUICK: dict[str, dict[str, Any]] = {
    "copying": {**_SMALL, "steps": 400, "seeds": 8, "variant_seeds": 2},
    "classification": {
        "hidden_size": 64,
        "embedding_size": 100,
        "steps": 600,
        "seeds": 3,
        "learning_rate": 2e-3,
    },
    "translation": {
        "vocabulary": 2000,
        "size": 128,
        "layers": 1,
        "dropout": 0.2,
        "batch_size": 32,
        "learning_rate": 2e-3,
        "epochs": 8,
        "seeds": 3,
        "train_pairs": 15000,
        "bleu_pairs": 200,
        "proxy_epochs": 3,
    },
    "multihead": {**_SMALL, "heads": 4, "orders": 2, "wanted": 4, "combinations": 6, "most": 16},
}
# About a sixth of the quick budget, to try a part out.
SMALL: dict[str, dict[str, Any]] = {
    "translation": {
        **QUICK["translation"],
        "epochs": 5,
        "seeds": 2,
        "train_pairs": 6000,
        "bleu_pairs": 100,
        "proxy_epochs": 2,
    },
}
BUDGETS: dict[str, dict[str, dict[str, Any]]] = {"small": SMALL, "quick": QUICK, "paper": {}}


class CopyingSettings(Settings):
    """What a reproduction of the copying experiment depends on; the defaults are the released code's.

    Sequences have `length` symbols, of as many or, for subsets, of `symbols`. A training that has not learned
    by the released code's last step goes on to `steps`, where it is censored; variants of the model end with
    the released code. The number of `seeds` is our choice: theirs could not be read.
    """

    part: Literal["copying"] = "copying"
    length: Size = 40
    symbols: Size = 60
    size: Size = 256
    batch_size: Positive = 128
    learning_rate: Annotated[float, Field(gt=0)] = 1e-3
    steps: Annotated[int, Field(ge=RELEASED, le=1_000_000, multiple_of=EVERY)] = 1000
    seeds: Annotated[int, Field(ge=2, le=1000)] = 20
    variant_seeds: Annotated[int, Field(ge=0, le=1000)] = 5


class MultiheadSettings(Settings):
    """What a reproduction of the multi-head experiment depends on; the defaults are the released code's.

    Single heads are tried on `orders` draws of sequences each, until `wanted` always learn and as many always
    fail, or `most` were tried. Then `combinations` of `heads` heads of each kind are trained.
    """

    part: Literal["multihead"] = "multihead"
    length: Size = 40
    size: Size = 256
    batch_size: Positive = 128
    learning_rate: Annotated[float, Field(gt=0)] = 1e-3
    heads: Annotated[int, Field(ge=2, le=64)] = 8
    orders: Annotated[int, Field(ge=1, le=100)] = 3
    wanted: Annotated[int, Field(ge=2, le=1000)] = 20
    most: Annotated[int, Field(ge=2, le=10_000)] = 200
    combinations: Annotated[int, Field(ge=2, le=1000)] = 50


class ClassificationSettings(Settings):
    """What a reproduction on classifiers depends on; the defaults are the released code's sizes.

    `seeds` models are trained with learned attention and as many with uniform attention, where the paper has
    6 and 1. `hidden_size` is per direction; a training has whole epochs, together about `steps`.
    """

    part: Literal["classification"] = "classification"
    fingerprint: str
    data: DataSettings
    classes: tuple[str, ...]
    hidden_size: Annotated[Size, Field(ge=4)] = 256
    embedding_size: Size = 300
    batch_size: Positive = 32
    learning_rate: Annotated[float, Field(gt=0)] = 1e-3
    steps: Positive = 4000
    seeds: Annotated[int, Field(ge=2, le=100)] = 6
    proxy_rate: Annotated[float, Field(gt=0)] = 1.5e-4
    proxy_epochs: Positive = 60


class TranslationSettings(Settings):
    """What a reproduction on translators depends on; the defaults are the released code's for Multi30k.

    `seeds` models are trained with learned attention and as many with uniform attention, where the paper has
    2 and 1. `gold` is the fingerprint of the sentences whose words people linked. `dataset` says which of the
    paper's these sentences are: published numbers stand beside no others.
    """

    part: Literal["translation"] = "translation"
    fingerprint: str
    source: str
    target: str
    dataset: Literal["multi30k"] | None = None
    gold: str = ""
    vocabulary: Annotated[int, Field(ge=50, le=32_767)] = 8000
    size: Size = 256
    layers: Annotated[int, Field(ge=1, le=8)] = 2
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.5
    batch_size: Positive = 16
    learning_rate: Annotated[float, Field(gt=0)] = 1e-3
    epochs: Positive = 20
    train_pairs: Positive | None = None
    seeds: Annotated[int, Field(ge=2, le=100)] = 2
    beams: Annotated[int, Field(ge=1, le=100)] = 5
    bleu_pairs: Positive = 1000
    proxy_epochs: Positive = 10
