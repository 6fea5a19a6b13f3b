"""What an audit with a budget says of it: how many texts were read, and what more time would buy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from heedmap.experiments.findings import AuditResult
from heedmap.experiments.rule import ANSWERS
from heedmap.terminal.displays import span

LISTED = 4  # questions that were not asked


@dataclass(frozen=True)
class BudgetFacts:
    """The facts of a budget in words.

    Attributes:
        texts: how many texts were drawn.
        total: how many make the bottom line of an audit without a budget.
        minutes: the time; None where the number of texts was given.
        is_certain: whether the bottom line is certain.
        answers: the possible answers, the likeliest first; empty if there was no look at them.
        next_texts: after how many texts the audit would have looked at the answer next.
        next_seconds: about how long it takes to read on until then; None if not known.
        all_seconds: about how long it takes to read all of them.
        unasked: the questions that were not asked, with their seconds; 0 if not known.
    """

    texts: int
    total: int
    minutes: float | None
    is_certain: bool
    answers: Sequence[str]
    next_texts: int | None
    next_seconds: float | None
    all_seconds: float | None
    unasked: Mapping[str, float]

    @property
    def drawn_until(self) -> str:
        """Say when drawing ended."""
        if self.minutes is None:
            return "as many as were asked for"
        if self.is_certain and self.texts < self.total:
            return "drawn until the bottom line was certain"
        if self.is_certain:
            return "drawn for the bottom line, as many as an audit without a budget reads"
        minutes = "minute was" if self.minutes == 1 else f"{self.minutes:g} minutes were"
        return f"drawn until the {minutes} over"

    @property
    def why_uncertain(self) -> str:
        """Say why the bottom line is not certain."""
        if not self.answers:
            return f"the {self.texts} texts that were read are too few for an answer"
        *earlier, final = [
            "the right words" if answer == "words" else answer for answer in self.answers
        ]
        possible = " or ".join(filter(None, (", ".join(earlier), final)))
        return (
            f"the answer was not certain yet after {self.texts} texts; all {self.total} together may say "
            f"{possible}"
        )

    @property
    def what_to_do(self) -> str:
        """Say how to go on."""
        if self.minutes is None:
            return "draw more texts, with a larger --drawn or with --minutes"
        return (
            "give it more time: the same command reads on from here, with the same or more --minutes, which "
            "count from its own start"
        )

    @property
    def how_to_draw_more(self) -> str:
        """Say how more texts are drawn where the answer is certain, and the advice is to audit more."""
        if self.minutes is None:
            return "draw them with a larger --drawn"
        return "draw them with --drawn, since --minutes reads no further once the answer is certain"

    @property
    def more_time(self) -> str:
        """Say what more time would buy; empty if nothing."""
        parts = []
        if not self.is_certain and self.next_texts is not None:
            until = f"{self.next_texts} texts{_about(self.next_seconds)}"
            if self.next_texts < self.total:
                until += f" or all {self.total}{_about(self.all_seconds)}"
            parts.append(f"a bottom line of {until}")
        timed = [(name, seconds) for name, seconds in self.unasked.items() if seconds > 0]
        if self.unasked:
            longest = sorted(timed, key=lambda item: -item[1])[:LISTED]
            names = [name for name, _ in longest] or list(self.unasked)[:LISTED]
            listed = ", ".join(
                f"{name.replace('_', ' ')}{_about(self.unasked[name] or None)}" for name in names
            )
            rest = len(self.unasked) - len(names)
            more = f" and {rest} more" if rest else ""
            parts.append(f"the questions that were left out: {listed}{more}")
        return "; ".join(parts)


def budget_of(audit: AuditResult) -> BudgetFacts | None:
    """Return the facts of an audit's budget; None if it had none."""
    facts = audit.about.get("budget")
    if not isinstance(facts, Mapping) or audit.settings.audit is None:
        return None
    minutes = audit.settings.audit.minutes
    return BudgetFacts(
        texts=facts["texts"],
        total=facts["of"],
        minutes=minutes if isinstance(minutes, float) else None,
        is_certain=facts["certain"],
        answers=[answer for answer in facts["answers"] if answer in ANSWERS],
        next_texts=facts["next_texts"],
        next_seconds=facts["next_seconds"],
        all_seconds=facts["all_seconds"],
        unasked=facts["unasked"],
    )


def _about(seconds: float | None) -> str:
    return "" if seconds is None else f" (about {span(seconds)})"
