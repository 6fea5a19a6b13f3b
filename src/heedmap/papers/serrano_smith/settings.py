"""Everything a reproduction of Serrano & Smith depends on, and what the paper has for each data set."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field

from heedmap.settings.base import Positive, Settings
from heedmap.settings.data import DataSettings

ModelName = Literal["han-rnn", "han-cnn", "han-none", "flan-rnn", "flan-cnn", "flan-none"]
MODELS: tuple[ModelName, ...] = (
    "han-rnn",
    "han-cnn",
    "han-none",
    "flan-rnn",
    "flan-cnn",
    "flan-none",
)
ENCODERS = {"rnn": "gru", "cnn": "small-cnn", "none": "none"}
LONGEST = 60  # epochs
Share = Annotated[float, Field(ge=0, lt=1)]
Rate = Annotated[float, Field(gt=0)]


class SerranoSmithSettings(Settings):
    """Sizes, training and data. What the paper sets per data set is in `RECIPES`.

    `seeds` is their number: 0, 1, ... Each draws the initial weights, the order of batches, the dropout and the
    random items; texts and word vectors are the same for all. `epochs` and `patience` are those of models with
    an encoder; without one they learn for up to four times as many epochs, at most LONGEST unless that is
    fewer, with twice the patience. Dropout is
    on the words' embeddings, on the sentences' vectors (hierarchical models only) and on the logits.
    `most_sentences` and `most_words` (of a sentence) leave longer texts out of training and dev.
    """

    version: Literal[1] = 1
    fingerprint: str
    data: DataSettings
    models: tuple[ModelName, ...] = MODELS
    seeds: Positive = 3
    most_sentences: Positive = 50
    most_words: Positive = 350
    least_count: Positive = 5
    embedding_size: Positive = 200
    vector_epochs: Positive = 30
    hidden_size: Positive = 100
    epochs: Positive = 15
    patience: Positive = 5
    batch_size: Positive = 64
    learning_rate: Rate = 4e-4
    max_norm: Rate = 10.0
    word_dropout: Share = 0.444
    sentence_dropout: Share = 0.22
    output_dropout: Share = 0.246
    flat_output_dropout: Share = 0.346
    window_dropout: Share = 0.3

    def epochs_of(self, model: str) -> tuple[int, int]:
        """Return the most epochs of a model, and its patience."""
        if model.endswith("none"):
            return max(self.epochs, min(4 * self.epochs, LONGEST)), 2 * self.patience
        return self.epochs, self.patience


@dataclass(frozen=True)
class Recipe:
    """A data set of the paper, which the catalog has under the same name, or one of ours.

    Of one of ours, `not_theirs` says what it is, `text` and `label` are its columns, and `hub` is its name on
    the Hub. `options` are the settings that differ from those of IMDB.
    """

    title: str
    text: str | None = None
    label: str | None = None
    hub: str | None = None
    not_theirs: str = ""
    options: dict[str, Any] = field(default_factory=dict)


RECIPES = {
    "imdb-10": Recipe("IMDB of Diao et al. (2014), ratings 1 to 10"),
    "yahoo": Recipe(
        "Yahoo! Answers, ten topics",
        options={"output_dropout": 0.375, "flat_output_dropout": 0.446},
    ),
    "amazon": Recipe(
        "Amazon reviews, 5 stars",
        options={
            "learning_rate": 2e-4, "epochs": 60, "most_sentences": 15, "most_words": 130,
            "word_dropout": 0.6, "sentence_dropout": 0.2, "output_dropout": 0.4, "flat_output_dropout": 0.4,
        },
    ),
    "yelp": Recipe(
        "Yelp reviews, 5 stars",
        options={
            "learning_rate": 1e-4, "epochs": 60, "most_sentences": 43, "most_words": 200,
            "word_dropout": 0.7, "sentence_dropout": 0.1, "output_dropout": 0.7, "flat_output_dropout": 0.7,
        },
    ),
    "imdb": Recipe(
        "IMDB of Maas et al. (2011), two classes by sign",
        "text",
        "label",
        "stanfordnlp/imdb",
        "another IMDB than the paper's (Maas et al. 2011), in two classes",
    ),
    "imdb-stars": Recipe(
        "IMDB of Maas et al. (2011), 1-4 and 7-10 stars",
        "text",
        "stars",
        not_theirs="another IMDB than the paper's (Maas et al. 2011), in eight classes: no 5 or 6 stars",
    ),
    "ag-news": Recipe(
        "AG News, four classes", "text", "label", "fancyzhx/ag_news", "not a data set of the paper"
    ),
    "20news": Recipe(
        "20 Newsgroups, baseball and hockey",
        "text",
        "label",
        not_theirs="not a data set of the paper",
    ),
}  # fmt: skip
