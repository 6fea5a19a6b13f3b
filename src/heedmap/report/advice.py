"""What the bottom line rests on and what to do next, each with the places of the page that show it.

Nothing here is judged anew: the rule has answered, and every step follows from its numbers.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from heedmap.experiments.bottom_line import BottomLine
from heedmap.experiments.budget_facts import budget_of
from heedmap.experiments.enough_texts import rounded_up, texts_for_class, texts_for_side
from heedmap.experiments.findings import AuditResult, Finding
from heedmap.experiments.levels import BANDS, WEAK
from heedmap.experiments.pooling import by_text
from heedmap.experiments.questions.instances import is_doubtful
from heedmap.experiments.rates import Rates
from heedmap.experiments.reasons import LISTED, MORE, measured, named
from heedmap.experiments.rule import MapNumbers, Thresholds, judge_class, map_numbers, texts_of
from heedmap.experiments.scales import answer_names, scale_of
from heedmap.experiments.text_levels import text_levels
from heedmap.report.wording import plural
from heedmap.settings.models import ModelSettings

FAILS = (
    "wrong",
    "default",
    "needed",
    "sufficient",
)  # what a class may be where the map is not right for it
MISSES = {"against": "misses them", "mixed": "finds a part"}


@dataclass(frozen=True)
class Evidence:
    """A place of the page: its address, and what is there."""

    address: str
    words: str


@dataclass(frozen=True)
class Step:
    """A sentence or two, with the evidence for it, and the command that does it."""

    text: str
    evidence: tuple[Evidence, ...] = ()
    command: str = ""


def rests_on(
    audit: AuditResult, line: BottomLine, rates: Rates, figures: Collection[str]
) -> list[Step]:
    """Return the sentences of the bottom line on what was measured, each with the places that show it.

    `figures`: the keys of those that the page draws.
    """
    tables = by_text(audit.tables)
    keys = {finding.key for finding in audit.findings}
    questions: dict[str, str] = {}
    if "highlights" in tables:
        scale = scale_of(audit.tables["instances"], audit.classes)
        texts = texts_of(tables, scale.size)
        sentences = measured(map_numbers(texts), texts, rates.thresholds, scale)
        questions = {
            audit.nouns.reword(sentence, audit.classes): question
            for question, sentence in sentences.items()
        }
    steps = []
    for sentence in line.measured:
        question = questions.get(sentence, "skill")
        evidence = [_question(question)] if question in keys else []
        if question in figures:
            evidence.append(Evidence(f"#figure-{question}", "the figure"))
        steps.append(Step(sentence, tuple(_missed(audit) if question == "holding" else evidence)))
    steps += [Step(sentence) for sentence in line.classes]
    return [_reworded(step, audit) for step in steps]


def next_steps(audit: AuditResult, line: BottomLine, rates: Rates) -> list[Step]:
    """Return what to do next, the most important first."""
    return [_reworded(step, audit) for step in _next_steps(audit, line, rates)]


def _reworded(step: Step, audit: AuditResult) -> Step:
    """Return a step with the audit's own nouns for texts and words."""
    evidence = tuple(
        replace(place, words=audit.nouns.reword(place.words, audit.classes))
        for place in step.evidence
    )
    return replace(step, text=audit.nouns.reword(step.text, audit.classes), evidence=evidence)


def _next_steps(audit: AuditResult, line: BottomLine, rates: Rates) -> list[Step]:
    tables = by_text(audit.tables)
    skill = next((finding for finding in audit.findings if finding.key == "skill"), None)
    main = f"{line.instead[:1].upper()}{line.instead[1:]}."
    budget = budget_of(audit)
    more_time = "" if budget is None else budget.more_time
    if budget is not None and not budget.is_certain:
        return [Step(f"{main} More time buys {more_time}.")]
    if skill is not None and is_doubtful(skill):
        return [Step(_for_skill(audit, skill, main), (_question("skill"),))]
    if "highlights" not in tables:
        return [Step(main)]
    numbers, t, misses = map_numbers(texts_of(tables)), rates.thresholds, _missed(audit)
    if line.answer == "yes":
        look = " Look first at those in which it misses deciding words." if misses else ""
        steps = [Step(f"You may show the map with texts like these.{look}", tuple(misses))]
    else:
        steps = [Step(main + _texts_for_classes(line, numbers), tuple(_evidence(audit, misses)))]
    steps += _failing_classes(audit, numbers, t)
    steps += _texts_for_the_rule(line, numbers, t)
    steps += [Step(f"More time buys {more_time}.")] if more_time else []
    if line.answer != "cannot tell":
        steps += _other_seeds(audit)
    return steps


def _question(key: str) -> Evidence:
    return Evidence(f"#finding-{key}", "the question")


def _texts(words: str, **choices: str) -> Evidence:
    """Return the address that leaves only some texts in the table (`page/src/state.ts` reads it)."""
    return Evidence(f"#{urlencode(choices)}", words)


def _missed(audit: AuditResult) -> list[Evidence]:
    """Return the texts in which the map does not find the deciding words, or only a part of them."""
    levels = text_levels(audit.tables) or []
    return [
        _texts(f"{plural(levels.count(level), 'text')} where it {does}", level=level)
        for level, does in MISSES.items()
        if level in levels
    ]


def _evidence(audit: AuditResult, misses: Sequence[Evidence]) -> list[Evidence]:
    """Return where it is shown that the map has no yes: the two questions that decide, and the texts."""
    asked = {finding.key: finding for finding in audit.findings if finding.level != "for"}
    words = {"needed": "are the words needed", "sufficient": "do they suffice"}
    questions = [
        Evidence(f"#finding-{key}", f"the question: {asks}?")
        for key, asks in words.items()
        if key in asked
    ]
    return [*questions, *misses]


def _failing_classes(audit: AuditResult, numbers: MapNumbers, t: Thresholds) -> list[Step]:
    """Name the predicted classes for which the map is not right, if it is right for others."""
    judged = [(x, judge_class(x, t)) for x in numbers.classes]
    failing = [x for x, verdict in judged if verdict in FAILS]
    if not failing or not any(verdict == "right" for _, verdict in judged):
        return []
    names = answer_names(audit.classes)
    texts = [
        _texts(f"the texts predicted “{name}”", predicted=name)
        for name in (names[x.number] for x in failing[:LISTED])
        if name in audit.classes
    ]
    return [Step(f"It fails for {named(failing, names)}: read some of them.", tuple(texts))]


def _texts_for_classes(line: BottomLine, numbers: MapNumbers) -> str:
    """Say how many texts would hold enough of the rarest predicted class, where that is the advice."""
    rarest = min((x.n for x in numbers.classes), default=0)
    needed = texts_for_class(rarest, numbers.texts, MORE)
    if not line.instead.startswith("audit more ") or needed is None:
        return ""
    return (
        f" At the shares predicted here, that takes about {rounded_up(needed):,} texts that are read again; "
        f"this audit read {numbers.texts:,}."
    )


def _texts_for_the_rule(line: BottomLine, numbers: MapNumbers, t: Thresholds) -> list[Step]:
    """Say how many texts would make the share of texts that hold certain, where its interval does not."""
    low, high = numbers.holding_interval
    if not numbers.losing or line.answer == "no" or not low < t.holding < high:
        return []
    share = numbers.held / numbers.losing
    needed = texts_for_side(share, t.holding)
    text = (
        f"It is not certain that the map finds the deciding words in {t.holding:.0%} of the texts, as a yes "
        f"needs: it does in {share:.0%} [{low:.0%}, {high:.0%}]. "
    )
    if needed is None:
        text += "The share is so near to that limit that more texts would hardly settle it."
    else:
        text += (
            f"If more texts are like these, about {rounded_up(needed):,} with deciding words would settle it; "
            f"this audit has {numbers.losing:,}."
        )
    return [Step(text, (Evidence("#measured", "what it rests on"),))]


def _for_skill(audit: AuditResult, skill: Finding, main: str) -> str:
    """Say whether more texts would make it certain that the model predicts well enough, and how many."""
    labels = audit.tables["instances"]["label"].to_pylist()
    majority = max(labels.count(label) for label in set(labels)) / len(labels)
    if skill.level == "against" or majority == 1:
        return main
    modest = min(edge for edge, _, words in BANDS["skill"] if words != WEAK)
    edge = majority + modest * (1 - majority)
    if skill.value < edge:
        return (
            f"{main} The accuracy must be above {edge:.2f}: if it is {skill.value:.2f}, as measured, more "
            "texts will not show that."
        )
    needed = texts_for_side(skill.value, edge)
    if needed is None:
        return main
    return (
        f"{main} At this accuracy, about {rounded_up(needed):,} different texts would do; this audit has "
        f"{skill.distinct:,}."
    )


def _other_seeds(audit: AuditResult) -> list[Step]:
    """Say how other seeds are asked, where they were not and the model is heedmap's own."""
    settings = audit.settings
    asked = "trainings" in audit.tables or any(f.key == "stability" for f in audit.findings)
    is_own = isinstance(settings.model, ModelSettings) and settings.train is not None
    if asked or not is_own or settings.variant is not None:
        return []
    return [
        Step(
            "Other seeds were not tried. With this run's folder as RUN, ask whether another training attends "
            "elsewhere:",
            command="heedmap retrain stability --run RUN",
        )
    ]
