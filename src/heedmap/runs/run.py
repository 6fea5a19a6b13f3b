"""A run: a model, its texts, and the settings of both."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from heedmap.data.batches import Encoded
from heedmap.data.corpus import Corpus, Split
from heedmap.models.attention_classifier import AttentionClassifier
from heedmap.models.trace import Model
from heedmap.runs.folder import RunFolder
from heedmap.settings import RunSettings
from heedmap.training.dynamics import recorded_in
from heedmap.training.fit import Trained

if TYPE_CHECKING:
    from heedmap.report.explanation import Explanation


@dataclass(frozen=True, repr=False)
class Run:
    """A model, its corpus and the settings of both; `folder` if the run is saved.

    `training` is set where heedmap trained the model. `facts` are shown in a report besides the settings.
    `recorded` is what was recorded while the model was trained, of a run without a folder.
    """

    settings: RunSettings
    corpus: Corpus
    model: Model
    training: Trained | None = None
    folder: Path | None = None
    facts: dict[str, object] = field(default_factory=dict)
    recorded: pa.Table | None = None

    def __repr__(self) -> str:
        place = "not saved" if self.folder is None else f"in {self.folder}"
        return f"Run {self.name}, {place}: {type(self.model).__name__} of\n{self.corpus!r}"

    @property
    def name(self) -> str:
        """The run's name in the report."""
        return self.folder.name if self.folder else self.corpus.name

    @property
    def dynamics(self) -> pa.Table | None:
        """What was recorded while the model was trained (see `training.dynamics`), None if nothing was.

        Raises:
            InputError: it is damaged.
        """
        if self.folder is None or self.recorded is not None:
            return self.recorded
        return recorded_in(RunFolder(self.folder).dynamics)

    def explain(self, text: str, *, query: str | None = None) -> "Explanation":
        """Explain the answer to one text (see `heedmap.explain`).

        Raises:
            InputError: a text without a word, or a query that is missing or not read.
        """
        from heedmap.runs.explain import explain

        return explain(self, text, query=query)

    def encoded(self, split: Split) -> Encoded:
        """Encode a split with the vocabulary of one of our attention models."""
        assert isinstance(self.model, AttentionClassifier)
        return self.model.encoded(split.texts, split.labels)
