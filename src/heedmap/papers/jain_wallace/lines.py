"""Published and our numbers side by side: the lines that a reproduction's tables are made of."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from heedmap.experiments.seed_intervals import next_interval
from heedmap.papers.jain_wallace.learned import Model, learned, name_of, theirs_failed
from heedmap.papers.jain_wallace.measures import Measured
from heedmap.papers.jain_wallace.numbers import DatasetNumbers
from heedmap.papers.jain_wallace.published import COMPARED, NONE, SOURCE, published


@dataclass(frozen=True)
class Line:
    """One data set, encoder, score, quantity and predicted class.

    `ours` is the mean over `seeds` seeds, `ours_min` and `ours_max` the smallest and largest; `ours_std`
    (standard deviation over texts) and `ours_significant` (share with p ≤ .05) are means over the seeds.
    Over all seeds, `n` texts have a value and `undefined` texts have none. From `next_low` to `next_high`
    another seed of ours would be (95 %, `next_interval`). `inside`: whether the published correlation is
    there, `yes` or `no`; else why it is not counted: `one seed`, `not learned`, `theirs not learned`; empty
    where nothing can be compared. Of the seeds, `not_learned` have not learned.
    """

    dataset: str
    encoder: str
    score: str
    quantity: str
    predicted: str
    published: float
    published_std: float
    published_significant: float
    ours: float
    ours_min: float
    ours_max: float
    ours_std: float
    ours_significant: float
    seeds: int
    n: int
    undefined: int
    inside: str
    source: str
    next_low: float
    next_high: float
    not_learned: int

    @property
    def model(self) -> Model:
        """Data set, encoder and score."""
        return self.dataset, self.encoder, self.score


def lines(results: Iterable[DatasetNumbers]) -> list[Line]:
    """Return one line per number, in the order of the results."""
    groups: dict[tuple[str, str, str, str, str], list[Measured]] = {}
    results = list(results)
    failed = {model: len(seeds) for model, seeds in learned(results).failed.items()}
    theirs: set[Model] = set()
    for result in results:
        theirs |= theirs_failed(result)
        for number in result.numbers:
            cell = number.cell
            key = (cell.dataset, cell.encoder, cell.score, number.quantity, number.predicted)
            groups.setdefault(key, []).append(number)
    return [
        _line(key, group, failed.get(name_of(key[:3]), 0), key[:3] in theirs)
        for key, group in groups.items()
    ]


def _line(
    key: tuple[str, str, str, str, str], group: Sequence[Measured], failed: int, theirs: bool
) -> Line:
    theirs_number = published().get(key, NONE)
    values = [number.value for number in group if math.isfinite(number.value)]
    low, high = next_interval(values)
    position = ""
    if key[3] in COMPARED and math.isfinite(theirs_number.value) and values:
        position = "not learned" if failed else "theirs not learned" if theirs else ""
        position = position or _inside(theirs_number.value, low, high)
    is_known = math.isfinite(theirs_number.value) or math.isfinite(theirs_number.significant)
    return Line(
        *key,
        published=theirs_number.value,
        published_std=theirs_number.std,
        published_significant=theirs_number.significant,
        ours=_mean(values),
        ours_min=min(values, default=math.nan),
        ours_max=max(values, default=math.nan),
        ours_std=_mean([number.std for number in group]),
        ours_significant=_mean([number.significant for number in group]),
        seeds=len({number.cell.seed for number in group}),
        n=sum(number.n for number in group),
        undefined=sum(number.undefined for number in group),
        inside=position,
        source=SOURCE if is_known else "",
        next_low=low,
        next_high=high,
        not_learned=failed,
    )


def _inside(value: float, low: float, high: float) -> str:
    return "one seed" if math.isnan(low) else "yes" if low <= value <= high else "no"


def _mean(values: Sequence[float]) -> float:
    defined = [value for value in values if math.isfinite(value)]
    return float(np.mean(defined)) if defined else math.nan
