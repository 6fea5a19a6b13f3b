"""Families of transformers that read pairs, by which words of the text draw the attention of [CLS].

The map is over the text, given the query, or over both (see `planted_pairs`). Over both the query says nothing:
if it asked for a cue, its word would decide as well.
"""

from functools import partial

from heedmap.calibration.by_hand import Way
from heedmap.calibration.construction import (
    Check,
    after_the_rationale,
    is_not_above_chance,
    is_not_on,
    is_on,
)
from heedmap.calibration.families import Choices, Family, Maker, Truth
from heedmap.calibration.pairs import ASKING, FEW, QUERY_ASKS, SAYS_NOTHING, SILENT
from heedmap.calibration.planted_pair_transformers import BERT, BY_HAND, Pairs, make_by_hand, train
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
)
from heedmap.calibration.trained_transformer import Lower
from heedmap.calibration.transformer_routes import needs_the_rationale

CHOICES: Choices = {
    "classes": (2, 2, 3, 5),
    "deciding": (1, 2),
    "opposing": (False,),
    "length": (10, 16),
    "sharpness": (3.0, 4.0, 5.0, 6.0),
    "texts": (40, 60),
}
IN_STATES = (
    "The asked cue makes the answer, which is read from its state, and by the weights alone."
)
OVER_BOTH = "The map is over text and query. The text has one kind of cue, the query says nothing."


def _family(
    name: str,
    truth: Truth,
    recipe: str,
    reason: str,
    attention: Attention,
    *checks: Check,
    asks: bool = True,
    share: float = 0.5,
    way: Way = "spread",
    lower: Lower | None = None,
    over_both: bool = False,
    choices: Choices | None = None,
) -> Family:
    """`lower`: what the first layer of a trained model is taught; None where none is trained."""
    all_checks = [*(ASKING if asks else SILENT), *checks]
    in_common = Pairs(attention, all_checks, asks, share, way, lower or "free", over_both)
    makers: dict[str, Maker] = {BY_HAND: partial(make_by_hand, in_common)}
    if lower is not None:
        makers[BERT] = partial(train, in_common)
    return Family(
        f"pair transformer, {name}",
        truth,
        recipe,
        reason,
        makers,
        {**CHOICES, **(choices or {})},
        encoder_choices={BERT: FEW},
    )


def _partly(share: float) -> Family:
    return _family(
        f"asked cue attended in {share:g} of the pairs",
        "between" if share > 0.5 else "wrong",
        f"{QUERY_ASKS}. In this share of the pairs the asked cue draws the attention. In the others it does "
        "not, and its evidence is in all states.",
        "In the other pairs the map is on random words, and the asked cue decides all the same.",
        IN_PART,
        is_on_in_part,
        share=share,
        choices={"sharpness": (3.0, 4.0, 5.0)},
    )


FAMILIES = (
    _family(
        "asked cue attended",
        "right",
        f"{QUERY_ASKS}, which draws the last layer's attention. Its evidence is in its own state: trained, the "
        "first layer is taught to leave the words of the text alone.",
        IN_STATES,
        ASKED,
        is_on("the asked cues"),
        needs_the_rationale,
        lower="words apart",
    ),
    _family(
        "asked cue attended, saturated",
        "right",
        "As *pair transformer, asked cue attended*, with a median margin of 30.",
        IN_STATES,
        ASKED,
        is_on("the asked cues"),
        needs_the_rationale,
        lower="words apart",
        choices={"margin": (30.0,)},
    ),
    _family(
        "cue attended, query says nothing",
        "right",
        "The text has one kind of cue, which draws the last layer's attention; the query is of words that say "
        "nothing. The first layer moves nothing from word to word.",
        "The cue makes the answer, which is read from its state, and by the weights alone.",
        ASKED,
        is_on("the cues"),
        needs_the_rationale,
        asks=False,
        lower="off",
    ),
    _family(
        "cue that is not asked for attended",
        "wrong",
        f"{QUERY_ASKS}; the other kind draws the last layer's attention. The evidence of the asked cues is in "
        "all states.",
        "The class of the highlighted cue is not the answer but by chance.",
        NOT_ASKED,
        is_on("the cues not asked for", the_others),
        is_not_on("the asked cues"),
        choices={"sharpness": (4.0, 5.0, 6.0)},
    ),
    _family(
        "word behind the asked cue attended",
        "wrong",
        f"{QUERY_ASKS}. The first layer moves the evidence of cues to the next words; those behind the asked "
        "cues draw the last layer's attention.",
        "The map is on words that say nothing; any other word in their place would be highlighted as well.",
        NEXT,
        is_on("the words behind the cues", after_the_rationale, 0.4),
        is_not_on("the asked cues"),
        # The noise of a word behind a cue is read with more weight than it usually has.
        choices={"noise": (0.0, 0.01)},
    ),
    _family(
        "random words attended",
        "wrong",
        f"{QUERY_ASKS}. The last layer's weights are random, one score per word. The evidence of the asked "
        "cues is in all states.",
        SAYS_NOTHING,
        SCATTERED,
        is_not_above_chance("the asked cues"),
    ),
    _family(
        "random words attended, query says nothing",
        "wrong",
        "The text has one kind of cue. The last layer's weights are random, one score per word. The evidence "
        "of the cues is in all states.",
        SAYS_NOTHING,
        SCATTERED,
        is_not_above_chance("the cues"),
        asks=False,
        lower="free",
    ),
    _family(
        "uniform weights",
        "wrong",
        f"{QUERY_ASKS}. All words have about the same weight; the evidence of the asked cues is in all states.",
        "The map highlights nothing, and the asked cue makes the answer.",
        Attention(draws_none),
    ),
    _family(
        "uniform weights, query says nothing",
        "wrong",
        "The text has one kind of cue. All words have about the same weight; the states of the cues hold the "
        "evidence, or, trained, any state.",
        "The map highlights nothing, and the cue makes the answer.",
        Attention(draws_none),
        asks=False,
        way="own",
        lower="free",
    ),
    *(_partly(share) for share in (0.25, 0.5, 0.75)),
    _family(
        "cue attended, map over both texts",
        "right",
        f"{OVER_BOTH} The cue draws the last layer's attention. The first one moves nothing from word to word.",
        "The cue makes the answer, which is read from its state, and by the weights alone.",
        ASKED,
        is_on("the cues"),
        needs_the_rationale,
        asks=False,
        lower="off",
        over_both=True,
    ),
    _family(
        "random words attended, map over both texts",
        "wrong",
        f"{OVER_BOTH} The last layer's weights are random, one score per word. The evidence of the cue is in "
        "all states.",
        SAYS_NOTHING,
        SCATTERED,
        is_not_above_chance("the cues"),
        asks=False,
        over_both=True,
    ),
    _family(
        "uniform weights, map over both texts",
        "wrong",
        f"{OVER_BOTH} All words of both have about the same weight.",
        "The map highlights nothing, and the cue makes the answer.",
        Attention(draws_none),
        asks=False,
        way="own",
        over_both=True,
    ),
)
