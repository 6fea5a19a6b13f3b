"""Choose the edges of the readings on one half of the plants, measure their errors on the other.

The halves are apart in seeds, and so in models and texts: even seeds choose, odd seeds measure.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy import stats

from heedmap.calibration.measure import Measured, Number
from heedmap.experiments.bottom_line import answer
from heedmap.experiments.findings import Level, level_of
from heedmap.experiments.rates import DECISIVE, RULES, QuestionRates, Rate, Rates, Said

FALSE = 0.05  # of the readings of one question, and of the bottom line
FEWEST = 10  # plants of either truth, to choose an edge
Z = float(stats.norm.ppf(0.975))


def choose(measured: Sequence[Measured], name: str, data: str | None = None) -> Rates:
    """Return edges and rates from the admitted plants."""
    admitted = [m for m in measured if m.admitted]
    first, second = ([m for m in admitted if m.plant.seed % 2 == half] for half in (0, 1))
    every = {key for m in admitted for key in m.numbers}
    keys = [*DECISIVE, *sorted(every - {*DECISIVE})]
    questions = {key: _question(key, first, second) for key in keys}
    draft = Rates(
        rules=RULES, data=data, name=name, plants=len(admitted), questions=questions, verdicts={}
    )
    return draft.model_copy(update={"verdicts": verdict_rates(draft, second)})


def verdict_rates(rates: Rates, measured: Sequence[Measured]) -> dict[str, dict[Said, Rate]]:
    """Return how often the bottom line says yes and no, by group of plants."""
    answers = [answer(levels(rates, m)) for m in measured]
    groups: list[tuple[str, Callable[[Measured], bool]]] = [
        ("wrong", is_wrong),
        ("right", is_right),
    ]
    for of in (kind_of, door_of, family_of):
        for group in dict.fromkeys(of(m) for m in measured):
            groups.append((group, _of(of, group)))
    result: dict[str, dict[Said, Rate]] = {}
    for group, belongs in groups:
        of_group = [answer for answer, m in zip(answers, measured, strict=True) if belongs(m)]
        result[group] = {
            "yes": rate([a == "yes" for a in of_group]),
            "no": rate([a == "no" for a in of_group]),
        }
    return result


def kind_of(m: Measured) -> str:
    """Return the kind of plant, with ρ if it is partly faithful."""
    return f"partly {m.plant.share:g}" if m.plant.kind == "partly" else m.plant.kind


def door_of(m: Measured) -> str:
    """Return whether it is a transformer, and whether the map is wrong, right, or between."""
    return f"{'transformers' if m.plant.is_transformer else 'own models'}: {_truth(m)}"


def family_of(m: Measured) -> str:
    """Return the family and whether the map is wrong, right, or between."""
    return f"{m.plant.family}: {_truth(m)}"


def _truth(m: Measured) -> str:
    return "wrong" if is_wrong(m) else "right" if is_right(m) else "between"


def _of(group: Callable[[Measured], str], name: str) -> Callable[[Measured], bool]:
    return lambda m: group(m) == name


def is_right(m: Measured) -> bool:
    """Whether the map is right in every text."""
    return m.plant.share == 1


def is_wrong(m: Measured) -> bool:
    """Whether the map is right in at most half of the texts: such a map may not be shown."""
    return m.plant.share <= 0.5


def rate(hits: Sequence[bool]) -> Rate:
    """Return a share with its Wilson interval."""
    count, n = int(sum(hits)), len(hits)
    if not n:
        return Rate(count=0, n=0, low=0.0, high=1.0)
    interval = stats.binomtest(count, n).proportion_ci(method="wilson")
    return Rate(count=count, n=n, low=float(interval.low), high=float(interval.high))


def _numbers(
    key: str, measured: Sequence[Measured], which: Callable[[Measured], bool]
) -> list[Number]:
    """Return a question's numbers of some plants, where it has an interval."""
    every = [m.numbers[key] for m in measured if key in m.numbers and which(m)]
    return [n for n in every if math.isfinite(n.low)]


def _area(key: str, measured: Sequence[Measured]) -> tuple[float, float, float]:
    """Return the AUC of the right plants against those that are right of no text."""
    right = _numbers(key, measured, is_right)
    wrong = _numbers(key, measured, lambda m: m.plant.share == 0)
    return auc([n.share for n in right], [n.share for n in wrong])


def _question(key: str, first: Sequence[Measured], second: Sequence[Measured]) -> QuestionRates:
    # Any decisive question can say no of a map: together they may be wrong of FALSE of the right ones.
    questions = len(DECISIVE) if key in DECISIVE else 1
    for_edge, against_edge = edges(
        _numbers(key, first, is_wrong), _numbers(key, first, is_right), questions
    )
    wrong, right = _numbers(key, second, is_wrong), _numbers(key, second, is_right)
    false_for, power = (_above(for_edge, numbers) for numbers in (wrong, right))
    if not _holds(false_for, power):
        for_edge, false_for, power = None, _above(None, wrong), _above(None, right)
    false_against, caught = (_below(against_edge, numbers) for numbers in (right, wrong))
    if not _holds(false_against, caught):
        against_edge, false_against, caught = None, _below(None, right), _below(None, wrong)
    area, low, high = _area(key, second)
    return QuestionRates(
        auc=area,
        auc_low=low,
        auc_high=high,
        for_edge=for_edge,
        against_edge=against_edge,
        false_for=false_for,
        false_against=false_against,
        power=power,
        caught=caught,
    )


def _above(edge: float | None, numbers: Sequence[Number]) -> Rate:
    return rate([edge is not None and n.low >= edge for n in numbers])


def _below(edge: float | None, numbers: Sequence[Number]) -> Rate:
    return rate([edge is not None and n.high <= edge for n in numbers])


def _holds(false: Rate, true: Rate) -> bool:
    """Whether an edge is seldom wrong on other models, and certainly more often right."""
    return false.share <= FALSE and true.low > false.high


def edges(
    wrong: Sequence[Number], right: Sequence[Number], questions: int = 1
) -> tuple[float | None, float | None]:
    """Return the edge for "for" and the edge for "against".

    At most FALSE of the wrong plants' intervals lie above the first, at most FALSE / `questions` of the right
    ones' below the second. Where these leave a gap, both are put into its middle.
    """
    if len(wrong) < FEWEST or len(right) < FEWEST:
        return None, None
    lows, highs = sorted(n.low for n in wrong), sorted(n.high for n in right)
    for_edge = float(np.nextafter(lows[len(lows) - 1 - int(FALSE * len(lows))], np.inf))
    against_edge = float(np.nextafter(highs[int(FALSE / questions * len(highs))], -np.inf))
    if against_edge > for_edge:
        for_edge = against_edge = (for_edge + against_edge) / 2
    return for_edge, against_edge


def auc(right: Sequence[float], wrong: Sequence[float]) -> tuple[float, float, float]:
    """Return the ROC AUC of right against wrong, with its 95 % interval.

    The interval is the set of all areas that the estimate does not contradict, with the variance of Hanley and
    McNeil (1982) at that area (Newcombe 2006, method 5): unlike a bootstrap it has a length at an AUC of 1.
    """
    if not right or not wrong:
        return math.nan, 0.0, 1.0
    m, n = len(right), len(wrong)
    area = float(stats.mannwhitneyu(right, wrong).statistic / (m * n))
    size = (m + n) / 2 - 1

    def fits(a: float) -> bool:
        variance = a * (1 - a) / (m * n) * (1 + size * (1 - a) / (2 - a) + size * a / (1 + a))
        return (a - area) ** 2 <= Z**2 * variance

    grid = np.linspace(0, 1, 10_001)[1:-1]
    inside = [a for a in grid if fits(a)]
    return area, float(min([*inside, area])), float(max([*inside, area]))


def levels(rates: Rates, m: Measured) -> dict[str, Level]:
    """Return the level of every question about a plant."""
    return {key: level_of(n.low, n.high, rates.questions.get(key)) for key, n in m.numbers.items()}
