"""The bottom line: may this map be shown as what the model's answer rests on?

`heedmap.experiments.rule` says what is answered; here it is put into words, with what to do after it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from heedmap.experiments.alternatives import CANDIDATES
from heedmap.experiments.findings import COLOURS, WEAK, AuditResult, Finding, Level
from heedmap.experiments.instances import ONE_CLASS
from heedmap.experiments.pooling import by_text
from heedmap.experiments.rates import OfKind, Rates
from heedmap.experiments.results import signed_percent
from heedmap.experiments.rule import (
    FEWEST,
    FEWEST_TEXTS,
    Answer,
    ClassAnswer,
    ClassNumbers,
    Column,
    MapNumbers,
    Thresholds,
    answer,
    judge_class,
    map_numbers,
    texts_of,
)
from heedmap.settings import TransformerSettings
from heedmap.terminal.html import escaped

LEVELS: dict[Answer, Level] = {
    "yes": "for",
    "words": "mixed",
    "in part": "mixed",
    "no": "against",
    "cannot tell": "cannot tell",
}
LISTED = 6  # classes that are named
MORE = 30  # texts of each class, from which on a class can be judged well

# What is said of the texts that are predicted to be of some classes.
CLASSES: dict[ClassAnswer, str] = {
    "right": "it highlights the words that make the answer",
    "sufficient": "the words that it highlights suffice, but other words that it misses suffice, too",
    "needed": "the words that it highlights are needed, but do not suffice: others are needed, too",
    "default": "no map can show why, for the model says so when it sees nothing of the text",
    "wrong": "other words make the answer, or no small set of words does",
    "unclear": "it is between right and wrong",
    "flat": "the answer is hardly above guessing, so that nothing can be lost",
    "few": f"there are fewer than {FEWEST} texts",
}


@dataclass(frozen=True, repr=False)
class BottomLine:
    """The answer, why, and what to do after it, in words; and the numbers apart from them.

    `measured`: the numbers that the answer rests on, each a sentence. `classes`: what is said of the texts of each
    predicted class. `rates`: how often the rule says this of planted maps. `instead`: what to do now, where the
    answer is no yes. `not_tested`: what the audit has not asked.
    """

    answer: Answer
    because: str
    instead: str = ""
    measured: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    rates: str = ""
    not_tested: tuple[str, ...] = ()

    @property
    def level(self) -> Level:
        """The answer as the level of a finding."""
        return LEVELS[self.answer]

    @property
    def sentence(self) -> str:
        """The bottom line as one sentence, without numbers."""
        begins = {
            "yes": "Yes, this map may be shown as what the model's answer rests on, for texts like these",
            "words": "These are the right words, but the weights do not make the answer: the map may be shown as "
            "the words that the answer rests on, not as how the model weighs them",
            "in part": "In part: this map shows some of what the model's answer rests on",
            "no": "No, this map should not be shown as what the model's answer rests on",
            "cannot tell": "This audit cannot tell whether this map shows what the model's answer rests on",
        }
        instead = f" {self.instead}" if self.instead else ""
        return f"{begins[self.answer]}: {self.because}.{instead}".replace("them:", "them;", 1)

    @property
    def details(self) -> list[str]:
        """The numbers below the sentence, one sentence each: what was measured, and how sure the rule is."""
        return [*self.measured, *self.classes, *([f"How sure: {self.rates}"] if self.rates else [])]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.sentence}>"

    def _repr_html_(self) -> str:
        details = "".join(f"<div>{escaped(one)}</div>" for one in self.details)
        return (
            f'<div style="border-left:4px solid {COLOURS[self.level]};padding:2px 0 2px 10px">'
            f"<div><b>{escaped(self.sentence)}</b></div>{details}"
            f"<div>Not tested: {escaped('; '.join(self.not_tested))}.</div></div>"
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        lists = {name: list(getattr(self, name)) for name in ("measured", "classes", "not_tested")}
        return {**asdict(self), "sentence": self.sentence, **lists}


def bottom_line(audit: AuditResult, rates: Rates) -> BottomLine:
    """Draw the bottom line under an audit."""
    kind = kind_of(audit)
    told = told_of(rates, kind)
    open_ = not_tested(audit.findings)
    skill = next((finding for finding in audit.findings if finding.key == "skill"), None)
    if skill is not None and (doubt := _doubt(skill)) is not None:
        return replace(doubt, rates=told, not_tested=open_)
    tables = by_text(audit.tables)
    if "highlights" not in tables:
        return BottomLine(
            "cannot tell", "the texts were not read again without the words that it highlights",
            "Audit the run again.", rates=told, not_tested=open_,
        )  # fmt: skip
    texts, t = texts_of(tables), rates.thresholds
    numbers = map_numbers(texts)
    said = answer(numbers, t)
    return BottomLine(
        said,
        _because(said, numbers, t, audit.classes),
        "" if said == "yes" else _instead(said, numbers, texts, t, audit.classes),
        _measured(numbers, texts),
        _by_class(numbers, t, audit.classes),
        told,
        open_,
    )


def kind_of(audit: AuditResult) -> str:
    """Return the kind of model, by which rates are counted."""
    model = audit.settings.model
    if isinstance(model, TransformerSettings):
        return "transformer"
    if "query" in audit.tables["instances"].column_names:
        return "pair"
    return "hierarchical" if audit.settings.data.tokenizer == "sentences" else model.encoder


def told_of(rates: Rates, kind: str) -> str:
    """Say how often the rule errs about models of a kind, and about which family it does most often."""
    of = rates.kinds.get(kind)
    if of is None or not of.is_enough:
        few = OfKind(families={}) if of is None else of
        return (
            f"no rates are known of models of this kind ({kind}), of which {few.of('right').n} right and "
            f"{few.of('wrong').n} wrong maps were planted."
        )
    right, wrong = of.of("right"), of.of("wrong")
    worst = of.worst
    of_worst = (
        ""
        if worst is None
        else f"; worst kind of map: {worst[0]}, {worst[1].count} of {worst[1].n}"
    )
    return (
        f"on {wrong.n} wrong maps of models of this kind ({kind}; {rates.name}), the rule said yes "
        f"{_times(wrong.rate('yes').count)}, on {right.n} right ones {_times(right.rate('yes').count)}, and no of "
        f"{right.rate('no').count} right ones{of_worst}."
    )


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


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


def _doubt(skill: Finding) -> BottomLine | None:
    """Return the line of a model that may have nothing to explain; None if it predicts, or has no labels."""
    if skill.reading == ONE_CLASS:
        return BottomLine(
            "cannot tell",
            "the audited texts are of one class, so that it cannot be seen whether the model predicts",
            "Audit texts of several classes.",
        )
    if WEAK not in skill.reading:
        return None
    measured = (
        f"The accuracy is {skill.value:z.2f} [{skill.low:z.2f}, {skill.high:z.2f}]; {skill.meaning}.",
    )
    than = "clearly better than its commonest class"
    if skill.level == "against":
        return BottomLine(
            "cannot tell",
            f"the model does not predict {than}",
            "First make a model that does.",
            measured,
        )
    more = "more different texts" if skill.distinct < skill.n else "more texts"
    better = ", or make a better model" if skill.value < 1 else ""
    return BottomLine(
        "cannot tell",
        f"it is not certain that the model predicts {than}",
        f"Audit {more}{better}.",
        measured,
    )


def _because(said: Answer, numbers: MapNumbers, t: Thresholds, classes: Sequence[str]) -> str:
    judged = [(x, judge_class(x, t)) for x in numbers.classes]
    if said == "yes":
        return (
            "without the words that it highlights the answers are lost, with them alone they stay, and the "
            "weights matter"
        )
    if said == "words":
        return "other weights hardly change what is predicted"
    if said == "no":
        if sum(x.nothing * x.n for x in numbers.classes) > numbers.texts / 2:
            return "it highlights nothing, for its weights are nearly even or on too many words"
        if all(x.best_gone < t.carried for x, one in judged if one == "wrong"):
            return "no small set of words makes the answer"
        return "other words than those that it highlights make the answer"
    if said == "in part":
        kinds = list(
            dict.fromkeys(one for _, one in judged if one not in ("few", "flat", "unclear"))
        )
        if len(kinds) == 1:
            return CLASSES[kinds[0]] + (
                " in some of the texts" if kinds[0] in ("right", "wrong") else ""
            )
        if kinds:
            return "; ".join(
                f"of {_named([x for x, each in judged if each == one], classes)}, {CLASSES[one]}"
                for one in kinds
            )
        return "it is right in some of the texts and wrong in others"
    if numbers.texts < FEWEST_TEXTS or all(one == "few" for _, one in judged):
        return "there are too few texts of three words or more"
    if all(one in ("few", "flat") for _, one in judged):
        return "the answers are hardly above guessing, so that nothing can be lost"
    return "for some of the classes it is neither clearly right nor clearly wrong"


def _named(classes: Sequence[ClassNumbers], names: Sequence[str]) -> str:
    """Name predicted classes, of many the first ones."""
    some = [f"“{names[x.number]}”" for x in classes[:LISTED]]
    more = f" and {len(classes) - LISTED} more classes" if len(classes) > LISTED else ""
    return f"texts predicted {', '.join(some)}{more}"


def _instead(
    said: Answer,
    numbers: MapNumbers,
    texts: Mapping[str, Column],
    t: Thresholds,
    classes: Sequence[str],
) -> str:
    """Say what to do now."""
    for name, words in CANDIDATES.items():
        if f"gone_{name}" not in texts or not np.isfinite(texts[f"gone_{name}"]).any():
            continue
        if answer(map_numbers(texts, name), t) in ("yes", "words"):
            return f"What to do: show {words} instead, which passes the same test of the words."
    unclear = [x for x in numbers.classes if x.n < MORE and judge_class(x, t) in ("unclear", "few")]
    if said == "cannot tell" or unclear:
        least = min((x.n for x in unclear or numbers.classes), default=0)
        if least < MORE:
            return f"What to do: audit more texts, {MORE} or more of each predicted class (now {least})."
    if said == "in part":
        return "What to do: show the map only of the texts of which it is right, or none."
    return (
        "What to do: show no map of words; none that was tried (read-out × attention, the read-out, leave-one-out) "
        "passes the same test."
    )


def _measured(numbers: MapNumbers, texts: Mapping[str, Column]) -> tuple[str, ...]:
    """Say what was measured, as means over the classes that count."""
    counted = [x for x in numbers.classes if x.n >= FEWEST] or list(numbers.classes)
    if not counted:
        return ()

    def mean(name: str) -> str:
        values = [getattr(x, name) for x in counted]
        known = [value for value in values if math.isfinite(value)]
        return signed_percent(float(np.mean(known))) if known else "an unknown share"

    def change(name: str) -> float:
        values = texts[name][np.isfinite(texts[name])] if name in texts else np.zeros(0)
        return float(values.mean()) if len(values) else math.nan

    low, high = numbers.holding_interval
    return (
        f"Without the words that it puts first, up to a third of them, the answers lose {mean('gone')} of their lead "
        f"over guessing (random words: {mean('random_gone')}).",
        f"With the highlighted words alone they keep {mean('alone')} of it (random words: {mean('random_alone')}), "
        f"and among the words of other texts {mean('among')} ({mean('random_among')}).",
        f"Half is lost and half is kept in {round(numbers.holding * numbers.texts)} of {numbers.texts} texts "
        f"[{low:.0%}, {high:.0%}].",
        f"If the weights are shuffled, predictions change by {change('mean_tvd'):.2f} (TVD) and "
        f"{change('flipped'):.0%} of the answers; if they are evened out, by {change('uniform_tvd'):.2f} and "
        f"{change('uniform_flipped'):.0%}; if they are put on other words, by {change('moved_tvd'):.2f} and "
        f"{change('moved_flipped'):.0%}.",
    )


def _by_class(numbers: MapNumbers, t: Thresholds, classes: Sequence[str]) -> tuple[str, ...]:
    """Say what the map is for each predicted class, where they differ."""
    judged: dict[ClassAnswer, list[ClassNumbers]] = {}
    for x in numbers.classes:
        judged.setdefault(judge_class(x, t), []).append(x)
    if len(judged) < 2:
        return ()
    return tuple(f"Of {_named(some, classes)}: {CLASSES[one]}." for one, some in judged.items())
