"""How two numbers of models go together: the table of all pairs, and a claim about one."""

import math
from collections.abc import Callable, Mapping, Sequence

from heedmap.papers.kit.claims import NEITHER, Check, apart, judged
from heedmap.papers.kit.learned import Learned
from heedmap.papers.kit.result import Claim, Estimate, Table
from heedmap.papers.survey.formats import with_interval
from heedmap.papers.survey.numbers import FEWEST, RankCorrelation, TextModel
from heedmap.papers.survey.survey import Survey, cost
from heedmap.report.wording import plural

RHO_HOW = f"""Spearman's ρ over models that have learned, 0 by chance, with Fisher's 95 % interval, in which \
the models of one data set, which are not independent, count as one; none of fewer than {FEWEST} data sets."""
OVER_MODELS = (
    "By Fisher's interval of the rank correlation over models that have learned, in which those of one data "
    "set, which are not independent, count as one."
)


def correlation_table(survey: Survey) -> Table:
    """Return the rank correlations that the questions of stability and likeness ask for."""
    pairs: Mapping[
        str, tuple[Sequence[TextModel], Callable[[TextModel], float], Callable[[TextModel], float]]
    ]
    pairs = {
        "accuracy lost, relative JSD of seeds": (survey.retrained, cost, lambda m: m.instability),
        "accuracy lost, JSD of seeds": (survey.retrained, cost, lambda m: m.mean("seed_jsd")),
        "cosine of states, top word flips": (
            survey.texts, lambda m: m.mean("cosine_states"), lambda m: m.mean("flip_top"),
        ),
        "cosine above chance, top word flips": (
            survey.texts,
            lambda m: m.mean("cosine_states") - m.mean("cosine_states_chance"),
            lambda m: m.mean("flip_top"),
        ),
        "conicity of states, top word flips": (
            survey.texts, lambda m: m.mean("conicity_states"), lambda m: m.mean("flip_top"),
        ),
        "cosine of embeddings, top word flips": (
            survey.texts, lambda m: m.mean("cosine_embeddings"), lambda m: m.mean("flip_top"),
        ),
    }  # fmt: skip
    lines = []
    for name, (models, x, y) in pairs.items():
        rho = survey.correlation(models, x, y)
        number = with_interval(rho.value, rho.low, rho.high)
        lines.append([name, number, str(rho.models), str(rho.data_sets)])
    heads = ["numbers", "ρ", "models", "data sets"]
    return Table("Rank correlations over models", heads, lines, RHO_HOW)


def correlation_claim(text: str, of: str, correlation: RankCorrelation, sign: int) -> Claim:
    """Judge that two numbers of models go together, or against each other (`sign` −1)."""
    ends = sorted((sign * correlation.low, sign * correlation.high))
    if math.isnan(correlation.low):
        line = f"{of}: no interval of {_counted(correlation)}"
        return judged(text, [Check(line, NEITHER)], Learned({}), basis=OVER_MODELS)
    value = Estimate(
        f"{'−' if sign < 0 else ''}ρ of {of}, {_counted(correlation)}",
        sign * correlation.value,
        ends[0],
        ends[1],
    )
    check = Check(value.text, apart((ends[0], ends[1])), (), value)
    return judged(text, [check], Learned({}), basis=OVER_MODELS)


def _counted(correlation: RankCorrelation) -> str:
    """Return how many models a correlation rests on, and of how many data sets they are."""
    return f"{plural(correlation.models, 'model')} of {plural(correlation.data_sets, 'data set')}"
