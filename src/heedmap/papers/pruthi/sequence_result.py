"""Accuracy and attention to what tells the target, of each attention and penalty, beside the published."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import altair as alt
import pandas as pd

from heedmap.experiments.questions.deception import TOLERANCE
from heedmap.experiments.seed_intervals import mean_interval
from heedmap.experiments.seeds import over_seeds
from heedmap.papers.kit.learned import Learned, Score
from heedmap.papers.kit.parts import Row
from heedmap.papers.kit.result import Claim, Result, Table, signed, unfinished, unlike, with_unlike
from heedmap.papers.pruthi.published import (
    REPLICATION,
    SEQUENCES,
    SEQUENCES_REPLICATED,
    SOURCE,
)
from heedmap.papers.pruthi.settings import SequenceSettings
from heedmap.report.charts import PALETTE, QUIET, Figure, Key, colour, rows, specification, vertical

Kind = tuple[str, float]
COLUMNS = {
    "attention": "learned, uniform, or none: the first state alone",
    "penalty": "λ",
    "seed": "of the training",
    "epochs": "trained for",
    "accuracy": "share of the target positions that are right",
    "mass": "mean weight on the source positions that tell the target",
    "possible": "the most that it can be: the share of the positions that have any",
    "uniform": "what uniform weights put there",
    "on": "share of the positions with the largest weight there",
    "beside": "share with the largest weight on a neighbour",
    "blocked": "accuracy with that weight set to 0",
    "bleu": "of translations, by sacrebleu, at most 100",
    "learned": "whether a training without penalty has learned; empty of others, and where it cannot be told",
}
UNSTABLE = (
    "The published copy at λ = 1, and uniform attention at copy and reverse, did not replicate with the "
    "authors' own seeds."
)


@dataclass(frozen=True)
class SequenceResult:
    """The trainings so far."""

    name: str
    settings: SequenceSettings
    rows: list[Row]
    notes: list[str]
    folder: Path

    def kinds(self) -> list[Kind]:
        """The attentions and penalties so far."""
        return list(dict.fromkeys((row["attention"], row["penalty"]) for row in self.rows))

    def values(self, kind: Kind, measure: str) -> list[float]:
        """Return a number of each seed."""
        return [
            float(row[measure]) for row in self.rows if (row["attention"], row["penalty"]) == kind
        ]

    @property
    def published(self) -> str:
        """The task under which published numbers are found; empty for texts of other sets."""
        ends = (self.settings.source, self.settings.target)
        is_theirs = "multi30k" in self.name.lower() and ends == ("en", "de")
        return self.settings.task if self.settings.task != "translation" or is_theirs else ""

    @cached_property
    def learned(self) -> Learned:
        """Which trainings without penalty have learned. Of the others it is the result whether they can.

        One answer to every position is the sequence's end, where nothing of the source tells: 1 − `possible`.
        Of translations it is a BLEU of 0; without a published one, nothing can be told.
        """
        is_text, kind = self.settings.task == "translation", ("learned", 0.0)
        theirs = SEQUENCES.get((self.published, *kind))
        published = math.nan if theirs is None else float(theirs.accuracy) / 100
        scores: dict[object, list[Score]] = {
            seed: [Score(
                "BLEU / 100" if is_text else "accuracy", skill, 0.0 if is_text else 1 - possible,
                published=published,
            )]
            for seed, skill, possible in zip(
                self.values(kind, "seed"), self.skill(kind), self.values(kind, "possible"), strict=True
            )
        }  # fmt: skip
        return Learned({named(kind): scores})

    def skill(self, kind: Kind) -> list[float]:
        """Return what the task is judged by, of each seed: accuracy, or BLEU / 100."""
        if self.settings.task == "translation":
            return [one / 100 for one in self.values(kind, "bleu")]
        return self.values(kind, "accuracy")


def result(found: SequenceResult) -> Result:
    """Make the result that all files of these tasks show."""
    differs = differences(found.settings)
    table = _table(found)
    missing = found.settings.seeds * (3 + len(found.settings.penalties)) - len(found.rows)
    return Result(
        title=f"Pruthi et al.: {found.name}",
        notes=[note for note in (*found.notes, unlike(differs), unfinished(missing)) if note],
        summary=table,
        sections=[table, *_claims(found)],
        figures=[with_unlike(_figure(found), differs, found.learned.failed)],
        rows=pd.DataFrame(
            [
                {
                    **row,
                    "learned": found.learned.of(
                        named((row["attention"], row["penalty"])), row["seed"]
                    ),
                }
                for row in found.rows
            ]
        ),
        latex=table,
        columns=COLUMNS,
        not_learned=found.learned.sentence(),
    )


def differences(settings: SequenceSettings) -> list[str]:
    """List in words how a reproduction differs from the released code's settings.

    What sequences the authors drew is not in what they released.
    """
    published = SequenceSettings.model_fields
    words = {
        "size": "units in each direction",
        "embedding": "numbers in an embedding",
        "dropout": "as dropout",
        "batch_size": "pairs in a batch",
        "learning_rate": "as learning rate",
        "epochs": "epochs at most",
        "seeds": "seeds",
    }
    return [
        *(
            f"{getattr(settings, name):g} {text} instead of {published[name].default:g}"
            for name, text in words.items()
            if getattr(settings, name) != published[name].default
        ),
        *(
            ()
            if settings.task == "translation"
            else ("sequences of our own drawing, for theirs are not released",)
        ),
    ]


def named(kind: Kind) -> str:
    """Return what the trainings of an attention and a penalty are called."""
    attention, penalty = kind
    return attention if penalty == 0 else f"{attention}, λ = {penalty:g}"


def _table(found: SequenceResult) -> Table:
    is_text = found.settings.task == "translation"
    lines = []
    for kind in found.kinds():
        measures = ("accuracy", "mass", "blocked", "on", "beside")
        numbers = [over_seeds(found.values(kind, measure)) for measure in measures]
        bleu = [over_seeds(found.values(kind, "bleu"), 1)] if is_text else []
        name = found.learned.marked(named(kind), named(kind))
        lines.append([name, "ours", *numbers, *bleu])
        for table, source in ((SEQUENCES, SOURCE), (SEQUENCES_REPLICATED, REPLICATION)):
            theirs = table.get((found.published, *kind))
            if theirs is None:
                continue
            skill = "–" if theirs.accuracy == "–" or is_text else f"{theirs.accuracy} %"
            mass = "–" if theirs.mass == "–" else f"{theirs.mass} %"
            other = [f"{theirs.accuracy} by compare-mt"] if is_text else []
            lines.append([named(kind), source, skill, mass, "–", "–", "–", *other])
    first = found.kinds()[0]
    even, most = (found.values(first, name)[0] for name in ("uniform", "possible"))
    return Table(
        f"Accuracy and attention to what tells the target ({found.name})",
        [
            "attention", "source", "accuracy", "mass", "blocked", "on it", "beside it",
            *(["BLEU"] if is_text else []),
        ],
        lines,
        f"Over all target positions, ends included; the model reads its own symbols. Mass: the weight on the "
        f"source positions that tell the target; uniform weights put {even:.3f} there, and {most:.3f} is the "
        "most, since ends have none. Blocked: accuracy with that weight set to 0. On it, beside it: where the "
        "largest weight is; a neighbour's state knows the symbol too. Means and 95 % intervals over seeds. "
        + ("BLEU: ours by sacrebleu, not to be compared with compare-mt's." if is_text else UNSTABLE),
        labels=2,
    )  # fmt: skip


def _claims(found: SequenceResult) -> list[Claim]:
    largest = ("learned", max(found.settings.penalties))
    kept = TOLERANCE
    return [
        _claim(
            "The penalty hides what is used: it gets less weight than uniform weights give it.",
            found, largest,
            lambda: [
                even - mass
                for even, mass in zip(
                    found.values(largest, "uniform"), found.values(largest, "mass"), strict=True
                )
            ],
        ),
        _claim(
            f"The model stays as good: at most {kept:.0%} below that without penalty.",
            found, largest, lambda: _over(found, largest, ("learned", 0.0)), -kept,
        ),
        _claim(
            "It needs its attention all the same: it is better than with uniform weights.",
            found, largest, lambda: _over(found, largest, ("uniform", 0.0)),
        ),
        _claim(
            "It needs its attention all the same: it is better than with the first state alone.",
            found, largest, lambda: _over(found, largest, ("none", 0.0)),
        ),
    ]  # fmt: skip


def _over(found: SequenceResult, one: Kind, other: Kind) -> list[float]:
    """Return by how much a model is better than another, of the seeds that have both."""
    return [a - b for a, b in zip(found.skill(one), found.skill(other), strict=False)]


def _claim(
    text: str,
    found: SequenceResult,
    largest: Kind,
    gain: Callable[[], list[float]],
    edge: float = 0.0,
) -> Claim:
    """Judge by the seeds' interval that the mean gain is above `edge`."""
    values = gain()
    if not values:
        return Claim(text, "undecided", ())
    low, high = mean_interval(values)
    verdict = "survives" if low > edge else "does not" if high <= edge else "undecided"
    numbers = [f"λ = {largest[1]:g}: {_gain(values)}, {len(values)} seeds"]
    use = _over(found, ("learned", 0.0), ("none", 0.0))
    if not use or not mean_interval(use)[0] > 0:
        verdict = "undecided"
        numbers.append(
            "without penalty the model is not better than with the first state alone, so that there is "
            f"nothing to hide{f': {_gain(use)}' if use else ''}"
        )
    claim = Claim(text, verdict, tuple(numbers))
    return found.learned.judged(claim, named(("learned", 0.0)))


def _gain(values: list[float]) -> str:
    low, high = mean_interval(values)
    return f"{signed(sum(values) / len(values))} [{signed(low)}, {signed(high)}]"


def _figure(found: SequenceResult) -> Figure:
    names = [named(kind) for kind in found.kinds()]
    is_text = found.settings.task == "translation"
    values = [
        {"series": named(kind), "mass": mass, "skill": skill}
        for kind in found.kinds()
        for mass, skill in zip(found.values(kind, "mass"), found.skill(kind), strict=True)
    ]
    points = alt.Chart(rows(values)).mark_point(filled=True, size=70)
    skill = "BLEU / 100, by sacrebleu" if is_text else "accuracy"
    drawn = points.encode(
        x=alt.X("mass:Q", title="weight on what tells the target", scale=alt.Scale(domain=[0, 1])),
        y=alt.Y("skill:Q", title=skill, scale=alt.Scale(domain=[0, 1])),
        color=colour(names),
        tooltip=["series:N", "mass:Q", "skill:Q"],
    )
    even = found.values(found.kinds()[0], "uniform")[0]
    return Figure(
        key="pruthi-sequences",
        title="Is what is used seen?",
        n=f"n = {found.settings.seeds} trainings of each",
        caption="Each point is a training. At the top left a model is good and shows nothing of what it uses. "
        "Dashed: what uniform weights put there.",
        spec=specification(alt.layer(drawn, vertical(even, "uniform weights")), 260),
        keys=[
            *(Key(name, PALETTE[i]) for i, name in enumerate(names)),
            Key("uniform weights", QUIET, "dashed"),
        ],
        notes=[],
    )
