"""The bottom line: may this map be shown as what the model's answer rests on?

The rule, over the questions that tell right maps from wrong ones almost without error on planted models (the
others are weaker witnesses: many of them, each wrong now and then, would together err too often):

* yes, if every question of DECISIVE that could be asked reads "for";
* no, if any of them reads "against";
* otherwise, or if the model hardly predicts better than the commonest class, this audit cannot tell.

The edges of "for" and "against" are chosen so that together at most 5 % of wrong maps get a yes and 5 % of
right ones a no; `Rates.verdicts` holds how often they did on plants that the edges were not chosen on.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from heedmap.experiments.findings import Finding, Level
from heedmap.experiments.instead import offered
from heedmap.experiments.rates import Rates

Answer = Literal["yes", "no", "cannot tell"]

DECISIVE = ("found_leave_one_out", "found_gradient", "found_integrated_gradients")
WIDE = 0.2  # an interval of a share that is longer than this is for want of texts
NOT_TESTED = (
    "other texts, other training seeds, another of the model's maps",
    "whether the model could have learned to attend elsewhere",
    "whether people understand the map as it is meant",
)


@dataclass(frozen=True)
class BottomLine:
    """The answer, why, and what would help where there is none.

    `rates`: how often the rule says this of planted maps, a sentence. `instead`: what would do better, where
    that is known.
    """

    answer: Answer
    because: str
    would: str = ""
    rates: str = ""
    instead: str = ""

    @property
    def sentence(self) -> str:
        """The bottom line as one sentence."""
        if self.answer == "yes":
            return (
                "Yes, this map may be shown as what the model's answer rests on, for texts like these: "
                f"{self.because}."
            )
        instead = f"; {self.instead}" if self.instead else ""
        if self.answer == "no":
            return (
                "No, this map may not be shown as what the model's answer rests on: "
                f"{self.because}{instead}."
            )
        return (
            "This audit cannot tell whether this map shows what the model's answer rests on: "
            f"{self.because}; what would: {self.would}{instead}."
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {**asdict(self), "sentence": self.sentence, "not_tested": list(NOT_TESTED)}


def answer(levels: Mapping[str, Level], *, skilled: bool = True) -> Answer:
    """Apply the rule to the levels of the findings by key."""
    if not skilled:
        return "cannot tell"
    decisive = [levels[key] for key in DECISIVE if key in levels]
    if "against" in decisive:
        return "no"
    if decisive and DECISIVE[0] in levels and set(decisive) == {"for"}:
        return "yes"
    return "cannot tell"


def bottom_line(findings: Sequence[Finding], rates: Rates) -> BottomLine:
    """Draw the bottom line under an audit's findings."""
    line = _line(findings, rates)
    better = offered(findings) if line.answer != "yes" else None
    return replace(line, instead=better.replace("show", "rather show", 1) if better else "")


def _line(findings: Sequence[Finding], rates: Rates) -> BottomLine:
    by_key = {finding.key: finding for finding in findings}
    related = {f.key: f for f in findings if f.relative is not None}
    skill = by_key.get("skill")
    skilled = skill is None or skill.level != "against"
    said = answer({key: f.level for key, f in related.items()}, skilled=skilled)
    told = _told(rates)
    if not skilled:
        assert skill is not None
        why = f"the model hardly predicts better than its commonest class (accuracy {skill.value:.2f})"
        return BottomLine(said, why, "a model that predicts", told)
    if said == "yes":
        return BottomLine(
            said, _carried([related[key] for key in DECISIVE if key in related]), rates=told
        )
    if said == "no":
        against = [
            related[key] for key in DECISIVE if key in related and related[key].level == "against"
        ]
        return BottomLine(said, _carried(against, "too little of "), rates=told)
    return BottomLine(said, *_why_not(related), told)


def _carried(findings: Sequence[Finding], how_much: str = "") -> str:
    """Say how much of the importance lies under the map, by each measure."""
    return f"the words it highlights carry {how_much}the importance: " + ", ".join(
        f.because for f in findings
    )


def _told(rates: Rates) -> str:
    """Say how often the rule errs."""
    if not {"wrong", "right"} <= rates.verdicts.keys():
        return ""
    wrong, right = rates.verdicts["wrong"], rates.verdicts["right"]
    return (
        f"of planted models whose map is wrong for half of the texts or more, this rule says yes of "
        f"{wrong['yes']}; of those whose map is right it says yes of {right['yes']} and no of {right['no']}"
    )


def _why_not(related: Mapping[str, Finding]) -> tuple[str, str]:
    """Return why there is no answer, and what would give one."""
    decisive = [related[key] for key in DECISIVE if key in related]
    if not decisive or DECISIVE[0] not in related:
        return (
            "no importance could be measured that the map might be compared with",
            "texts of several words whose deletion changes the prediction",
        )
    open_ones = [f for f in decisive if f.level != "for"]
    unknown = [f for f in open_ones if f.relative is None or not math.isfinite(f.relative.low)]
    if unknown:
        return "there are too few texts for an interval", "more texts, some hundred"
    wide = [f for f in open_ones if f.relative and f.relative.high - f.relative.low > WIDE]
    because = _carried(open_ones, "a part of ")
    if wide:
        needed = max(
            math.ceil(f.relative.n * ((f.relative.high - f.relative.low) / WIDE) ** 2)
            for f in wide
            if f.relative
        )
        return (
            because,
            f"more texts, about {needed} instead of {max(f.relative.n for f in wide if f.relative)}",
        )
    return (
        because,
        "no number of texts, for the map is between right and wrong: another map of this model, or a model "
        "that is made to attend to what it uses",
    )
