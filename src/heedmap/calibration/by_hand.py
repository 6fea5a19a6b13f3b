"""Planted models of our own whose every weight is set by hand: exact, and made in no time."""

from collections.abc import Callable
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from heedmap.calibration.plants import (
    WITHOUT_CONTEXT,
    Design,
    Drawing,
    Plant,
    class_of,
    is_cue,
    number_of,
    scores_of,
)
from heedmap.data.corpus import Split
from heedmap.data.vocabulary import SPECIAL, Vocabulary
from heedmap.models.attention_classifier import TextClassifier
from heedmap.models.encoders import Average, NoEncoder
from heedmap.models.normalisers import normalise
from heedmap.settings.models import ModelSettings

# How a word's value reaches the read-out: in its own state, in all states, or in the next word's.
Way = Literal["own", "spread", "moved"]
WAYS: tuple[Way, ...] = ("own", "spread", "moved")
LINEAR = 1e-3  # the largest input of a tanh that is linear to seven digits


class PassOn(NoEncoder):
    """An encoder with the states unmoved_t + Σ_s spread_s + moved_(t − 1): three values per word, C each."""

    marks = True

    def __init__(self, classes: int) -> None:
        super().__init__(classes, classes)

    def forward(self, embedded: Float[Tensor, "B L E"], lengths: Tensor) -> Float[Tensor, "B L D"]:
        """Return the states of all positions."""
        unmoved, spread, moved = embedded.chunk(3, dim=-1)
        return unmoved + spread.sum(1, keepdim=True) + functional.pad(moved, (0, 0, 1, 0))[:, :-1]


def classifier_by_hand(
    plant: Plant,
    vocabulary: Vocabulary,
    values: NDArray[np.float64],
    scores: NDArray[np.float64],
    bias: NDArray[np.float64] | None = None,
) -> TextClassifier:
    """Make a `TextClassifier` with fixed scores, and a decoder that reads the words' values off the states.

    Args:
        plant: its encoder is "by hand" (`PassOn`), or one without context: there words have own values only.
        vocabulary: its words.
        values: per word and way, one number per class: shape (V, 3, C).
        scores: as `Drawing` has them, shape (V, 2).
        bias: of the decoder, one number per class.
    """
    count = plant.classes
    if plant.encoder == "by hand":
        flat = values.reshape(len(values), -1)
    else:
        assert not values[:, 1:].any(), f"{plant.encoder}: a state is of one word"
        flat = values[:, 0]
    settings = ModelSettings.of(
        encoder="average" if plant.encoder == "average" else "none",
        score="log_odds",
        normaliser=plant.normaliser,
        embedding_size=flat.shape[1],
        hidden_size=max(4, count),
    )
    model = TextClassifier(settings, vocabulary, [str(c) for c in range(count)])
    if plant.encoder == "by hand":
        model.encoder = PassOn(count)
        model.decoder = nn.Linear(count, 1 if count == 2 else count)
    model.score = Drawing(scores)
    reads = torch.eye(count, model.decoder.in_features)
    if count == 2:
        reads = reads[1:] - reads[:1]
    size = 1.0
    with torch.no_grad():
        model.embedding.weight.copy_(torch.from_numpy(flat))
        if isinstance(model.encoder, Average):
            # Values so small that the tanh of the encoder changes nothing; the decoder makes up for it.
            size = LINEAR / max(float(np.abs(flat).max()), LINEAR)
            model.encoder.projection.weight.copy_(size * torch.eye(model.encoder.size, count))
            model.encoder.projection.bias.zero_()
        model.decoder.weight.copy_(reads / size)
        biases = np.zeros(count) if bias is None else bias
        model.decoder.bias.copy_(
            torch.from_numpy(biases[1:] - biases[:1] if count == 2 else biases)
        )
    return model.eval().requires_grad_(False)


def planted_by_hand(
    plant: Plant, design: Design, split: Split, vocabulary: Vocabulary
) -> TextClassifier:
    """Make the model; its values are scaled so that the median margin on the texts is the plant's."""
    values = values_of(plant, design, split, vocabulary)
    scores = (
        scores_by_values(values)
        if design.kind == "proportional"
        else scores_of(plant, design, vocabulary)
    )
    model = classifier_by_hand(plant, vocabulary, values, scores)
    set_margin(model, split, plant.margin)
    return model


def set_margin(model: TextClassifier, split: Split, margin: float) -> None:
    """Scale the decoder, so that the median margin on some texts is this; no answer changes."""
    scale = margin / median_margin(model.logits(model.batch(split.texts, range(len(split)))))
    with torch.no_grad():
        model.decoder.weight.mul_(scale)
        model.decoder.bias.mul_(scale)


def scores_by_values(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the scores of a proportional plant, whose softmax are the sizes of the values: shape (V, 2)."""
    scores = np.log(np.maximum(np.abs(values).sum((1, 2)), 1e-9))
    return np.stack([scores, np.zeros_like(scores)], axis=1)


def median_margin(logits: Float[Tensor, "B C"]) -> float:
    """Return the median of the log-odds of the predicted class against the second one."""
    best = logits.topk(2, dim=-1).values
    return float((best[:, 0] - best[:, 1]).median())


def values_of(
    plant: Plant, design: Design, split: Split, vocabulary: Vocabulary
) -> NDArray[np.float64]:
    """Return each word's values by their ways to the read-out: shape (V, 3, C)."""
    rng = plant.generator("values")
    count, specials, words = plant.classes, len(SPECIAL), len(vocabulary)
    cues = [specials + i for i, word in enumerate(vocabulary.words) if is_cue(word)]
    classes = [class_of(vocabulary.words[w - specials]) for w in cues]
    if design.kind == "proportional":
        # Positive values of one class per word, of very different sizes; the weight is their size.
        effects = (
            np.abs(rng.normal(size=(words, 1))) * np.eye(count)[rng.integers(count, size=words)]
        )
        effects *= 3 * plant.noise
        effects[cues] = np.eye(count)[classes] * rng.uniform(0.5, 1.5, size=(len(cues), 1))
        effects[:specials] = 0.0
        return np.stack([effects, np.zeros_like(effects), np.zeros_like(effects)], axis=1)
    effects, scores = cue_effects(plant, vocabulary), scores_of(plant, design, vocabulary)

    def way(word: str) -> Way:
        return "own" if plant.encoder in WITHOUT_CONTEXT else way_of(design, plant, word)

    return values_for(plant, split, vocabulary, effects, scores, way)


def cue_effects(plant: Plant, vocabulary: Vocabulary) -> NDArray[np.float64]:
    """Return what each word adds to the logits: of a cue its share of its class, else noise; shape (V, C)."""
    effects = noise_effects(plant, vocabulary)
    for i, word in enumerate(vocabulary.words, len(SPECIAL)):
        if is_cue(word):
            effects[i] = np.eye(plant.classes)[class_of(word)] / plant.deciding
    return effects


def noise_effects(plant: Plant, vocabulary: Vocabulary) -> NDArray[np.float64]:
    """Return what words that say nothing add to the logits: shape (V, C)."""
    shape = (len(vocabulary), plant.classes)
    return plant.noise * plant.generator("values").normal(size=shape)


def values_for(
    plant: Plant,
    split: Split,
    vocabulary: Vocabulary,
    effects: NDArray[np.float64],
    scores: NDArray[np.float64],
    way: Callable[[str], Way],
) -> NDArray[np.float64]:
    """Return the values by which words have given effects on the logits: from (V, C) to (V, 3, C).

    An effect is divided by the weight that the word's state has in a typical text, so that the words' effects
    do not depend on where the attention is.
    """
    ways = np.array([WAYS.index(way(word)) for word in vocabulary.words], dtype=np.int64)
    weights = _typical_weights(plant, split, vocabulary, scores, ways)
    values = np.zeros((len(vocabulary), len(WAYS), plant.classes))
    words = np.arange(len(SPECIAL), len(vocabulary))
    values[words, ways] = (effects / weights[:, None])[words]
    return values


def way_of(design: Design, plant: Plant, word: str) -> Way:
    """Return how a word's value reaches the read-out."""
    if design.kind == "irrelevant":
        return "spread"
    if not is_cue(word):
        return "spread" if design.kind == "partly" else "own"
    if design.kind == "deceptive":
        return "moved"
    if design.kind == "partly":
        return "own" if design.is_attended(plant, number_of(word)) else "spread"
    return "own"


def _typical_weights(
    plant: Plant,
    split: Split,
    vocabulary: Vocabulary,
    scores: NDArray[np.float64],
    ways: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return the mean weight of the state that carries each word; 1 if it does not occur, or all states do."""
    drawing = Drawing(scores)
    total, seen = np.zeros(len(vocabulary)), np.zeros(len(vocabulary))
    of_word = np.concatenate([np.zeros(len(SPECIAL), dtype=np.int64), ways])
    for text in split.tokens:
        ids = vocabulary.encode(text)[1:-1]
        word_scores = drawing(torch.from_numpy(ids)[None])
        weights = normalise(
            word_scores, torch.ones_like(word_scores, dtype=torch.bool), plant.normaliser
        )
        weight = weights[0].double().numpy()
        # A moved value is in the state of the next word, so that word's weight counts.
        carrying = np.where(of_word[ids] == WAYS.index("moved"), np.append(weight[1:], 0.0), weight)
        np.add.at(total, ids, carrying)
        np.add.at(seen, ids, 1)
    mean = np.where(seen > 0, total / np.maximum(seen, 1), 1.0)
    mean[of_word == WAYS.index("spread")] = 1.0
    # Without any weight a word has no effect, whatever its value.
    return np.where(mean > 0, mean, 1.0)
