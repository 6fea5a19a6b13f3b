"""Families of transformers, by where the last layer attends and by which way words reach the answer."""

from collections.abc import Sequence
from dataclasses import replace

from heedmap.calibration.construction import (
    Check,
    after_the_rationale,
    is_not_above_chance,
    is_not_on,
    is_on,
)
from heedmap.calibration.cue_families import cue_construction, is_on_in_part
from heedmap.calibration.families import Family
from heedmap.calibration.plants import (
    DECEPTIVE,
    FAITHFUL,
    IRRELEVANT,
    REVERSED,
    UNIFORM,
    Design,
)
from heedmap.calibration.transformer_routes import (
    BERT,
    BY_CLS,
    BY_HAND,
    BY_SEP,
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

SHARP = {"sharpness": (3.0, 4.0, 5.0, 6.0)}
CUE_BY_ITSELF = (
    "The cues make the answer, which is read from their states, and by the weights alone."
)
RANDOM = "The map is on words that say nothing."


def _right(name: str, recipe: str, **choices: Sequence[float]) -> Family:
    checks = [is_on("the cues"), needs_the_rationale]
    return Family(
        name=name,
        truth="right",
        recipe=recipe,
        reason=CUE_BY_ITSELF,
        makers=makers(cue_construction(FAITHFUL, checks), OFF),
        choices={**SHARP, **choices},
        times=2,
    )


def _wrong(name: str, design: Design, recipe: str, reason: str, *checks: Check) -> Family:
    return Family(
        name=name,
        truth="wrong",
        recipe=recipe,
        reason=reason,
        makers=makers(cue_construction(design, checks), FREE),
        choices={"opposing": (False,), "deciding": (1, 2)},
    )


def _partly(share: float) -> Family:
    design = Design("partly", share)
    return Family(
        name=f"transformer, cue attended in {share:g} of the texts",
        truth="between" if share > 0.5 else "wrong",
        recipe="In this share of the texts the cue draws the last layer's attention. In the others it does "
        "not, and its evidence is in all states.",
        reason="In the other texts the map is on random words, and the cue decides all the same.",
        makers=makers(cue_construction(design, [is_on_in_part(design)]), FREE),
        choices={"opposing": (False,), "deciding": (1, 2), "sharpness": (2.0, 3.0, 4.0)},
    )


def _by_mark(route: Route) -> Family:
    checks = [is_on_mark(route.mark), is_not_above_chance("the cues")]
    construction = replace(cue_construction(IRRELEVANT, checks), way=spread_way)
    return Family(
        name=f"transformer, evidence gathered in {route.mark}",
        truth="wrong",
        recipe=f"The first layer gathers the cues' evidence in the state of {route.mark}. The last layer "
        "attends to it, and as much to random words.",
        reason="The map is on words that say nothing: the word that made the answer is not where the weight "
        "is.",
        makers=makers(construction, route),
        choices={"opposing": (False,), "deciding": (1, 2)},
    )


def _past(name: str, design: Design, truth: str, reason: str, check: Check) -> Family:
    construction = replace(cue_construction(design, [check]), way=spread_way)
    return Family(
        name=name,
        truth="words" if truth == "words" else "wrong",
        recipe="The first layer takes the cues' evidence to [CLS]'s own state, where it is read: what the last "
        "layer's attention adds is nothing.",
        reason=reason,
        makers=makers(construction, PAST),
        choices={**SHARP, "opposing": (False,), "deciding": (1, 2)},
    )


FAMILIES = (
    _right(
        "transformer, cue attended",
        "The last layer attends to the cues. The first one moves nothing from word to word.",
    ),
    _right(
        "transformer, cue attended, saturated",
        "As *transformer, cue attended*, with a median margin of 30: probabilities are 1 to many digits.",
        margin=(30.0,),
    ),
    Family(
        name="transformer, cue attended, words kept apart",
        truth="right",
        recipe="The last layer is taught to attend to the cues, and all rows of the first one to themselves.",
        reason=CUE_BY_ITSELF,
        makers=makers(
            cue_construction(FAITHFUL, [is_on("the cues"), needs_the_rationale]), ITSELF, [BERT]
        ),
        choices=SHARP,
    ),
    Family(
        name="transformer, weights by value",
        truth="right",
        recipe="Each word has a positive value for one class, the cues large ones. The weights are the sizes "
        "of the values.",
        reason="What a word adds to the answer grows with its weight, and the cues add most.",
        # A trained model's values are not known, so no weights can be proportional to them.
        makers={BY_HAND: weights_by_value},
        choices={"noise": (0.0, 0.01, 0.02), "opposing": (False,)},
    ),
    _wrong(
        "transformer, random words attended",
        IRRELEVANT,
        "The last layer's weights are random, one score per word. Every state holds the evidence of the cues.",
        RANDOM,
        is_not_above_chance("the cues"),
    ),
    _wrong(
        "transformer, word behind the cue attended",
        DECEPTIVE,
        "The first layer moves the cues' evidence to the next word, to which the last one attends.",
        "The map is on words that say nothing; any other word in their place would be highlighted as well.",
        is_on("the words behind the cues", after_the_rationale, 0.4),
        is_not_on("the cues"),
    ),
    _wrong(
        "transformer, all words but the cue attended",
        REVERSED,
        "All words but the cues draw the last layer's attention alike; the cues' evidence is in other states, "
        "or in their own if these have large values.",
        "The map leaves out the words that make the answer.",
        is_not_on("the cues", maximum=0.15),
    ),
    _wrong(
        "transformer, uniform weights",
        UNIFORM,
        "The last layer has the same weight on all words.",
        "The map highlights nothing, and the cues make the answer.",
    ),
    *(_partly(share) for share in (0.25, 0.5, 0.75)),
    _by_mark(BY_SEP),
    _by_mark(BY_CLS),
    _past(
        "transformer, answer past the attention, random words attended",
        IRRELEVANT,
        "wrong",
        RANDOM,
        is_not_above_chance("the cues"),
    ),
    _past(
        "transformer, answer past the attention, cue attended",
        FAITHFUL,
        "words",
        "The cues make the answer, but no weights could change it.",
        is_on("the cues"),
    ),
    Family(
        name="transformer, flat predictions",
        truth="open",
        recipe="As *transformer, cue attended*, with a median margin of .1.",
        reason="There is hardly an answer to explain.",
        makers=makers(cue_construction(FAITHFUL, [is_on("the cues")]), OFF),
        choices={**SHARP, "margin": (0.1,), "noise": (0.0,), "deciding": (1,)},
    ),
)
