"""The weights that a model is guided by: one number per token, that sum to 1 in each text."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedmap.data.batches import Batch, Ragged, sorted_batches
from heedmap.data.corpus import Split
from heedmap.data.vocabulary import Vocabulary
from heedmap.experiments.methods.erasure_predictions import slopes
from heedmap.experiments.questions.importance import GRADIENT_SHARE, change_without
from heedmap.importance.gradients import gradient_importance
from heedmap.importance.leave_one_out import logits_without_each
from heedmap.models.attention_classifier import TextClassifier
from heedmap.models.guided_classifier import GuidedClassifier
from heedmap.settings.models import ModelSettings
from heedmap.settings.retraining import GuideWeights
from heedmap.settings.run import RunSettings
from heedmap.settings.training import TrainSettings
from heedmap.training.objective import seeded


class GuideModel(nn.Module):
    """A trained model whose map, or whose importances, are the weights that another model reads with.

    The importances are those of an audit's default settings, scaled to sum to 1: the gradient's size,
    leave-one-out, and the size of the read-out, which is the slope of the predicted class's log-odds by each
    weight. Where one is 0 or undefined for all tokens of a text, its weights are uniform.
    """

    def __init__(self, model: TextClassifier, weights: GuideWeights) -> None:
        super().__init__()
        self.model, self.weights = model, weights

    @torch.no_grad()
    def forward(self, batch: Batch) -> Float[Tensor, "B T"]:
        """Return the weights of each text, 0 at padding."""
        trace = self.model.trace(batch)
        if self.weights == "attention":
            return trace.heatmap
        if self.weights == "read_out":
            importance = slopes(self.model, trace)[0]
        elif self.weights == "gradient":
            with torch.enable_grad():
                importance = gradient_importance(self.model, batch, trace)
        else:
            without = logits_without_each(self.model, batch, self._texts(batch))
            importance = change_without(trace.logits, without, self.model.precision)
        return _scaled(importance.double(), batch).to(trace.heatmap)

    def of_split(self, split: Split) -> Ragged:
        """Return the weights of all texts of a split."""
        tokens = self.model.tokens_at_once // (GRADIENT_SHARE if self.weights == "gradient" else 1)
        weights: dict[int, Tensor] = {}
        for rows in sorted_batches(self.model.lengths(split.texts), max(1, tokens)):
            batch = self.model.batch([split.texts[row] for row in rows], rows.tolist())
            for row, values, mask in zip(rows.tolist(), self(batch), batch.mask, strict=True):
                weights[row] = values[mask]
        return Ragged([weights[row].numpy(force=True) for row in range(len(weights))])

    def _texts(self, batch: Batch) -> list[list[str]]:
        """Return the words of a batch as the model knows them, to be read again without one."""
        decode = self.model.vocabulary.decode
        lists = zip(batch.ids[:, 1:-1], batch.mask, strict=True)
        return [decode(ids[mask].tolist()) for ids, mask in lists]


def guided_model(
    settings: RunSettings, vocabulary: Vocabulary, classes: Sequence[str]
) -> GuidedClassifier:
    """Build a guided model, and its guide within it, to which weights are still to be loaded."""
    assert settings.guide is not None
    assert isinstance(settings.model, ModelSettings)
    assert isinstance(settings.train, TrainSettings)
    with seeded(settings.train.seed):  # the global generator is left unchanged
        guide = GuideModel(
            TextClassifier(settings.guide.model, vocabulary, classes), settings.guide.weights
        )
        return GuidedClassifier(settings.model, vocabulary, classes, guide)


def _scaled(importance: Float[Tensor, "B T"], batch: Batch) -> Float[Tensor, "B T"]:
    sizes = importance.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs()
    sizes = sizes.masked_fill(~batch.mask, 0.0)
    # Of a text without any importance the weights are uniform.
    sizes = torch.where(sizes.sum(-1, keepdim=True) > 0, sizes, batch.mask.to(sizes))
    return sizes / sizes.sum(-1, keepdim=True)
