"""The bottom line: may this map be shown as what the model's answer rests on?

The rule, over the questions that tell right maps from wrong ones almost without error on planted models (the
others are weaker witnesses: many of them, each wrong now and then, would together err too often):

* yes, if every question of DECISIVE that could be asked reads "for";
* no, if any of them reads "against";
* otherwise, or if it is not certain that the model predicts clearly better than its commonest class, this
  audit cannot tell.

The edges of "for" and "against" are chosen so that together at most 5 % of wrong maps get a yes and 5 % of
right ones a no; `Rates.verdicts` holds how often they did on plants that the edges were not chosen on.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Literal

from heedmap.experiments.findings import COLOURS, WEAK, Finding, Level
from heedmap.experiments.instances import ONE_CLASS
from heedmap.experiments.instead import offered
from heedmap.experiments.rates import DECISIVE, Rates
from heedmap.settings import ModelSettings, TransformerSettings
from heedmap.terminal.html import escaped

Answer = Literal["yes", "no", "cannot tell"]

LEVELS: dict[Answer, Level] = {"yes": "for", "no": "against", "cannot tell": "cannot tell"}
CARRY = "the words it highlights carry"
WIDE = 0.2  # an interval of a share that is longer than this is for want of texts


@dataclass(frozen=True, repr=False)
class BottomLine:
    """The answer, why, and what would help where there is none, in words; and the numbers apart from them.

    `measured`: the numbers that the answer rests on, and those of what would do better, each a clause.
    `rates`: how often the rule says this of planted maps, a sentence. `instead`: what would do better, where
    that is known. `not_tested`: what the audit has not asked.
    """

    answer: Answer
    because: str
    would: str = ""
    measured: tuple[str, ...] = ()
    rates: str = ""
    instead: str = ""
    not_tested: tuple[str, ...] = ()

    @property
    def level(self) -> Level:
        """The answer as the level of a finding."""
        return LEVELS[self.answer]

    @property
    def sentence(self) -> str:
        """The bottom line as one sentence, without numbers."""
        if self.answer == "yes":
            return (
                "Yes, this map may be shown as what the model's answer rests on, for texts like these: "
                f"{self.because}."
            )
        instead = f"; {self.instead}" if self.instead else ""
        if self.answer == "no":
            return (
                "No, this map should not be shown as what the model's answer rests on: "
                f"{self.because}{instead}."
            )
        return (
            "This audit cannot tell whether this map shows what the model's answer rests on: "
            f"{self.because}; what would: {self.would}{instead}."
        )

    @property
    def details(self) -> list[str]:
        """The numbers below the sentence, one sentence each: what was measured, and how sure the rule is."""
        measured = [f"Measured: {'; '.join(self.measured)}."] if self.measured else []
        return [*measured, *([f"How sure: {self.rates}."] if self.rates else [])]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.sentence}>"

    def _repr_html_(self) -> str:
        details = "".join(f"<div>{escaped(one)}</div>" for one in self.details)
        return (
            f'<div style="border-left:4px solid {COLOURS[LEVELS[self.answer]]};padding:2px 0 2px 10px">'
            f"<div><b>{escaped(self.sentence)}</b></div>{details}"
            f"<div>Not tested: {escaped('; '.join(self.not_tested))}.</div></div>"
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        lists = {"measured": list(self.measured), "not_tested": list(self.not_tested)}
        return {**asdict(self), "sentence": self.sentence, **lists}


def answer(levels: Mapping[str, Level]) -> Answer:
    """Apply the rule to the levels of the findings by key, of a model that predicts."""
    decisive = [levels[key] for key in DECISIVE if key in levels]
    if "against" in decisive:
        return "no"
    if decisive and DECISIVE[0] in levels and set(decisive) == {"for"}:
        return "yes"
    return "cannot tell"


def bottom_line(
    findings: Sequence[Finding],
    rates: Rates,
    model: ModelSettings | TransformerSettings | None = None,
) -> BottomLine:
    """Draw the bottom line under an audit's findings. `model`: the run's model settings, if they are known."""
    told = _told(rates, isinstance(model, TransformerSettings))
    skill = next((finding for finding in findings if finding.key == "skill"), None)
    open_ = not_tested(findings)
    if skill is not None and (doubt := _doubt(skill, findings)) is not None:
        return replace(doubt, rates=told, not_tested=open_)
    line = replace(_line(findings, rates), rates=told, not_tested=open_)
    better = offered(findings) if line.answer != "yes" else None
    if better is None:
        return line
    return replace(
        line,
        instead=better.because.replace("show", "rather show", 1),
        measured=(*line.measured, better.reading),
    )


def not_tested(findings: Sequence[Finding]) -> tuple[str, ...]:
    """Return what the audit has not asked; further trainings ask two of these."""
    asked = {finding.key for finding in findings}
    seeds = [] if "stability" in asked else ["other training seeds"]
    elsewhere = ["whether the model could have learned to attend elsewhere"]
    return (
        ", ".join(["other texts", *seeds, "another of the model's maps"]),
        *([] if "trained_adversary" in asked else elsewhere),
        "whether people understand the map as it is meant",
    )


def _doubt(skill: Finding, findings: Sequence[Finding]) -> BottomLine | None:
    """Return the line of a model that may have nothing to explain; None if it predicts."""
    if skill.reading == ONE_CLASS:
        return BottomLine(
            "cannot tell",
            "the audited texts are of one class, so that it cannot be seen whether the model predicts",
            "texts of several classes",
        )
    if WEAK not in skill.reading:
        return None
    more = "more different texts" if skill.distinct < skill.n else "more texts"
    if any(finding.key == DECISIVE[0] and finding.n == 0 for finding in findings):
        more = f"{more}, of several words"  # else there is no importance to compare a map with
    better = ", or a better model" if skill.value < 1 else ""
    measured = (f"accuracy {skill.value:z.2f} [{skill.low:z.2f}, {skill.high:z.2f}]", skill.meaning)
    than = "clearly better than its commonest class"
    if skill.level == "against":
        return BottomLine(
            "cannot tell",
            f"the model does not predict {than}",
            "a model that does",
            measured,
        )
    return BottomLine(
        "cannot tell",
        f"it is not certain that the model predicts {than}",
        more + better,
        measured,
    )


def _line(findings: Sequence[Finding], rates: Rates) -> BottomLine:
    related = {f.key: f for f in findings if f.relative is not None}
    said = answer({key: f.level for key, f in related.items()})
    decisive = [related[key] for key in DECISIVE if key in related]
    if said == "yes":
        return BottomLine(said, f"{CARRY} the importance", measured=_measured(decisive))
    if said == "no":
        return BottomLine(
            said, f"{CARRY} too little of the importance", measured=_measured(decisive)
        )
    return _why_not(related, rates)


def _measured(decisive: Sequence[Finding]) -> tuple[str, ...]:
    """Say how much of the importance lies under the map, by each measure; those against it first."""
    against = [f for f in decisive if f.level == "against"]
    others = [f for f in decisive if f.level != "against"]
    return tuple(f"{f.because}: {f.level}" for f in (*against, *others))


def _told(rates: Rates, is_transformer: bool) -> str:
    """Say how often the rule errs about models of this family, or about all if none of it was planted."""
    family, of = (
        ("transformers: ", "transformers")
        if is_transformer
        else ("own models: ", "models of our own")
    )
    if f"{family}right" not in rates.verdicts:
        family, of = "", "models"
    if not {f"{family}wrong", f"{family}right"} <= rates.verdicts.keys():
        return ""
    wrong, right = rates.verdicts[f"{family}wrong"], rates.verdicts[f"{family}right"]
    return (
        f"of planted {of} ({rates.name}), this rule says yes of {wrong['yes']} whose map is wrong for half of "
        f"the texts or more and of {right['yes']} whose map is right; no of {wrong['no']} and of {right['no']}"
    )


def _why_not(related: Mapping[str, Finding], rates: Rates) -> BottomLine:
    """Return the line where there is no answer: why, and what would give one."""
    decisive = [related[key] for key in DECISIVE if key in related]
    cannot_tell = partial(BottomLine, "cannot tell", measured=_measured(decisive))
    if not decisive or DECISIVE[0] not in related:
        return cannot_tell(
            "no importance could be measured that the map might be compared with",
            "texts of several words whose deletion changes the prediction",
        )
    open_ones = [f for f in decisive if f.level != "for"]
    if not rates.decides:
        return cannot_tell(
            "the calibration has too few planted models for edges",
            "`heedmap calibrate` with more --seeds",
        )
    unknown = [f for f in open_ones if f.relative is None or not math.isfinite(f.relative.low)]
    if unknown:
        return cannot_tell(
            "there are too few different texts for an interval", "more of them, some hundred"
        )
    wide = [f for f in open_ones if f.relative and f.relative.high - f.relative.low > WIDE]
    if wide:
        # Texts that repeat count once in an interval, and more of the same would not help.
        there = {f.key: min(f.relative.n, f.distinct) for f in wide if f.relative}
        needed = max(
            math.ceil(there[f.key] * ((f.relative.high - f.relative.low) / WIDE) ** 2)
            for f in wide
            if f.relative
        )
        different = "different " if any(f.distinct < f.n for f in wide) else ""
        return cannot_tell(
            "how much of the importance the words it highlights carry is not certain",
            f"more {different}texts, about {needed} instead of {max(there.values())}",
        )
    return cannot_tell(
        f"{CARRY} a part of the importance",
        "no number of texts, for the map is between right and wrong: another map of this model, or a model "
        "that is made to attend to what it uses",
    )
