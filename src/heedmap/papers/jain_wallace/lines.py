"""Published and our numbers side by side: the lines that a reproduction's tables are made of."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from heedmap.papers.jain_wallace.measures import Measured
from heedmap.papers.jain_wallace.numbers import DatasetNumbers
from heedmap.papers.jain_wallace.published import SOURCE, Published, published

NONE = Published(math.nan)


@dataclass(frozen=True)
class Line:
    """One data set, encoder, score, quantity and predicted class.

    `ours` is the mean over `seeds` seeds, `ours_min` and `ours_max` the smallest and largest; `ours_std`
    (standard deviation over texts) and `ours_significant` (share with p ≤ .05) are means over the seeds.
    Over all seeds, `n` texts have a value and `undefined` texts have none. `inside`: whether ours is within
    one published standard deviation of the published mean; empty where there is none.
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

    @property
    def model(self) -> tuple[str, str, str]:
        """Data set, encoder and score."""
        return self.dataset, self.encoder, self.score


def lines(results: Iterable[DatasetNumbers]) -> list[Line]:
    """Return one line per number, in the order of the results."""
    groups: dict[tuple[str, str, str, str, str], list[Measured]] = {}
    for result in results:
        for one in result.numbers:
            cell = one.cell
            key = (cell.dataset, cell.encoder, cell.score, one.quantity, one.predicted)
            groups.setdefault(key, []).append(one)
    return [_line(key, group) for key, group in groups.items()]


def _line(key: tuple[str, str, str, str, str], group: Sequence[Measured]) -> Line:
    known = published().get(key, NONE)
    values = np.array([one.value for one in group])
    ours = _mean(values)
    gap = abs(ours - known.value)
    inside = "" if math.isnan(gap) or math.isnan(known.std) else "yes" if gap <= known.std else "no"
    is_known = math.isfinite(known.value) or math.isfinite(known.significant)
    return Line(
        *key,
        published=known.value,
        published_std=known.std,
        published_significant=known.significant,
        ours=ours,
        ours_min=float(np.nanmin(values)) if math.isfinite(ours) else math.nan,
        ours_max=float(np.nanmax(values)) if math.isfinite(ours) else math.nan,
        ours_std=_mean([one.std for one in group]),
        ours_significant=_mean([one.significant for one in group]),
        seeds=len({one.cell.seed for one in group}),
        n=sum(one.n for one in group),
        undefined=sum(one.undefined for one in group),
        inside=inside,
        source=SOURCE if is_known else "",
    )


def _mean(values: Sequence[float] | np.ndarray) -> float:
    defined = [value for value in values if math.isfinite(value)]
    return float(np.mean(defined)) if defined else math.nan
