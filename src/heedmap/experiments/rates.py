"""How often the rule of the bottom line is wrong about models whose answer is known, and its thresholds."""

import hashlib
import json
import math
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError
from scipy import stats

from heedmap.errors import InputError, expected
from heedmap.experiments.rule import Answer, Thresholds
from heedmap.files.identity import source_identity
from heedmap.files.reading import read_bytes
from heedmap.terminal.output import remark

RULES = 4  # version of the rule; rates of another one are of other answers
FILE = "rates.json"
LEAST = 30  # right and wrong plants of a kind of model, for rates that are printed
ALL = "all"  # kinds of model together
OF_NUMBER = "transformer that gives a number"
# What kinds were planted on, where it is not the texts of the calibration.
PLANTED_ON: Mapping[str, str] = {
    "bags": "bags of digits",
    OF_NUMBER: "synthetic texts",
    "pictures": "drawn patterns and digits",
    "transformer of pairs": "synthetic pairs",
}

TOO_FEW = "too few to choose thresholds: calibrate with more --seeds"


class Rate(BaseModel):
    """A share of `n` plants."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    count: int
    n: int

    @property
    def share(self) -> float:
        """Return the share itself; NaN of no plants."""
        return self.count / self.n if self.n else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """Return its 95 % interval (Clopper and Pearson's)."""
        if not self.n:
            return 0.0, 1.0
        low, high = stats.binomtest(self.count, self.n).proportion_ci(method="exact")
        return float(low), float(high)

    def __str__(self) -> str:
        if not self.n:
            return "none measured"
        low, high = self.interval
        return f"{self.share:.0%} of {self.n} [{low:.0%}, {high:.0%}]"


class Answers(BaseModel):
    """How often the rule gave each answer about `n` plants."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    n: int = 0
    counts: dict[Answer, int] = {}

    def rate(self, answer: Answer) -> Rate:
        """Return the share of the plants of which this was said."""
        return Rate(count=self.counts.get(answer, 0), n=self.n)


class OfFamily(BaseModel):
    """The answers about the plants of one family, by thresholds that were chosen without it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    truth: str
    answers: Answers


class OfKind(BaseModel):
    """The answers about one kind of model, of each family by thresholds that were chosen without it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    families: dict[str, OfFamily]

    def of(self, *truths: str) -> Answers:
        """Return the answers about all families of some truth."""
        counts: dict[Answer, int] = {}
        answers = [family.answers for family in self.families.values() if family.truth in truths]
        for family_answers in answers:
            for said, count in family_answers.counts.items():
                counts[said] = counts.get(said, 0) + count
        return Answers(n=sum(family_answers.n for family_answers in answers), counts=counts)

    @property
    def worst(self) -> tuple[str, Rate] | None:
        """Return the family of wrong maps of which it says yes most often; None if it says so of none."""
        rates = {
            name: family.answers.rate("yes")
            for name, family in self.families.items()
            if family.truth == "wrong" and family.answers.counts.get("yes")
        }
        return max(rates.items(), key=lambda item: item[1].share) if rates else None

    @property
    def is_enough(self) -> bool:
        """Return whether there are enough right and wrong plants to print rates."""
        return min(self.of("right").n, self.of("wrong").n) >= LEAST


class Rates(BaseModel):
    """The thresholds of the rule, and its answers about planted models by kind of model and family.

    `data`: the fingerprint of the corpus whose texts were planted on; None for drawn texts.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    rules: int
    data: str | None
    name: str
    plants: int
    thresholds: Thresholds
    kinds: dict[str, OfKind]

    @property
    def decides(self) -> bool:
        """Return whether the plants were enough to choose thresholds."""
        return self.kinds[ALL].is_enough

    def to_json(self) -> str:
        """Return the text of rates.json, with a hash of its own content."""
        content = self.model_dump(mode="json") | {"sha256": self._hash()}
        return json.dumps(content, indent=1) + "\n"

    def _hash(self) -> str:
        content = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()

    @classmethod
    def from_json(cls, content: bytes) -> "Rates":
        """Read the text of rates.json.

        Raises:
            ValueError: it is damaged, or its numbers cannot be those of a calibration.
        """
        values = json.loads(content)
        if not isinstance(values, dict):
            raise ValueError("no rates")
        if values.get("rules") != RULES:
            raise OtherRules(values.get("rules"), values.get("data"))
        stated = values.pop("sha256", None)
        rates = cls.model_validate(values)
        if stated != rates._hash():
            raise ValueError("its content is not what its hash is of")
        _check(rates)
        return rates


class OtherRules(ValueError):
    """Rates of another version of the rule, of the corpus with some fingerprint."""

    def __init__(self, rules: object, data: object) -> None:
        super().__init__(rules)
        self.data = data


def _check(rates: Rates) -> None:
    """Raise ValueError for numbers that no calibration has."""
    if ALL not in rates.kinds:
        raise ValueError(f"no rates of {ALL} kinds")
    if rates.plants < 1:
        raise ValueError(f"{rates.plants} planted models")
    for kind, kind_rates in rates.kinds.items():
        for family, family_rates in kind_rates.families.items():
            counts = family_rates.answers.counts.values()
            if min(counts, default=0) < 0 or sum(counts) != family_rates.answers.n:
                raise ValueError(
                    f"{kind}, {family}: the answers are not those of {family_rates.answers.n} models"
                )


def read_rates(path: Path) -> Rates:
    """Read rates.

    Raises:
        InputError: the file is damaged, or its rates are of another version of the rules.
    """
    again = "make them again with `heedmap calibrate`"
    try:
        return Rates.from_json(read_bytes(path))
    except OtherRules as error:
        raise InputError(
            f"{path}: expected rates of version {RULES} of the rule, got version {error}; {again}"
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path}: expected the rates that `heedmap calibrate` writes, got others "
            f"({_first_line(error)}); {again}"
        ) from error


def _first_line(error: Exception) -> str:
    """Return what is wrong in a few words."""
    if isinstance(error, ValidationError):
        return f"{'.'.join(map(str, error.errors()[0]['loc']))}: {expected(error)[0]}"
    return (str(error).splitlines() or [type(error).__name__])[0]


def rates_beside(folder: Path, source: str) -> Rates | None:
    """Return the rates of a calibration of these texts, in a folder beside the run's; None if there is none.

    Of several the one of the most plants. One that is damaged or too small to decide is passed over, with a
    warning.

    Raises:
        InputError: they are of another version of the rules.
    """
    identity, usable = source_identity(source), []
    for path in sorted(folder.resolve().parent.glob(f"*/{FILE}")):
        if (content := _ours(path)) is None:
            continue
        try:
            if Rates.from_json(content).data != identity:
                continue
        except OtherRules as error:
            if error.data != identity:
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
    is_ours = isinstance(values, dict) and "rules" in values and {"questions", "kinds"} & {*values}
    return content if is_ours else None


@cache
def packaged_rates() -> Rates:
    """Return the rates that come with heedmap."""
    return Rates.from_json(files("heedmap.experiments").joinpath(FILE).read_bytes())
