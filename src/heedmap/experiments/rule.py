"""The rule of the bottom line: from what becomes of the answers of each predicted class, what is said of a map.

It is written down in docs/verdict.md. The numbers are those of the tables `highlights`, `alternatives` and
`permutation`; the thresholds come from a calibration.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Annotated, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from heedmap.experiments.intervals import of_share
from heedmap.files.tables import release_mapped

Answer = Literal["yes", "words", "in part", "no", "cannot tell"]
ANSWERS: tuple[Answer, ...] = ("yes", "words", "in part", "no", "cannot tell")
ClassAnswer = Literal["right", "sufficient", "needed", "default", "wrong", "unclear", "flat", "few"]

Column = NDArray[np.float64]

FEWEST = 5  # texts of a class that counts
FEWEST_TEXTS = 15  # in all
MOST_FEW = 0.5  # of the texts, that may be of classes with too few of them
MOST_TEXTS = 0.5  # of a class: in more the map may not highlight nothing, in fewer it may not hold
MOST_RANDOM = 0.5  # of the lead, that random words may keep where a map's words are said to suffice
FLAT = 0.05  # mean lead, below which nothing can be lost
SOME = 0.1  # of the texts, that may be exceptions: certainly right in more and wrong in more is right in part


Share = Annotated[float, Field(ge=0, le=1)]


class Thresholds(BaseModel):
    """From where on something is said; shares are of the lead, the answer's probability above that of guessing.

    Attributes:
        gone: the least share that is gone without the first words of the map, of each class.
        mean_gone: the same, as a mean over classes.
        alone: the least share that stays with the highlighted words alone, of each class.
        mean_alone: the same, as a mean over classes.
        holding: the least share of the texts with deciding words in which half of the lead is gone without the
            map's words, and half stays with them alone.
        weights: the least mean change of the prediction (TVD) under shuffles, for the weights to matter.
        carried: the share that the best third of the words must carry, for a class to have such words.
        nearer: how far the map must be from random words to the best ones, not to be wrong with less gone.
        default: the share that a few words of other texts give the answer; from there on it is the default.
        leaning: the same, from where on texts of which nothing can be lost do not count against a map.
        against: by how much more stays among the words of other texts than of random words, for the words of
            a default class to be right.
        sufficient: the least share that stays, where words are said to suffice.
        above_random: by how much that must be more than of random words.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    gone: Share = 0.5
    mean_gone: Share = 0.75
    alone: Share = 0.3
    mean_alone: Share = 0.6
    holding: Share = 0.75
    weights: Share = 0.03
    carried: Share = 0.4
    nearer: Share = 0.25
    default: Share = 0.4
    leaning: Share = 0.25
    against: Share = 0.15
    sufficient: Share = 0.6
    above_random: Share = 0.3


@dataclass(frozen=True)
class ClassNumbers:
    """Means over the texts of one predicted class, as shares of the lead where nothing else is said.

    Attributes:
        number: of the class.
        n: how many texts it has.
        lead: the answer's mean probability above that of guessing.
        gone: what is gone without the first words of the map.
        random_gone: without random ones.
        best_gone: without the best ones known, by leave-one-out or a map.
        alone: what stays with the highlighted words alone.
        random_alone: with as many random ones.
        among: what stays if all other words are those of other texts.
        random_among: of as many random ones.
        unseen: what a few words of other texts give.
        nothing: the share of texts in which the map highlights nothing.
        losing: how many texts have deciding words: without some third of the words half of the lead is gone.
        held: in how many of these half is gone without the map's first words, and half stays with the
            highlighted ones alone.
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
    losing: int
    held: int

    @property
    def holding(self) -> float:
        """Return the share of `held` among `losing`; NaN if none loses."""
        return self.held / self.losing if self.losing else math.nan


class _TextColumns(Mapping[str, Column]):
    """The columns that the rule reads; of a million texts all of them together take much memory."""

    def __init__(self, tables: Mapping[str, pa.Table], size: float) -> None:
        self._tables, self._size = tables, size
        self._table_of_column = {
            field.name: name
            for name in ("highlights", "alternatives", "permutation")
            if name in tables
            for field in tables[name].schema
            if not pa.types.is_list(field.type)
        }

    def __iter__(self) -> Iterator[str]:
        return iter(self._table_of_column)

    def __len__(self) -> int:
        return len(self._table_of_column)

    def __getitem__(self, name: str) -> Column:
        if name == "predicted" and "above" in self:
            return (self["above"] >= 0).astype(np.float64)
        values = self._tables[self._table_of_column[name]][name].to_numpy()
        column: Column = values.astype(np.float64)
        release_mapped()
        return column / self._size if name == "mean_tvd" else column


def texts_of(tables: Mapping[str, pa.Table], size: float = 1.0) -> Mapping[str, Column]:
    """Return the columns that the rule reads, one number per text, null as NaN; each when it is asked for.

    `size`: of one unit of change in the tables (`Scale.size`). Numbers below and above the mean of all are told
    apart as classes are.
    """
    return _TextColumns(tables, size)


def share_of_lead(values: Column, lead: Column) -> float:
    """Return Σ values / Σ lead over the texts of which both are known; NaN without a lead."""
    is_known = np.isfinite(values) & np.isfinite(lead)
    whole = lead[is_known].sum()
    return float(values[is_known].sum() / whole) if whole > 0 else math.nan


def kept_alone(texts: Mapping[str, Column], name: str) -> Column:
    """Return how much of each text's lead stays with the highlighted words alone, or with as many random ones.

    Where nothing is highlighted, nothing stays: the answer is a guess. `name`: "map" or "random".
    """
    lead_alone = texts[f"alone_{name}"] - texts["guessing"]
    return np.where(texts["highlighted"] == 0, 0.0, lead_alone)


def class_numbers(texts: Mapping[str, Column], map_: str = "map") -> list[ClassNumbers]:
    """Return the numbers of every predicted class. `map_`: the ending of the columns of the map on trial."""
    asked = np.flatnonzero(np.isfinite(texts[f"gone_{map_}"]))
    of_asked = {name: column[asked] for name, column in texts.items()}
    classes = of_asked["predicted"]
    return [
        _numbers(int(c), {name: x[classes == c] for name, x in of_asked.items()}, map_)
        for c in np.unique(classes)
    ]


def _numbers(number: int, texts: Mapping[str, Column], map_: str) -> ClassNumbers:
    guessing = texts["guessing"]
    lead = texts["probability"] - guessing
    whole = max(float(lead.mean()), 1e-9)

    def share(values: Column) -> float:
        is_known = np.isfinite(values)
        return float(values[is_known].mean()) / whole if is_known.any() else math.nan

    gone, alone = texts[f"gone_{map_}"], texts[f"alone_{map_}"] - guessing
    best = best_gone(texts, map_)
    is_losing, is_gone, stays = losing_and_holding(texts, map_)
    holds = is_gone & stays
    return ClassNumbers(
        number=number,
        n=len(lead),
        lead=float(lead.mean()),
        gone=share(gone),
        random_gone=share(texts["gone_random"]),
        best_gone=share(best),
        alone=share(alone),
        random_alone=share(texts["alone_random"] - guessing),
        among=share(texts[f"among_{map_}"] - guessing),
        random_among=share(texts["among_random"] - guessing),
        unseen=share(texts["unseen"] - guessing),
        nothing=float(
            (texts["highlighted" if map_ == "map" else f"highlighted_{map_}"] == 0).mean()
        ),
        losing=int(is_losing.sum()),
        held=int((holds & is_losing).sum()),
    )


def best_gone(texts: Mapping[str, Column], map_: str) -> Column:
    """Return what is gone without the best words known, by leave-one-out or a map."""
    half = (texts["probability"] - texts["guessing"]) / 2
    # The best order counts only where the map on trial takes less than half: it is not asked elsewhere.
    best = np.where(texts["gone_map"] < half, texts["gone_best"], -np.inf)
    return np.maximum(best, np.maximum(texts[f"gone_{map_}"], texts["gone_map"]))


def losing_and_holding(
    texts: Mapping[str, Column], map_: str = "map"
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Return of each text three answers about half of the lead; all are no where the text was not asked.

    Is it gone without some third of the words; without the first words of the map; and does it stay with the
    highlighted words alone? `map_`: the ending of the columns of the map.
    """
    guessing = texts["guessing"]
    half = (texts["probability"] - guessing) / 2
    return (
        best_gone(texts, map_) >= half,
        texts[f"gone_{map_}"] >= half,
        texts[f"alone_{map_}"] - guessing >= half,
    )


def judge_class(x: ClassNumbers, t: Thresholds) -> ClassAnswer:
    """Say what the map is for the texts of one class: the first that fits (the table in docs/verdict.md)."""
    # Nothing can be lost that the model says anyway; but what can be lost may be in the map's words, or these
    # may hold the answer against other words.
    is_gone = x.gone >= t.gone and x.held >= MOST_TEXTS * x.losing
    leans = x.unseen >= t.leaning and x.losing >= FEWEST
    is_default = x.unseen >= t.default and x.best_gone < t.carried
    holds = (leans and x.holding >= t.holding) or (
        is_default and x.among - x.random_among >= t.against
    )
    is_far = x.gone - x.random_gone < t.nearer * max(x.best_gone - x.random_gone, FLAT)
    suffices = x.alone >= t.sufficient and x.random_alone <= min(
        x.alone - t.above_random, MOST_RANDOM
    )
    cases: list[tuple[ClassAnswer, bool]] = [
        ("few", x.n < FEWEST),
        ("flat", x.lead < FLAT),
        ("right", (is_gone or holds) and x.alone >= t.alone),
        ("default", is_default),
        ("sufficient", suffices),
        ("wrong", x.nothing > MOST_TEXTS or x.best_gone < t.carried),
        ("needed", x.gone >= t.gone and not is_far),
        ("wrong", (x.gone < t.carried and is_far) or x.alone < t.alone),
    ]
    return next((said for said, fits in cases if fits), "unclear")


@dataclass(frozen=True)
class MapNumbers:
    """What is asked of one map on all texts: the numbers by class, and whether the weights matter.

    `weights`: the mean change of the prediction (TVD) under shuffles of the weights.
    """

    classes: Sequence[ClassNumbers]
    weights: float

    @property
    def texts(self) -> int:
        """Return how many texts were asked."""
        return sum(x.n for x in self.classes)

    @property
    def losing(self) -> int:
        """Return how many of them have deciding words."""
        return sum(x.losing for x in self.classes)

    @property
    def held(self) -> int:
        """Count the texts that lose half of the lead without the map's words and keep half with them alone."""
        return sum(x.held for x in self.classes)

    @cached_property
    def holding_interval(self) -> tuple[float, float]:
        """Return the 95 % interval of the share of `held` among `losing`."""
        return interval_of_holding(self.held, self.losing)


@cache
def interval_of_holding(held: int, losing: int) -> tuple[float, float]:
    """Return the 95 % interval of the share of texts with deciding words in which the map finds them."""
    return of_share((np.arange(losing) < held).astype(np.float64))


def map_numbers(texts: Mapping[str, Column], map_: str = "map") -> MapNumbers:
    """Return what is asked of a map. `map_`: the ending of the columns of another one."""
    changes = texts["mean_tvd"][np.isfinite(texts["mean_tvd"])]
    return MapNumbers(
        class_numbers(texts, map_), float(changes.mean()) if len(changes) else math.nan
    )


def answer(numbers: MapNumbers, t: Thresholds) -> Answer:
    """Apply the rule."""
    return answer_of([(x, judge_class(x, t)) for x in numbers.classes], numbers, t)


def answer_of(
    judged: Sequence[tuple[ClassNumbers, ClassAnswer]], numbers: MapNumbers, t: Thresholds
) -> Answer:
    """Apply the rule to classes that are judged."""
    said = {verdict for _, verdict in judged} - {"few", "flat"}

    def share(*answers: ClassAnswer) -> float:
        return sum(x.n for x, verdict in judged if verdict in answers) / numbers.texts

    if not said or not are_enough([x.n for x in numbers.classes]):
        return "cannot tell"
    exceptions = share("default", "sufficient", "needed", "unclear")
    if "wrong" not in said and exceptions < SOME and _hold(judged, numbers, t):
        return "yes" if numbers.weights >= t.weights else "words"
    if "wrong" in said and said <= {"wrong", "default"}:
        return "no"
    low, high = numbers.holding_interval
    between = low > SOME and high < 1 - SOME
    if share("right", "sufficient", "needed") < SOME and not between and "wrong" in said:
        return "no" if "unclear" not in said else "cannot tell"
    mixed = said & {"sufficient", "needed"} or ("right" in said and said != {"right"})
    return "in part" if mixed or between else "cannot tell"


def are_enough(texts: Sequence[int]) -> bool:
    """Return whether the texts of each predicted class are enough for an answer, by their numbers."""
    few = sum(n for n in texts if n < FEWEST)
    return sum(texts) >= FEWEST_TEXTS and few <= MOST_FEW * sum(texts)


def _hold(
    judged: Sequence[tuple[ClassNumbers, ClassAnswer]], numbers: MapNumbers, t: Thresholds
) -> bool:
    """Return whether enough is gone and stays (means over right classes that lose it) and enough texts hold."""
    losing = [x for x, verdict in judged if verdict == "right" and x.gone >= t.gone]
    if not losing:
        return False
    gone = sum(min(x.gone, 1.0) for x in losing) / len(losing)
    alone = sum(min(x.alone, 1.0) for x in losing) / len(losing)
    is_held = numbers.held >= t.holding * numbers.losing
    return gone >= t.mean_gone and alone >= t.mean_alone and is_held
