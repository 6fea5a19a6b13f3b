"""The rule of the bottom line: from what becomes of the answers of each predicted class, what is said of a map.

It is written down in docs/verdict.md. The numbers are those of the tables `highlights`, `alternatives` and
`permutation`; the thresholds come from a calibration.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from heedmap.experiments.intervals import of_share

Answer = Literal["yes", "words", "in part", "no", "cannot tell"]
ANSWERS: tuple[Answer, ...] = ("yes", "words", "in part", "no", "cannot tell")
ClassAnswer = Literal["right", "sufficient", "needed", "default", "wrong", "unclear", "flat", "few"]

Column = NDArray[np.float64]

FEWEST = 5  # texts of a class that counts
FEWEST_TEXTS = 15  # in all
MOST_TEXTS = 0.5  # of a class, in which the map may highlight nothing
MOST_RANDOM = 0.5  # of the lead, that random words may keep where a map's words are said to suffice
FLAT = 0.05  # mean lead, below which nothing can be lost
SOME = (
    0.1  # of the texts: a map that is certainly right in more, and wrong in more, is right in part
)


class Thresholds(BaseModel):
    """From where on something is said; shares are of the lead, the answer's probability above that of guessing.

    Attributes:
        gone: the least share that is gone without the first words of the map, of each class.
        mean_gone: the same, as a mean over classes.
        alone: the least share that stays with the highlighted words alone, of each class.
        mean_alone: the same, as a mean over classes.
        holding: the least share of the texts in which half of the lead is gone, and half stays.
        weights: the least mean change of the prediction (TVD) under shuffles, for the weights to matter.
        carried: the share that the best third of the words must carry, for a class to have such words.
        nearer: how far the map must be from random words to the best ones, not to be wrong with less gone.
        default: the share that a few words of other texts give the answer; from there on it is the default.
        against: by how much more stays among the words of other texts than of random words, for the words of
            a default class to be right.
        sufficient: the least share that stays, where words are said to suffice.
        above_random: by how much that must be more than of random words.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    gone: float = 0.5
    mean_gone: float = 0.75
    alone: float = 0.3
    mean_alone: float = 0.6
    holding: float = 0.5
    weights: float = 0.03
    carried: float = 0.4
    nearer: float = 0.25
    default: float = 0.4
    against: float = 0.15
    sufficient: float = 0.6
    above_random: float = 0.3


@dataclass(frozen=True)
class ClassNumbers:
    """Means over the texts of one predicted class. All but `n`, `lead`, `nothing` and `holding` are shares of the lead.

    Attributes:
        number: of the class.
        n: its texts.
        lead: the answer's mean probability above that of guessing.
        gone: what is gone without the first words of the map.
        random_gone: without random ones.
        best_gone: without the best ones known, by leave-one-out or the map; NaN where that was not asked.
        alone: what stays with the highlighted words alone.
        random_alone: with as many random ones.
        among: what stays if all other words are those of other texts.
        random_among: of as many random ones.
        unseen: what a few words of other texts give.
        nothing: the share of texts in which the map highlights nothing.
        holding: the share of texts in which half of the lead is gone, and half stays.
    """

    number: int
    n: int
    lead: float
    gone: float
    random_gone: float
    best_gone: float
    alone: float
    random_alone: float
    among: float
    random_among: float
    unseen: float
    nothing: float
    holding: float


def texts_of(tables: Mapping[str, pa.Table]) -> dict[str, Column]:
    """Return the columns that the rule reads, one number per text, null as NaN."""
    columns: dict[str, Column] = {}
    for name in ("highlights", "alternatives", "permutation"):
        if name in tables:
            for column in tables[name].column_names:
                columns[column] = tables[name][column].to_numpy().astype(np.float64)
    return columns


def class_numbers(texts: Mapping[str, Column], map_: str = "map") -> list[ClassNumbers]:
    """Return the numbers of every predicted class. `map_`: the ending of the columns of the map that is asked."""
    asked = np.isfinite(texts[f"gone_{map_}"])
    return [
        _numbers(
            int(c), {name: x[asked & (texts["predicted"] == c)] for name, x in texts.items()}, map_
        )
        for c in np.unique(texts["predicted"][asked])
    ]


def _numbers(number: int, texts: Mapping[str, Column], map_: str) -> ClassNumbers:
    guessing = texts["guessing"]
    lead = texts["probability"] - guessing
    whole = max(float(lead.mean()), 1e-9)

    def share(values: Column) -> float:
        known = np.isfinite(values)
        return float(values[known].mean()) / whole if known.any() else math.nan

    gone, alone = texts[f"gone_{map_}"], texts[f"alone_{map_}"] - guessing
    best = share(texts["gone_best"]) if "gone_best" in texts else math.nan
    return ClassNumbers(
        number=number,
        n=len(lead),
        lead=float(lead.mean()),
        gone=share(gone),
        random_gone=share(texts["gone_random"]),
        best_gone=max(best, share(gone)) if math.isfinite(best) else best,
        alone=share(alone),
        random_alone=share(texts["alone_random"] - guessing),
        among=share(texts[f"among_{map_}"] - guessing),
        random_among=share(texts["among_random"] - guessing),
        unseen=share(texts["unseen"] - guessing),
        nothing=float(
            (texts["highlighted" if map_ == "map" else f"highlighted_{map_}"] == 0).mean()
        ),
        holding=float(((gone >= lead / 2) & (alone >= lead / 2)).mean()),
    )


def judge_class(x: ClassNumbers, t: Thresholds) -> ClassAnswer:
    """Say what the map is for the texts of one class."""
    if x.n < FEWEST:
        return "few"
    if x.lead < FLAT:
        return "flat"
    if x.gone >= t.gone and x.alone >= t.alone:
        return "right"
    if x.best_gone < t.carried and x.unseen >= t.default:
        # Nothing can be lost that the model says anyway; but the words may hold it against others.
        holds = x.among - x.random_among >= t.against and x.alone >= t.alone
        return "right" if holds else "default"
    if x.alone >= t.sufficient and x.random_alone <= min(x.alone - t.above_random, MOST_RANDOM):
        return "sufficient"
    if x.nothing > MOST_TEXTS or x.best_gone < t.carried:
        return "wrong"
    is_far = _is_far(x, t)
    if x.gone >= t.gone and not is_far:
        return "needed"
    return "wrong" if (x.gone < t.carried and is_far) or x.alone < t.alone else "unclear"


def _is_far(x: ClassNumbers, t: Thresholds) -> bool:
    """Whether without the map's first words hardly more is gone than without random ones."""
    return x.gone - x.random_gone < t.nearer * max(x.best_gone - x.random_gone, FLAT)


@dataclass(frozen=True)
class MapNumbers:
    """What is asked of one map on all texts: the numbers by class, and whether the weights matter.

    `weights`: the mean change of the prediction (TVD) under shuffles of the weights.
    """

    classes: Sequence[ClassNumbers]
    weights: float

    @property
    def texts(self) -> int:
        """How many texts were asked."""
        return sum(x.n for x in self.classes)

    @property
    def holding(self) -> float:
        """The share of all texts in which half of the lead is gone, and half stays."""
        return sum(x.holding * x.n for x in self.classes) / self.texts if self.texts else math.nan

    @property
    def holding_interval(self) -> tuple[float, float]:
        """The 95 % interval of this share."""
        if not self.texts:
            return of_share(np.zeros(0))
        held = np.arange(self.texts) < round(self.holding * self.texts)
        return of_share(held.astype(np.float64))


def map_numbers(texts: Mapping[str, Column], map_: str = "map") -> MapNumbers:
    """Return what is asked of a map. `map_`: the ending of the columns of another one."""
    changes = texts["mean_tvd"][np.isfinite(texts["mean_tvd"])]
    return MapNumbers(
        class_numbers(texts, map_), float(changes.mean()) if len(changes) else math.nan
    )


def answer(numbers: MapNumbers, t: Thresholds) -> Answer:
    """Apply the rule."""
    judged = [(x, judge_class(x, t)) for x in numbers.classes]
    said = {one for _, one in judged} - {"few", "flat"}
    if not said or numbers.texts < FEWEST_TEXTS:
        return "cannot tell"
    right = [x for x, one in judged if one == "right" and x.gone >= t.gone]
    if said == {"right"} and _holds(right, t):
        return "yes" if numbers.weights >= t.weights else "words"
    if "wrong" in said and said <= {"wrong", "default"}:
        return "no"
    low, high = numbers.holding_interval
    between = low > SOME and high < 1 - SOME
    good = sum(x.n for x, one in judged if one in ("right", "sufficient", "needed"))
    if good < SOME * numbers.texts and not between and "wrong" in said:
        return "no" if "unclear" not in said else "cannot tell"
    mixed = (
        said & {"sufficient", "needed"}
        or {"right", "wrong"} <= said
        or {"right", "default"} <= said
    )
    return "in part" if mixed or between else "cannot tell"


def _holds(classes: Sequence[ClassNumbers], t: Thresholds) -> bool:
    """Whether enough is gone, stays and holds, as means over the classes that are not a default."""
    if not classes:
        return False
    gone = float(np.mean([min(x.gone, 1.0) for x in classes]))
    alone = float(np.mean([min(x.alone, 1.0) for x in classes]))
    holding = float(np.mean([x.holding for x in classes]))
    return gone >= t.mean_gone and alone >= t.mean_alone and holding >= t.holding
