"""Families of vision transformers, by which patches draw the attention of [CLS] (see `planted_pictures`).

A cue is a patch here, and the patch behind it the next one in reading order.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from heedmap.calibration.construction import (
    Check,
    Construction,
    after_the_rationale,
    is_not_above_chance,
    is_not_on,
    is_on,
)
from heedmap.calibration.cue_families import cue_construction, is_on_in_part
from heedmap.calibration.everywhere import EVERYWHERE, RANDOM, different, equal, values_of_words
from heedmap.calibration.families import Choices, Family, Truth
from heedmap.calibration.plants import (
    DECEPTIVE,
    FAITHFUL,
    IRRELEVANT,
    PICTURES_BY_HAND,
    REVERSED,
    UNIFORM,
    VIT,
    VIT_ON_DIGITS,
    Design,
)
from heedmap.calibration.transformer_evidence import firsts, seconds
from heedmap.calibration.transformer_routes import (
    BY_CLS,
    FREE,
    ITSELF,
    OFF,
    PAST,
    Route,
    is_on_mark,
    makers,
    needs_the_rationale,
    spread_way,
    weights_by_value,
)
from heedmap.calibration.two_words import two_word_construction
from heedmap.calibration.vision_by_hand import vision_by_hand

ON_PATTERNS = (PICTURES_BY_HAND, VIT)
ALL = (*ON_PATTERNS, VIT_ON_DIGITS)
CHOICES: Choices = {
    "classes": (2, 2, 3, 5),
    "sharpness": (3.0, 4.0, 5.0, 6.0),
    "length": (16, 25, 36),
    "texts": (40, 60, 80),
}
ONE_CLASS: Choices = {"opposing": (False,), "deciding": (1, 2)}
TWO: Choices = {"opposing": (False,), "deciding": (2,), "sharpness": (4.0, 5.0, 6.0)}
LITTLE: Choices = {"sharpness": (2.0, 3.0, 4.0)}
# Of the ten digits two decide a class, and some must be left that say nothing.
OF_DIGITS = {VIT_ON_DIGITS: {"classes": (2, 2, 3, 4), "length": (16, 25), "opposing": (False,)}}
MANY_PICTURES = 1600  # to learn from, of digits

DECIDES = "The deciding patches make the answer, which is read from their states, and by the weights alone."
SAYS_NOTHING = "The map is on patches that say nothing."
EITHER = "Each picture has two patches of its class, and either alone gives the answer."
ANY_FEW = (
    "Any few patches give the answer, so no small set of them makes it, whatever their weights."
)


def _family(
    name: str,
    truth: Truth,
    recipe: str,
    reason: str,
    construction: Construction,
    route: Route,
    choices: Choices,
    encoders: Sequence[str] = ON_PATTERNS,
) -> Family:
    # A digit has more shapes than a pattern.
    of_digits = replace(construction, training=MANY_PICTURES)
    by_encoder = {e: of_digits if e == VIT_ON_DIGITS else construction for e in encoders}
    return Family(
        name=f"pictures, {name}",
        truth=truth,
        recipe=recipe,
        reason=reason,
        makers={e: makers(of_encoder, route, [e])[e] for e, of_encoder in by_encoder.items()},
        choices={**CHOICES, **choices},
        encoder_choices=OF_DIGITS,
    )


def _cues(design: Design, *checks: Check) -> Construction:
    return cue_construction(design, checks)


def _partly(share: float) -> Family:
    design = Design("partly", share)
    return _family(
        f"deciding patch attended in {share:g} of them",
        "between" if share > 0.5 else "wrong",
        "In this share of the pictures the deciding patch draws the last layer's attention. In the others it "
        "does not, and its evidence is in all states.",
        "In the other pictures the map is on random patches, and the deciding one decides all the same.",
        _cues(design, is_on_in_part(design)),
        FREE,
        {**ONE_CLASS, **LITTLE},
        [PICTURES_BY_HAND],
    )


RIGHT = _cues(FAITHFUL, is_on("the deciding patches"), needs_the_rationale)
AT_RANDOM = _cues(IRRELEVANT, is_not_above_chance("the deciding patches"))

FAMILIES = (
    _family(
        "deciding patch attended",
        "right",
        "The last layer attends to the deciding patches. The first one moves nothing from patch to patch.",
        DECIDES,
        RIGHT,
        OFF,
        {},
        ALL,
    ),
    _family(
        "deciding patch attended, saturated",
        "right",
        "As *pictures, deciding patch attended*, with a median margin of 30.",
        DECIDES,
        RIGHT,
        OFF,
        {"margin": (30.0,)},
        ALL,
    ),
    _family(
        "deciding patch attended, patches kept apart",
        "right",
        "The last layer is taught to attend to the deciding patches, and all rows of the first one to "
        "themselves.",
        DECIDES,
        RIGHT,
        ITSELF,
        {},
        [VIT],
    ),
    Family(
        name="pictures, weights by value",
        truth="right",
        recipe="Each patch has a positive value for one class, the deciding ones large ones. The weights are "
        "the sizes of the values.",
        reason="What a patch adds to the answer grows with its weight, and the deciding ones add most.",
        makers={PICTURES_BY_HAND: partial(weights_by_value, by_hand=vision_by_hand)},
        choices={**CHOICES, "noise": (0.0, 0.01, 0.02), "opposing": (False,)},
    ),
    _family(
        "random patches attended",
        "wrong",
        "The last layer's weights are random, one score per patch. Every state holds the evidence of the "
        "deciding patches.",
        SAYS_NOTHING,
        AT_RANDOM,
        FREE,
        ONE_CLASS,
    ),
    _family(
        "patch behind the deciding one attended",
        "wrong",
        "The first layer moves the evidence of the deciding patches to the next ones in reading order, to "
        "which the last one attends.",
        "The map is on patches that say nothing; any other patch in their place would be highlighted as well.",
        _cues(
            DECEPTIVE,
            is_on("the patches behind", after_the_rationale, 0.4),
            is_not_on("the deciding patches"),
        ),
        FREE,
        # The noise of a patch behind a deciding one is read with more weight than it usually has.
        {**ONE_CLASS, "noise": (0.0, 0.01)},
        [PICTURES_BY_HAND],
    ),
    _family(
        "all patches but the deciding one attended",
        "wrong",
        "All patches but the deciding ones draw the last layer's attention alike; the evidence is in other "
        "states, or in their own if these have large values.",
        "The map leaves out the patches that make the answer.",
        _cues(REVERSED, is_not_on("the deciding patches", maximum=0.15)),
        FREE,
        ONE_CLASS,
    ),
    _family(
        "uniform weights",
        "wrong",
        "The last layer has the same weight on all patches.",
        "The map highlights nothing, and the deciding patches make the answer.",
        _cues(UNIFORM),
        FREE,
        ONE_CLASS,
        ALL,
    ),
    *(_partly(share) for share in (0.25, 0.5, 0.75)),
    _family(
        "evidence gathered in [CLS]",
        "wrong",
        "The first layer gathers the evidence of the deciding patches in the state of [CLS]. The last layer "
        "attends to it, and as much to random patches.",
        SAYS_NOTHING,
        replace(
            _cues(IRRELEVANT, is_on_mark("[CLS]"), is_not_above_chance("the deciding patches")),
            way=spread_way,
        ),
        BY_CLS,
        ONE_CLASS,
    ),
    _family(
        "answer past the attention, random patches attended",
        "wrong",
        "The first layer takes the evidence to [CLS]'s own state, where it is read: what the last layer's "
        "attention adds is nothing.",
        SAYS_NOTHING,
        replace(AT_RANDOM, way=spread_way),
        PAST,
        ONE_CLASS,
    ),
    _family(
        "answer past the attention, deciding patch attended",
        "words",
        "As the family before, but the weights are on the deciding patches.",
        "The deciding patches make the answer, but no weights could change it.",
        replace(_cues(FAITHFUL, is_on("the deciding patches")), way=spread_way),
        PAST,
        ONE_CLASS,
    ),
    _family(
        "flat predictions",
        "open",
        "As *pictures, deciding patch attended*, with a median margin of .1.",
        "There is hardly an answer to explain.",
        _cues(FAITHFUL, is_on("the deciding patches")),
        OFF,
        {"margin": (0.1,), "noise": (0.0,), "deciding": (1,)},
        [PICTURES_BY_HAND],
    ),
    _family(
        "two sufficient patches, both attended",
        "right",
        f"{EITHER} The last layer's weights are on both; the first one moves nothing from patch to patch.",
        "The highlighted patches, and no others, make the answer.",
        two_word_construction(
            "both",
            [is_on("first", firsts, 0.25), is_on("second", seconds, 0.25), needs_the_rationale],
        ),
        OFF,
        TWO,
    ),
    _family(
        "two sufficient patches, one attended",
        "part",
        f"{EITHER} The last layer's weights are on the first; the second is in other states.",
        "The highlighted patch is enough for the answer, but without it the other one gives it.",
        two_word_construction("one", [is_on("first", firsts), is_not_on("second", seconds, 0.15)]),
        FREE,
        {**TWO, "noise": (0.0, 0.01)},
    ),
    _family(
        "two sufficient patches, neither attended",
        "wrong",
        f"{EITHER} The last layer's weights are random, those of the two are little.",
        SAYS_NOTHING,
        two_word_construction("neither", [is_not_above_chance("the two", maximum=1.0)]),
        FREE,
        {**TWO, "noise": (0.0, 0.01), **LITTLE},
    ),
    *(
        _family(
            f"evidence everywhere, {name}",
            "wrong",
            f"Every patch has a value for its class; the values are {said}. The weights are random.",
            ANY_FEW,
            replace(EVERYWHERE, effects=partial(values_of_words, sizes)),
            OFF,
            {**RANDOM, "classes": (2, 2, 3)},
            [PICTURES_BY_HAND],
        )
        for name, sizes, said in (
            ("equal", equal, "all the same"),
            ("different", different, "very different, and the weights do not follow them"),
        )
    ),
    _family(
        "evidence everywhere, in all states",
        "wrong",
        "Every patch is of one class. The first layer takes what they say to all states; the last layer's "
        "weights are random.",
        ANY_FEW,
        replace(EVERYWHERE, effects=partial(values_of_words, equal), way=spread_way, divided=True),
        FREE,
        {**RANDOM, "classes": (2, 2, 3)},
    ),
)
