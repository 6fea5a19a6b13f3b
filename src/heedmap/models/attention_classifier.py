"""The papers' classifier: embedding → encoder → score → normaliser → door → decoder."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from heedmap.data.batches import Batch, Encoded, EncodedPairs, PairBatch
from heedmap.data.texts import Pair, Text, exchanged
from heedmap.data.vocabulary import PAD, UNKNOWN_WORD, Vocabulary
from heedmap.models.decoders import PairDecoder
from heedmap.models.encoders import ENCODERS
from heedmap.models.normalisers import normalise
from heedmap.models.scores import SCORES, Additive, Dot, Lexical
from heedmap.models.trace import Readout, Trace, decode
from heedmap.settings import ModelSettings

TOKENS = 16_384  # of a batch
LOGITS = 1 << 20  # of a batch, one a token and class: of more than 64 classes it holds fewer tokens


IMPOSSIBLE = (
    -1e4
)  # the logit of an answer that is not a candidate: its probability is 0, and finite its logarithm


class Query(nn.Module):
    """Reads the query of a pair into one vector, with an embedding and an encoder of its own."""

    def __init__(self, settings: ModelSettings, words: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, settings.embedding_size, padding_idx=PAD)
        self.encoder = ENCODERS[settings.encoder](settings.embedding_size, settings.hidden_size)

    def forward(self, batch: PairBatch) -> Float[Tensor, "B 1 D"]:
        """One vector a query."""
        lengths = batch.query_lengths + 2
        states = self.encoder(self.embedding(batch.query_ids), lengths)
        return self.encoder.last(states, lengths).unsqueeze(1)


@dataclass(frozen=True)
class _Kept:
    """What a pair's prediction needs beside the weights: W_c h_t, the query's vector, the candidates."""

    inner: Float[Tensor, "B T A"]
    query: Float[Tensor, "B 1 D"]
    batch: PairBatch


class AttentionClassifier(nn.Module):
    """logits = decoder(Σ_t α_t h_t), α = normaliser(score(h)) over the text's tokens.

    Of single texts the decoder is linear, W c + b, so that every trace carries its read-out R[t] = W h_t;
    two classes have one sigmoid output, as in Jain & Wallace: `logits` are then (0, z) everywhere outside
    this file. Of pairs (`pairs`), score and decoder are given the query's vector, and the decoder is
    tanh(W_c c + W_q q + b) before its last layer: there is no read-out.
    """

    def __init__(
        self,
        settings: ModelSettings,
        vocabulary: Vocabulary,
        classes: Sequence[str],
        pairs: bool = False,
    ) -> None:
        super().__init__()
        self.settings = settings
        self.vocabulary = vocabulary
        self.classes = list(classes)
        # Of pairs no number a token and class is kept.
        self.tokens_at_once = TOKENS if pairs else min(TOKENS, max(1, LOGITS // len(classes)))
        self.embedding = nn.Embedding(len(vocabulary), settings.embedding_size, padding_idx=PAD)
        self.encoder = ENCODERS[settings.encoder](settings.embedding_size, settings.hidden_size)
        self.query = Query(settings, len(vocabulary)) if pairs else None
        self.score: Additive | Dot | Lexical = (
            Lexical(len(vocabulary))
            if settings.score == "log_odds"
            else SCORES[settings.score](self.encoder.size, pairs)
        )
        outputs = 1 if len(classes) == 2 else len(classes)
        self.decoder: nn.Linear | PairDecoder = (
            PairDecoder(self.encoder.size, len(classes))
            if pairs
            else nn.Linear(self.encoder.size, outputs)
        )

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.embedding.weight.device

    @property
    def precision(self) -> torch.dtype:
        """The weights' own."""
        return self.embedding.weight.dtype

    @property
    def projection(self) -> nn.Linear:
        """The linear part of the decoder, up to which weights and states add up."""
        return self.decoder if isinstance(self.decoder, nn.Linear) else self.decoder.inner

    def lengths(self, texts: Sequence[Text]) -> NDArray[np.int64]:
        """Tokens of each text, queries not counted."""
        return np.array([len(text) for text in texts], dtype=np.int64)

    def hidden(self, text: Text, place: int) -> Text:
        """The text with the unknown word in one token's place."""
        return exchanged(text, place, UNKNOWN_WORD)

    def batch(self, texts: Sequence[Text], rows: Sequence[int]) -> Batch:
        """Word numbers of some texts (`Pair`s for a model of pairs), padded; labels are 0."""
        batch = self.encoded(texts, np.zeros(len(texts), int)).batch(range(len(texts)))
        return replace(batch.to(self.device), rows=torch.as_tensor(list(rows), device=self.device))

    def encoded(self, texts: Sequence[Text], labels: NDArray[np.int64]) -> Encoded:
        """Word numbers of texts, or of pairs."""
        numbers = [self.vocabulary.encode(text) for text in texts]
        if self.query is None:
            return Encoded(numbers, labels)
        pairs = [text for text in texts if isinstance(text, Pair)]
        assert len(pairs) == len(texts)
        queries = [self.vocabulary.encode(pair.query) for pair in pairs]
        allowed = np.ones((len(texts), len(self.classes)), dtype=bool)
        for row, pair in enumerate(pairs):
            if pair.allowed is not None:
                allowed[row] = pair.allowed
        return EncodedPairs(numbers, queries, labels, allowed)

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
        self, states: Float[Tensor, "B T D"], batch: Batch, query: Tensor | None = None
    ) -> Float[Tensor, "B K T"]:
        """The model's own weights, K = 1."""
        lexical = isinstance(self.score, Lexical)
        scores = self.score(batch.ids[:, 1:-1]) if lexical else self.score(states, query)
        return normalise(scores, batch.mask, self.settings.normaliser).unsqueeze(1)

    def asked(self, batch: Batch) -> Float[Tensor, "B 1 D"] | None:
        """The queries' vectors; None for single texts."""
        if self.query is None:
            return None
        assert isinstance(batch, PairBatch)
        vectors: Tensor = self.query(batch)
        return vectors

    def finish(
        self, projected: Float[Tensor, "B S A"], batch: Batch, query: Tensor | None
    ) -> Float[Tensor, "B S O"]:
        """Decoder outputs from what `projection` made of S contexts an instance."""
        if isinstance(self.decoder, nn.Linear):
            return projected
        assert isinstance(batch, PairBatch)
        outputs: Tensor = self.decoder(projected, query)
        return outputs.masked_fill(~batch.allowed.unsqueeze(1), IMPOSSIBLE)

    def forward(self, batch: Batch) -> tuple[Float[Tensor, "B O"], Float[Tensor, "B K T"]]:
        """For the loss: raw decoder outputs, O = 1 for two classes of single texts, and the weights used."""
        return self._outputs(self.embed(batch), batch, None)

    def logits_from(
        self, embedded: Float[Tensor, "B L E"], batch: Batch, attention: Tensor | None = None
    ) -> Float[Tensor, "B C"]:
        """Differentiable logits from the text's embeddings, under imposed weights (B, 1, T) where given."""
        return self.as_logits(self._outputs(embedded, batch, attention)[0])

    def _outputs(
        self, embedded: Tensor, batch: Batch, attention: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        states, query = self.encode(embedded, batch), self.asked(batch)
        weights = self.attend(states, batch, query) if attention is None else attention  # the door
        context = torch.matmul(weights, states)
        return self.finish(self.projection(context), batch, query).squeeze(1), weights

    def as_logits(self, outputs: Float[Tensor, "*batch O"]) -> Float[Tensor, "*batch C"]:
        """Decoder outputs as one logit a class: (0, z) where there is one sigmoid output."""
        if outputs.shape[-1] == len(self.classes):
            return outputs
        return torch.cat([torch.zeros_like(outputs), outputs], dim=-1)

    @torch.no_grad()
    def trace(self, batch: Batch) -> Trace:
        """One forward pass: weights, logits and, for single texts, the read-out."""
        states, query = self.encode(self.embed(batch), batch), self.asked(batch)
        attention = self.attend(states, batch, query)
        heat, support = attention.squeeze(1), batch.mask.unsqueeze(1)
        if query is None:
            readout = self.readout(states)
            logits = decode(readout, attention.unsqueeze(0)).squeeze(0)
            return Trace(batch.rows, batch.mask, attention, support, heat, logits, readout)
        assert isinstance(batch, PairBatch)
        kept = _Kept(torch.matmul(states, self.projection.weight.T), query, batch)
        logits = self._decode(kept, attention)[:, 0]
        return Trace(batch.rows, batch.mask, attention, support, heat, logits, state=kept)

    @torch.no_grad()
    def logits(self, batch: Batch) -> Float[Tensor, "B C"]:
        """Predictions alone."""
        return self.as_logits(self(batch)[0])

    def readout(self, states: Float[Tensor, "B T D"]) -> Readout:
        """R[t] = W h_t and b."""
        relevance = self.as_logits(torch.matmul(states, self.projection.weight.T))
        return Readout(relevance.unsqueeze(1), self.as_logits(self.projection.bias))

    def predict(self, trace: Trace, attention: Float[Tensor, "S B K P"]) -> Float[Tensor, "S B C"]:
        """Logits under S other weightings each; the encoder is not asked again."""
        if trace.readout is not None:
            return decode(trace.readout, attention)
        assert isinstance(trace.state, _Kept)
        return self._decode(trace.state, attention.squeeze(2).transpose(0, 1)).transpose(0, 1)

    def _decode(self, kept: _Kept, attention: Float[Tensor, "B S T"]) -> Float[Tensor, "B S C"]:
        inner = torch.matmul(attention.to(kept.inner.dtype), kept.inner) + self.projection.bias
        return self.finish(inner, kept.batch, kept.query)

    def shown(self, trace: Trace, attention: Float[Tensor, "S B K P"]) -> Float[Tensor, "S B T"]:
        """The weights are the heat map: K = 1."""
        return attention.squeeze(2)
