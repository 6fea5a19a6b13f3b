"""The survey's questions as claims, each judged by an interval over seeds or over models."""

import math
from collections.abc import Sequence

from heedmap.experiments.seed_intervals import level_of, mean_interval
from heedmap.papers.kit.claims import NEITHER, Check, apart, judged
from heedmap.papers.kit.learned import Learned
from heedmap.papers.kit.result import Claim, Estimate
from heedmap.papers.survey.needs import Need
from heedmap.papers.survey.numbers import RankCorrelation

OVER_SEEDS = (
    "By Student's intervals over seeds, one per model, which together hold at 95 % (Bonferroni)."
)
OVER_MODELS = (
    "By Fisher's interval of the rank correlation over models that have learned; those of one data set are "
    "not independent, so that it is too narrow rather than too wide."
)


def need_claims(needs: Sequence[Need], learned: Learned) -> list[Claim]:
    """Judge for each kind of task that every model of it loses accuracy with uniform weights."""
    claims = []
    for task in dict.fromkeys(need.task for need in needs):
        of_task = [need for need in needs if need.task == task]
        level = level_of(len(of_task))
        checks = []
        for need in of_task:
            low, high = mean_interval(need.costs, level)
            estimate = Estimate(need.name, need.cost, low, high)
            line = f"{need.name}: no interval of one training" if math.isnan(low) else estimate.text
            checks.append(Check(line, apart((low, high)), (need.name,), estimate))
        text = f"Attention is needed for {task}: every model loses accuracy if trained with uniform weights"
        claims.append(judged(text, checks, learned, basis=OVER_SEEDS))
    return claims


def correlation_claim(text: str, of: str, correlation: RankCorrelation, sign: int) -> Claim:
    """Judge that two numbers of models go together, or against each other (`sign` −1)."""
    ends = sorted((sign * correlation.low, sign * correlation.high))
    if math.isnan(correlation.low):
        line = f"{of}: no interval of {correlation.models} models"
        return judged(text, [Check(line, NEITHER)], Learned({}), basis=OVER_MODELS)
    value = Estimate(
        f"{'−' if sign < 0 else ''}ρ of {of}, {correlation.models} models",
        sign * correlation.value,
        ends[0],
        ends[1],
    )
    check = Check(value.text, apart((ends[0], ends[1])), (), value)
    return judged(text, [check], Learned({}), basis=OVER_MODELS)
