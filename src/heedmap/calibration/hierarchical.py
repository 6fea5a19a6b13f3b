"""Families of texts of sentences, by which sentences draw the attention (see `planted_sentences`)."""

from functools import partial

from heedmap.calibration.construction import (
    Check,
    after_the_rationale,
    is_not_above_chance,
    is_not_on,
    is_on,
)
from heedmap.calibration.families import Choices, Family, Maker, Truth
from heedmap.calibration.planted_sentences import is_on_in_part, train
from heedmap.calibration.plants import (
    DECEPTIVE,
    FAITHFUL,
    IRRELEVANT,
    REVERSED,
    UNIFORM,
    Design,
)

CHOICES: Choices = {
    "deciding": (1, 2),
    "opposing": (False,),
    "length": (10, 14, 18),  # sentences
    "sharpness": (3.0, 4.0, 5.0, 6.0),
    "score": ("fixed", "additive", "dot"),
}
SPARSE: Choices = {"normaliser": ("softmax", "softmax", "sparsemax", "entmax15")}
FEW: Choices = {
    "classes": (2, 2, 3, 5)
}  # are learned where the sentence with the cue is not attended to
OTHER_SENTENCES = "The map is on sentences that say nothing."


def _family(
    name: str,
    truth: Truth,
    recipe: str,
    reason: str,
    design: Design,
    *checks: Check,
    times: int = 1,
    choices: Choices | None = None,
) -> Family:
    maker: Maker = partial(train, design, checks)
    return Family(
        f"sentences, {name}",
        truth,
        recipe,
        reason,
        {"hierarchical": maker},
        {**CHOICES, **(choices or {})},
        times=times,
    )


def _partly(share: float) -> Family:
    design = Design("partly", share)
    return _family(
        f"sentence with the cue attended in {share:g} of the texts",
        "between" if share > 0.5 else "wrong",
        "In this share of the texts the sentence with the cue draws the attention, in the others it does not.",
        "In the other texts the map is on random sentences, and the cue decides all the same.",
        design,
        partial(is_on_in_part, design),
        choices={
            "classes": (2, 2, 3),
            "score": ("fixed", "additive"),
            "deciding": (1,),
            "sharpness": (3.0, 4.0),
        },
    )


FAMILIES = (
    _family(
        "sentence with the cue attended",
        "right",
        "One or two sentences have a cue of the class, and draw the attention.",
        "These sentences make the answer, and the answer is read from where the weights are.",
        FAITHFUL,
        is_on("the sentences with cues"),
        times=5,
        choices=SPARSE,
    ),
    _family(
        "sentence with the cue attended, saturated",
        "right",
        "The same with a median margin of 30: probabilities are 1 to many digits.",
        "These sentences make the answer, and the answer is read from where the weights are.",
        FAITHFUL,
        is_on("the sentences with cues"),
        choices={**SPARSE, "margin": (30.0,)},
    ),
    _family(
        "sentence after it attended",
        "wrong",
        "The sentences after those with a cue draw the attention.",
        OTHER_SENTENCES,
        DECEPTIVE,
        is_on("the sentences after", after_the_rationale),
        is_not_on("the sentences with cues"),
        times=2,
        choices={**SPARSE, **FEW},
    ),
    _family(
        "random sentences attended",
        "wrong",
        "The weights are random, by the words of a sentence.",
        OTHER_SENTENCES,
        IRRELEVANT,
        is_not_above_chance("the sentences with cues"),
        choices={**SPARSE, **FEW},
    ),
    _family(
        "all sentences but that with the cue attended",
        "wrong",
        "All sentences but those with a cue draw the attention alike.",
        "The map leaves out the sentences that make the answer.",
        REVERSED,
        is_not_on("the sentences with cues", maximum=0.15),
        times=2,
        choices=FEW,
    ),
    _family(
        "uniform weights",
        "wrong",
        "All sentences have the same weight.",
        "The map highlights nothing, and one or two sentences make the answer.",
        UNIFORM,
        times=2,
        choices=FEW,
    ),
    *(_partly(share) for share in (0.25, 0.5, 0.75)),
)
