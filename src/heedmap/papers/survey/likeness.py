"""How alike are the states of a text, and does that predict what erasing the top word does?"""

import numpy as np

from heedmap.papers.kit.result import Claim, Table
from heedmap.papers.survey.correlations import correlation_claim
from heedmap.papers.survey.formats import mean_over_texts, with_interval
from heedmap.papers.survey.numbers import SHARE, SIGNED
from heedmap.papers.survey.survey import Survey

LIKE_HOW = """Mean cosine of two words' vectors in a text, and conicity, the mean cosine with \
their mean, with 95 % intervals over texts; chance: states of any texts, as many. Flips: share of \
the texts whose decision changes when the most attended word's weight is erased; chance: a random \
other word's."""


def likeness_table(survey: Survey) -> Table:
    """Return how alike states and embeddings are, beside how often an erasure changes the decision."""
    return Table.of(
        "How alike are the states of a text, and does that predict what erasing the top word does?",
        survey.texts,
        {
            "model": survey.named,
            "states": lambda model: mean_over_texts(model, "cosine_states", SIGNED),
            "chance": lambda model: with_interval(model.mean("cosine_states_chance")),
            "embeddings": lambda model: with_interval(model.mean("cosine_embeddings")),
            "conicity": lambda model: with_interval(model.mean("conicity_states")),
            "conicity, chance": lambda model: with_interval(model.mean("conicity_states_chance")),
            "top word flips %": lambda model: mean_over_texts(model, "flip_top", SHARE, 100, 1),
            "random word flips %": lambda model: with_interval(
                100 * model.mean("flip_random"), digits=1
            ),
            "texts": lambda model: str(int(np.isfinite(model.column("cosine_states")).sum())),
        },
        LIKE_HOW,
    )


def likeness_claim(survey: Survey) -> Claim:
    """Judge that decisions change less often where states are more alike."""
    return correlation_claim(
        "The more alike the states of a text, the less often erasing the most attended word changes the "
        "decision",
        "cosine of states and flips",
        survey.correlation(
            survey.texts,
            lambda model: model.mean("cosine_states"),
            lambda model: model.mean("flip_top"),
        ),
        -1,
    )
