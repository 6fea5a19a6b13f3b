"""Families of models whose weights are learned freely, and of the same models with other weights."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from heedmap.calibration.construction import (
    HIGHLIGHTED,
    MANY,
    Construction,
    finish,
    is_accurate,
    is_not_above_chance,
    makers,
    mass_on,
    the_rationale,
    trained_model,
)
from heedmap.calibration.everywhere import random_scores
from heedmap.calibration.families import Choices, Family, Maker, PlantedModel
from heedmap.calibration.plants import (
    OWN,
    WITH_CONTEXT,
    Drawing,
    Plant,
    cues_of,
    with_other_cues,
    write_texts,
)
from heedmap.calibration.trained import SETTINGS
from heedmap.data.corpus import Corpus, Split
from heedmap.data.vocabulary import SPECIAL
from heedmap.models.attention_classifier import TextClassifier

MOST_TEXTS = 0.9  # in so many the map must be on the cues
FREE = {
    "score": ("additive", "dot"),
    "normaliser": ("softmax", "sparsemax", "entmax15"),
}


# Without context, cues that have lost their weight decide only where the new weights are nearly even.
EVEN: Choices = {"length": (10,), "sharpness": (1.0,), "normaliser": ("softmax",)}


def _is_on_cues(plant: Plant, model: TextClassifier, dev: Split) -> str:
    """Check that the cues hold half of the weight in most texts."""
    share = (mass_on(model, dev, the_rationale(plant, dev)) >= HIGHLIGHTED).mean()
    return "" if share >= MOST_TEXTS else f"on the cues in {share:.2f} of the texts"


LEARNED = Construction(
    write=write_texts,
    scores=None,
    checks=[
        is_accurate(),
        is_accurate("cues of another class", with_other_cues),
        _is_on_cues,
    ],
    words=cues_of,
    training=MANY,
    settings=SETTINGS.model_copy(update={"weight_decay": 1e-3}),
)
REPLACED = replace(LEARNED, checks=[*LEARNED.checks[:2], is_not_above_chance("the cues")])


def uniform_scores(model: TextClassifier, plant: Plant, texts: Split) -> NDArray[np.float64]:
    """Return the same score for all words, shape (V, 2)."""
    return np.zeros((len(model.vocabulary), 2))


def other_scores(model: TextClassifier, plant: Plant, texts: Split) -> NDArray[np.float64]:
    """Return random scores, shape (V, 2)."""
    return random_scores(plant, model.vocabulary)


def shuffled_scores(model: TextClassifier, plant: Plant, texts: Split) -> NDArray[np.float64]:
    """Return each word's mean score in some texts, shuffled among the words: shape (V, 2)."""
    mean = mean_scores(model, texts)
    words = np.arange(len(SPECIAL), len(model.vocabulary))
    mean[words] = mean[plant.generator("scores").permutation(words)]
    return np.stack([mean, np.zeros_like(mean)], axis=1)


def mean_scores(model: TextClassifier, texts: Split) -> NDArray[np.float64]:
    """Return each word's mean learned score in some texts, that of all words if it does not occur: (V,)."""
    batch = model.batch(texts.texts, range(len(texts)))
    with torch.no_grad():
        scores = model.scores(model.encode(model.embed(batch), batch), batch)[batch.mask].double()
    ids = batch.ids[:, 1:-1][batch.mask].numpy()
    total, seen = np.zeros(len(model.vocabulary)), np.zeros(len(model.vocabulary))
    np.add.at(total, ids, scores.numpy())
    np.add.at(seen, ids, 1)
    return np.where(seen > 0, total / np.maximum(seen, 1), float(scores.mean()))


def _replaced(name: str, plant: Plant, corpus: Corpus | None = None) -> PlantedModel:
    model, dev, test = trained_model(LEARNED, plant)
    model.score = Drawing(REPLACEMENTS[name](model, plant, dev))
    return finish(REPLACED, plant, model, dev, test)


REPLACEMENTS = {
    "uniform": uniform_scores,
    "random": other_scores,
    "shuffled": shuffled_scores,
}


def _replacing(name: str, replacement: str, encoders: Sequence[str]) -> Family:
    maker: Maker = partial(_replaced, name)
    return Family(
        name=f"learned, then {name} weights",
        truth="wrong",
        recipe=f"Weights are learned freely on texts with cues. Then they are replaced by {replacement}.",
        reason="The cues make the answer still, also where they are those of another class, and the map does "
        "not know them.",
        makers=dict.fromkeys(encoders, maker),
        choices={
            **FREE,
            "sharpness": (1.0, 2.0, 3.0),
            "length": (10, 16),
            "deciding": (2, 3),
            "classes": (2, 2, 3, 5),
            "opposing": (False,),
        },
        encoder_choices={"none": EVEN, "average": EVEN},
    )


FAMILIES = (
    Family(
        name="learned",
        truth="right",
        recipe="Weights are learned freely on texts with cues; models whose weight is not on the cues in nine "
        "of ten texts are left out.",
        reason="The map is on the cues, and the cues make the answer: those of another class change it.",
        makers=makers(LEARNED),
        choices={**FREE, "opposing": (False,)},
        times=2,
    ),
    _replacing("uniform", "the same weight for all words", OWN),
    # The states of *average* are bounded: with little weight its cues no longer decide.
    _replacing("random", "random scores of words", ("none", *WITH_CONTEXT)),
    _replacing(
        "shuffled", "the words' mean scores, shuffled among the words", ("none", *WITH_CONTEXT)
    ),
)
