"""Families of pairs, by which words of the text draw the attention, given the query (see `planted_pairs`)."""

from functools import partial

from heedmap.calibration.construction import (
    Check,
    after_the_rationale,
    is_accurate,
    is_not_above_chance,
    is_not_on,
    is_on,
)
from heedmap.calibration.families import Choices, Family, Maker, Truth
from heedmap.calibration.planted_pairs import (
    ASKED,
    IN_PART,
    NEXT,
    NOT_ASKED,
    SCATTERED,
    Attention,
    draws_none,
    is_on_in_part,
    the_others,
    train,
    with_other_classes,
    with_other_query,
)

ASKING = [
    is_accurate(),
    is_accurate("cues of another class", with_other_classes),
    is_accurate("the other query", with_other_query),
]
SILENT = ASKING[:2]
CHOICES: Choices = {
    "classes": (2, 2, 3, 5),
    "deciding": (1, 2),
    "opposing": (False,),
    "length": (10, 16, 20),
    "sharpness": (3.0, 4.0, 5.0, 6.0),
    "score": ("fixed", "additive", "dot"),
    "normaliser": ("softmax", "softmax", "sparsemax", "entmax15"),
}
SOFT: Choices = {"normaliser": ("softmax",)}
# Away from the asked cues a state must hold both kinds, which is learned of a few classes and words only.
FEW: Choices = {"classes": (2, 2, 3), "length": (10, 16)}
QUERY_ASKS = "The query asks for one of two kinds of cue"
SAYS_NOTHING = "The map is on words that say nothing."


def _family(
    name: str,
    truth: Truth,
    recipe: str,
    reason: str,
    attention: Attention,
    *checks: Check,
    asks: bool = True,
    share: float = 0.5,
    times: int = 1,
    choices: Choices | None = None,
) -> Family:
    standard = ASKING if asks else SILENT
    maker: Maker = partial(train, attention, asks, share, [*standard, *checks])
    return Family(
        name, truth, recipe, reason, {"pair": maker}, {**CHOICES, **(choices or {})}, times=times
    )


def _partly(share: float) -> Family:
    return _family(
        f"pair, asked cue attended in {share:g} of the texts",
        "between" if share > 0.5 else "wrong",
        f"{QUERY_ASKS}. In this share of the texts the asked cue draws the attention, in the others not.",
        "In the other texts the map is on random words, and the asked cue decides all the same.",
        IN_PART,
        is_on_in_part,
        share=share,
        choices={**SOFT, **FEW, "classes": (2,), "sharpness": (3.0, 4.0, 5.0)},
    )


FAMILIES = (
    _family(
        "pair, asked cue attended",
        "right",
        f"{QUERY_ASKS}, which draws the attention.",
        "The asked cue makes the answer, and the answer is read from where the weights are.",
        ASKED,
        is_on("the asked cues"),
        times=3,
    ),
    _family(
        "pair, cue attended, query says nothing",
        "right",
        "The text has one kind of cue, which draws the attention; the query is of words that say nothing.",
        "The cue makes the answer, and the answer is read from where the weights are.",
        ASKED,
        is_on("the cues"),
        asks=False,
        times=2,
    ),
    _family(
        "pair, cue that is not asked for attended",
        "wrong",
        f"{QUERY_ASKS}; the other kind draws the attention.",
        "The class of the highlighted cue is not the answer but by chance.",
        NOT_ASKED,
        is_on("the cues not asked for", the_others),
        is_not_on("the asked cues"),
        choices={**SOFT, **FEW, "sharpness": (4.0, 5.0, 6.0)},
    ),
    _family(
        "pair, word behind the asked cue attended",
        "wrong",
        f"{QUERY_ASKS}; the words behind the asked cues draw the attention.",
        SAYS_NOTHING,
        NEXT,
        is_on("the words behind the cues", after_the_rationale),
        is_not_on("the asked cues"),
        choices=FEW,
    ),
    _family(
        "pair, random words attended, query says nothing",
        "wrong",
        "The text has one kind of cue. The weights are random, one score per word.",
        SAYS_NOTHING,
        SCATTERED,
        is_not_above_chance("the cues"),
        asks=False,
        choices={**SOFT, **FEW},
    ),
    _family(
        "pair, uniform weights",
        "wrong",
        f"{QUERY_ASKS}. All words have about the same weight.",
        "The map highlights nothing, and the asked cue makes the answer.",
        Attention(draws_none),
        choices={**SOFT, **FEW},
    ),
    _family(
        "pair, uniform weights, query says nothing",
        "wrong",
        "The text has one kind of cue. All words have about the same weight.",
        "The map highlights nothing, and the cue makes the answer.",
        Attention(draws_none),
        asks=False,
        choices={**SOFT, **FEW},
    ),
    *(_partly(share) for share in (0.25, 0.5, 0.75)),
    _family(
        "pair, asked cue attended, saturated",
        "right",
        "As *pair, asked cue attended*, with a median margin of 30.",
        "The asked cue makes the answer, and the answer is read from where the weights are.",
        ASKED,
        is_on("the asked cues"),
        choices={"margin": (30.0,)},
    ),
)
