"""Choose the thresholds on all families but one and count the answers about that one, for each in turn.

What is chosen on all families is what an audit uses. The form of the rule is fixed (docs/verdict.md). Plants of
`LATER` kinds have no part in the choice: their answers are by the thresholds that were chosen without them.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from itertools import product

import numpy as np
import pyarrow as pa
from jaxtyping import Float
from numpy.typing import NDArray

from heedmap.calibration.bags import DECIDING
from heedmap.calibration.families import Truth, families
from heedmap.calibration.measure import Measured
from heedmap.calibration.planted_bags import BY_HAND, ONE_HOT, PICTURES
from heedmap.calibration.planted_pair_transformers import BERT as PAIR_BERT
from heedmap.calibration.planted_pair_transformers import BY_HAND as PAIRS_BY_HAND
from heedmap.calibration.plants import NUMBER_BY_HAND, OF_PICTURES, Plant
from heedmap.experiments.rates import ALL, OF_NUMBER, RULES, Answers, OfFamily, OfKind, Rates
from heedmap.experiments.rule import (
    ANSWERS,
    Answer,
    ClassAnswer,
    ClassNumbers,
    MapNumbers,
    Thresholds,
    answer,
    answer_of,
    judge_class,
    map_numbers,
)

# The thresholds that are chosen. The others are of the form: they say which answer follows where it is no yes.
GRID: Mapping[str, Sequence[float]] = {
    "gone": (0.4, 0.5, 0.6),
    "mean_gone": (0.65, 0.75, 0.85),
    "alone": (0.2, 0.3, 0.4),
    "mean_alone": (0.5, 0.6, 0.7),
    "holding": (0.65, 0.7, 0.75, 0.8, 0.85),
}
# Cost of one against a yes that is missed, as the goals are to each other: a yes for at most 5 % of the wrong
# maps, a no for at most 2 % of the right ones, no yes for at most 15 %.
FALSE_YES, FALSE_NO = 0.15 / 0.05, 0.15 / 0.02
LENIENT = 1.0  # cost of a yes for a map that is right in three quarters of the texts, neither right nor wrong
NEAR = 0.002  # costs that differ by no more are equal

PLANT = "plant_"  # begins the columns of a plant's fields
Judged = list[tuple[ClassNumbers, ClassAnswer]]

# Kinds of models by their encoders, where these are named otherwise.
KINDS: Mapping[str, str] = {
    **dict.fromkeys(("bert", "transformer by hand"), "transformer"),
    **dict.fromkeys((BY_HAND, ONE_HOT, PICTURES, *DECIDING), "bags"),
    NUMBER_BY_HAND: OF_NUMBER,
    **dict.fromkeys(OF_PICTURES, "pictures"),
    **dict.fromkeys((PAIRS_BY_HAND, PAIR_BERT), "transformer of pairs"),
}
# Kinds that chose no threshold, and are not counted among all.
LATER = ("bags", OF_NUMBER, "pictures", "transformer of pairs")


@dataclass(frozen=True)
class Known:
    """A plant, the truth of its map, and what was asked of it."""

    plant: Plant
    truth: Truth
    numbers: MapNumbers

    @property
    def kind(self) -> str:
        """The kind of model that it is of."""
        return kind_of(self.plant)


def kind_of(plant: Plant) -> str:
    """Return the kind of model of a plant, by which rates are counted."""
    return KINDS.get(plant.encoder, plant.encoder)


def known(measured: Sequence[Measured]) -> list[Known]:
    """Return the admitted plants with their truths."""
    by_name = families()
    return [
        Known(case.plant, by_name[case.plant.family].truth, map_numbers(columns_of(case)))
        for case in measured
        if case.admitted
    ]


def columns_of(measured: Measured) -> dict[str, NDArray[np.float64]]:
    """Return the columns of a plant's texts, null as NaN."""
    return {
        name: measured.texts[name].to_numpy().astype(np.float64)
        for name in measured.texts.column_names
    }


def to_table(plants: Sequence[Known]) -> pa.Table:
    """Return all that thresholds are chosen by: a row for each predicted class of each plant."""
    return pa.Table.from_pylist(
        [
            {
                **{PLANT + name: value for name, value in asdict(case.plant).items()},
                "truth": case.truth,
                "weights": case.numbers.weights,
                **asdict(x),
            }
            for case in plants
            for x in case.numbers.classes
        ]
    )


def from_table(table: pa.Table) -> list[Known]:
    """Return the plants of such a table, in its order."""
    classes_by_map: dict[tuple[Plant, Truth, float], list[ClassNumbers]] = {}
    for row in table.to_pylist():
        plant = Plant(**{f.name: row[PLANT + f.name] for f in fields(Plant)})
        x = ClassNumbers(**{f.name: row[f.name] for f in fields(ClassNumbers)})
        classes_by_map.setdefault((plant, row["truth"], row["weights"]), []).append(x)
    return [
        Known(plant, truth, MapNumbers(x, weights))
        for (plant, truth, weights), x in classes_by_map.items()
    ]


def choose(plants: Sequence[Known], name: str, data: str | None = None) -> Rates:
    """Return the thresholds chosen on all families, and the answers about each by those chosen without it.

    The rates of kinds that are `LATER` are added to them.
    """
    choosing = [case for case in plants if case.kind not in LATER]
    grid = thresholds()
    said = answers_about(choosing, grid)
    cost = costs(choosing, said)
    by_kind: dict[str, dict[str, OfFamily]] = {ALL: {}}
    for family in dict.fromkeys(case.plant.family for case in choosing):
        rest = [i for i, case in enumerate(choosing) if case.plant.family != family]
        family_answers = said[best(choosing, cost, rest)]
        of_family = [i for i, case in enumerate(choosing) if case.plant.family == family]
        for kind in (ALL, *dict.fromkeys(choosing[i].kind for i in of_family)):
            rows = [i for i in of_family if kind in (ALL, choosing[i].kind)]
            by_kind.setdefault(kind, {})[family] = OfFamily(
                truth=choosing[rows[0]].truth, answers=_counted([family_answers[i] for i in rows])
            )
    rates = Rates(
        rules=RULES,
        data=data,
        name=name,
        plants=len(choosing),
        thresholds=grid[best(choosing, cost, range(len(choosing)))],
        kinds={kind: OfKind(families=by_family) for kind, by_family in by_kind.items()},
    )
    return with_later_kinds(rates, plants)


def with_later_kinds(rates: Rates, plants: Sequence[Known]) -> Rates:
    """Return rates with those of the `LATER` kinds among some plants, by the thresholds of the rates.

    Nothing else of them changes. The rates of a kind that is there already are replaced.
    """
    kinds = dict(rates.kinds)
    for kind in LATER:
        by_family: dict[str, list[Known]] = {}
        for case in plants:
            if case.kind == kind:
                by_family.setdefault(case.plant.family, []).append(case)
        if by_family:
            kinds[kind] = OfKind(
                families={
                    family: OfFamily(
                        truth=cases[0].truth,
                        answers=_counted([answer(x.numbers, rates.thresholds) for x in cases]),
                    )
                    for family, cases in by_family.items()
                }
            )
    return rates.model_copy(update={"kinds": kinds})


def _counted(said: Sequence[Answer]) -> Answers:
    counts = Counter(said)
    return Answers(n=len(said), counts={a: counts[a] for a in ANSWERS if counts[a]})


def answers_about(plants: Sequence[Known], grid: Sequence[Thresholds]) -> list[list[Answer]]:
    """Return the answers about plants by each combination of thresholds."""

    @cache
    def judged(gone: float, alone: float, holding: float) -> list[Judged]:
        t = Thresholds(gone=gone, alone=alone, holding=holding)  # all that a class is judged by
        return [[(x, judge_class(x, t)) for x in case.numbers.classes] for case in plants]

    return [
        [
            answer_of(of_plant, case.numbers, t)
            for of_plant, case in zip(judged(t.gone, t.alone, t.holding), plants, strict=True)
        ]
        for t in grid
    ]


def thresholds() -> list[Thresholds]:
    """Return all combinations of GRID, the most lenient first."""
    return [
        Thresholds(**dict(zip(GRID, values, strict=True))) for values in product(*GRID.values())
    ]


def costs(plants: Sequence[Known], said: Sequence[Sequence[Answer]]) -> Float[np.ndarray, "G N"]:
    """Return the cost of each combination's answer about each plant.

    It is FALSE_YES for a wrong or partly right map that has a yes, LENIENT for one that is between, FALSE_NO
    for a right one that has a no, and 1 for another right one without a yes.
    """
    truths, answers = np.array([case.truth for case in plants]), np.array(said)
    is_yes = answers == "yes"
    of_right = np.where(answers == "no", FALSE_NO, np.where(is_yes, 0.0, 1.0))
    cost = FALSE_YES * (is_yes & np.isin(truths, ("wrong", "part")))
    cost = cost + LENIENT * (is_yes & (truths == "between")) + of_right * (truths == "right")
    return np.asarray(cost, dtype=np.float64)


def best(
    plants: Sequence[Known], costs: Float[np.ndarray, "G N"], rows: Sequence[int] | range
) -> int:
    """Return the combination whose answers about some plants cost least; of equal ones the middle one.

    Every family counts alike: its cost is the mean over its plants.
    """
    sizes = Counter(plants[i].plant.family for i in rows)
    shares = np.array([1 / sizes[plants[i].plant.family] for i in rows])
    of_combinations = costs[:, list(rows)] @ shares
    equal = np.flatnonzero(of_combinations <= of_combinations.min() + NEAR * len(sizes))
    return int(equal[len(equal) // 2])
