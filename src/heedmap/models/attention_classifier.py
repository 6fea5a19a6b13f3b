"""Build the papers' classifiers: embedding → encoder → score → normaliser → decoder."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedmap.data.batches import Batch
from heedmap.data.vocabulary import Vocabulary
from heedmap.models.classifier import TOKENS, Classifier
from heedmap.models.normalisers import normalise
from heedmap.models.scores import SCORES, Lexical
from heedmap.models.trace import READS, Readout, Trace, decode
from heedmap.settings.models import ModelSettings

LOGITS = 1 << 20  # per batch, one per token and class: above 64 classes a batch holds fewer tokens


class AttentionClassifier(Classifier):
    """logits = decoder(Σ_t α_t h_t), α = normaliser(score(h)) over the text's tokens.

    A subclass adds the score and the decoder: `TextClassifier`, or `PairClassifier`, where both use a query.
    """

    score: nn.Module

    @property
    @abstractmethod
    def projection(self) -> nn.Linear:
        """Return the decoder's first linear map, which commutes with the weighted sum of states."""

    def encode_query(self, batch: Batch) -> Float[Tensor, "B 1 D"] | None:
        """Return the queries' vectors; None for single texts."""
        return None

    def attend(
        self, states: Float[Tensor, "B T D"], batch: Batch, query: Tensor | None = None
    ) -> Float[Tensor, "B K T"]:
        """Return the model's own weights, K = 1."""
        scores = self.scores(states, batch, query)
        return normalise(scores, batch.mask, self.settings.normaliser).unsqueeze(1)

    def scores(
        self, states: Float[Tensor, "B T D"], batch: Batch, query: Tensor | None = None
    ) -> Float[Tensor, "B T"]:
        """Return the scores that the weights are made of."""
        # Scores of words are looked up by the words' numbers, without the two marks; others read the states.
        lexical = isinstance(self.score, Lexical)
        scores: Tensor = self.score(batch.ids[:, 1:-1]) if lexical else self.score(states, query)
        return scores

    def normalised(
        self, states: Float[Tensor, "B T D"], batch: Batch, query: Tensor | None = None
    ) -> dict[str, Any]:
        """Return the normaliser of a trace, with its scores where it is not a softmax."""
        name = self.settings.normaliser
        scores = None if name == "softmax" else self.scores(states, batch, query).unsqueeze(1)
        return {"normaliser": name, "scores": scores}

    def decode(
        self, projected: Float[Tensor, "B S A"], batch: Batch, query: Tensor | None
    ) -> Float[Tensor, "B S O"]:
        """Return raw outputs from the projections of S contexts per instance."""
        return projected

    def outputs(
        self, embedded: Float[Tensor, "B L E"], batch: Batch, attention: Tensor | None
    ) -> tuple[Float[Tensor, "B O"], Float[Tensor, "B K T"]]:
        """Return raw outputs and the weights used: imposed ones (B, 1, T), or the model's own."""
        return self.outputs_of(self.encode(embedded, batch), batch, attention)

    def outputs_of(
        self, states: Float[Tensor, "B T D"], batch: Batch, attention: Tensor | None
    ) -> tuple[Float[Tensor, "B O"], Float[Tensor, "B K T"]]:
        """Return the same from the tokens' states."""
        query = self.encode_query(batch)
        weights = self.attend(states, batch, query) if attention is None else attention
        context = torch.matmul(weights, states)
        return self.decode(self.projection(context), batch, query).squeeze(1), weights

    def to_heatmap(
        self, trace: Trace, attention: Float[Tensor, "S B K P"]
    ) -> Float[Tensor, "S B T"]:
        """Return the weights, which are the heat map: K = 1."""
        return attention.squeeze(2)

    # The rest of the `Model` protocol.

    @abstractmethod
    def trace(self, batch: Batch) -> Trace:
        """Run one forward pass."""

    def predict(self, trace: Trace, attention: Float[Tensor, "S B K P"]) -> Float[Tensor, "S B C"]:
        """Return logits under S other weightings each, from the read-out: the encoder does not run again."""
        assert trace.readout is not None
        return decode(trace.readout, attention)


class TextClassifier(AttentionClassifier):
    """A classifier of single texts. Its decoder is linear, W c + b, so a trace has the read-out R[t] = W h_t.

    Two classes have one sigmoid output, or an output each (`settings.sigmoid`).
    """

    capabilities = READS | {"read-out"}

    def __init__(
        self, settings: ModelSettings, vocabulary: Vocabulary, classes: Sequence[str]
    ) -> None:
        super().__init__(settings, vocabulary, classes)
        self.tokens_at_once = min(TOKENS, max(1, LOGITS // len(classes)))
        self.score = (
            Lexical(len(vocabulary))
            if settings.score == "log_odds"
            else SCORES[settings.score](self.encoder.size)
        )
        shared = settings.sigmoid and len(classes) == 2
        self.decoder = nn.Linear(self.encoder.size, 1 if shared else len(classes))

    @property
    def projection(self) -> nn.Linear:
        """Return the decoder itself."""
        return self.decoder

    def attention_parameters(self) -> list[nn.Parameter]:
        """Return the score's parameters, which the released code trains without weight decay."""
        return list(self.score.parameters())

    @torch.no_grad()
    def trace(self, batch: Batch) -> Trace:
        """Run one forward pass: weights, logits and the read-out."""
        states = self.encode(self.embed(batch), batch)
        attention = self.attend(states, batch)
        relevance = self.as_logits(torch.matmul(states, self.decoder.weight.T)).unsqueeze(1)
        readout = Readout(relevance, self.as_logits(self.decoder.bias))
        logits = decode(readout, attention.unsqueeze(0)).squeeze(0)
        heatmap, support = attention.squeeze(1), batch.mask.unsqueeze(1)
        normalisation = self.normalised(states, batch)
        return Trace(
            batch.rows, batch.mask, attention, support, heatmap, logits, readout, **normalisation
        )
