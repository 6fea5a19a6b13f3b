"""The bottom line: may this map be shown as what the model's answer rests on?

`heedmap.experiments.rule` says what is answered; `heedmap.experiments.reasons` why, and what to do now.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import pyarrow as pa

from heedmap.experiments.budget_facts import budget_of
from heedmap.experiments.findings import AuditResult, Finding
from heedmap.experiments.levels import COLOURS, Level
from heedmap.experiments.needs import untold
from heedmap.experiments.pooling import by_text
from heedmap.experiments.questions.instances import is_doubtful, is_of_one_class, is_unlabelled
from heedmap.experiments.questions.trainings import told_of_trainings
from heedmap.experiments.rates import LEAST, OF_NUMBER, PLANTED_ON, Answers, OfKind, Rates
from heedmap.experiments.reasons import MORE_TEXTS, because, by_class, measured, what_to_do
from heedmap.experiments.rule import Answer, Thresholds, answer, map_numbers, texts_of
from heedmap.experiments.scales import answer_names, scale_of
from heedmap.nouns import BAGS, PICTURES, TEXTS, Nouns
from heedmap.settings.audit import AuditSettings
from heedmap.settings.models import (
    ArraysSettings,
    ModelSettings,
    PoolingSettings,
    TransformerSettings,
)
from heedmap.terminal.html import escaped

LEVELS: dict[Answer, Level] = {
    "yes": "for",
    "words": "mixed",
    "in part": "mixed",
    "no": "against",
    "cannot tell": "cannot tell",
}
BEGINS: dict[Answer, str] = {
    "yes": "Yes, this map may be shown as what the model's answer rests on, for texts like these",
    "words": "These are the right words, but the weights do not make the answer",
    "in part": "In part, this map shows what the model's answer rests on",
    "no": "No, this map should not be shown as what the model's answer rests on",
    "cannot tell": "This audit cannot tell whether this map shows what the model's answer rests on",
}
BY_ITSELF = ("mlp", "average", "none")  # encoders that read each item by itself
ONE_TRAINING = "This holds for this training; other seeds were not tried."
NO_RATES = (  # how sure the answer about a variant is
    "not known: the rule was tried on models that were trained to predict and nothing else, and on none like "
    "this one."
)

NO_RATES_OF_TWINS = (
    "not known: the rule was tried on models that learned their weights, and on some whose weights were set "
    "otherwise; its rates are not those of models that are trained with the same weight for all words, as this "
    "one was."
)


@dataclass(frozen=True, repr=False)
class BottomLine:
    """The answer, why, and what to do after it, in words; and the numbers apart from them.

    `trainings`: in how many trainings the answer holds. `instead`: what to do now, where the answer is no yes.
    `measured`: the numbers that the answer rests on, each a sentence. `classes`: what is said of the texts of
    each predicted class. `rates`: how often the rule says this of planted maps. `not_tested`: what the audit
    has not asked.
    """

    answer: Answer
    because: str
    instead: str = ""
    measured: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    rates: str = ""
    not_tested: tuple[str, ...] = ()
    trainings: str = ""

    @property
    def level(self) -> Level:
        """Return the answer as the level of a finding."""
        return LEVELS[self.answer]

    @property
    def begins(self) -> str:
        """Return the answer in words."""
        return BEGINS[self.answer]

    @property
    def sentence(self) -> str:
        """Put the bottom line in words: the answer, its reason, the trainings it holds for, and what to do."""
        instead = f"What to do: {self.instead}." if self.instead else ""
        whole = (f"{self.begins}: {self.because}.", self.trainings, instead)
        return " ".join(filter(None, whole))

    @property
    def details(self) -> list[str]:
        """Return the numbers below the sentence in words: what was measured, how sure the rule is."""
        return [*self.measured, *self.classes, *([f"How sure: {self.rates}"] if self.rates else [])]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.sentence}>"

    def _repr_html_(self) -> str:
        details = "".join(f"<div>{escaped(detail)}</div>" for detail in self.details)
        return (
            f'<div style="border-left:4px solid {COLOURS[self.level]};padding:2px 0 2px 10px">'
            f"<div><b>{escaped(self.sentence)}</b></div>{details}"
            f"<div>Not tested: {escaped('; '.join(self.not_tested))}.</div></div>"
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        lists = {name: list(getattr(self, name)) for name in ("measured", "classes", "not_tested")}
        names = [field.name for field in fields(BottomLine)]
        parts = {name: getattr(self, name) for name in names}
        return {**parts, "sentence": self.sentence, **lists}


@dataclass(frozen=True, repr=False)
class RewordedLine(BottomLine):
    """A bottom line about instances that are no texts of words: its parts are worded with these nouns."""

    nouns: Nouns = TEXTS

    @property
    def begins(self) -> str:
        """Return the answer in words."""
        return self.nouns.reword(BEGINS[self.answer])


def bottom_line(audit: AuditResult, rates: Rates) -> BottomLine:
    """Draw the bottom line under an audit."""
    tables, t = by_text(audit.tables), rates.thresholds
    line = _line(audit, tables, t)
    keys = {finding.key for finding in audit.findings}
    seed = (audit.settings.audit or AuditSettings()).seed
    trainings = told_of_trainings(line.answer, tables, t, seed)
    if not trainings and "stability" not in keys and line.answer != "cannot tell":
        trainings = ONE_TRAINING
    whole = replace(
        line,
        trainings=trainings,
        rates=_rates_text(audit, rates, line.answer),
        not_tested=not_tested_in(audit),
    )
    return _reworded(whole, audit)


def _reworded(line: BottomLine, audit: AuditResult) -> BottomLine:
    """Return a line with the audit's own nouns for texts and words."""
    reword = audit.nouns.reword
    if audit.nouns == TEXTS:
        return line

    def all_of(sentences: Sequence[str]) -> tuple[str, ...]:
        return tuple(reword(sentence, audit.classes) for sentence in sentences)

    return RewordedLine(
        line.answer,
        because=reword(line.because, audit.classes),
        instead=reword(line.instead, audit.classes),
        measured=all_of(line.measured),
        classes=all_of(line.classes),
        rates=reword(line.rates),
        not_tested=all_of(line.not_tested),
        trainings=reword(line.trainings),
        nouns=audit.nouns,
    )


def _rates_text(audit: AuditResult, rates: Rates, said: Answer) -> str:
    """Say how often the rule is wrong where it says this, if it was tried on models of this kind."""
    if audit.settings.variant is not None:
        return NO_RATES
    return NO_RATES_OF_TWINS if audit.settings.is_uniform else told_of(rates, kind_of(audit), said)


def _line(audit: AuditResult, tables: Mapping[str, pa.Table], t: Thresholds) -> BottomLine:
    """Return the answer with its reason, what was measured, and what to do. `tables`: with one row per text."""
    budget = budget_of(audit)
    if budget is not None and not budget.is_certain:
        return BottomLine("cannot tell", budget.why_uncertain, budget.what_to_do)
    skill = next((finding for finding in audit.findings if finding.key == "skill"), None)
    names, scale = answer_names(audit.classes), scale_of(audit.tables["instances"], audit.classes)
    if skill is not None and is_doubtful(skill):
        return _doubt(skill) if scale.unit is None else _doubt_of_number(skill)
    if "highlights" not in tables:
        return _not_read_again(audit)
    texts = texts_of(tables, scale.size)
    numbers = map_numbers(texts)
    said = answer(numbers, t)
    instead = "" if said == "yes" else what_to_do(said, numbers, texts, t, names, scale)
    if budget is not None and instead.startswith(MORE_TEXTS) and budget.texts < budget.total:
        instead += f"; {budget.how_to_draw_more}"
    return BottomLine(
        said,
        because(said, numbers, t, names),
        instead,
        tuple(measured(numbers, texts, t, scale).values()),
        by_class(said, numbers, t, names),
    )


def _not_read_again(audit: AuditResult) -> BottomLine:
    """Return the line of an audit that does not know what becomes of answers without the highlighted words."""
    lacking = audit.about.get("not_asked", {}).get("highlights", ())
    if lacking:
        reason = (
            "the model cannot read the input again, so that it is not known what becomes of the answer without "
            "what the map highlights"
        )
        instead = "audit it with a function that reads changed input (`predict`)"
        return BottomLine("cannot tell", reason, instead)
    reason = "the texts were not read again without the highlighted words"
    return BottomLine("cannot tell", reason, "audit the run again")


def kind_of(audit: AuditResult) -> str:
    """Return the kind of model, by which rates are counted."""
    model = audit.settings.model
    pairs = {"query", "second"} & {*audit.tables["instances"].column_names}
    if isinstance(model, TransformerSettings):
        return _kind_of_transformer(audit, model, pairs=bool(pairs))
    if isinstance(model, ArraysSettings | PoolingSettings):
        return "arrays" if isinstance(model, ArraysSettings) else "module for bags"
    if audit.settings.nouns == BAGS:
        return _kind_for_bags(model)
    if pairs:
        return "pair"
    return "hierarchical" if audit.settings.data.tokenizer == "sentences" else model.encoder


def _kind_of_transformer(audit: AuditResult, model: TransformerSettings, *, pairs: bool) -> str:
    if audit.settings.nouns == PICTURES:
        # Planted were classifiers that read [CLS] alone.
        return "pictures" if audit.about.get("reads") == "first" else "pictures, all rows read"
    if model.output is not None:
        return "transformer of several labels"
    if audit.settings.data.asks is not None:
        of_masks = audit.settings.data.asks == "masks"
        return "masked language model" if of_masks else "transformer of token classes"
    if len(audit.classes) == 1:
        return OF_NUMBER
    return "transformer of pairs" if pairs else "transformer"


def _kind_for_bags(model: ModelSettings) -> str:
    """Return the kind of a model of bags; planted were those of one map that read each item by itself."""
    if model.maps == "per-class":
        return "bags, a map for each class"
    return "bags" if model.encoder in BY_ITSELF else "bags, items in context"


def told_of(rates: Rates, kind: str, said: Answer) -> str:
    """Say how often the rule errs about models of a kind, and what maps with this answer were."""
    kind_rates = rates.kinds.get(kind, OfKind(families={}))
    right, wrong = kind_rates.of("right"), kind_rates.of("wrong")
    if not kind_rates.is_enough:
        tried, wanted_of = (
            (f"only {right.n} right and {wrong.n} wrong maps", "of each are")
            if right.n or wrong.n
            else ("no map", "right and as many wrong ones are")
        )
        return (
            f"not known, for it was tried on {tried} of this kind of model ({kind}), built to have a known "
            f"answer; {LEAST} {wanted_of} wanted."
        )
    family = kind_rates.worst
    worst = (
        ""
        if family is None
        else (f"; worst kind of wrong map: {family[0]} (yes to {family[1].count} of {family[1].n})")
    )
    planted_on = PLANTED_ON.get(kind, rates.name)
    return (
        f"it was tried on models of this kind ({kind}, {planted_on}) that were built to have a known answer. "
        f"On {wrong.n} wrong maps it {_said('yes', wrong)}, on {right.n} right ones it {_said('yes', right)} "
        f"and {_said('no', right)}{worst}.{_with_this_answer(kind_rates, said)}"
    )


def _with_this_answer(kind_rates: OfKind, said: Answer) -> str:
    """Say how many planted maps with an answer were right after all; of yes it is said already."""
    total = sum(family.answers.counts.get(said, 0) for family in kind_rates.families.values())
    if said == "yes" or not total:
        return ""
    right = kind_rates.of("right").counts.get(said, 0)
    if total == 1:
        return f" The only map that got the answer of this one was {'' if right else 'not '}right."
    were = {0: "none was", 1: "one was"}.get(right, f"{right} were")
    if total == 2:
        return f" Of the two maps that got the answer of this one, {'both were' if right == 2 else were} right."
    return f" Of all {total} maps that got the answer of this one, {were} right."


def _said(answer: Answer, answers: Answers) -> str:
    """Say how often an answer was given."""
    count = answers.rate(answer).count
    times = {1: "once", 2: "twice"}.get(count, f"{count} times")
    return f"said {answer} {times}" if count else f"never said {answer}"


def not_tested_in(audit: AuditResult) -> tuple[str, ...]:
    """Return what an audit has not asked."""
    return not_tested(
        audit.findings,
        "trainings" in audit.tables,
        variant=audit.settings.variant is not None,
        untold=untold(audit.about),
    )


def not_tested(
    findings: Sequence[Finding],
    other_trainings: bool = False,
    *,
    variant: bool = False,
    untold: Sequence[str] = (),
) -> tuple[str, ...]:
    """Return what the audit has not asked; further trainings ask two of these, and labels one.

    `other_trainings`: whether the rule was applied to other trainings, too. `variant`: whether the model was
    itself made to attend elsewhere, or as another model does. `untold`: what could not be asked of it.
    """
    keys = {finding.key for finding in findings}
    has_labels = not any(is_unlabelled(finding) for finding in findings)
    return (
        *untold,
        *([] if has_labels else ["whether the model predicts well, for the texts have no labels"]),
        "other texts",
        *([] if other_trainings or "stability" in keys else ["other training seeds"]),
        "another of the model's maps",
        *(
            []
            if variant or "trained_adversary" in keys
            else ["whether the model could have learned to attend elsewhere"]
        ),
        "whether people understand the map as it is meant",
    )


def _doubt(skill: Finding) -> BottomLine:
    """Return the line of a model that may have nothing to explain."""
    if is_of_one_class(skill):
        return BottomLine(
            "cannot tell",
            "the audited texts are all of one class, so that it cannot be seen whether the model predicts",
            "audit texts of several classes",
        )
    accuracy = (
        f"The accuracy is {skill.value:z.2f} [{skill.low:z.2f}, {skill.high:z.2f}]; {skill.meaning}.",
    )
    than = "clearly better than its commonest class"
    if skill.level == "against":
        reason = f"the model does not predict {than}"
        return BottomLine("cannot tell", reason, "first make a model that does", accuracy)
    needed = "more different texts" if skill.distinct < skill.n else "more texts"
    better = ", or make a better model" if skill.value < 1 else ""
    reason = f"it is not certain that the model predicts {than}"
    return BottomLine("cannot tell", reason, f"audit {needed}{better}", accuracy)


def _doubt_of_number(skill: Finding) -> BottomLine:
    """Return the line of a model that gives a number, and may not predict it."""
    measured = (f"The model explains {skill.number} of the variance; {skill.meaning}.",)
    reason = "it is not certain that the model predicts the labels clearly better than their mean"
    if skill.level == "against":
        reason = "the model does not predict the labels clearly better than their mean"
    instead = (
        "look whether labels and outputs are on the same scale; else audit more texts, or make a better "
        "model"
    )
    return BottomLine("cannot tell", reason, instead, measured)
