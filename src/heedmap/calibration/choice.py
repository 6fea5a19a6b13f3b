"""Choose the thresholds of the rule on all families but one, and count its answers about that one, for each in turn.

What is chosen on all families is what an audit uses. The form of the rule is fixed (docs/verdict.md).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import cast

import numpy as np
from numpy.typing import NDArray

from heedmap.calibration.families import Truth, families
from heedmap.calibration.measure import Measured
from heedmap.calibration.plants import Plant
from heedmap.experiments.rates import ALL, RULES, Answers, OfFamily, OfKind, Rates
from heedmap.experiments.rule import ANSWERS, Answer, MapNumbers, Thresholds, answer, map_numbers

# The thresholds that are chosen. The others are of the form: they say which answer follows where it is no yes.
GRID: Mapping[str, Sequence[float]] = {
    "gone": (0.4, 0.5, 0.6),
    "mean_gone": (0.65, 0.7, 0.75, 0.8, 0.85),
    "alone": (0.2, 0.3, 0.4),
    "mean_alone": (0.5, 0.6, 0.7),
    "holding": (0.4, 0.5, 0.6),
}
FALSE_YES, FALSE_NO = 10.0, 5.0  # cost of one against a yes that is missed
NEAR = 0.002  # costs that differ by no more are equal

TRANSFORMERS = ("bert", "transformer by hand")


@dataclass(frozen=True)
class Known:
    """A plant, the truth of its map, and what was asked of it."""

    plant: Plant
    truth: Truth
    numbers: MapNumbers

    @property
    def kind(self) -> str:
        """The kind of model that it is of."""
        return "transformer" if self.plant.encoder in TRANSFORMERS else self.plant.encoder


def known(measured: Sequence[Measured]) -> list[Known]:
    """Return the admitted plants with their truths."""
    every = families()
    return [
        Known(one.plant, every[one.plant.family].truth, map_numbers(columns_of(one)))
        for one in measured
        if one.admitted
    ]


def columns_of(measured: Measured) -> dict[str, NDArray[np.float64]]:
    """Return the columns of a plant's texts, null as NaN."""
    return {
        name: measured.texts[name].to_numpy().astype(np.float64)
        for name in measured.texts.column_names
    }


def choose(plants: Sequence[Known], name: str, data: str | None = None) -> Rates:
    """Return the thresholds that are chosen on all families, and the answers about each by those chosen without it."""
    grid = thresholds()
    said = [[answer(one.numbers, t) for one in plants] for t in grid]
    by_kind: dict[str, dict[str, OfFamily]] = {ALL: {}}
    for family in dict.fromkeys(one.plant.family for one in plants):
        rest = [i for i, one in enumerate(plants) if one.plant.family != family]
        chosen = said[best(plants, said, rest)]
        of_family = [i for i, one in enumerate(plants) if one.plant.family == family]
        for kind in (ALL, *dict.fromkeys(plants[i].kind for i in of_family)):
            some = [i for i in of_family if kind in (ALL, plants[i].kind)]
            counts = Counter(chosen[i] for i in some)
            by_kind.setdefault(kind, {})[family] = OfFamily(
                truth=plants[some[0]].truth,
                answers=Answers(n=len(some), counts={a: counts[a] for a in ANSWERS if counts[a]}),
            )
    return Rates(
        rules=RULES,
        data=data,
        name=name,
        plants=len(plants),
        thresholds=grid[best(plants, said, range(len(plants)))],
        kinds={kind: OfKind(families=of) for kind, of in by_kind.items()},
    )


def thresholds() -> list[Thresholds]:
    """Return all combinations of GRID, the most lenient first."""
    return [
        Thresholds(**dict(zip(GRID, values, strict=True))) for values in product(*GRID.values())
    ]


def best(
    plants: Sequence[Known], said: Sequence[Sequence[Answer]], rows: Sequence[int] | range
) -> int:
    """Return the combination whose answers about some plants cost least; of those that cost the same, the middle one.

    Every family counts alike. The cost is FALSE_YES for each wrong or partly right map that has a yes, FALSE_NO for
    a right one that has a no, and 1 for a right one without a yes, as means over a family's plants.
    """
    weights = Counter(plants[i].plant.family for i in rows)
    of = cast("NDArray[np.float64]", np.array([1 / weights[plants[i].plant.family] for i in rows]))
    truths = np.array([plants[i].truth for i in rows])
    costs = []
    for answers in said:
        given = np.array([answers[i] for i in rows])
        right = truths == "right"
        cost = FALSE_YES * ((given == "yes") & np.isin(truths, ("wrong", "part")))
        cost = cost + right * ((given != "yes") + FALSE_NO * (given == "no"))
        costs.append(float((of * cost).sum()))
    least = min(costs)
    equal = [i for i, cost in enumerate(costs) if cost <= least + NEAR * len(weights)]
    return equal[len(equal) // 2]
