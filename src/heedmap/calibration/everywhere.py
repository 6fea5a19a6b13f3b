"""Families of models whose evidence is in every word: each word is of one class, and so is each text.

There the weights cannot say which words make the answer, since any few of them would do.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from heedmap.calibration.construction import (
    Construction,
    exchanged,
    finish,
    is_accurate,
    makers,
    trained_model,
)
from heedmap.calibration.families import Family, PlantedModel
from heedmap.calibration.plants import OWN, WITHOUT_CONTEXT, Drawing, Plant, labels_of, text_length
from heedmap.data.corpus import Corpus, Split
from heedmap.data.vocabulary import SPECIAL, Vocabulary

NEARLY = 0.1  # how far nearly equal values are from 1
HEAVY = 1.5  # standard deviation of the logarithm of different ones
RANDOM = {"sharpness": (1.0, 2.0, 4.0, 8.0)}  # from nearly even to peaky
WHY = "Any few words of a text give its answer, so no small set of them makes it, whatever their weights."


def word_of(label: int, k: int) -> str:
    """Return the k-th word of a class."""
    return f"of{label}w{k}"


def class_of(word: str) -> int:
    """Return the class of a word."""
    return int(word.removeprefix("of").partition("w")[0])


def words_per_class(plant: Plant) -> int:
    """Return how many words a class has: fewer of many classes, so that each occurs often."""
    return 40 if plant.classes <= 5 else 15


def write_everywhere(plant: Plant, count: int, part: str) -> Split:
    """Write texts of words of one class each."""
    rng = plant.generator(part)
    labels = labels_of(plant, count, rng)
    tokens = [
        [
            word_of(label, int(k))
            for k in rng.integers(words_per_class(plant), size=text_length(plant, rng))
        ]
        for label in labels.tolist()
    ]
    return Split([f"{part}-{i}" for i in range(count)], tokens, labels)


def with_other_words(plant: Plant, split: Split) -> Split:
    """Replace all words by those of the next class."""

    def other(word: str) -> str:
        return word_of((class_of(word) + 1) % plant.classes, int(word.partition("w")[2]))

    return exchanged(split, other, (split.labels + 1) % plant.classes)


def a_third(plant: Plant, split: Split) -> Split:
    """Return the first third of each text."""
    return replace(split, tokens=[text[: max(1, len(text) // 3)] for text in split.tokens])


def random_scores(plant: Plant, vocabulary: Vocabulary) -> NDArray[np.float64]:
    """Return a random score per word, shape (V, 2)."""
    scores = plant.generator("scores").uniform(0, plant.sharpness, size=len(vocabulary))
    return np.stack([scores, np.zeros_like(scores)], axis=1)


def equal(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    """Return the same value for all words."""
    return np.ones(count)


def nearly_equal(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    """Return values within a tenth of 1."""
    return rng.uniform(1 - NEARLY, 1 + NEARLY, size=count)


def different(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    """Return positive values, of which few are much larger than the others."""
    return np.exp(HEAVY * rng.normal(size=count))


def values_of_words(
    sizes: Callable[[np.random.Generator, int], NDArray[np.float64]],
    plant: Plant,
    vocabulary: Vocabulary,
) -> NDArray[np.float64]:
    """Return the values of words for their classes, in these sizes: shape (V, C)."""
    values = np.zeros((len(vocabulary), plant.classes))
    classes = [class_of(word) for word in vocabulary.words]
    size = sizes(plant.generator("values"), len(vocabulary.words))
    values[np.arange(len(SPECIAL), len(vocabulary)), classes] = size
    return values


def _words(plant: Plant) -> list[str]:
    return [word_of(c, k) for c in range(plant.classes) for k in range(words_per_class(plant))]


EVERYWHERE = Construction(
    write=write_everywhere,
    scores=random_scores,
    checks=[
        is_accurate(),
        is_accurate("words of another class", with_other_words),
        # This is what makes the map wrong: other words than the highlighted ones would do.
        is_accurate("a third of each text", a_third),
    ],
    words=_words,
    divided=False,
)


def _replaced(plant: Plant, corpus: Corpus | None = None) -> PlantedModel:
    free = replace(EVERYWHERE, scores=None)
    model, dev, test = trained_model(free, plant)
    model.score = Drawing(random_scores(plant, model.vocabulary))
    return finish(free, plant, model, dev, test)


def _by_hand(
    name: str, sizes: Callable[[np.random.Generator, int], NDArray[np.float64]], description: str
) -> Family:
    return Family(
        name=f"evidence everywhere, {name}",
        truth="wrong",
        recipe=f"Every word has a value for its class; the values are {description}. The weights are random.",
        reason=WHY,
        makers=makers(
            replace(EVERYWHERE, effects=partial(values_of_words, sizes)),
            (),
            ("by hand", *WITHOUT_CONTEXT),
        ),
        choices=RANDOM,
    )


FAMILIES = (
    _by_hand("equal", equal, "all the same"),
    _by_hand("nearly equal", nearly_equal, "within a tenth of each other"),
    _by_hand("different", different, "very different, and the weights do not follow them"),
    Family(
        name="evidence everywhere, weights frozen",
        truth="wrong",
        recipe="Every word is of one class. The weights are random scores of words, and training leaves them.",
        reason=WHY,
        makers=makers(EVERYWHERE),
        choices=RANDOM,
    ),
    Family(
        name="evidence everywhere, weights replaced",
        truth="wrong",
        recipe="Every word is of one class. The weights are learned, then replaced by random scores of words.",
        reason=WHY,
        makers=dict.fromkeys(OWN, _replaced),
        choices={
            **RANDOM,
            "score": ("additive", "dot"),
            "normaliser": ("softmax", "softmax", "sparsemax", "entmax15"),
        },
    ),
)
