"""A classifier that reads each text with the weights of a guide, another model or its importances."""

from collections.abc import Sequence
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from heedmap.data.batches import Batch
from heedmap.data.vocabulary import Vocabulary
from heedmap.models.attention_classifier import TextClassifier
from heedmap.settings.models import ModelSettings


class GuidedClassifier(TextClassifier):
    """A classifier of single texts that has learned no weights: α = guide(text), computed anew for each text.

    `guide` maps a batch to weights (B, T) that sum to 1 in each text and are 0 at padding; it has the same
    vocabulary. Its weights are constants: a gradient does not flow through it. What is left of them without
    some tokens is scaled, as of a softmax, for a guide's scores are not this model's.
    """

    def __init__(
        self,
        settings: ModelSettings,
        vocabulary: Vocabulary,
        classes: Sequence[str],
        guide: nn.Module,
    ) -> None:
        # A score without parameters: its own would never have been trained.
        super().__init__(settings.model_copy(update={"score": "uniform"}), vocabulary, classes)
        self.guide = guide

    def attend(
        self, states: Float[Tensor, "B T D"], batch: Batch, query: Tensor | None = None
    ) -> Float[Tensor, "B K T"]:
        """Return the guide's weights, K = 1."""
        weights: Tensor = self.guide(batch)
        return weights.to(states).unsqueeze(1)

    def normalised(
        self, states: Float[Tensor, "B T D"], batch: Batch, query: Tensor | None = None
    ) -> dict[str, Any]:
        """Return the softmax: what is left of a guide's weights is scaled."""
        return {"normaliser": "softmax", "scores": None}
