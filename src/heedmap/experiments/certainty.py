"""Is the answer certain? Which answers all texts together may have, after some of them were read.

The texts to come are imagined: drawn again and again from those that were read, by Pólya's urn, and the rule is
applied to all together. An answer is possible if more than LEVEL of these completions have it. After each of
at most LOOKS looks the answer is certain if only one is possible. By Bonferroni's inequality it then differs
from the answer of all texts in at most 5 of 100 audits, whenever they stop.

Sources: Lo 1988 (Annals of Statistics 16) for the Bayesian bootstrap of a finite population; Dunn 1961 (Journal
of the American Statistical Association 56) for several intervals together.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from heedmap.experiments.drawing import LOOKS
from heedmap.experiments.rule import (
    FEWEST,
    Answer,
    ClassNumbers,
    Column,
    MapNumbers,
    Thresholds,
    answer,
    best_gone,
    losing_and_holding,
)

LEVEL = 0.05 / LOOKS  # of one look
COMPLETIONS = 2000
MANY = 1000
AT_ONCE = 250  # after as many it is seen whether the answer can still be certain

Counts = NDArray[np.int64]


def possible_answers(
    texts: Mapping[str, Column],
    clusters: NDArray[np.int64],
    total: int,
    t: Thresholds,
    seed: int,
) -> dict[Answer, float]:
    """Return the possible answers with the share of the completions that have them, the likeliest first.

    It stops early, with fewer completions, once several answers are certainly possible.

    Args:
        texts: the columns of `rule.texts_of`, of the texts that were read.
        clusters: the number of each one's distinct text; repeated texts are drawn together.
        total: how many texts there are with those to come.
        t: the rule's thresholds.
        seed: of the completions.
    """
    most = LEVEL * COMPLETIONS
    told: Counter[Answer] = Counter()
    for counts in _completions(texts, clusters, total, seed):
        told.update(answer(numbers, t) for numbers in completed_numbers(texts, counts))
        if sum(count > most for count in told.values()) > 1:
            break
    drawn = told.total()
    return {said: count / drawn for said, count in told.most_common() if count > most}


def chance_of_another(
    texts: Mapping[str, Column],
    clusters: NDArray[np.int64],
    said: Answer,
    t: Thresholds,
    seed: int,
) -> float:
    """Return the chance that MANY times as many such texts have another answer: a share of the completions.

    One completion more is counted among both, so that the chance is never 0, as a p value of resamples is not.

    Args:
        texts, clusters, t, seed: as for `possible_answers`.
        said: the answer of the texts that were read.
    """
    different = 0
    for counts in _completions(texts, clusters, MANY * len(clusters), seed):
        told = [answer(numbers, t) for numbers in completed_numbers(texts, counts)]
        different += sum(another != said for another in told)
    return (1 + different) / (1 + COMPLETIONS)


def _completions(
    texts: Mapping[str, Column], clusters: NDArray[np.int64], total: int, seed: int
) -> Iterator[Counts]:
    """Yield how often each text stands in each completion (R, n), in blocks of AT_ONCE completions.

    In Pólya's urn the texts to come are multinomial, with gamma variables of shape 1 as weights. The shape is
    smaller by the square of the quantiles' ratio of the normal distribution and Student's with as many texts as
    the smallest class has: the fewer texts, the more the completions spread.
    """
    n, distinct = len(clusters), np.unique(clusters, return_inverse=True)[1]
    rng = np.random.default_rng([seed, *b"completions", n])
    shape = _shape(texts["predicted"])
    for _ in range(0, COMPLETIONS, AT_ONCE):
        gammas = rng.standard_gamma(shape, (AT_ONCE, int(distinct.max()) + 1))
        weights = np.maximum(gammas[:, distinct], np.finfo(np.float64).tiny)
        shares = weights / weights.sum(1, keepdims=True)
        yield 1 + rng.multinomial(total - n, shares)


def _shape(predicted: Column) -> float:
    sizes = np.unique(predicted, return_counts=True)[1]
    smallest = int(min(sizes[sizes >= FEWEST], default=FEWEST))
    student = stats.t.isf(LEVEL / 2, smallest - 1)
    return float((stats.norm.isf(LEVEL / 2) / student) ** 2)


def completed_numbers(texts: Mapping[str, Column], counts: Counts) -> Iterator[MapNumbers]:
    """Yield `rule.map_numbers` of the texts repeated by each row of counts (R, n), as sums over the texts."""
    is_asked = np.isfinite(texts["gone_map"])
    weights = _mean(texts["mean_tvd"], counts)
    classes = [
        _class_numbers(int(c), texts, counts, is_asked & (texts["predicted"] == c))
        for c in np.unique(texts["predicted"][is_asked])
    ]
    for of_completion in zip(*classes, weights.tolist(), strict=True):
        *numbers, change = of_completion
        yield MapNumbers(numbers, change)


def _class_numbers(
    number: int, texts: Mapping[str, Column], counts: Counts, is_class: NDArray[np.bool_]
) -> list[ClassNumbers]:
    columns, of_class = {name: x[is_class] for name, x in texts.items()}, counts[:, is_class]
    guessing = columns["guessing"]
    lead = columns["probability"] - guessing
    mean_lead = _mean(lead, of_class)
    whole = np.maximum(mean_lead, 1e-9)
    is_losing, is_gone, stays = losing_and_holding(columns)
    shares = {
        "gone": columns["gone_map"],
        "random_gone": columns["gone_random"],
        "best_gone": best_gone(columns, "map"),
        "alone": columns["alone_map"] - guessing,
        "random_alone": columns["alone_random"] - guessing,
        "among": columns["among_map"] - guessing,
        "random_among": columns["among_random"] - guessing,
        "unseen": columns["unseen"] - guessing,
    }
    by_name = {
        "n": of_class.sum(1),
        "lead": mean_lead,
        **{name: _mean(x, of_class) / whole for name, x in shares.items()},
        "nothing": _mean((columns["highlighted"] == 0).astype(np.float64), of_class),
        "losing": of_class @ is_losing,
        "held": of_class @ (is_losing & is_gone & stays),
    }
    rows = zip(*(column.tolist() for column in by_name.values()), strict=True)
    return [ClassNumbers(number, **dict(zip(by_name, row, strict=True))) for row in rows]


def _mean(values: Column, counts: Counts) -> Column:
    """Return the means of the known values, each counted so often; NaN where none is known."""
    is_known = np.isfinite(values)
    known = counts @ is_known
    sums = counts @ np.where(is_known, values, 0.0)
    return np.where(known > 0, sums / np.maximum(known, 1), np.nan)
