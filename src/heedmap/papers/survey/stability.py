"""Is attention less stable where it matters less?"""

import numpy as np

from heedmap.experiments.seed_intervals import bounded_interval
from heedmap.papers.kit.result import Claim, Table
from heedmap.papers.survey.correlations import correlation_claim
from heedmap.papers.survey.formats import mean_over_texts, points, with_interval
from heedmap.papers.survey.numbers import SHARE
from heedmap.papers.survey.survey import Survey, cost

STABLE_HOW = """JSD: mean divergence of other seeds' maps from the model's, nats; chance: that of \
shuffled weights on the same texts. Relative: one over the other, 1 = as far as chance, 0 = the \
same map. Lost: as in the first table."""


def stability_table(survey: Survey) -> Table:
    """Return how far other seeds' maps are, beside what attention is worth."""
    return Table.of(
        "Is attention less stable where it matters less?",
        survey.retrained,
        {
            "model": survey.named,
            "lost": lambda model: points(cost(model), *bounded_interval(model.costs)),
            "JSD of seeds": lambda model: mean_over_texts(model, "seed_jsd", SHARE, digits=3),
            "chance": lambda model: f"{model.mean('seed_jsd_chance'):.3f}",
            "relative": lambda model: with_interval(model.instability),
            "seeds": lambda model: str(len(model.costs)),
            "texts": lambda model: str(int(np.isfinite(model.column("seed_jsd")).sum())),
        },
        STABLE_HOW,
    )


def stability_claim(survey: Survey) -> Claim:
    """Judge that maps of other seeds are nearer where uniform weights cost more."""
    return correlation_claim(
        "Attention is less stable where it matters less: the more uniform weights cost, the nearer are the "
        "maps of other seeds, relative to shuffled weights",
        "accuracy lost and relative JSD of seeds",
        survey.correlation(survey.retrained, cost, lambda model: model.instability),
        -1,
    )
