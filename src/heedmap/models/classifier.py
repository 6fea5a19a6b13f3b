"""Share what word-level classifiers have: a vocabulary, an embedding, an encoder and an output per class."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from heedmap.data.batches import Batch, Encoded, GuidedBatch
from heedmap.data.texts import Text, exchanged
from heedmap.data.vocabulary import UNKNOWN_WORD, Vocabulary
from heedmap.models.encoders import ENCODERS
from heedmap.models.stored_embedding import embedding_for
from heedmap.models.trace import READS
from heedmap.settings.models import ModelSettings

TOKENS = 16_384  # per batch


class Classifier(nn.Module, ABC):
    """Embedding → encoder → one output per class; a subclass turns the states into outputs.

    With `settings.sigmoid` two classes share one output z, as in Jain & Wallace: `logits` are then (0, z).
    """

    tokens_at_once = TOKENS
    capabilities = READS

    def __init__(
        self, settings: ModelSettings, vocabulary: Vocabulary, classes: Sequence[str]
    ) -> None:
        super().__init__()
        self.settings = settings
        self.vocabulary = vocabulary
        self.classes = list(classes)
        self.embedding = embedding_for(vocabulary, settings.embedding_size)
        self.encoder = ENCODERS[settings.encoder](settings.embedding_size, settings.hidden_size)
        if not settings.marks:
            self.encoder.marks = False

    @abstractmethod
    def outputs(
        self, embedded: Float[Tensor, "B L E"], batch: Batch, attention: Tensor | None
    ) -> tuple[Float[Tensor, "B O"], Float[Tensor, "B K T"]]:
        """Return raw outputs and the weights used: imposed ones (B, K, T), or the model's own."""

    def look_up(self, vocabulary: Vocabulary) -> None:
        """Take the numbers and vectors of tokens from another vocabulary."""
        self.vocabulary = vocabulary
        self.embedding = embedding_for(vocabulary, self.settings.embedding_size)

    def embeddings(self) -> list[nn.Embedding]:
        """Return all word embeddings."""
        return [self.embedding]

    def attention_parameters(self) -> list[nn.Parameter]:
        """Return the attention's parameters, which are trained without weight decay."""
        return []

    @property
    def device(self) -> torch.device:
        """Return the weights' device."""
        return self.embedding.weight.device

    @property
    def precision(self) -> torch.dtype:
        """Return the weights' dtype."""
        return self.embedding.weight.dtype

    def lengths(self, texts: Sequence[Text]) -> NDArray[np.int64]:
        """Count the tokens of each text, without queries."""
        return np.array([len(text) for text in texts], dtype=np.int64)

    def mask_token(self, text: Text, place: int) -> Text:
        """Replace one token by the unknown word."""
        return exchanged(text, place, UNKNOWN_WORD)

    def batch(self, texts: Sequence[Text], rows: Sequence[int]) -> Batch:
        """Encode some texts (`Pair`s for a model of pairs) as word numbers, padded; labels are 0."""
        batch = self.encoded(texts, np.zeros(len(texts), int)).batch(range(len(texts)))
        return replace(batch.to(self.device), rows=torch.as_tensor(list(rows), device=self.device))

    def encoded(self, texts: Sequence[Text], labels: NDArray[np.int64]) -> Encoded:
        """Encode texts as word numbers; the same list of tokens is encoded once."""
        held = list(texts)  # compact sequences make a list whenever they are asked for one
        text_by_id = {id(text): text for text in held}
        numbers = {key: self.vocabulary.encode(text) for key, text in text_by_id.items()}
        return Encoded([numbers[id(text)] for text in held], labels)

    def embed(self, batch: Batch) -> Float[Tensor, "B L E"]:
        """Embed all positions, start and end marks included; 0 at padding."""
        embedded: Tensor = self.embedding(batch.ids)
        return embedded

    def on_tokens(self, values: Float[Tensor, "B L"], batch: Batch) -> Float[Tensor, "B T"]:
        """Select the tokens' values: drop the start mark and the last column."""
        return values[:, 1:-1]

    def token_positions(self, batch: Batch) -> Bool[Tensor, "B L"]:
        """Mark the tokens' positions, between the start mark and the end mark."""
        return functional.pad(batch.mask, (1, 1))

    def encode(self, embedded: Float[Tensor, "B L E"], batch: Batch) -> Float[Tensor, "B T D"]:
        """Return encoder states of the tokens: an encoder may read the marks, the attention does not."""
        states: Tensor = self.encoder(*self.encoder.reads(embedded, batch.lengths))
        return states[:, 1:-1] if self.encoder.marks else states

    def forward(self, batch: Batch) -> tuple[Float[Tensor, "B O"], Float[Tensor, "B K T"]]:
        """Return raw outputs and the weights used: those of a `GuidedBatch`, or the model's own."""
        guide = batch.weights.unsqueeze(1) if isinstance(batch, GuidedBatch) else None
        return self.outputs(self.embed(batch), batch, guide)

    def as_logits(self, outputs: Float[Tensor, "*batch O"]) -> Float[Tensor, "*batch C"]:
        """Turn raw outputs into one logit per class: (0, z) for one sigmoid output."""
        if outputs.shape[-1] == len(self.classes):
            return outputs
        return torch.cat([torch.zeros_like(outputs), outputs], dim=-1)

    @torch.no_grad()
    def logits(self, batch: Batch) -> Float[Tensor, "B C"]:
        """Return the predictions alone."""
        return self.as_logits(self(batch)[0])

    def logits_from(
        self, embedded: Float[Tensor, "B L E"], batch: Batch, attention: Tensor | None = None
    ) -> Float[Tensor, "B C"]:
        """Return differentiable logits from embeddings, under imposed weights (B, 1, T) if given."""
        return self.as_logits(self.outputs(embedded, batch, attention)[0])
