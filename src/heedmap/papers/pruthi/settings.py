"""What a reproduction of Pruthi et al. depends on, their models and their tasks."""

from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from heedmap.data.biographies import GENDERED
from heedmap.data.marks import BY_DATA
from heedmap.papers.pruthi.published import SEEDS
from heedmap.settings.base import Positive, Settings, Size
from heedmap.settings.data import DataSettings
from heedmap.settings.models import ModelSettings
from heedmap.settings.retraining import Strengths

_MODEL: dict[str, Any] = {
    "score": "linear", "embedding_size": 128, "hidden_size": 64, "marks": False, "sigmoid": False,
}  # fmt: skip
MODELS = {
    "embedding": ModelSettings.of(encoder="none", **_MODEL),
    "bilstm": ModelSettings.of(encoder="lstm", **_MODEL),
}
"""As released: a linear score, an output per class, no marks at the ends of a text."""
TRAINING: dict[str, Any] = {
    "learning_rate": 1e-3, "weight_decay": 0.0, "amsgrad": False, "min_df": 1, "selection": "accuracy",
}  # fmt: skip
"""Adam as it is; every training word has a vector; the most accurate epoch on dev is kept."""
BERT = {"epochs": 4, "batch_size": 16, "learning_rate": 2e-5, "max_positions": 256}
PAPERS_BERT = "google-bert/bert-base-uncased"


class Task(NamedTuple):
    """Where the texts come from unless --data says, the impermissible words, and how it differs from theirs."""

    source: str | None
    forbidden: str
    unlike: str


TASKS: dict[str, Task] = {
    "occupation": Task(
        "biographies-occupation", ",".join(GENDERED), "generated biographies instead of people's"
    ),
    "pronoun": Task("biographies-gender", BY_DATA, "generated biographies instead of Wikipedia's"),
    "sst-filler": Task(
        None, BY_DATA, "each sentence is followed by a generated one instead of one of Wikipedia"
    ),
}


class PruthiSettings(Settings):
    """One task; `task` is empty for a user's own data. `base` is the checkpoint that "bert" starts from.

    `epochs` and `batch_size` are of the other models: the paper's batches are of one text. `test_instances`
    bounds the test texts that are audited; None for those of any audit.
    """

    fingerprint: str
    data: DataSettings
    task: Literal["", "occupation", "pronoun", "sst-filler"] = ""
    forbidden: str
    models: tuple[Literal["embedding", "bilstm", "bert"], ...] = ("embedding", "bilstm")
    base: str | None = None
    seeds: Annotated[int, Field(ge=2, le=100)] = SEEDS
    epochs: Positive = 15
    batch_size: Positive = 8
    bert_epochs: Positive = 4
    penalties: Strengths = (0.1, 1.0)
    rule: Literal["paper", "code"] = "paper"
    test_instances: Positive | None = None


class SequenceSettings(Settings):
    """One task of sequences; the defaults are the released code's, `learning_rate` that of Adam.

    Copies and the like have 1 to `longest` of `symbols`; `held_out` pairs are dev and as many test. These and
    the number of `pairs` are our choice: the authors' sequences are not released.
    `penalties` beside 0, uniform attention and none. `dataset` says which of the paper's the sentences of a
    translation are: published numbers stand beside no others.
    """

    task: Literal["copy", "reverse", "bigram-flip", "translation"]
    fingerprint: str = ""
    source: str = ""
    target: str = ""
    dataset: Literal["multi30k"] | None = None
    symbols: Annotated[int, Field(ge=2, le=100_000)] = 1000
    longest: Annotated[int, Field(ge=1, le=200)] = 32
    pairs: Positive = 100_000
    held_out: Positive = 1000
    size: Size = 512
    embedding: Size = 256
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.5
    batch_size: Positive = 128
    learning_rate: Annotated[float, Field(gt=0)] = 1e-3
    epochs: Positive = 30
    seeds: Annotated[int, Field(ge=2, le=100)] = SEEDS
    penalties: Strengths = (0.1, 1.0)


SEQUENCE_TASKS = ("copy", "reverse", "bigram-flip", "translation")
_SMALL: dict[str, Any] = {
    "size": 64, "embedding": 64, "dropout": 0.1, "batch_size": 32, "learning_rate": 3e-3, "seeds": 3,
}  # fmt: skip
QUICK: dict[str, dict[str, Any]] = {
    "sequences": {
        **_SMALL, "symbols": 30, "longest": 8, "pairs": 9600, "held_out": 500, "epochs": 10,
    },
    "translation": {**_SMALL, "size": 128, "embedding": 128, "pairs": 15_000, "epochs": 5},
}  # fmt: skip
