"""Planted texts of sentences, whose map is over the sentences: one or two of them have a cue.

The words' attention is learned freely; that of the sentences is fixed by the plant, or taught.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from heedmap.calibration.by_hand import set_margin
from heedmap.calibration.construction import (
    MANY,
    Check,
    checked,
    is_accurate,
    is_taught,
    mass_on,
    the_rationale,
)
from heedmap.calibration.families import PlantedModel
from heedmap.calibration.plants import (
    FILLERS,
    WITHOUT_CUES,
    Design,
    Plant,
    class_of,
    cue,
    cues_of,
    drawn_cues,
    is_cue,
    labels_of,
    number_of,
)
from heedmap.calibration.trained import DEV, TRAIN, fit_plant, settings_of
from heedmap.data.batches import Batch
from heedmap.data.corpus import Corpus, Split
from heedmap.data.vocabulary import SPECIAL, Vocabulary
from heedmap.models.hierarchical_classifier import HierarchicalClassifier, SentenceBatch
from heedmap.models.trace import Model
from heedmap.settings.models import ModelSettings
from heedmap.training.objective import seeded

ENCODER = "gru"  # of words and of sentences, as Yang et al.
SENTENCE = (4, 8)  # words: the least, the most


def write_sentences(design: Design, plant: Plant, count: int, part: str) -> Split:
    """Write texts of about `plant.length` sentences; `rationale` marks those with a cue.

    No two of these are neighbours, and the last sentence is none.
    """
    rng = plant.generator(part)
    labels = labels_of(plant, count, rng)
    tokens, rationale = [], []
    for label in labels.tolist():
        text = [_sentence(rng) for _ in range(_number_of_sentences(plant, rng))]
        cues = drawn_cues(plant, design, label, rng)
        places = 2 * rng.permutation(len(text) // 2)[: len(cues)]
        for place, (of_class, k) in zip(places.tolist(), cues, strict=True):
            text[place][int(rng.integers(len(text[place])))] = cue(of_class, k)
        tokens.append([" ".join(sentence) for sentence in text])
        rationale.append(np.array([any(map(is_cue, sentence)) for sentence in text]))
    return Split([f"{part}-{i}" for i in range(count)], tokens, labels, rationale)


def _number_of_sentences(plant: Plant, rng: np.random.Generator) -> int:
    # Enough for a third of them to hold all cues.
    return max(3 * plant.deciding + 3, int(rng.poisson(plant.length)))


def _sentence(rng: np.random.Generator) -> list[str]:
    shortest, longest = SENTENCE
    return [
        f"word{w}" for w in rng.integers(FILLERS, size=int(rng.integers(shortest, longest + 1)))
    ]


def with_other_cues(plant: Plant, split: Split) -> Split:
    """Replace the cues of every class by those of the next one, and the labels accordingly."""

    def other(word: str) -> str:
        if not is_cue(word):
            return word
        return cue((class_of(word) + 1) % plant.classes, number_of(word))

    tokens = [[" ".join(map(other, s.split())) for s in text] for text in split.tokens]
    return replace(split, tokens=tokens, labels=(split.labels + 1) % plant.classes)


def without_some_cues(plant: Plant, split: Split) -> Split:
    """Take the cues out of a share of the texts and draw their labels, so that no class becomes the default."""
    rng = plant.generator("without cues")
    without_cue = rng.random(len(split)) < WITHOUT_CUES
    drawn_labels = rng.integers(plant.classes, size=len(split))

    def other(word: str) -> str:
        return f"word{rng.integers(FILLERS)}" if is_cue(word) else word

    tokens = [
        [" ".join(map(other, sentence.split())) for sentence in text] if without else text
        for text, without in zip(split.tokens, without_cue.tolist(), strict=True)
    ]
    return replace(
        split,
        tokens=tokens,
        labels=np.where(without_cue, drawn_labels, split.labels),
        rationale=None,
    )


class SentenceDrawing(nn.Module):
    """A score per sentence, the sum of its words', and one for the sentence after it."""

    direct: Tensor
    following: Tensor

    def __init__(self, scores: NDArray[np.float64]) -> None:
        super().__init__()
        self.register_buffer("direct", torch.from_numpy(scores[:, 0]).float())
        self.register_buffer("following", torch.from_numpy(scores[:, 1]).float())

    def forward(self, batch: Batch) -> Float[Tensor, "B T"]:
        """Return the scores of a batch's sentences."""
        assert isinstance(batch, SentenceBatch)
        direct, following = (
            self._summed(table[batch.ids], batch) for table in (self.direct, self.following)
        )
        return direct + functional.pad(following, (1, 0))[:, :-1]

    def _summed(self, values: Float[Tensor, "B L"], batch: SentenceBatch) -> Float[Tensor, "B T"]:
        total = values.new_zeros(batch.mask.shape)
        real = batch.sentence >= 0
        return total.scatter_add(1, batch.sentence.clamp(min=0), values.masked_fill(~real, 0.0))


def sentence_scores(design: Design, plant: Plant, vocabulary: Vocabulary) -> NDArray[np.float64]:
    """Return how much attention each word draws to its sentence and to the next one, shape (V, 2)."""
    rng = plant.generator("scores")
    scattered = design.kind in ("irrelevant", "partly")
    # A sentence's score is the sum of some six words', centred: their number then draws nothing.
    deviation = plant.sharpness / 2 / np.sqrt(np.mean(SENTENCE)) if scattered else 0.05
    scores = np.zeros((len(vocabulary), 2))
    if design.kind != "uniform":
        scores[len(SPECIAL) :, 0] = deviation * rng.normal(size=len(vocabulary.words))
    for i, word in enumerate(vocabulary.words, len(SPECIAL)):
        if is_cue(word):
            scores[i] = _of_cue(design, plant, number_of(word))
    return scores


def _of_cue(design: Design, plant: Plant, number: int) -> tuple[float, float]:
    if design.kind == "faithful":
        return plant.sharpness, 0.0
    if design.kind == "deceptive":
        return 0.0, plant.sharpness
    if design.kind == "reversed":
        return -plant.sharpness, 0.0
    if design.kind == "partly":
        return (2 * plant.sharpness if design.is_attended(plant, number) else 0.0), 0.0
    return 0.0, 0.0


class PlantedSentences(HierarchicalClassifier):
    """A classifier of sentences' texts whose scores of sentences are fixed, if a `drawing` is given."""

    def __init__(
        self,
        settings: ModelSettings,
        vocabulary: Vocabulary,
        classes: Sequence[str],
        drawing: SentenceDrawing | None,
    ) -> None:
        super().__init__(settings, vocabulary, classes)
        self.drawing = drawing

    def scores(
        self, states: Float[Tensor, "B T D"], batch: Batch, query: Tensor | None = None
    ) -> Float[Tensor, "B T"]:
        """Return the fixed scores, or the model's own."""
        if self.drawing is None:
            return super().scores(states, batch, query)
        scores: Tensor = self.drawing(batch)
        return scores


def train(
    design: Design, checks: Sequence[Check], plant: Plant, corpus: Corpus | None = None
) -> PlantedModel:
    """Train a model whose weights of sentences are fixed, or taught."""
    write = partial(write_sentences, design, plant)
    is_hard = plant.classes >= 10 or design.kind == "partly"
    training = without_some_cues(plant, write(MANY if is_hard else TRAIN, "train"))
    dev, test = write(DEV, "dev"), write(plant.texts, "test")
    words = {
        word
        for split in (training, dev, test)
        for text in split.tokens
        for sentence in text
        for word in sentence.split()
    }
    vocabulary = Vocabulary(sorted(words | set(cues_of(plant))))
    drawing = SentenceDrawing(sentence_scores(design, plant, vocabulary))
    fixed = plant.score == "fixed"
    settings = settings_of(plant, ENCODER, "additive" if fixed else plant.score)
    with seeded(plant.seed):
        model = PlantedSentences(
            settings,
            vocabulary,
            [str(c) for c in range(plant.classes)],
            drawing if fixed else None,
        )
    fit_plant(model, plant, training, dev, None if fixed else drawing)
    set_margin(model, test, plant.margin)
    all_checks: list[Check] = [
        is_accurate(),
        is_accurate("cues of another class", with_other_cues),
        *checks,
        is_taught(drawing),
    ]
    return checked(all_checks, plant, model, dev, test)


def is_on_in_part(design: Design, plant: Plant, model: Model, dev: Split) -> str:
    """Check that the weight is on the cues' sentences where they draw attention, and not where they do not."""
    mass = mass_on(model, dev, the_rationale(plant, dev))
    numbers = [
        number_of(next(word for word in " ".join(text).split() if is_cue(word)))
        for text in dev.tokens
    ]
    attended = np.array([design.is_attended(plant, number) for number in numbers])
    on, off = mass[attended].mean(), mass[~attended].mean()
    return "" if on >= 0.5 and off <= 0.25 else f"mass {on:.2f} and {off:.2f} on the cues"
