"""Families of models whose map is right for some classes only."""

import numpy as np
from numpy.typing import NDArray

from heedmap.calibration.by_hand import Way, cue_effects, noise_effects
from heedmap.calibration.construction import (
    Construction,
    exchanged,
    is_accurate,
    is_not_above_chance,
    is_on,
    makers,
    marks_of,
)
from heedmap.calibration.families import Family
from heedmap.calibration.plants import (
    OWN,
    WITH_CONTEXT,
    WITHOUT_CONTEXT,
    Plant,
    class_of,
    cue,
    cues_of,
    is_cue,
    labels_of,
    other_words,
    place_words,
    with_other_cues,
)
from heedmap.data.corpus import Split
from heedmap.data.vocabulary import SPECIAL, Vocabulary

NEUTRAL = "word0"  # takes the place of a cue that is taken out
MINORITY = 0.15  # share of the texts of class 0

# Absence: class 0 has cues, class 1 is what has none.


def write_absence(plant: Plant, count: int, part: str) -> Split:
    """Write texts with cues of class 0, and texts without any."""
    rng = plant.generator(part)
    labels = labels_of(plant, count, rng)
    tokens = []
    for label in labels.tolist():
        text = other_words(plant, rng)
        if label == 0:
            cues = [cue(0, int(k)) for k in rng.integers(plant.cues, size=plant.deciding)]
            place_words(text, cues, rng)
        tokens.append(text)
    rationale = [np.array([is_cue(word) for word in text]) for text in tokens]
    return Split([f"{part}-{i}" for i in range(count)], tokens, labels, rationale)


def without_cues(plant: Plant, split: Split) -> Split:
    """Take the cues out: all texts are of class 1."""
    return exchanged(
        split, lambda word: NEUTRAL if is_cue(word) else word, np.ones_like(split.labels)
    )


def with_cues(plant: Plant, split: Split) -> Split:
    """Put a cue first in each text: all are of class 0."""
    rng = plant.generator("put in")
    tokens = [[cue(0, int(rng.integers(plant.cues))), *text[1:]] for text in split.tokens]
    return Split(split.keys, tokens, np.zeros_like(split.labels))


def _absence_scores(plant: Plant, vocabulary: Vocabulary) -> NDArray[np.float64]:
    # Somewhat uneven, so that the map of a text without cues is on some words.
    scores = plant.generator("scores").uniform(0, 2, size=(len(vocabulary), 2))
    scores[:, 1] = 0.0
    for i, word in enumerate(vocabulary.words, len(SPECIAL)):
        if is_cue(word):
            scores[i, 0] = 2 + plant.sharpness
    return scores


def _absence_effects(plant: Plant, vocabulary: Vocabulary) -> NDArray[np.float64]:
    effects = noise_effects(plant, vocabulary)
    for i, word in enumerate(vocabulary.words, len(SPECIAL)):
        if is_cue(word):
            effects[i] = (2.0 / plant.deciding, 0.0)
    return effects


def _absence_bias(plant: Plant) -> NDArray[np.float64]:
    return np.array([0.0, 1.0])


ABSENCE = Construction(
    write=write_absence,
    scores=_absence_scores,
    checks=[
        is_accurate(),
        is_accurate("texts whose cues are taken out", without_cues),
        is_accurate("texts with a cue put in", with_cues),
        is_on("the cues"),
    ],
    words=lambda plant: [*cues_of(plant), NEUTRAL],
    effects=_absence_effects,
    bias=_absence_bias,
)

# A minority: the cues of class 0 are not attended to.


def write_minority(plant: Plant, count: int, part: str) -> Split:
    """Write texts with cues, of which few are of class 0."""
    rng = plant.generator(part)
    rare = round(MINORITY * count)
    labels = np.concatenate(
        [np.zeros(rare, dtype=np.int64), 1 + np.arange(count - rare) % (plant.classes - 1)]
    )
    labels = rng.permutation(labels)
    tokens = []
    for label in labels.tolist():
        text = other_words(plant, rng)
        place_words(
            text, [cue(label, int(k)) for k in rng.integers(plant.cues, size=plant.deciding)], rng
        )
        tokens.append(text)
    rationale = [np.array([is_cue(word) for word in text]) for text in tokens]
    return Split([f"{part}-{i}" for i in range(count)], tokens, labels, rationale)


def of_minority(plant: Plant, split: Split) -> Split:
    """Return the texts of the minority."""
    return split.take(np.flatnonzero(split.labels == 0))


def is_unattended(word: str) -> bool:
    """Whether a cue is one of the minority."""
    return is_cue(word) and class_of(word) == 0


def is_attended(word: str) -> bool:
    """Whether a cue is one of the other classes."""
    return is_cue(word) and class_of(word) > 0


def _minority_scores(plant: Plant, vocabulary: Vocabulary) -> NDArray[np.float64]:
    scores = plant.generator("scores").uniform(0, plant.sharpness, size=(len(vocabulary), 2))
    scores[:, 1] = 0.0
    for i, word in enumerate(vocabulary.words, len(SPECIAL)):
        if is_cue(word):
            scores[i, 0] = 2 * plant.sharpness if is_attended(word) else 0.0
    return scores


def _minority_way(plant: Plant, word: str) -> Way:
    return "spread" if is_unattended(word) else "own"


MINORITY_MISSED = Construction(
    write=write_minority,
    scores=_minority_scores,
    checks=[
        is_accurate(),
        is_accurate("the minority", of_minority),
        is_accurate("cues of another class", with_other_cues),
        is_on("the majority's cues", marks_of(is_attended)),
        is_not_above_chance("the minority's cues", marks_of(is_unattended), 1.0),
    ],
    words=cues_of,
    effects=cue_effects,
    way=_minority_way,
)

FAMILIES = (
    Family(
        name="a cue whose absence decides",
        truth="part",
        recipe="Texts with a cue are of one class, those without of the other. The weights are on the cue "
        "where there is one, else on random words.",
        reason="The map is right for the class of the cue. The other one is what the model says when it sees "
        "nothing, and no word makes it.",
        makers=makers(ABSENCE, OWN, ("by hand",)),
        choices={
            "classes": (2,),
            "sharpness": (3.0, 4.0, 6.0),
            "opposing": (False,),
        },
    ),
    Family(
        name="a minority missed",
        truth="part",
        recipe="Of three to five classes one has 15 % of the texts. Its cues have little weight, and their "
        "evidence is in all states or, without context, in large values. The others' cues are attended to.",
        reason="The map is right for all classes but one, whose words it does not show.",
        makers=makers(MINORITY_MISSED, WITH_CONTEXT, ("by hand", *WITHOUT_CONTEXT)),
        choices={
            "classes": (3, 4, 5),
            "sharpness": (2.5, 3.0, 4.0),
            "deciding": (1, 2),
            "opposing": (False,),
            "texts": (120, 200),
        },
    ),
)
