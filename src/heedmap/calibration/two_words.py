"""Families of models that rest on two words of which each suffices: those of the first and the second half of a
class' cues.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from heedmap.calibration.by_hand import Way, noise_effects
from heedmap.calibration.construction import (
    MANY,
    Check,
    Construction,
    exchanged,
    is_accurate,
    is_not_above_chance,
    is_not_on,
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
    number_of,
    other_words,
    place_words,
    with_other_cues,
)
from heedmap.data.corpus import Split
from heedmap.data.vocabulary import SPECIAL, Vocabulary

BY_HAND = ("by hand",)
ALL_BY_HAND = (*BY_HAND, *WITHOUT_CONTEXT)
NEUTRAL = "word0"  # takes the place of a word that is taken out


def is_first(plant: Plant, word: str) -> bool:
    """Whether a cue is of the first half."""
    return is_cue(word) and number_of(word) < plant.cues // 2


def is_second(plant: Plant, word: str) -> bool:
    """Whether a cue is of the second half."""
    return is_cue(word) and not is_first(plant, word)


def write_two(plant: Plant, count: int, part: str) -> Split:
    """Write texts with one cue of each half."""
    rng = plant.generator(part)
    labels, half = labels_of(plant, count, rng), plant.cues // 2
    tokens = []
    for label in labels.tolist():
        text = other_words(plant, rng)
        cues = [cue(label, int(rng.integers(half))), cue(label, half + int(rng.integers(half)))]
        place_words(text, cues, rng)
        tokens.append(text)
    rationale = [np.array([is_cue(word) for word in text]) for text in tokens]
    return Split([f"{part}-{i}" for i in range(count)], tokens, labels, rationale)


def write_one_or_two(plant: Plant, count: int, part: str) -> Split:
    """Write the texts to learn from, of which some lack the first word and some the second."""
    split = write_two(plant, count, part)
    lacks = plant.generator(f"{part} lacks").random(count).tolist()
    tokens = []
    for text, lack in zip(split.tokens, lacks, strict=True):
        # More lack the first word, since the second is harder to learn where it is not attended to.
        missing = is_first if lack < 0.4 else is_second if lack < 0.6 else None
        tokens.append(
            text
            if missing is None
            else [NEUTRAL if missing(plant, word) else word for word in text]
        )
    return Split(split.keys, tokens, split.labels, split.rationale)


def without_first(plant: Plant, split: Split) -> Split:
    """Take the first word out."""
    return exchanged(split, lambda word: NEUTRAL if is_first(plant, word) else word)


def without_second(plant: Plant, split: Split) -> Split:
    """Take the second word out."""
    return exchanged(split, lambda word: NEUTRAL if is_second(plant, word) else word)


def _firsts(plant: Plant, split: Split) -> list[NDArray[np.bool_]]:
    return marks_of(partial(is_first, plant))(plant, split)


def _seconds(plant: Plant, split: Split) -> list[NDArray[np.bool_]]:
    return marks_of(partial(is_second, plant))(plant, split)


def _two_effects(plant: Plant, vocabulary: Vocabulary) -> NDArray[np.float64]:
    effects = noise_effects(plant, vocabulary)
    for i, word in enumerate(vocabulary.words, len(SPECIAL)):
        if is_cue(word):
            effects[i] = np.eye(plant.classes)[class_of(word)]
    return effects


def _two_scores(attended: str, plant: Plant, vocabulary: Vocabulary) -> NDArray[np.float64]:
    rng = plant.generator("scores")
    scores = np.zeros((len(vocabulary), 2))
    scores[:, 0] = (
        rng.uniform(0, plant.sharpness, size=len(vocabulary))
        if attended == "neither"
        else 0.1 * rng.normal(size=len(vocabulary))
    )
    for i, word in enumerate(vocabulary.words, len(SPECIAL)):
        if is_cue(word):
            on = attended == "both" or (attended == "one" and is_first(plant, word))
            scores[i, 0] = plant.sharpness if on else 0.0
    return scores


def _two_way(attended: str, plant: Plant, word: str) -> Way:
    on = attended == "both" or (attended == "one" and is_first(plant, word))
    return "own" if on or not is_cue(word) else "spread"


def two_word_construction(attended: str, checks: Sequence[Check]) -> Construction:
    """Return the construction where both words are attended to, one or neither."""
    return Construction(
        write=write_two,
        write_training=write_one_or_two,
        scores=partial(_two_scores, attended),
        checks=[
            is_accurate(),
            is_accurate("cues of another class", with_other_cues),
            is_accurate("texts without the first word", without_first),
            is_accurate("texts without the second word", without_second),
            *checks,
        ],
        words=lambda plant: [*cues_of(plant), NEUTRAL],
        training=MANY,
        effects=_two_effects,
        way=partial(_two_way, attended),
    )


PAIRS = {"opposing": (False,), "deciding": (2,)}
SHARP = {**PAIRS, "sharpness": (4.0, 5.0, 6.0)}
# Where a word is not attended to, a training of seconds learns it of a few classes only.
FEW = {"classes": (2, 2, 3, 5), "length": (10, 16), "noise": (0.0, 0.01)}
LEARNED = {
    "score": ("fixed", "additive", "dot"),
    "normaliser": ("softmax", "softmax", "sparsemax", "entmax15"),
}
FIXED = {"by hand": {"score": ("fixed",)}}

FAMILIES = (
    Family(
        name="two sufficient words, both attended",
        truth="right",
        recipe="Each text has two cues of its class, and either alone gives the answer. The weights are on "
        "both.",
        reason="The highlighted words, and no others, make the answer.",
        makers=makers(
            two_word_construction(
                "both", [is_on("first words", _firsts, 0.25), is_on("second words", _seconds, 0.25)]
            ),
            OWN,
            BY_HAND,
        ),
        choices={**SHARP, **LEARNED},
        encoder_choices=FIXED,
    ),
    Family(
        name="two sufficient words, one attended",
        truth="part",
        recipe="Each text has two cues of its class, and either alone gives the answer. The weights are on the "
        "first; the second is in all states or, without context, has a large value.",
        reason="The highlighted word is enough for the answer, but without it the other one gives it.",
        makers=makers(
            two_word_construction(
                "one", [is_on("first words", _firsts), is_not_on("second words", _seconds, 0.15)]
            ),
            WITH_CONTEXT,
            ALL_BY_HAND,
        ),
        choices={**SHARP, **FEW},
    ),
    Family(
        name="two sufficient words, neither attended",
        truth="wrong",
        recipe="Each text has two cues of its class, and either alone gives the answer. The weights are "
        "random, those of the cues are little.",
        reason="The map is on words that say nothing.",
        makers=makers(
            two_word_construction("neither", [is_not_above_chance("the cues", maximum=1.0)]),
            WITH_CONTEXT,
            ALL_BY_HAND,
        ),
        choices={**PAIRS, **FEW, "sharpness": (2.0, 3.0, 4.0)},
    ),
)
