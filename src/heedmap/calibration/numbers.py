"""Families of transformers that give a number: how far a text's evidence is for the second of two classes.

The number is the log-odds of a planted transformer of two classes, set by hand. Each cue has a size of its
own, so that numbers are of many sizes, as those of a regression are. What is true of the map is true of it as
in `transformer_families`: the way of the evidence is the same.
"""

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from heedmap.calibration.by_hand import cue_effects
from heedmap.calibration.construction import (
    Check,
    Construction,
    after_the_rationale,
    is_not_above_chance,
    is_not_on,
    is_on,
)
from heedmap.calibration.cue_families import cue_construction, is_on_in_part
from heedmap.calibration.families import Choices, Family, Maker, PlantedModel, Truth
from heedmap.calibration.plants import (
    DECEPTIVE,
    FAITHFUL,
    IRRELEVANT,
    LETTERS,
    NUMBER_BY_HAND,
    REVERSED,
    UNIFORM,
    Design,
    Plant,
    is_cue,
    number_of,
)
from heedmap.calibration.transformer_routes import (
    BY_CLS,
    BY_HAND,
    BY_SEP,
    FREE,
    OFF,
    PAST,
    Route,
    is_on_mark,
    needs_the_rationale,
    set_weights,
    spread_way,
    weights_by_value,
)
from heedmap.data.corpus import Corpus
from heedmap.data.vocabulary import SPECIAL, Vocabulary
from heedmap.huggingface.transformer_classifier import TransformerClassifier

LOG_SIZES = (math.log(0.3), math.log(1.7))  # of the cues' evidence
TWO_CLASSES: Choices = {"classes": (2,), "noise": (0.0, 0.01, 0.02)}
ONE_SIDED: Choices = {**TWO_CLASSES, "opposing": (False,), "deciding": (1, 2)}
SHARP: Choices = {**TWO_CLASSES, "sharpness": (3.0, 4.0, 5.0, 6.0)}
PAST_IT = (
    "The first layer takes the cues' evidence to [CLS]'s own state, where it is read: what the last layer's "
    "attention adds is nothing."
)
SAYS_NOTHING = "The map is on words that say nothing."
BY_ITSELF = "The cues make the number, which is read from their states, and by the weights alone."


def of_one_number(model: TransformerClassifier) -> TransformerClassifier:
    """Return a model whose one output is the log-odds of the second class of a model of two classes."""
    plain = model.model
    config = deepcopy(plain.config)
    config.num_labels, config.problem_type = 1, "regression"
    weights = plain.state_dict()
    for name in ("classifier.weight", "classifier.bias"):
        weights[name] = weights[name][1:] - weights[name][:1]
    of_number = type(plain)(config)
    of_number.load_state_dict(weights)
    of_number.requires_grad_(False).train(False)
    return TransformerClassifier(of_number, model.tokenizer, model.settings, ["points"])


def _made(maker: Maker, plant: Plant, corpus: Corpus | None = None) -> PlantedModel:
    planted = maker(replace(plant, encoder=BY_HAND), corpus)
    assert isinstance(planted.model, TransformerClassifier)
    return replace(planted, model=of_one_number(planted.model))


def graded_effects(plant: Plant, vocabulary: Vocabulary) -> NDArray[np.float64]:
    """Return what each word adds to the logits, as `cue_effects`, each cue by its own size: shape (V, C)."""
    sizes = np.exp(plant.generator("sizes").uniform(*LOG_SIZES, size=len(LETTERS)))
    effects = cue_effects(plant, vocabulary)
    for i, word in enumerate(vocabulary.words, len(SPECIAL)):
        if is_cue(word):
            effects[i] *= sizes[number_of(word)]
    return effects


def _family(
    name: str,
    truth: Truth,
    recipe: str,
    reason: str,
    maker: Maker,
    choices: Choices,
    times: int = 1,
) -> Family:
    makers = {NUMBER_BY_HAND: partial(_made, maker)}
    return Family(f"number, {name}", truth, recipe, reason, makers, choices, times=times)


def _by_design(
    design: Design,
    route: Route,
    checks: Sequence[Check],
    way: Callable[[Construction], Construction] = lambda construction: construction,
) -> Maker:
    construction = way(replace(cue_construction(design, checks), effects=graded_effects))
    return partial(set_weights, construction, route)


def _spread(construction: Construction) -> Construction:
    return replace(construction, way=spread_way)


def _partly(share: float) -> Family:
    design = Design("partly", share)
    return _family(
        f"cue attended in {share:g} of the texts",
        "between" if share > 0.5 else "wrong",
        "In this share of the texts the cue draws the last layer's attention. In the others it does not, and "
        "its evidence is in all states.",
        "In the other texts the map is on random words, and the cue makes the number all the same.",
        _by_design(design, FREE, [is_on_in_part(design)]),
        {**ONE_SIDED, "sharpness": (2.0, 3.0, 4.0)},
    )


def _by_mark(route: Route) -> Family:
    return _family(
        f"evidence gathered in {route.mark}",
        "wrong",
        f"The first layer gathers the cues' evidence in the state of {route.mark}. The last layer attends to "
        "it, and as much to random words.",
        SAYS_NOTHING,
        _by_design(
            IRRELEVANT, route, [is_on_mark(route.mark), is_not_above_chance("the cues")], _spread
        ),
        ONE_SIDED,
    )


FAMILIES = (
    _family(
        "cue attended",
        "right",
        "The last layer attends to the cues. The first one moves nothing from word to word.",
        BY_ITSELF,
        _by_design(FAITHFUL, OFF, [is_on("the cues"), needs_the_rationale]),
        SHARP,
        times=5,
    ),
    _family(
        "weights by value",
        "right",
        "Each word has a positive value for one class, the cues large ones. The weights are the sizes of the "
        "values.",
        "What a word adds to the number grows with its weight, and the cues add most.",
        weights_by_value,
        {**TWO_CLASSES, "opposing": (False,)},
        times=2,
    ),
    _family(
        "random words attended",
        "wrong",
        "The last layer's weights are random, one score per word. Every state holds the evidence of the cues.",
        SAYS_NOTHING,
        _by_design(IRRELEVANT, FREE, [is_not_above_chance("the cues")]),
        ONE_SIDED,
    ),
    _family(
        "word behind the cue attended",
        "wrong",
        "The first layer moves the cues' evidence to the next word, to which the last one attends.",
        SAYS_NOTHING,
        _by_design(
            DECEPTIVE,
            FREE,
            [
                is_on("the words behind the cues", after_the_rationale, 0.4),
                is_not_on("the cues"),
            ],
        ),
        ONE_SIDED,
    ),
    _family(
        "all words but the cue attended",
        "wrong",
        "All words but the cues draw the last layer's attention alike; the cues have large values.",
        "The map leaves out the words that make the number.",
        _by_design(REVERSED, FREE, [is_not_on("the cues", maximum=0.15)]),
        ONE_SIDED,
    ),
    _family(
        "uniform weights",
        "wrong",
        "The last layer has the same weight on all words.",
        "The map highlights nothing, and the cues make the number.",
        _by_design(UNIFORM, FREE, []),
        ONE_SIDED,
    ),
    *(_partly(share) for share in (0.25, 0.5, 0.75)),
    _by_mark(BY_SEP),
    _by_mark(BY_CLS),
    _family(
        "past the attention, random words attended",
        "wrong",
        PAST_IT,
        SAYS_NOTHING,
        _by_design(IRRELEVANT, PAST, [is_not_above_chance("the cues")], _spread),
        ONE_SIDED,
    ),
    _family(
        "past the attention, cue attended",
        "words",
        PAST_IT,
        "The cues make the number, but no weights could change it.",
        _by_design(FAITHFUL, PAST, [is_on("the cues")], _spread),
        {**ONE_SIDED, **SHARP},
    ),
)
