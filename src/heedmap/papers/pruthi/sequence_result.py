"""Accuracy and attention to what tells the target, of each attention and penalty, beside the published."""

import math
from dataclasses import dataclass
from functools import cached_property

import altair as alt
import pandas as pd

from heedmap.experiments.questions.deception import TOLERANCE
from heedmap.experiments.seed_intervals import mean_interval
from heedmap.experiments.seeds import over_seeds, seed_mean
from heedmap.papers.kit.claims import UNDECIDED, above, verdict
from heedmap.papers.kit.learned import Learned, Score
from heedmap.papers.kit.reproduction import CellReproduction
from heedmap.papers.kit.result import Claim, Result, Table, bracketed, changed_settings, signed
from heedmap.papers.pruthi.published import REPLICATION, SEQUENCES, SEQUENCES_REPLICATED, SOURCE
from heedmap.papers.pruthi.settings import SequenceSettings
from heedmap.report.charts import PALETTE, QUIET, Figure, Key, colour, plot, specification, vertical

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
WORDS = {
    "size": "{} units in each direction",
    "embedding": "{} numbers in an embedding",
    "dropout": "{} as dropout",
    "batch_size": "{} pairs in a batch",
    "learning_rate": "{} as learning rate",
    "epochs": "{} epochs at most",
    "seeds": "{} seeds",
}
UNSTABLE = (
    "The published copy at λ = 1, and uniform attention at copy and reverse, did not replicate with the "
    "authors' own seeds."
)


@dataclass(frozen=True)
class SequenceResult(CellReproduction[SequenceSettings]):
    """The trainings so far."""

    @property
    def is_text(self) -> bool:
        """Whether sentences are translated."""
        return self.settings.task == "translation"

    @property
    def missing(self) -> int:
        """How many trainings are still to be run."""
        return self.settings.seeds * (3 + len(self.settings.penalties)) - len(self.rows)

    @property
    def differences(self) -> list[str]:
        """How it differs from the released code's settings.

        What sequences the authors drew is not in what they released.
        """
        sequences = "sequences of our own drawing, for theirs are not released"
        return [*changed_settings(self.settings, WORDS), *([] if self.is_text else [sequences])]

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
        is_theirs = self.settings.dataset == "multi30k" and ends == ("en", "de")
        return self.settings.task if is_theirs or not self.is_text else ""

    @cached_property
    def learned(self) -> Learned:
        """Which trainings without penalty have learned. Of the others it is the result whether they can.

        One answer to every position is the sequence's end, where nothing of the source tells: 1 − `possible`.
        Of translations it is a BLEU of 0; without a published one, nothing can be told.
        """
        is_text, kind = self.is_text, ("learned", 0.0)
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
        if self.is_text:
            return [bleu / 100 for bleu in self.values(kind, "bleu")]
        return self.values(kind, "accuracy")


def result(sequences: SequenceResult) -> Result:
    """Make the result that all files of these tasks show."""
    learned = sequences.learned
    return sequences.make_result(
        f"Pruthi et al.: {sequences.name}",
        [_masses(sequences), *_claims(sequences)],
        figures=[_figure(sequences)],
        rows=pd.DataFrame(
            [
                {
                    **row,
                    "learned": learned.of(named((row["attention"], row["penalty"])), row["seed"]),
                }
                for row in sequences.rows
            ]
        ),
        columns=COLUMNS,
    )


def named(kind: Kind) -> str:
    """Return what the trainings of an attention and a penalty are called."""
    attention, penalty = kind
    return attention if penalty == 0 else f"{attention}, λ = {penalty:g}"


def _masses(sequences: SequenceResult) -> Table:
    is_text, lines = sequences.is_text, []
    for kind in sequences.kinds():
        measures = ("accuracy", "mass", "blocked", "on", "beside")
        numbers = [over_seeds(sequences.values(kind, measure)) for measure in measures]
        bleu = [seed_mean(sequences.values(kind, "bleu"), 1)] if is_text else []
        name = sequences.learned.marked(named(kind), named(kind))
        lines.append([name, "ours", *numbers, *bleu])
        for table, source in ((SEQUENCES, SOURCE), (SEQUENCES_REPLICATED, REPLICATION)):
            published = table.get((sequences.published, *kind))
            if published is None:
                continue
            skill = "–" if published.accuracy == "–" or is_text else f"{published.accuracy} %"
            mass = "–" if published.mass == "–" else f"{published.mass} %"
            bleu = [f"{published.accuracy} by compare-mt"] if is_text else []
            lines.append([named(kind), source, skill, mass, "–", "–", "–", *bleu])
    uniform, possible = (
        sequences.values(sequences.kinds()[0], name)[0] for name in ("uniform", "possible")
    )
    return Table(
        f"Accuracy and attention to what tells the target ({sequences.name})",
        [
            "attention", "source", "accuracy", "mass", "blocked", "on it", "beside it",
            *(["BLEU"] if is_text else []),
        ],
        lines,
        f"Over all target positions, ends included; the model reads its own symbols. Mass: the weight on the "
        f"source positions that tell the target; uniform weights put {uniform:.3f} there, and {possible:.3f} "
        "is the most, since ends have none. Blocked: accuracy with that weight set to 0. On it, beside it: "
        "where the largest weight is; a neighbour's state knows the symbol too. Means and 95 % intervals over "
        "seeds. "
        + ("BLEU: ours by sacrebleu, not to be compared with compare-mt's." if is_text else UNSTABLE),
        labels=2,
    )  # fmt: skip


def _claims(sequences: SequenceResult) -> list[Claim]:
    penalised = ("learned", max(sequences.settings.penalties))
    uniform, mass = (sequences.values(penalised, name) for name in ("uniform", "mass"))
    return [
        _claim(
            "The penalty hides what is used: it gets less weight than uniform weights give it.",
            sequences,
            [
                uniform_mass - learned_mass
                for uniform_mass, learned_mass in zip(uniform, mass, strict=True)
            ],
        ),
        _claim(
            f"The model stays as good: at most {TOLERANCE:.0%} below that without penalty.",
            sequences,
            _advantage(sequences, penalised, ("learned", 0.0)),
            -TOLERANCE,
        ),
        _claim(
            "It needs its attention all the same: it is better than with uniform weights.",
            sequences,
            _advantage(sequences, penalised, ("uniform", 0.0)),
        ),
        _claim(
            "It needs its attention all the same: it is better than with the first state alone.",
            sequences,
            _advantage(sequences, penalised, ("none", 0.0)),
        ),
    ]


def _advantage(sequences: SequenceResult, kind: Kind, reference: Kind) -> list[float]:
    """Return by how much a model is better than another, of the seeds that have both."""
    skills = zip(sequences.skill(kind), sequences.skill(reference), strict=False)
    return [skill - reference_skill for skill, reference_skill in skills]


def _claim(text: str, sequences: SequenceResult, gains: list[float], edge: float = 0.0) -> Claim:
    """Judge by the seeds' interval that the mean gain is above `edge`."""
    if not gains:
        return Claim(text, UNDECIDED, ())
    judgement = verdict([above(mean_interval(gains), edge)])
    numbers = [f"λ = {max(sequences.settings.penalties):g}: {_gain(gains)}, {len(gains)} seeds"]
    use = _advantage(sequences, ("learned", 0.0), ("none", 0.0))
    if not use or not mean_interval(use)[0] > 0:
        judgement = UNDECIDED
        numbers.append(
            "without penalty the model is not better than with the first state alone, so that there is "
            f"nothing to hide{f': {_gain(use)}' if use else ''}"
        )
    claim = Claim(text, judgement, tuple(numbers))
    return sequences.learned.judged(claim, named(("learned", 0.0)))


def _gain(gains: list[float]) -> str:
    return f"{signed(sum(gains) / len(gains))} {bracketed(*mean_interval(gains))}"


def _figure(sequences: SequenceResult) -> Figure:
    names = [named(kind) for kind in sequences.kinds()]
    values = [
        {"series": named(kind), "mass": mass, "skill": skill}
        for kind in sequences.kinds()
        for mass, skill in zip(sequences.values(kind, "mass"), sequences.skill(kind), strict=True)
    ]
    points = plot(values).mark_point(filled=True, size=70)
    skill = "BLEU / 100, by sacrebleu" if sequences.is_text else "accuracy"
    chart = points.encode(
        x=alt.X("mass:Q", title="weight on what tells the target", scale=alt.Scale(domain=[0, 1])),
        y=alt.Y("skill:Q", title=skill, scale=alt.Scale(domain=[0, 1])),
        color=colour(names),
        tooltip=["series:N", "mass:Q", "skill:Q"],
    )
    uniform = sequences.values(sequences.kinds()[0], "uniform")[0]
    return Figure(
        key="pruthi-sequences",
        title="Is what is used seen?",
        n=f"n = {sequences.settings.seeds} trainings of each",
        caption="Each point is a training. At the top left a model is good and shows nothing of what it uses. "
        "Dashed: what uniform weights put there.",
        spec=specification(alt.layer(chart, vertical(uniform, "uniform weights")), 260),
        keys=[
            *(Key(name, PALETTE[i]) for i, name in enumerate(names)),
            Key("uniform weights", QUIET, "dashed"),
        ],
        notes=[],
    )
