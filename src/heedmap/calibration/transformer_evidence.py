"""Families of transformers whose evidence is in either of two words, in whether two words differ, or in all."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from heedmap.calibration.construction import (
    Check,
    Construction,
    is_not_above_chance,
    is_not_on,
    is_on,
    marks_of,
)
from heedmap.calibration.everywhere import (
    EVERYWHERE,
    RANDOM,
    WHY,
    different,
    equal,
    nearly_equal,
    values_of_words,
)
from heedmap.calibration.families import Choices, Family, Truth
from heedmap.calibration.plants import Plant
from heedmap.calibration.transformer_routes import (
    BERT,
    BY_HAND,
    FREE,
    OFF,
    Route,
    makers,
    needs_the_rationale,
    spread_way,
)
from heedmap.calibration.two_words import is_first, is_second, two_word_construction
from heedmap.calibration.xor import is_left, is_right, xor_construction, xor_scores
from heedmap.data.corpus import Split

EITHER = "Each text has two cues of its class, and either alone gives the answer."
DIFFER = "The class is whether two neighbouring words are of different kinds."
SAYS_NOTHING = "The map is on words that say nothing."
TWO: Choices = {"opposing": (False,), "deciding": (2,), "sharpness": (4.0, 5.0, 6.0)}
FEW: Choices = {**TWO, "classes": (2, 2, 3, 5), "length": (10, 16), "noise": (0.0, 0.01)}
BITS: Choices = {**TWO, "classes": (2,), "length": (10, 16)}
LITTLE: Choices = {"sharpness": (2.0, 3.0, 4.0)}


def firsts(plant: Plant, split: Split) -> list[NDArray[np.bool_]]:
    """Return the marks of cues of the first half."""
    return marks_of(partial(is_first, plant))(plant, split)


def seconds(plant: Plant, split: Split) -> list[NDArray[np.bool_]]:
    """Return the marks of cues of the second half."""
    return marks_of(partial(is_second, plant))(plant, split)


_LEFT, _RIGHT = marks_of(is_left), marks_of(is_right)


def _family(
    name: str,
    truth: Truth,
    recipe: str,
    reason: str,
    construction: Construction,
    route: Route,
    choices: Choices,
    encoders: Sequence[str] = (BY_HAND, BERT),
) -> Family:
    by_encoder = makers(construction, route, encoders)
    return Family(f"transformer, {name}", truth, recipe, reason, by_encoder, choices)


def _two(attended: str, *checks: Check) -> Construction:
    return two_word_construction(attended, list(checks))


def _xor(attended: str, *checks: Check) -> Construction:
    return xor_construction(attended, list(checks))


Sizes = Callable[[np.random.Generator, int], NDArray[np.float64]]
SIZES: Mapping[str, tuple[Sizes, str]] = {
    "equal": (equal, "all the same"),
    "nearly equal": (nearly_equal, "within a tenth of each other"),
    "different": (different, "very different, and the weights do not follow them"),
}


def _everywhere(name: str) -> Family:
    sizes, said = SIZES[name]
    return _family(
        f"evidence everywhere, {name}",
        "wrong",
        f"Every word has a value for its class; the values are {said}. The weights are random.",
        WHY,
        replace(EVERYWHERE, effects=partial(values_of_words, sizes)),
        OFF,
        RANDOM,
        [BY_HAND],
    )


FAMILIES = (
    _family(
        "two sufficient words, both attended",
        "right",
        f"{EITHER} The last layer's weights are on both; the first one moves nothing from word to word.",
        "The highlighted words, and no others, make the answer.",
        _two(
            "both",
            is_on("first words", firsts, 0.25),
            is_on("second words", seconds, 0.25),
            needs_the_rationale,
        ),
        OFF,
        TWO,
    ),
    _family(
        "two sufficient words, one attended",
        "part",
        f"{EITHER} The last layer's weights are on the first word; the second is in other states.",
        "The highlighted word is enough for the answer, but without it the other one gives it.",
        _two("one", is_on("first words", firsts), is_not_on("second words", seconds, 0.15)),
        FREE,
        FEW,
    ),
    _family(
        "two sufficient words, neither attended",
        "wrong",
        f"{EITHER} The last layer's weights are random, those of the cues are little.",
        SAYS_NOTHING,
        _two("neither", is_not_above_chance("the cues", maximum=1.0)),
        FREE,
        {**FEW, **LITTLE},
    ),
    _family(
        "XOR, both attended",
        "right",
        f"{DIFFER} The last layer's weights are on both; the first one moves nothing from word to word.",
        "Both words make the answer, and it is read from their states, by the weights alone.",
        _xor(
            "both",
            is_on("left words", _LEFT, 0.25),
            is_on("right words", _RIGHT, 0.25),
            needs_the_rationale,
        ),
        OFF,
        BITS,
        [BERT],
    ),
    _family(
        "XOR, one attended",
        "wrong",
        f"{DIFFER} The last layer's weights are on one of the two.",
        "The highlighted word alone says nothing of the class.",
        _xor("one", is_on("left words", _LEFT), is_not_on("right words", _RIGHT, 0.15)),
        FREE,
        BITS,
        [BERT],
    ),
    _family(
        "XOR, neither attended",
        "wrong",
        f"{DIFFER} The first layer is taught to take both to all states, the last one to attend to random "
        "other words.",
        SAYS_NOTHING,
        _xor("neither", is_not_above_chance("the two words", maximum=1.0)),
        Route(lower="spreads", evidence=partial(xor_scores, "both")),
        {**BITS, **LITTLE},
        [BERT],
    ),
    *(_everywhere(name) for name in SIZES),
    _family(
        "evidence everywhere, in all states",
        "wrong",
        "Every word is of one class. The first layer takes what they say to all states; the last layer's "
        "weights are random.",
        WHY,
        replace(EVERYWHERE, effects=partial(values_of_words, equal), way=spread_way, divided=True),
        FREE,
        RANDOM,
    ),
    _family(
        "evidence everywhere, words kept apart",
        "wrong",
        "Every word is of one class. The first layer moves nothing from word to word; the last one is taught "
        "random weights.",
        WHY,
        EVERYWHERE,
        OFF,
        RANDOM,
        [BERT],
    ),
)
