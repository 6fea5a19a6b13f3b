"""Planted models of our own whose every weight is set by hand: exact, and made in no time."""

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from heedmap.calibration.plants import CUES, Drawing, Plant, cue, is_attended, number_of, scores_of
from heedmap.data.corpus import Split
from heedmap.data.vocabulary import SPECIAL, Vocabulary
from heedmap.models.attention_classifier import TextClassifier
from heedmap.models.encoders import NoEncoder
from heedmap.settings import ModelSettings


class PassOn(NoEncoder):
    """An encoder whose state at t is own_t + Σ_s spread_s + moved_(t − 1): three values per word, C each."""

    marks = True

    def __init__(self, classes: int) -> None:
        super().__init__(classes, classes)

    def forward(
        self, embedded: Float[Tensor, "B L E"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "B L D"]:
        """Return the states of all positions."""
        own, spread, moved = embedded.chunk(3, dim=-1)
        return own + spread.sum(1, keepdim=True) + functional.pad(moved, (0, 0, 1, 0))[:, :-1]


class PlantedClassifier(TextClassifier):
    """A `TextClassifier` with fixed scores, `PassOn`, and a decoder that reads the states off."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        classes: int,
        values: NDArray[np.float64],
        scores: NDArray[np.float64],
    ) -> None:
        settings = ModelSettings(
            encoder="average", score="log_odds", embedding_size=values.shape[1], hidden_size=4
        )
        super().__init__(settings, vocabulary, [str(c) for c in range(classes)])
        self.encoder = PassOn(classes)
        self.decoder = nn.Linear(classes, 1 if classes == 2 else classes)
        reads = torch.eye(classes)
        self.score = Drawing(scores)
        with torch.no_grad():
            self.embedding.weight.copy_(torch.from_numpy(values))
            self.decoder.weight.copy_(reads[1:] - reads[:1] if classes == 2 else reads)
            self.decoder.bias.zero_()


def planted_by_hand(plant: Plant, split: Split, vocabulary: Vocabulary) -> PlantedClassifier:
    """Make the model; its values are scaled so that the median margin on the texts is the plant's."""
    values, scores = values_of(plant, split, vocabulary), scores_of(plant, vocabulary)
    if plant.kind == "proportional":
        scores = scores_by_values(values)
    model = PlantedClassifier(vocabulary, plant.classes, values, scores)
    scale = plant.margin / median_margin(
        model.trace(model.batch(split.texts, range(len(split)))).logits
    )
    with torch.no_grad():
        model.embedding.weight.mul_(scale)
    return model.eval().requires_grad_(False)


def scores_by_values(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the scores of a proportional plant, whose softmax are the sizes of the values: shape (V, 2)."""
    scores = np.log(np.maximum(np.abs(values).sum(1), 1e-9))
    return np.stack([scores, np.zeros_like(scores)], axis=1)


def median_margin(logits: Float[Tensor, "B C"]) -> float:
    """Return the median of the log-odds of the predicted class against the second one."""
    best = logits.topk(2, dim=-1).values
    return float((best[:, 0] - best[:, 1]).median())


def values_of(plant: Plant, split: Split, vocabulary: Vocabulary) -> NDArray[np.float64]:
    """Return each word's values, own, spread and moved: shape (V, 3 C).

    They are divided by the weight that the word's state has in a typical text, so that the words' effects on
    the prediction do not depend on the kind of plant.
    """
    rng = plant.generator("values")
    count, first, words = plant.classes, len(SPECIAL), len(vocabulary)
    ways = {"own": 0, "spread": 1, "moved": 2}
    values = np.zeros((words, 3, count))
    effects = plant.noise * rng.normal(size=(words, count))
    weight = _typical_weights(plant, split, vocabulary)
    for c in range(count):
        for k in range(CUES):
            word = first + vocabulary.words.index(cue(c, k))
            effects[word] = np.eye(count)[c] / plant.deciding
    if plant.kind == "proportional":
        # Positive values of one class per word, of very different sizes; the weight is their size.
        effects = (
            np.abs(rng.normal(size=(words, 1))) * np.eye(count)[rng.integers(count, size=words)]
        )
        effects *= 3 * plant.noise
        for c in range(count):
            for k in range(CUES):
                word = first + vocabulary.words.index(cue(c, k))
                effects[word] = np.eye(count)[c] * rng.uniform(0.5, 1.5)
        weight = np.ones(words)
    for word in range(first, words):
        way = _way(plant, vocabulary.words[word - first])
        values[word, ways[way]] = effects[word] / (1.0 if way == "spread" else weight[word])
    return values.reshape(words, -1)


def _way(plant: Plant, word: str) -> str:
    """Return how a word's value reaches the read-out."""
    if plant.kind == "irrelevant":
        return "spread"
    if not word.startswith("cue"):
        return "spread" if plant.kind == "partly" else "own"
    if plant.kind == "deceptive":
        return "moved"
    if plant.kind == "partly":
        return "own" if is_attended(plant, number_of(word)) else "spread"
    return "own"


def _typical_weights(plant: Plant, split: Split, vocabulary: Vocabulary) -> NDArray[np.float64]:
    """Return the mean weight of each word's carrier, itself or the next word; 1 if it does not occur."""
    own, following = scores_of(plant, vocabulary).T
    total, seen = np.zeros(len(vocabulary)), np.zeros(len(vocabulary))
    for text in split.tokens:
        ids = vocabulary.encode(text)[1:-1]
        scores = own[ids] + np.append(0.0, following[ids][:-1])
        weights = np.exp(scores - scores.max())
        weights /= weights.sum()
        carriers = np.append(weights[1:], 0.0)
        moved = np.array([_way(plant, word) == "moved" for word in text])
        np.add.at(total, ids, np.where(moved, carriers, weights))
        np.add.at(seen, ids, 1)
    return np.where(seen > 0, total / np.maximum(seen, 1), 1.0)
