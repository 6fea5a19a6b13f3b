"""The papers' single-text classifier: embedding → encoder → score → normaliser → door → linear decoder."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from heedmap.data.batches import Batch, Encoded
from heedmap.data.vocabulary import PAD, UNKNOWN_WORD, Vocabulary
from heedmap.models.encoders import ENCODERS
from heedmap.models.normalisers import normalise
from heedmap.models.scores import SCORES
from heedmap.models.trace import Readout, Trace, decode
from heedmap.settings import ModelSettings

TOKENS = 16_384  # of a batch


class AttentionClassifier(nn.Module):
    """logits = W Σ_t α_t h_t + b, α = normaliser(score(h)) over the text's tokens.

    Two classes have one sigmoid output, as in Jain & Wallace; `logits` are then (0, z) everywhere outside
    this file. The decoder is linear, so every trace carries its read-out R[t] = W h_t.
    """

    def __init__(
        self, settings: ModelSettings, vocabulary: Vocabulary, classes: Sequence[str]
    ) -> None:
        super().__init__()
        self.settings = settings
        self.vocabulary = vocabulary
        self.classes = list(classes)
        self.tokens_at_once = TOKENS
        self.embedding = nn.Embedding(len(vocabulary), settings.embedding_size, padding_idx=PAD)
        self.encoder = ENCODERS[settings.encoder](settings.embedding_size, settings.hidden_size)
        self.score = SCORES[settings.score](self.encoder.size)
        self.decoder = nn.Linear(self.encoder.size, 1 if len(classes) == 2 else len(classes))

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.embedding.weight.device

    def lengths(self, texts: Sequence[Sequence[str]]) -> NDArray[np.int64]:
        """Tokens of each text."""
        return np.array([len(text) for text in texts], dtype=np.int64)

    def hidden(self, text: Sequence[str], place: int) -> Sequence[str]:
        """The text with the unknown word in one token's place."""
        return [*text[:place], UNKNOWN_WORD, *text[place + 1 :]]

    def batch(self, texts: Sequence[Sequence[str]], rows: Sequence[int]) -> Batch:
        """Word numbers of some texts, padded; labels are 0."""
        encoded = Encoded(
            [self.vocabulary.encode(text) for text in texts], np.zeros(len(texts), int)
        )
        batch = encoded.batch(range(len(texts))).to(self.device)
        return Batch(
            torch.as_tensor(list(rows), device=self.device), batch.ids, batch.mask, batch.labels
        )

    def embed(self, batch: Batch) -> Float[Tensor, "B L E"]:
        """Embeddings of all positions, start and end marks included; 0 at padding."""
        embedded: Tensor = self.embedding(batch.ids)
        return embedded

    def on_tokens(self, values: Float[Tensor, "B L"], batch: Batch) -> Float[Tensor, "B T"]:
        """Of values at all positions, those of the tokens: without the start mark and the last column."""
        return values[:, 1:-1]

    def of_text(self, batch: Batch) -> Bool[Tensor, "B L"]:
        """The tokens' positions, between the start mark and the end mark."""
        return functional.pad(batch.mask, (1, 1))

    def encode(self, embedded: Float[Tensor, "B L E"], batch: Batch) -> Float[Tensor, "B T D"]:
        """Encoder states of the tokens (the encoder reads the marks; nobody attends to them)."""
        states: Tensor = self.encoder(embedded, batch.lengths + 2)
        return states[:, 1:-1]

    def attend(
        self, states: Float[Tensor, "B T D"], mask: Bool[Tensor, "B T"]
    ) -> Float[Tensor, "B K T"]:
        """The model's own weights, K = 1."""
        return normalise(self.score(states), mask, self.settings.normaliser).unsqueeze(1)

    def forward(self, batch: Batch) -> Float[Tensor, "B O"]:
        """Raw decoder outputs, for the loss: O = 1 for two classes."""
        return self._outputs(self.embed(batch), batch, None)

    def logits_from(
        self, embedded: Float[Tensor, "B L E"], batch: Batch, attention: Tensor | None = None
    ) -> Float[Tensor, "B C"]:
        """Differentiable logits from embeddings, under imposed weights (B, 1, T) where given."""
        return self.as_logits(self._outputs(embedded, batch, attention))

    def _outputs(self, embedded: Tensor, batch: Batch, attention: Tensor | None) -> Tensor:
        states = self.encode(embedded, batch)
        weights = self.attend(states, batch.mask) if attention is None else attention  # the door
        outputs: Tensor = self.decoder(torch.matmul(weights, states).squeeze(1))
        return outputs

    def as_logits(self, outputs: Float[Tensor, "*batch O"]) -> Float[Tensor, "*batch C"]:
        """Decoder outputs as one logit a class: (0, z) where there is one sigmoid output."""
        if len(self.classes) > 2:
            return outputs
        return torch.cat([torch.zeros_like(outputs), outputs], dim=-1)

    @torch.no_grad()
    def trace(self, batch: Batch) -> Trace:
        """One forward pass: weights, logits and the read-out."""
        states = self.encode(self.embed(batch), batch)
        attention = self.attend(states, batch.mask)
        readout = self.readout(states)
        logits = decode(readout, attention.unsqueeze(0)).squeeze(0)
        heat, support = attention.squeeze(1), batch.mask.unsqueeze(1)
        return Trace(batch.rows, batch.mask, attention, support, heat, logits, readout)

    @torch.no_grad()
    def logits(self, batch: Batch) -> Float[Tensor, "B C"]:
        """Predictions alone."""
        return self.as_logits(self(batch))

    def readout(self, states: Float[Tensor, "B T D"]) -> Readout:
        """R[t] = W h_t and b."""
        relevance = self.as_logits(torch.matmul(states, self.decoder.weight.T))
        return Readout(relevance.unsqueeze(1), self.as_logits(self.decoder.bias))

    def predict(self, trace: Trace, attention: Float[Tensor, "S B K P"]) -> Float[Tensor, "S B C"]:
        """Logits under S other weightings each; the encoder is not asked again."""
        assert trace.readout is not None
        return decode(trace.readout, attention)

    def shown(self, trace: Trace, attention: Float[Tensor, "S B K P"]) -> Float[Tensor, "S B T"]:
        """The weights are the heat map: K = 1."""
        return attention.squeeze(2)
