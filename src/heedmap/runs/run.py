"""A run: a model, the texts it is put on trial with, and the settings of both."""

from dataclasses import dataclass, field
from pathlib import Path

from heedmap.data.batches import Encoded
from heedmap.data.corpus import Corpus, Split
from heedmap.models.attention_classifier import AttentionClassifier
from heedmap.models.trace import Model
from heedmap.settings import RunSettings
from heedmap.training.fit import Trained


@dataclass(frozen=True)
class Run:
    """A model, its corpus and the settings of both; `folder` if it is kept.

    `training` is known where heedmap trained the model. `facts` is what a report says beside the settings.
    """

    settings: RunSettings
    corpus: Corpus
    model: Model
    training: Trained | None = None
    folder: Path | None = None
    facts: dict[str, object] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What the report calls it."""
        return self.folder.name if self.folder else self.corpus.name

    def encoded(self, split: Split) -> Encoded:
        """A split in the words of an attention model of ours."""
        assert isinstance(self.model, AttentionClassifier)
        return self.model.encoded(split.texts, split.labels)
