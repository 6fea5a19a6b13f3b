"""A run: a model, its texts, and the settings of both."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from heedmap.data.batches import Encoded
from heedmap.data.corpus import Corpus, Split
from heedmap.errors import InputError
from heedmap.models.attention_classifier import AttentionClassifier
from heedmap.models.trace import Model
from heedmap.runs.folder import RunFolder
from heedmap.runs.user_texts import OneText, Texts, probabilities, user_texts
from heedmap.settings.models import ArraysSettings, PoolingSettings, TransformerSettings
from heedmap.settings.run import RunSettings
from heedmap.terminal.html import html_table
from heedmap.training.dynamics import recorded_in
from heedmap.training.fit import Trained

if TYPE_CHECKING:
    from heedmap.report.explanation import Explanation, Explanations


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
        lines = [f"  {name}: {text}" for name, text in self._summary().items()]
        return "\n".join([f"Run {self.name}", *lines, repr(self.corpus)])

    def _repr_html_(self) -> str:
        summary = html_table(self._summary().items(), title=f"Run {self.name}")
        return summary + self.corpus._repr_html_()

    def _summary(self) -> dict[str, str]:
        model, kind = self.settings.model, type(self.model).__name__
        if isinstance(model, TransformerSettings):
            summary = {"model": f"{model.source} ({self.facts.get('architecture', kind)})"}
            summary["map"] = str(self.facts.get("on_trial", f"{model.view}, layer {model.layer}"))
        elif isinstance(model, ArraysSettings | PoolingSettings):
            summary = {"model": model.description}
        else:
            parts = f"{model.encoder} encoder, {model.score} score, {model.normaliser} attention"
            if self.settings.guide is not None:
                parts = f"{model.encoder} encoder, {self.settings.guide.description}"
            summary = {"model": f"{kind}, {parts}"}
        if self.training is not None:
            best = self.training.best_epoch
            scores = self.training.scores[best].items()
            listed = ", ".join(f"{name.replace('_', ' ')} {x:.3f}" for name, x in scores)
            summary["training"] = (
                f"best epoch {best + 1} of {len(self.training.scores)}; dev {listed}"
            )
        return summary | {"folder": "not saved" if self.folder is None else str(self.folder)}

    @property
    def name(self) -> str:
        """Return the run's name in the report."""
        return self.folder.name if self.folder else self.corpus.name

    @property
    def dynamics(self) -> pa.Table | None:
        """Return what was recorded while the model was trained (see `training.dynamics`); None if nothing was.

        Raises:
            InputError: it is damaged.
        """
        if self.folder is None or self.recorded is not None:
            return self.recorded
        return recorded_in(RunFolder(self.folder).dynamics)

    @property
    def classes(self) -> list[str]:
        """Return the classes' names, in the order of the model's outputs."""
        return list(self.model.classes)

    def predict(self, texts: OneText | Texts) -> list[str]:
        """Return the class that the model predicts for each text, by its name.

        Args:
            texts: a text, a list of texts, or a list of pairs (text, query) where the model reads pairs; of a
                model of pictures files, PIL images or arrays (height, width, 3) of bytes.

        Raises:
            InputError: no text, a text without a word, or a wrong kind of text; a model that gives a number.
        """
        if "classes" not in self.model.capabilities:
            raise InputError(
                f"{self.name}: expected a model that decides between classes, got one that gives a number; "
                "predict_proba gives it"
            )
        return [self.model.classes[index] for index in self.predict_proba(texts).argmax(1)]

    def predict_proba(self, texts: OneText | Texts) -> NDArray[np.float64]:
        """Return the probabilities (B, C) of the `classes` for each text, or its number (B, 1) (a regression).

        A text that is read in windows has the mean of theirs; texts that are cut are counted in a warning.

        Args:
            texts: as for `predict`.

        Raises:
            InputError: as `predict`.
        """
        inputs = user_texts(texts, self.model, self.settings.data)
        return probabilities(self.name, self.settings.data, self.model, inputs)

    @overload  # a text is a sequence of texts too, but the first signature that fits counts
    def explain(  # type: ignore[overload-overlap]
        self,
        text: OneText,
        *,
        query: str | None = None,
        target: str | None = None,
        foil: str | None = None,
    ) -> "Explanation": ...
    @overload
    def explain(self, text: Texts) -> "Explanations": ...
    def explain(
        self,
        text: OneText | Texts,
        *,
        query: str | None = None,
        target: str | None = None,
        foil: str | None = None,
    ) -> "Explanation | Explanations":
        """Explain the answer to a text or a picture, or to each of a list of them (see `heedmap.explain`).

        Raises:
            InputError: a text without a word, or a query that is missing or not read.
        """
        from heedmap.runs.explained import explain_input  # imports all experiments

        place = self.folder or Path(self.name)
        settings = self.current_settings()
        return explain_input(place, settings, self.model, text, query, (target, foil))

    def current_settings(self) -> RunSettings:
        """Return the settings with those of the audit in the folder, which may be later than this value.

        Raises:
            InputError: the settings in the folder cannot be read, or were edited.
        """
        if self.folder is None:
            return self.settings
        stored = RunFolder(self.folder).settings()
        return self.settings.model_copy(update={"audit": stored.audit})

    def encoded(self, split: Split) -> Encoded:
        """Encode a split with the vocabulary of one of our attention models."""
        assert isinstance(self.model, AttentionClassifier)
        return self.model.encoded(split.texts, split.labels)
