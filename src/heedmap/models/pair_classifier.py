"""Build the papers' classifier of pairs: score and decoder use the query (or hypothesis) as one vector."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor, nn

from heedmap.data.batches import Batch, EncodedPairs, PairBatch
from heedmap.data.texts import Pair, Text
from heedmap.data.vocabulary import PAD, Vocabulary
from heedmap.models.attention_classifier import AttentionClassifier
from heedmap.models.decoders import PairDecoder
from heedmap.models.encoders import ENCODERS
from heedmap.models.scores import PAIR_SCORES
from heedmap.models.trace import Trace
from heedmap.settings.models import ModelSettings

# The logit of an answer that is not a candidate: its probability is 0, its log-probability finite.
IMPOSSIBLE = -1e4


class Query(nn.Module):
    """Encode the query of a pair as one vector, with its own embedding and encoder."""

    def __init__(self, settings: ModelSettings, words: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, settings.embedding_size, padding_idx=PAD)
        self.encoder = ENCODERS[settings.encoder](settings.embedding_size, settings.hidden_size)

    def forward(self, batch: PairBatch) -> Float[Tensor, "B 1 D"]:
        """Return one vector per query."""
        embedded = self.embedding(batch.query_ids)
        inputs, lengths = self.encoder.reads(embedded, batch.query_lengths)
        states = self.encoder(inputs, lengths)
        return self.encoder.last(states, lengths).unsqueeze(1)


@dataclass(frozen=True)
class _State:
    """The inputs of a prediction beside the weights: W_c h_t, the query's vector, the candidates."""

    inner: Float[Tensor, "B T A"]
    query: Float[Tensor, "B 1 D"]
    batch: PairBatch


class PairClassifier(AttentionClassifier):
    """A classifier of pairs. Its decoder is W tanh(W_c c + W_q q + b) + b', so it has no linear read-out."""

    def __init__(
        self, settings: ModelSettings, vocabulary: Vocabulary, classes: Sequence[str]
    ) -> None:
        super().__init__(settings, vocabulary, classes)
        self.query = Query(settings, len(vocabulary))
        self.score = PAIR_SCORES[settings.score](self.encoder.size)
        self.decoder = PairDecoder(self.encoder.size, len(classes))

    @property
    def projection(self) -> nn.Linear:
        """Return the decoder's W_c and b."""
        return self.decoder.inner

    def embeddings(self) -> list[nn.Embedding]:
        """Return the embeddings of text and query."""
        return [self.embedding, self.query.embedding]

    def encoded(self, texts: Sequence[Text], labels: NDArray[np.int64]) -> EncodedPairs:
        """Encode pairs as word numbers."""
        pairs = [text for text in texts if isinstance(text, Pair)]
        assert len(pairs) == len(texts)
        numbers = [self.vocabulary.encode(pair) for pair in pairs]
        queries = [self.vocabulary.encode(pair.query) for pair in pairs]
        allowed = np.ones((len(texts), len(self.classes)), dtype=bool)
        for row, pair in enumerate(pairs):
            if pair.allowed is not None:
                allowed[row] = pair.allowed
        return EncodedPairs(numbers, queries, labels, allowed)

    def encode_query(self, batch: Batch) -> Float[Tensor, "B 1 D"]:
        """Return the queries' vectors."""
        assert isinstance(batch, PairBatch)
        vectors: Tensor = self.query(batch)
        return vectors

    def decode(
        self, projected: Float[Tensor, "B S A"], batch: Batch, query: Tensor | None
    ) -> Float[Tensor, "B S C"]:
        """Return logits from W_c c + b of S contexts per instance."""
        assert isinstance(batch, PairBatch)
        outputs: Tensor = self.decoder(projected, query)
        return outputs.masked_fill(~batch.allowed.unsqueeze(1), IMPOSSIBLE)

    @torch.no_grad()
    def trace(self, batch: Batch) -> Trace:
        """Run one forward pass: weights and logits."""
        assert isinstance(batch, PairBatch)
        states, query = self.encode(self.embed(batch), batch), self.encode_query(batch)
        attention = self.attend(states, batch, query)
        state = _State(torch.matmul(states, self.projection.weight.T), query, batch)
        logits = self._decode(state, attention)[:, 0]
        heatmap, support = attention.squeeze(1), batch.mask.unsqueeze(1)
        normalisation = self.normalised(states, batch, query)
        return Trace(
            batch.rows,
            batch.mask,
            attention,
            support,
            heatmap,
            logits,
            state=state,
            **normalisation,
        )

    def predict(self, trace: Trace, attention: Float[Tensor, "S B K P"]) -> Float[Tensor, "S B C"]:
        """Return logits under S other weightings each, without running the encoders again."""
        assert isinstance(trace.state, _State)
        return self._decode(trace.state, attention.squeeze(2).transpose(0, 1)).transpose(0, 1)

    def _decode(self, state: _State, attention: Float[Tensor, "B S T"]) -> Float[Tensor, "B S C"]:
        inner = torch.matmul(attention.to(state.inner.dtype), state.inner) + self.projection.bias
        return self.decode(inner, state.batch, state.query)
