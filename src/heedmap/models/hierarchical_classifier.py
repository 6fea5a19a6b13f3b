"""Build hierarchical attention: words make sentences, sentences make the text (Yang et al. 2016).

A text's tokens are its sentences, each written as its words with a space between them. Attention on trial is
over the sentences; that of the words can be read (`word_attention`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

from heedmap.data.batches import Batch, Encoded, sorted_batches
from heedmap.data.texts import Text
from heedmap.data.vocabulary import PAD, UNKNOWN_WORD, Vocabulary
from heedmap.models.attention_classifier import TextClassifier
from heedmap.models.encoders import ENCODERS
from heedmap.models.normalisers import normalise
from heedmap.models.scores import SCORES
from heedmap.settings.models import ModelSettings

WORDS_AT_ONCE = 16_384  # that the word encoder reads, padding included


@dataclass(frozen=True)
class SentenceBatch(Batch):
    """Texts as sentences of words: `mask` marks the sentences (B, T), `ids` are all words of a text (B, L).

    `sentence` is the sentence of each word, −1 at padding.
    """

    sentence: Int[Tensor, "B L"]

    def taken(self, rows: slice) -> "SentenceBatch":
        """Return some of the texts, padded to the longest of them."""
        part = self._each(lambda value: value[rows])
        assert isinstance(part, SentenceBatch)
        sentences, words = int(part.lengths.max()), int((part.sentence >= 0).sum(1).max())
        return replace(
            part,
            ids=part.ids[:, :words],
            sentence=part.sentence[:, :words],
            mask=part.mask[:, :sentences],
        )


class EncodedSentences(Encoded):
    """A split as word numbers, with the number of words of every sentence."""

    def __init__(
        self, texts: Sequence[Sequence[NDArray[np.int64]]], labels: NDArray[np.int64]
    ) -> None:
        whole = [np.concatenate(text) if text else np.zeros(0, np.int64) for text in texts]
        self.words = np.array([len(text) for text in whole], dtype=np.int64)
        self.offsets = np.concatenate([[0], np.cumsum(self.words)])
        self.ids = np.concatenate([np.zeros(0, np.int64), *whole]).astype(np.int32)
        self.lengths = self.words
        self.labels = labels
        self.sizes = [np.array([len(sentence) for sentence in text]) for text in texts]

    def batch(self, rows: Sequence[int] | NDArray[np.int64]) -> SentenceBatch:
        """Return the texts of some rows, padded to the most words and the most sentences."""
        row_numbers = np.asarray(rows, dtype=np.int64)
        sizes = [self.sizes[row] for row in row_numbers]
        ids = np.full(
            (len(row_numbers), int(self.words[row_numbers].max(initial=0))), PAD, dtype=np.int64
        )
        sentence = np.full(ids.shape, -1, dtype=np.int64)
        mask = np.zeros((len(row_numbers), max(map(len, sizes), default=0)), dtype=bool)
        for i, row in enumerate(row_numbers):
            count = self.words[row]
            ids[i, :count] = self.ids[self.offsets[row] : self.offsets[row + 1]]
            sentence[i, :count] = np.repeat(np.arange(len(sizes[i])), sizes[i])
            mask[i, : len(sizes[i])] = True
        parts = (row_numbers, ids, mask, self.labels[row_numbers], sentence)
        return SentenceBatch(*map(torch.from_numpy, parts))


class HierarchicalClassifier(TextClassifier):
    """s_i = Σ_t β_it g_it over the words of sentence i, c = Σ_i α_i h_i over sentences, logits = W c + b.

    g are the word encoder's states, h those of the sentence encoder, which reads s; β and α have each a score
    of their own. There are no marks. Encoders, scores and normaliser of both levels are of one kind.
    """

    def __init__(
        self, settings: ModelSettings, vocabulary: Vocabulary, classes: Sequence[str]
    ) -> None:
        super().__init__(settings, vocabulary, classes)
        # What a flat model does with words; the sentences' states have the same size.
        self.word_encoder, self.word_score = self.encoder, self.score
        self.encoder = ENCODERS[settings.encoder](self.word_encoder.size, settings.hidden_size)
        self.score = SCORES[settings.score](self.encoder.size)

    def attention_parameters(self) -> list[nn.Parameter]:
        """Return the parameters of both scores."""
        return [*self.score.parameters(), *self.word_score.parameters()]

    def lengths(self, texts: Sequence[Text]) -> NDArray[np.int64]:
        """Count the words of each text."""
        return np.array([sum(len(s.split()) for s in text) for text in texts], dtype=np.int64)

    def encoded(self, texts: Sequence[Text], labels: NDArray[np.int64]) -> EncodedSentences:
        """Number the words; a sentence of no word becomes one unknown word."""
        encode = self.vocabulary.encode
        return EncodedSentences(
            [
                [encode(sentence.split() or [UNKNOWN_WORD])[1:-1] for sentence in text]
                for text in texts
            ],
            labels,
        )

    def on_tokens(self, values: Float[Tensor, "B L"], batch: Batch) -> Float[Tensor, "B T"]:
        """Sum the words' values over each sentence."""
        assert isinstance(batch, SentenceBatch)
        real = batch.sentence >= 0
        total = values.new_zeros(batch.mask.shape)
        return total.scatter_add(1, batch.sentence.clamp(min=0), values.masked_fill(~real, 0.0))

    def token_positions(self, batch: Batch) -> Bool[Tensor, "B L"]:
        """Mark the words."""
        assert isinstance(batch, SentenceBatch)
        return batch.sentence >= 0

    def encode(self, embedded: Float[Tensor, "B L E"], batch: Batch) -> Float[Tensor, "B T D"]:
        """Return the states of the sentences."""
        vectors = self.sentence_vectors(embedded, batch)
        states: Tensor = self.encoder(vectors, batch.lengths)
        return states

    def sentence_vectors(
        self, embedded: Float[Tensor, "B L E"], batch: Batch
    ) -> Float[Tensor, "B T D"]:
        """Read each sentence by itself; 0 at padding."""
        vectors = embedded.new_zeros(*batch.mask.shape, self.word_encoder.size)
        flat, sizes, order = self._sentences(embedded, batch)
        if not len(sizes):
            return vectors
        sentences = torch.cat([self._read(flat, sizes, rows)[0] for rows in order])
        # Read sorted by length, so that little is padded; back into the order of the texts.
        sentences = sentences[torch.argsort(torch.cat(order))]
        return vectors.masked_scatter(batch.mask.unsqueeze(-1), sentences)

    def _sentences(
        self, embedded: Float[Tensor, "B L E"], batch: Batch
    ) -> tuple[Float[Tensor, "W E"], Int[Tensor, " S"], list[Int[Tensor, " _"]]]:
        """Return all words of a batch, each sentence's number of them, and sentences of similar length."""
        assert isinstance(batch, SentenceBatch)
        flat = embedded[batch.sentence >= 0]
        numbers = batch.sentence + batch.mask.shape[1] * torch.arange(
            len(batch.mask), device=flat.device
        ).unsqueeze(1)
        sizes = torch.bincount(numbers[batch.sentence >= 0], minlength=batch.mask.numel())
        sizes = sizes[batch.mask.flatten()]
        order = sorted_batches(sizes.numpy(force=True), WORDS_AT_ONCE)
        return flat, sizes, [torch.from_numpy(rows).to(flat.device) for rows in order]

    def _read(
        self, flat: Float[Tensor, "W E"], sizes: Int[Tensor, " S"], rows: Int[Tensor, " R"]
    ) -> tuple[Float[Tensor, "R D"], Float[Tensor, "R N"]]:
        """Return the vectors of some sentences, and the weights of their words."""
        starts = sizes.cumsum(0) - sizes
        place = torch.arange(int(sizes[rows].max()), device=flat.device)
        mask = place < sizes[rows].unsqueeze(1)
        index = (starts[rows].unsqueeze(1) + place).clamp(max=len(flat) - 1)
        words = flat[index].masked_fill(~mask.unsqueeze(-1), 0.0)
        states = self.word_encoder(words, sizes[rows])
        weights = normalise(self.word_score(states), mask, self.settings.normaliser)
        return torch.matmul(weights.unsqueeze(1), states).squeeze(1), weights

    @torch.no_grad()
    def word_attention(self, batch: Batch) -> list[list[list[float]]]:
        """Return the weights of each text's words, by sentence; those of a sentence sum to 1."""
        flat, sizes, order = self._sentences(self.embed(batch), batch)
        weights_of_sentence: dict[int, list[float]] = {}
        for rows in order:
            _, weights = self._read(flat, sizes, rows)
            for row, padded_weights in zip(rows.tolist(), weights.tolist(), strict=True):
                weights_of_sentence[row] = padded_weights[: int(sizes[row])]
        number = iter(range(len(sizes)))
        return [
            [weights_of_sentence[next(number)] for _ in range(size)]
            for size in batch.lengths.tolist()
        ]
