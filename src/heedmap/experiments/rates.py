"""How often each reading is wrong about models whose answer is known, and the rules that follow from it."""

import json
import math
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from heedmap.errors import InputError
from heedmap.files.identity import source_identity
from heedmap.terminal.output import remark

RULES = 2  # version of the rules; rates of another one are of other readings
FILE = "rates.json"
TELLS = 0.6  # a question tells if the whole interval of its AUC lies above
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
        """Return the text of rates.json."""
        return self.model_dump_json(indent=1) + "\n"


def read_rates(path: Path) -> Rates:
    """Read rates.

    Raises:
        InputError: the file is damaged, or its rates are of another version of the rules.
    """
    again = "make them again with `heedmap calibrate`"
    try:
        rates = Rates.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise InputError(
            f"{path}: expected the rates that `heedmap calibrate` writes; {again}"
        ) from error
    if rates.rules != RULES:
        raise InputError(
            f"{path}: expected rates of version {RULES} of the rules, got version {rates.rules}; {again}"
        )
    return rates


def rates_beside(folder: Path, source: str) -> Rates | None:
    """Return the rates of a calibration of these texts, in a folder beside the run's; None if there is none.

    Of several the one of the most plants. One that is too small to decide is passed over, with a warning.

    Raises:
        InputError: they are damaged or of another version of the rules.
    """
    wanted, found = source_identity(source), []
    for path in sorted(folder.resolve().parent.glob(f"*/{FILE}")):
        if _data_of(path) != wanted:
            continue
        rates = read_rates(path)
        if rates.decides:
            found.append(rates)
        else:
            remark(f"{path}: passed over, for its {rates.plants} planted models are {TOO_FEW}")
    return max(found, key=lambda rates: rates.plants, default=None)


def _data_of(path: Path) -> object:
    """Return the texts that were planted on; None for another program's file.

    Raises:
        InputError: a damaged file that begins as ours do.
    """
    try:
        content = path.read_bytes()
        return json.loads(content).get("data")
    except (OSError, AttributeError):
        return None
    except ValueError:
        return read_rates(path).data if content.startswith(b'{\n "rules":') else None


@cache
def packaged_rates() -> Rates:
    """Return the rates that come with heedmap."""
    return Rates.model_validate_json(files("heedmap.experiments").joinpath(FILE).read_bytes())
