"""A classifier with a map of weights for each class, as CLAM_MB (Lu et al. 2021) has one."""

from collections.abc import Sequence
from typing import Any, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedmap.data.batches import Batch
from heedmap.data.vocabulary import Vocabulary
from heedmap.models.attention_classifier import AttentionClassifier
from heedmap.models.normalisers import normalise
from heedmap.models.scores import SCORES, Additive, Dot, Uniform
from heedmap.models.trace import Readout, Trace, decode
from heedmap.settings.models import ModelSettings

NUMBERS = 1 << 20  # of read-outs per batch: of many classes a batch holds fewer tokens


class PerClassClassifier(AttentionClassifier):
    """logits[c] = w_c · Σ_t α[c, t] h_t + b_c: K = C rows of weights, each read out for its class alone.

    Two classes have an output each. The heat map is the row of the predicted class, as CLAM draws it.
    """

    def __init__(
        self, settings: ModelSettings, vocabulary: Vocabulary, classes: Sequence[str]
    ) -> None:
        super().__init__(settings, vocabulary, classes)
        self.tokens_at_once = min(self.tokens_at_once, max(1, NUMBERS // len(classes) ** 2))
        self.score = SCORES[settings.score](self.encoder.size, len(classes))
        self.decoder = nn.Linear(self.encoder.size, len(classes))

    @property
    def projection(self) -> nn.Linear:
        """Return the decoder itself."""
        return self.decoder

    def attention_parameters(self) -> list[nn.Parameter]:
        """Return the score's parameters, which are trained without weight decay."""
        return list(self.score.parameters())

    def attend(
        self, states: Float[Tensor, "B T D"], batch: Batch, query: Tensor | None = None
    ) -> Float[Tensor, "B K T"]:
        """Return the model's own weights, a row per class."""
        scores = self.row_scores(states)
        mask = batch.mask.unsqueeze(1).expand_as(scores)
        return normalise(scores, mask, self.settings.normaliser)

    def row_scores(self, states: Float[Tensor, "B T D"]) -> Float[Tensor, "B K T"]:
        """Return the scores that the weights of each row are made of."""
        score = cast("Additive | Dot | Uniform", self.score)
        return score.each_row(states).transpose(1, 2)

    def normalised(
        self, states: Float[Tensor, "B T D"], batch: Batch, query: Tensor | None = None
    ) -> dict[str, Any]:
        """Return the normaliser of a trace, with its scores where it is not a softmax."""
        name = self.settings.normaliser
        return {
            "normaliser": name,
            "scores": None if name == "softmax" else self.row_scores(states),
        }

    def outputs_of(
        self, states: Float[Tensor, "B T D"], batch: Batch, attention: Tensor | None
    ) -> tuple[Float[Tensor, "B O"], Float[Tensor, "B K T"]]:
        """Return raw outputs from the tokens' states, and the weights used."""
        weights = self.attend(states, batch) if attention is None else attention
        contexts = torch.matmul(weights, states)
        return (contexts * self.decoder.weight).sum(-1) + self.decoder.bias, weights

    @torch.no_grad()
    def trace(self, batch: Batch) -> Trace:
        """Run one forward pass: weights, logits and the read-out."""
        states = self.encode(self.embed(batch), batch)
        attention = self.attend(states, batch)
        of_classes = torch.matmul(states, self.decoder.weight.T)  # (B, T, C)
        readout = Readout(torch.diag_embed(of_classes).transpose(1, 2), self.decoder.bias)
        logits = decode(readout, attention.unsqueeze(0)).squeeze(0)
        heatmap = row_of(attention.unsqueeze(0), logits.argmax(-1)).squeeze(0)
        support = batch.mask.unsqueeze(1).expand_as(attention)
        normalisation = self.normalised(states, batch)
        return Trace(
            batch.rows, batch.mask, attention, support, heatmap, logits, readout, **normalisation
        )

    def to_heatmap(
        self, trace: Trace, attention: Float[Tensor, "S B K P"]
    ) -> Float[Tensor, "S B T"]:
        """Return the weights of the class that the model predicts under its own."""
        return row_of(attention, trace.predicted)


def row_of(
    attention: Float[Tensor, "S B K T"], classes: Int[Tensor, " B"]
) -> Float[Tensor, "S B T"]:
    """Return the row of one class of each instance."""
    return attention[:, torch.arange(len(classes), device=classes.device), classes]
