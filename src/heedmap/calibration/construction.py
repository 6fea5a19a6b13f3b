"""Constructions: what the plants of a family of single texts have in common, and how one is made and checked.

A construction writes texts, and says how much attention each word draws. Set by hand, it also says what each
word adds to the logits, and by which way. A trained model finds that out, and the checks say whether it did. A
check reads held-out texts; it uses the answers and the weights, but nothing that the verdict measures.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from heedmap.calibration.by_hand import Way, classifier_by_hand, set_margin, values_for
from heedmap.calibration.families import Maker, PlantedModel
from heedmap.calibration.plants import OWN, Drawing, Plant, spaced
from heedmap.calibration.trained import DEV, LEAST, SETTINGS, TRAIN, Further, Teacher, train_model
from heedmap.data.corpus import Corpus, Split
from heedmap.data.vocabulary import Vocabulary
from heedmap.measures import total_variation
from heedmap.models.attention_classifier import TextClassifier
from heedmap.models.classifier import Classifier
from heedmap.models.normalisers import normalise
from heedmap.models.trace import Model
from heedmap.settings.training import TrainSettings

MANY = 1600  # training texts of plants of ten classes or more
FARTHEST = 0.2  # mean TVD of learned weights from the plant's
HIGHLIGHTED = 0.5  # the least mass on the words on which a map is said to be

Writer = Callable[[Plant, int, str], Split]
Change = Callable[[Plant, Split], Split]
Marks = Callable[[Plant, Split], list[NDArray[np.bool_]]]
# Given the plant, its model and held-out texts, returns what is wrong, in a few words, or nothing.
Check = Callable[[Plant, Any, Split], str]


def own_way(plant: Plant, word: str) -> Way:
    """Let a word's effect reach the read-out in its own state."""
    return "own"


@dataclass(frozen=True, eq=False)
class Construction:
    """What the plants of a family have in common.

    Attributes:
        write: writes the texts of a part ("train", "dev", "test").
        scores: how much attention each word draws to itself and to the next one, (V, 2); None if it is learned.
        checks: what must hold on held-out texts.
        words: all words that may occur in a changed text, beside those of the written ones.
        write_training: writes the texts to learn from, if they are not as those of the audit.
        training: how many of them.
        settings: of the training.
        further: a loss to add while training.
        effects: what each word adds to the logits, (V, C), if the model is set by hand.
        divided: whether effects are divided by the words' usual weights, or are the values of their states.
        way: how a word's effect reaches the read-out of an encoder with context.
        bias: of the decoder, if the model is set by hand: one number per class.
    """

    write: Writer
    scores: Callable[[Plant, Vocabulary], NDArray[np.float64]] | None
    checks: Sequence[Check]
    words: Callable[[Plant], Sequence[str]] = lambda plant: ()
    write_training: Writer | None = None
    training: int = TRAIN
    settings: TrainSettings = SETTINGS
    further: Further | None = None
    effects: Callable[[Plant, Vocabulary], NDArray[np.float64]] | None = None
    divided: bool = True
    way: Callable[[Plant, str], Way] = own_way
    bias: Callable[[Plant], NDArray[np.float64]] | None = None


def makers(
    construction: Construction, encoders: Sequence[str] = OWN, by_hand: Sequence[str] = ()
) -> Mapping[str, Maker]:
    """Return makers: models of some encoders are trained, those of others are set by hand."""
    return {
        **{encoder: partial(set_weights, construction) for encoder in by_hand},
        **{encoder: partial(train, construction) for encoder in encoders},
    }


def set_weights(
    construction: Construction, plant: Plant, corpus: Corpus | None = None
) -> PlantedModel:
    """Make a plant by hand."""
    assert construction.effects is not None
    assert construction.scores is not None
    dev, test = (
        construction.write(plant, DEV, "dev"),
        construction.write(plant, plant.texts, "test"),
    )
    vocabulary = _vocabulary(construction, plant, dev, test)
    scores = construction.scores(plant, vocabulary)
    way = construction.way if plant.encoder == "by hand" else own_way
    effects = construction.effects(plant, vocabulary)
    values = (
        values_for(plant, dev, vocabulary, effects, scores, partial(way, plant))
        if construction.divided
        else np.stack([effects, *[np.zeros_like(effects)] * 2], axis=1)
    )
    bias = None if construction.bias is None else construction.bias(plant)
    model = classifier_by_hand(plant, vocabulary, values, scores, bias)
    return finish(construction, plant, model, dev, test)


def train(construction: Construction, plant: Plant, corpus: Corpus | None = None) -> PlantedModel:
    """Train a plant."""
    model, dev, test = trained_model(construction, plant)
    return finish(construction, plant, model, dev, test)


def trained_model(construction: Construction, plant: Plant) -> tuple[TextClassifier, Split, Split]:
    """Return a trained model, the texts to check it on, and those of the audit."""
    write = construction.write_training or construction.write
    training = write(plant, max(construction.training, MANY if plant.classes >= 10 else 0), "train")
    dev, test = (
        construction.write(plant, DEV, "dev"),
        construction.write(plant, plant.texts, "test"),
    )
    vocabulary = _vocabulary(construction, plant, training, dev, test)
    scores = None if construction.scores is None else construction.scores(plant, vocabulary)
    selection = dev if construction.write_training is None else write(plant, DEV, "selection")
    model = train_model(
        plant, vocabulary, training, selection, scores, construction.further, construction.settings
    )
    return model, dev, test


def finish(
    construction: Construction, plant: Plant, model: TextClassifier, dev: Split, test: Split
) -> PlantedModel:
    """Give a model the plant's margin, and check it."""
    set_margin(model, test, plant.margin)
    checks = list(construction.checks)
    if construction.scores is not None and plant.score != "fixed":
        drawing = Drawing(construction.scores(plant, model.vocabulary))
        checks.append(is_taught(drawing.of_batch))
    return checked(checks, plant, model, dev, test)


def checked(
    checks: Sequence[Check], plant: Plant, model: Model, dev: Split, test: Split
) -> PlantedModel:
    """Return what was made, admitted if no check has anything against it."""
    failures = (check(plant, model, dev) for check in checks)
    # The first failure is reported, and the checks after it are not run.
    why_not = next(filter(None, failures), "")
    return PlantedModel(model, test, not why_not, why_not)


def _vocabulary(construction: Construction, plant: Plant, *splits: Split) -> Vocabulary:
    words = {word for split in splits for text in split.tokens for word in text}
    return Vocabulary(sorted(words | set(construction.words(plant))))


# What is checked.


@runtime_checkable
class ShowsTexts(Protocol):
    """A model that says itself how it reads planted texts: as pictures, or with the query among the words."""

    def shown(self, split: Split) -> Split:
        """Return texts as it reads them."""
        ...


def as_read(model: Model, split: Split) -> Split:
    """Return texts as a model reads them: as it shows them itself, or with the spaces before its words."""
    if isinstance(model, ShowsTexts):
        return model.shown(split)
    return split if isinstance(model, Classifier) else spaced(split)


def answers(model: Model, split: Split) -> Int[Tensor, " N"]:
    """Return the predicted classes."""
    texts = as_read(model, split).texts
    return model.logits(model.batch(texts, range(len(split)))).argmax(-1)


def accuracy(model: Model, split: Split) -> float:
    """Return the share of right answers."""
    return float((answers(model, split).numpy() == split.labels).mean())


def _as_they_are(plant: Plant, split: Split) -> Split:
    return split


def is_accurate(
    on: str = "planted texts", change: Change = _as_they_are, minimum: float = LEAST
) -> Check:
    """Check that held-out texts are answered right, after a change if one is given."""

    def check(plant: Plant, model: Model, dev: Split) -> str:
        share = accuracy(model, change(plant, dev))
        return "" if share >= minimum else f"accuracy {share:.2f} on {on}"

    return check


def marks_of(is_marked: Callable[[str], bool]) -> Marks:
    """Return the marks of some words."""

    def marks(plant: Plant, split: Split) -> list[NDArray[np.bool_]]:
        return [np.array([is_marked(word) for word in text]) for text in split.tokens]

    return marks


def exchanged(
    split: Split, word: Callable[[str], str], labels: NDArray[np.int64] | None = None
) -> Split:
    """Return the texts with each word replaced, and other labels if they are given."""
    tokens = [[word(w) for w in text] for text in split.tokens]
    return replace(split, tokens=tokens, labels=split.labels if labels is None else labels)


def weights_of(model: Model, split: Split) -> Float[Tensor, "N T"]:
    """Return the weights of words or sentences, 0 at padding."""
    texts = as_read(model, split).texts
    return model.trace(model.batch(texts, range(len(split)))).heatmap


def mass_on(model: Model, split: Split, marks: Sequence[NDArray[np.bool_]]) -> NDArray[np.float64]:
    """Return the weight on the marked words of each text that has some."""
    weights = weights_of(model, split).double().numpy()
    pairs = zip(weights, marks, strict=True)
    return np.array([row[: len(m)][m].sum() for row, m in pairs if m.any()])


def the_rationale(plant: Plant, split: Split) -> list[NDArray[np.bool_]]:
    """Return the marks of the words that decide."""
    assert split.rationale is not None
    return split.rationale


def after_the_rationale(plant: Plant, split: Split) -> list[NDArray[np.bool_]]:
    """Return the marks of the words behind those that decide."""
    return [np.append(False, marks[:-1]) for marks in the_rationale(plant, split)]


def is_on(name: str, marks: Marks = the_rationale, minimum: float = HIGHLIGHTED) -> Check:
    """Check that the mean weight of the marked words in a text is at least so much."""

    def check(plant: Plant, model: Model, dev: Split) -> str:
        mass = mass_on(model, dev, marks(plant, dev)).mean()
        return "" if mass >= minimum else f"mass {mass:.2f} on {name}"

    return check


def is_not_on(name: str, marks: Marks = the_rationale, maximum: float = 0.25) -> Check:
    """Check that the mean weight of the marked words in a text is at most so much."""

    def check(plant: Plant, model: Model, dev: Split) -> str:
        mass = mass_on(model, dev, marks(plant, dev)).mean()
        return "" if mass <= maximum else f"mass {mass:.2f} on {name}"

    return check


def is_not_above_chance(name: str, marks: Marks = the_rationale, maximum: float = 1.5) -> Check:
    """Check that the mean weight of the marked words is at most so many times that of other words."""

    def check(plant: Plant, model: Model, dev: Split) -> str:
        marked = marks(plant, dev)
        mass, even = (
            mass_on(model, dev, marked).mean(),
            np.mean([m.mean() for m in marked if m.any()]),
        )
        return "" if mass <= maximum * even else f"mass {mass:.2f} on {name}"

    return check


def is_taught(teacher: Teacher) -> Check:
    """Check that learned weights have come to be the plant's, given by their scores."""

    def check(plant: Plant, model: Model, dev: Split) -> str:
        batch = model.batch(dev.texts, range(len(dev)))
        target = normalise(teacher(batch), batch.mask, plant.normaliser)
        with torch.no_grad():
            distance = float(total_variation(weights_of(model, dev), target).mean())
        return "" if distance <= FARTHEST else f"weights {distance:.2f} from the plant's"

    return check
