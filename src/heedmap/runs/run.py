"""A run: a model, its texts, and the settings of both."""

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
    """A model, its corpus and the settings of both; `folder` if the run is saved.

    `training` is set where heedmap trained the model. `facts` are shown in a report besides the settings.
    """

    settings: RunSettings
    corpus: Corpus
    model: Model
    training: Trained | None = None
    folder: Path | None = None
    facts: dict[str, object] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The run's name in the report."""
        return self.folder.name if self.folder else self.corpus.name

    def encoded(self, split: Split) -> Encoded:
        """Encode a split with the vocabulary of one of our attention models."""
        assert isinstance(self.model, AttentionClassifier)
        return self.model.encoded(split.texts, split.labels)
