"""Families of models that rest on cues, by where their attention is (see the designs in `plants`)."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from heedmap.calibration.by_hand import cue_effects, planted_by_hand, way_of
from heedmap.calibration.construction import (
    Check,
    Construction,
    after_the_rationale,
    finish,
    is_accurate,
    is_not_above_chance,
    is_not_on,
    is_on,
    makers,
    mass_on,
    own_way,
    the_rationale,
)
from heedmap.calibration.families import Family, PlantedModel
from heedmap.calibration.plants import (
    DECEPTIVE,
    FAITHFUL,
    IRRELEVANT,
    OWN,
    PROPORTIONAL,
    REVERSED,
    UNIFORM,
    WITH_CONTEXT,
    WITHOUT_CONTEXT,
    Design,
    Plant,
    cues_of,
    is_cue,
    number_of,
    scores_of,
    vocabulary_of,
    with_other_cues,
    write_texts,
)
from heedmap.calibration.trained import DEV
from heedmap.data.corpus import Corpus, Split
from heedmap.data.vocabulary import Vocabulary
from heedmap.models.attention_classifier import TextClassifier

BY_HAND = ("by hand",)
LEARNED = {"score": ("fixed", "additive", "dot")}
SPARSE = {"normaliser": ("softmax", "softmax", "sparsemax", "entmax15")}
RECURRENT = ("lstm", "gru")
SHARP = {"sharpness": (3.0, 4.0, 5.0, 6.0)}
FIXED_BY_HAND = {"by hand": {"score": ("fixed",)}}
# Without context a cue is learned from its own state alone, so it must have some weight.
SLIGHT = {"sharpness": (1.0, 1.5, 2.0), "length": (10, 16), "deciding": (1,)}


def cue_construction(design: Design, checks: Sequence[Check] = ()) -> Construction:
    """Return the construction of a design: the cues decide, also if they are those of another class."""
    return Construction(
        write=partial(_written, design),
        scores=partial(_scored, design),
        checks=[
            is_accurate(),
            is_accurate("cues of another class", with_other_cues),
            *checks,
        ],
        words=cues_of,
        effects=cue_effects,
        way=partial(way_of, design),
    )


def _written(design: Design, plant: Plant, count: int, part: str) -> Split:
    return write_texts(plant, count, part, design)


def _scored(design: Design, plant: Plant, vocabulary: Vocabulary) -> NDArray[np.float64]:
    return scores_of(plant, design, vocabulary)


def _proportional(plant: Plant, corpus: Corpus | None = None) -> PlantedModel:
    dev, test = (write_texts(plant, n, p) for n, p in ((DEV, "dev"), (plant.texts, "test")))
    model = planted_by_hand(plant, PROPORTIONAL, test, vocabulary_of(plant, dev, test))
    construction = cue_construction(PROPORTIONAL, [is_on("the cues")])
    return finish(construction, plant, model, dev, test)


def _attended(design: Design, plant: Plant, split: Split) -> list[bool]:
    """Return whether the cues of each text are attended to by a partly faithful design."""
    words = [next(word for word in text if is_cue(word)) for text in split.tokens]
    return [design.is_attended(plant, number_of(word)) for word in words]


def is_on_in_part(design: Design) -> Check:
    """Check that the weight is on the cues where they are attended to, and not where they are not."""

    def check(plant: Plant, model: TextClassifier, dev: Split) -> str:
        mass = mass_on(model, dev, the_rationale(plant, dev))
        attended = np.array(_attended(design, plant, dev))
        on, off = mass[attended].mean(), mass[~attended].mean()
        return "" if on >= 0.5 and off <= 0.25 else f"mass {on:.2f} and {off:.2f} on the cues"

    return check


SHARES = (0.25, 0.5, 0.75)
PARTLY = {"sharpness": (2.5, 3.0, 4.0), "deciding": (1, 2), "opposing": (False,)}


def _partly(share: float) -> Family:
    design = Design("partly", share)
    return Family(
        name=f"cue attended in {share:g} of the texts",
        truth="between" if share > 0.5 else "wrong",
        recipe="In this share of the texts the cue draws the attention. In the others it does not, and its "
        "evidence is in all states.",
        reason="In the other texts the map is on random words, and the cue decides all the same.",
        makers=makers(cue_construction(design, [is_on_in_part(design)]), WITH_CONTEXT, BY_HAND),
        choices=PARTLY,
    )


def _overvalued(share: float) -> Family:
    design = Design("partly", share)
    construction = cue_construction(design, [is_on_in_part(design)])
    return Family(
        name=f"cue attended in {share:g} of the texts, else overvalued",
        truth="between" if share > 0.5 else "wrong",
        recipe="As the family before, but where the cue does not draw the attention, its own state has a value "
        "so large that its little weight is enough.",
        reason="In the other texts the map is on random words, and the cue decides all the same.",
        makers=makers(replace(construction, way=own_way), (), (*BY_HAND, *WITHOUT_CONTEXT)),
        choices=PARTLY,
    )


def _deceptive(name: str, minimum: float, sharpness: tuple[float, ...]) -> Family:
    checks = [
        is_on("the words behind the cues", after_the_rationale, minimum),
        is_not_on("the cues"),
    ]
    return Family(
        name=name,
        truth="wrong",
        recipe="The words behind the cues draw the attention, and their states hold the evidence: moved there "
        "by hand, or by an encoder with context.",
        reason="The map is on words that say nothing; any other word in their place would be highlighted as "
        "well.",
        makers=makers(cue_construction(DECEPTIVE, checks), WITH_CONTEXT, BY_HAND),
        choices={**LEARNED, **SPARSE, "sharpness": sharpness, "opposing": (False,)},
        encoder_choices=FIXED_BY_HAND,
    )


FAMILIES = (
    Family(
        name="cue attended",
        truth="right",
        recipe="The cues draw the attention, and their states hold the evidence.",
        reason="The cues make the answer, and the answer is read from where the weights are.",
        makers=makers(cue_construction(FAITHFUL, [is_on("the cues")]), OWN, BY_HAND),
        choices={**LEARNED, **SPARSE, **SHARP},
        encoder_choices=FIXED_BY_HAND,
        times=3,
    ),
    Family(
        name="weights by value",
        truth="right",
        recipe="Each word has a positive value for one class, the cues large ones. The weights are the sizes "
        "of the values.",
        reason="What a word adds to the answer grows with its weight, and the cues add most.",
        # A trained model's values are not known, so no weights can be proportional to them.
        makers={"by hand": _proportional},
        choices={"noise": (0.0, 0.01, 0.02), "opposing": (False,)},
    ),
    Family(
        name="random words attended",
        truth="wrong",
        recipe="The weights are random, one score per word. Every state holds the evidence of the cues; "
        "without context the cues have little weight and large values.",
        reason="The map is on words that say nothing.",
        makers=makers(
            cue_construction(IRRELEVANT, [is_not_above_chance("the cues")]),
            WITH_CONTEXT,
            (*BY_HAND, *WITHOUT_CONTEXT),
        ),
        choices={"deciding": (1, 2), "opposing": (False,)},
        # All weight on one to three words, whose states must hold the evidence of words anywhere.
        encoder_choices=dict.fromkeys(("by hand", *RECURRENT), SPARSE),
    ),
    _deceptive("word behind the cue attended", 0.5, (4.0, 5.0, 6.0)),
    _deceptive("only the word behind the cue attended", 0.9, (7.0, 9.0)),
    Family(
        name="word behind the cue attended, no context",
        truth="wrong",
        recipe="The words behind the cues draw the attention. The cues have little weight and large values.",
        reason="The map is on words that say nothing.",
        # A score of states could not know which word is before it.
        makers=makers(
            cue_construction(DECEPTIVE, [is_on("the words behind the cues", after_the_rationale)]),
            (),
            WITHOUT_CONTEXT,
        ),
        # The noise of a word behind a cue is read with more weight than it usually has.
        choices={"sharpness": (4.0, 5.0, 6.0), "noise": (0.0, 0.01), "opposing": (False,)},
    ),
    Family(
        name="all words but the cue attended",
        truth="wrong",
        recipe="All words but the cues draw the attention alike; the cues have little weight and large values.",
        reason="The map leaves out the words that make the answer.",
        makers=makers(
            cue_construction(REVERSED, [is_not_on("the cues", maximum=0.15)]), OWN, BY_HAND
        ),
        choices={"score": LEARNED["score"], "deciding": (1, 2), "opposing": (False,)},
        encoder_choices={**FIXED_BY_HAND, **dict.fromkeys(WITHOUT_CONTEXT, SLIGHT)},
    ),
    Family(
        name="uniform weights",
        truth="wrong",
        recipe="All words have the same weight; the states of the cues hold the evidence.",
        reason="The map highlights nothing, and the cues make the answer.",
        makers=makers(cue_construction(UNIFORM), OWN, BY_HAND),
    ),
    *(_partly(share) for share in SHARES),
    *(_overvalued(share) for share in SHARES),
    Family(
        name="cue attended, saturated",
        truth="right",
        recipe="As *cue attended*, with a median margin of 30: probabilities are 1 to many digits.",
        reason="The cues make the answer, and the answer is read from where the weights are.",
        makers=makers(cue_construction(FAITHFUL, [is_on("the cues")]), OWN, BY_HAND),
        choices={**LEARNED, **SPARSE, **SHARP, "margin": (30.0,)},
        encoder_choices=FIXED_BY_HAND,
    ),
    Family(
        name="cue not attended, saturated",
        truth="wrong",
        recipe="As *word behind the cue attended*, or without context as *all words but the cue attended*, "
        "with a median margin of 30.",
        reason="The map is on words that say nothing, or leaves out those that make the answer.",
        makers={
            **makers(
                cue_construction(DECEPTIVE, [is_on("the words behind them", after_the_rationale)]),
                WITH_CONTEXT,
                BY_HAND,
            ),
            # By hand, since a cue of so little weight is not learned.
            **makers(
                cue_construction(REVERSED, [is_not_on("the cues", maximum=0.15)]),
                (),
                WITHOUT_CONTEXT,
            ),
        },
        choices={"margin": (30.0,), "sharpness": (4.0, 5.0, 6.0), "opposing": (False,)},
    ),
    Family(
        name="cue attended, flat predictions",
        truth="open",
        recipe="As *cue attended*, with a median margin of .1: the probability of the answer is less than .05 "
        "above that of a guess.",
        reason="There is hardly an answer to explain.",
        makers=makers(cue_construction(FAITHFUL, [is_on("the cues")]), OWN, BY_HAND),
        choices={**SHARP, "margin": (0.1,), "noise": (0.0,), "deciding": (1,)},
    ),
)
