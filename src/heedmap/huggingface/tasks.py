"""Tell from a configuration what a model answers: the class of a text or of a word, or a hidden word."""

from collections.abc import Mapping
from enum import Enum
from typing import Any, Literal

from transformers import (
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    PreTrainedModel,
)

from heedmap.errors import InputError
from heedmap.huggingface.classification_head import architecture_of
from heedmap.settings.data import DataSettings


class Task(Enum):
    """What a model answers. The value is how the name of the class of such models ends."""

    TEXTS = "ForSequenceClassification"
    WORDS = "ForTokenClassification"
    MASKS = "ForMaskedLM"

    @property
    def auto_class(self) -> Any:
        """Return the class of transformers that loads such a model of any architecture."""
        return _AUTO_CLASSES[self]

    @property
    def is_asked_of_words(self) -> bool:
        """Return whether the model answers at each position, so that a text needs a word to ask about."""
        return self is not Task.TEXTS

    @property
    def asks(self) -> Literal["words", "masks"] | None:
        """Return what texts ask such a model about (see `DataSettings.asks`)."""
        if self is Task.TEXTS:
            return None
        return "words" if self is Task.WORDS else "masks"


_AUTO_CLASSES = {
    Task.TEXTS: AutoModelForSequenceClassification,
    Task.WORDS: AutoModelForTokenClassification,
    Task.MASKS: AutoModelForMaskedLM,
}


def task_of(config: Mapping[str, Any]) -> Task:
    """Return the task by `architectures` in a config.json; texts, where that names no other."""
    return _named(architecture_of(config))


def task_of_model(model: PreTrainedModel) -> Task:
    """Return the task of a loaded model."""
    return _named(type(model).__name__)


def _named(architecture: str) -> Task:
    return next((task for task in Task if architecture.endswith(task.value)), Task.TEXTS)


def asking(settings: DataSettings, task: Task) -> DataSettings:
    """Return settings of texts that ask what a model of this task answers.

    Raises:
        InputError: options of another task.
    """
    if settings.foil is not None and task is not Task.MASKS:
        raise InputError(
            f"--foil-column {settings.foil}: expected a masked language model, got one that classifies "
            f"{'words' if task is Task.WORDS else 'texts'}; leave it out"
        )
    if settings.asked != "labelled" and task is not Task.WORDS:
        raise InputError(
            f"--asked {settings.asked}: expected a model of token classification, got another; leave it out"
        )
    if not task.is_asked_of_words:
        return settings
    if settings.query is not None:
        raise InputError(
            f"--query-column {settings.query}: expected single texts for a model that answers at their words, "
            "got pairs; leave it out"
        )
    if settings.tokenizer == "sentences":
        raise InputError(
            "--tokenizer sentences: expected words, of which the model is asked; leave it out"
        )
    return settings.model_copy(update={"asks": task.asks})
