"""How often each reading is wrong about models whose answer is known, and the rules that follow from it."""

import hashlib
import json
import math
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from heedmap.errors import InputError
from heedmap.files.identity import source_identity
from heedmap.files.reading import read_bytes
from heedmap.terminal.output import remark

RULES = 2  # version of the rules; rates of another one are of other readings
FILE = "rates.json"
TELLS = 0.6  # a question tells if the whole interval of its AUC lies above
BEYOND = 1 + 1e-9  # an edge is at most just above the ceiling
Z, ROUNDING = 1.959963984540054, 1e-6  # of the intervals, 95 %
# The questions that tell right maps from wrong ones almost without error: the bottom line rests on them.
DECISIVE = ("found_leave_one_out", "found_gradient", "found_integrated_gradients")

TOO_FEW = "too few for the edges of the readings: calibrate with more --seeds"

Said = Literal["yes", "no"]


class Rate(BaseModel):
    """A share of `n` plants, with its 95 % interval (Wilson)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    count: int
    n: int
    low: float
    high: float

    @property
    def share(self) -> float:
        """The share itself; NaN of none."""
        return self.count / self.n if self.n else math.nan

    def __str__(self) -> str:
        if not self.n:
            return "none measured"
        return f"{self.share:.0%} of {self.n} [{self.low:.0%}, {self.high:.0%}]"


class QuestionRates(BaseModel):
    """What one question can tell.

    `auc`: how often a right map's share is above a wrong one's, with its interval. A share whose interval lies
    above `for_edge` reads "for", below `against_edge` "against"; None: this cannot be said. `false_for`: of the
    plants that are right for at most half, `false_against` and `power`: of the right ones; `caught`: of the
    first, those that it speaks against.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    auc: float
    auc_low: float
    auc_high: float
    for_edge: float | None
    against_edge: float | None
    false_for: Rate
    false_against: Rate
    power: Rate
    caught: Rate

    @property
    def tells(self) -> bool:
        """Whether the question can tell a right map from a wrong one."""
        return self.auc_low > TELLS

    @property
    def says_anything(self) -> bool:
        """Whether it tells, and an edge held on other plants than it was chosen on."""
        return self.tells and not (self.for_edge is None and self.against_edge is None)


class Rates(BaseModel):
    """The rates of all questions and of the bottom line, by the kind of plant.

    `data`: the fingerprint of the corpus whose texts were planted on; None for drawn texts. `verdicts`: of the
    bottom line, rates of yes and no by group of plants (`all`, a kind, a family).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    rules: int
    data: str | None
    name: str
    plants: int
    questions: dict[str, QuestionRates]
    verdicts: dict[str, dict[Said, Rate]]

    @property
    def decides(self) -> bool:
        """Whether the plants were enough for the edges of the bottom line."""
        edges = [self.questions[key] for key in DECISIVE if key in self.questions]
        return all(q.for_edge is not None and q.against_edge is not None for q in edges)

    def to_json(self) -> str:
        """Return the text of rates.json, with a hash of its own content."""
        content = self.model_dump(mode="json") | {"sha256": self._hash()}
        return json.dumps(content, indent=1) + "\n"

    def _hash(self) -> str:
        content = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()

    @classmethod
    def from_json(cls, content: bytes) -> "Rates":
        """Read the text of rates.json. Files of older versions have no hash.

        Raises:
            ValueError: it is damaged, or its numbers cannot be those of a calibration.
        """
        values = json.loads(content)
        if not isinstance(values, dict):
            raise ValueError("no rates")
        stated = values.pop("sha256", None)
        rates = cls.model_validate(values)
        if stated is not None and stated != rates._hash():
            raise ValueError("its content is not what its hash is of")
        _check(rates)
        return rates


def _check(rates: Rates) -> None:
    """Raise ValueError for numbers that no calibration has."""
    missing = [key for key in DECISIVE if key not in rates.questions]
    missing += [group for group in ("wrong", "right") if group not in rates.verdicts]
    if missing:
        raise ValueError(f"no rates of {missing[0]}")
    if rates.plants < 1:
        raise ValueError(f"{rates.plants} planted models")
    for key, question in rates.questions.items():
        _check_question(key, question)
    for group, answers in rates.verdicts.items():
        for said, rate in answers.items():
            _check_rate(f"{group}, {said}", rate)
        yes, no = answers.get("yes"), answers.get("no")
        if yes is None or no is None or yes.n != no.n or yes.count + no.count > yes.n:
            raise ValueError(f"{group}: the answers are not those of the same models")


def _check_question(key: str, question: QuestionRates) -> None:
    auc, low, high = question.auc, question.auc_low, question.auc_high
    undefined = math.isnan(auc) and (low, high) == (0, 1)
    if not undefined and not 0 <= low <= auc <= high <= 1:
        raise ValueError(f"{key}: an AUC of {auc} in {low} to {high}")
    edges = [edge for edge in (question.against_edge, question.for_edge) if edge is not None]
    if not all(-1 < edge < BEYOND for edge in edges) or edges != sorted(edges):
        raise ValueError(f"{key}: edges of {' and '.join(map(str, edges))}")
    for name in ("false_for", "false_against", "power", "caught"):
        _check_rate(f"{key}, {name}", getattr(question, name))


def _check_rate(name: str, rate: Rate) -> None:
    """Raise ValueError unless the interval is Wilson's of count and n."""
    if not 0 <= rate.count <= rate.n:
        raise ValueError(f"{name}: {rate.count} of {rate.n}")
    low, high = _wilson(rate.count, rate.n)
    if not (abs(rate.low - low) <= ROUNDING and abs(rate.high - high) <= ROUNDING):
        raise ValueError(f"{name}: {rate.count} of {rate.n} between {rate.low} and {rate.high}")


def _wilson(count: int, n: int) -> tuple[float, float]:
    if not n:
        return 0.0, 1.0
    share, z = count / n, Z**2 / n
    middle, half = share + z / 2, math.sqrt(share * (1 - share) * z + z**2 / 4)
    return (middle - half) / (1 + z), (middle + half) / (1 + z)


def read_rates(path: Path) -> Rates:
    """Read rates.

    Raises:
        InputError: the file is damaged, or its rates are of another version of the rules.
    """
    again = "make them again with `heedmap calibrate`"
    try:
        rates = Rates.from_json(read_bytes(path))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path}: expected the rates that `heedmap calibrate` writes, got others "
            f"({_first_line(error)}); {again}"
        ) from error
    if rates.rules != RULES:
        raise InputError(
            f"{path}: expected rates of version {RULES} of the rules, got version {rates.rules}; {again}"
        )
    return rates


def _first_line(error: Exception) -> str:
    """Return what is wrong in a few words."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return (str(error).splitlines() or [type(error).__name__])[0]


def rates_beside(folder: Path, source: str) -> Rates | None:
    """Return the rates of a calibration of these texts, in a folder beside the run's; None if there is none.

    Of several the one of the most plants. One that is damaged or too small to decide is passed over, with a
    warning.

    Raises:
        InputError: they are of another version of the rules.
    """
    wanted, usable = source_identity(source), []
    for path in sorted(folder.resolve().parent.glob(f"*/{FILE}")):
        if (content := _ours(path)) is None:
            continue
        try:
            if Rates.from_json(content).data != wanted:
                continue
        except (ValueError, RecursionError) as error:
            remark(
                f"{path}: passed over, for it is not what `heedmap calibrate` writes ({_first_line(error)}); "
                "calibrate again to use it"
            )
            continue
        rates = read_rates(path)
        if rates.decides:
            usable.append(rates)
        else:
            remark(f"{path}: passed over, for its {rates.plants} planted models are {TOO_FEW}")
    return max(usable, key=lambda rates: rates.plants, default=None)


def _ours(path: Path) -> bytes | None:
    """Read a file of rates; None for another program's, or what is no file."""
    try:
        content = read_bytes(path)
    except OSError:
        return None
    if content.startswith(b'{\n "rules":'):
        return content
    try:
        values = json.loads(content)
    except (ValueError, RecursionError):
        return None
    is_ours = isinstance(values, dict) and {"rules", "questions"} <= values.keys()
    return content if is_ours else None


@cache
def packaged_rates() -> Rates:
    """Return the rates that come with heedmap."""
    return Rates.from_json(files("heedmap.experiments").joinpath(FILE).read_bytes())
