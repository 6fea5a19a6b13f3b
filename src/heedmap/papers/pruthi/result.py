"""Accuracy and attention to impermissible words, ours beside the authors' and the replication's."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from heedmap.experiments import intervals
from heedmap.experiments.findings import AuditResult
from heedmap.experiments.questions.deception import TOLERANCE, summary
from heedmap.experiments.repeats import text_numbers
from heedmap.experiments.seeds import over_seeds
from heedmap.papers.kit.learned import Learned, Score, accuracy
from heedmap.papers.kit.result import (
    MARK,
    Claim,
    Result,
    Table,
    over_texts,
    signed,
    unfinished,
    unlike,
    with_unlike,
)
from heedmap.papers.pruthi.published import (
    AUTHORS,
    EPOCHS,
    REPLICATED,
    REPLICATION,
    SEEDS,
    SOURCE,
)
from heedmap.papers.pruthi.settings import BERT, PAPERS_BERT, TASKS, PruthiSettings
from heedmap.report import retraining_figures as drawn
from heedmap.report.wording import plural

HOW = """Shares: accuracy, and the mean attention to impermissible words in texts that have any; ours are \
means and 95 % intervals over the seeds. Blocked: accuracy with that attention set to 0 at test; nothing fills \
its place. Uniform: what uniform weights put there; least: the least that other weights of the same states can \
leave there with the same predictions, which is exact (not known of bert). \
Bert's mass is the mean over heads, or that of the head that shows most. \
Published numbers are of other texts."""

COLUMNS = {
    "heads": "of bert: attention is the mean of the heads, or that of the one that shows most",
    "removed": "whether the words were taken out",
    "strength": "λ of the penalty",
    "seed": "of the training",
    "accuracy": "share of the test texts that are right",
    "blocked": "the same with the attention to the words set to 0 at test",
    "mass": "mean share of the attention on impermissible words, in texts that have any",
    "uniform": "the same of uniform weights",
    "least": "the least share that other weights can leave there with the same predictions",
    "dev_accuracy": "share of the dev texts that are right",
    "name": "what the training is called",
    "model": "the model",
    "learned": "whether a training without penalty has learned; empty of others, and where it cannot be told",
}
Gain = Callable[["Reproduction", str, float], NDArray[np.float64]]


@dataclass(frozen=True)
class Reproduction:
    """One task: the audits of the models so far, with `deception`."""

    name: str
    settings: PruthiSettings
    audits: dict[str, AuditResult]
    notes: list[str]
    folder: Path

    @property
    def models(self) -> list[str]:
        """The models so far; bert is two: penalised by the mean of its heads, or by the one that shows most."""
        names = (["bert-mean", "bert-max"] if name == "bert" else [name] for name in self.audits)
        return [name for some in names for name in some]

    def audit(self, model: str) -> AuditResult:
        """Return the audit of a model."""
        return self.audits[model.removesuffix("-mean").removesuffix("-max")]

    def table(self, model: str) -> pa.Table:
        """Return the table `deception` of a model."""
        heads = "max" if model.endswith("-max") else "mean"
        found = self.audit(model).tables["deception"]
        return found.filter(pc.equal(found["heads"], heads))

    def runs(self, model: str) -> pd.DataFrame:
        """Return a row per training of a model (see `deception.summary`)."""
        return summary(self.table(model))

    @cached_property
    def learned(self) -> Learned:
        """Which trainings without penalty have learned, by model.

        Of the others, penalised or without the words, it is the result whether they can.
        """
        found: dict[str, dict[object, list[Score]]] = {}
        for model in self.models:
            label = self.table(model).to_pandas().drop_duplicates("row")["label"].to_numpy()
            most = float(np.bincount(label).max() / len(label))
            runs = dict(groups(self.runs(model)))[0.0]
            theirs = AUTHORS.get((self.settings.task, model, 0.0))
            published = np.nan if theirs is None else float(theirs.accuracy) / 100
            found[training_name(model, 0.0)] = {
                seed: [accuracy(right, most, len(label), published)]
                for seed, right in zip(runs["seed"], runs["accuracy"], strict=True)
            }
        return Learned(found)


def result(found: Reproduction) -> Result:
    """Make the result that all files of a reproduction show."""
    table, differs = _table(found), differences(found)
    missing = len(found.settings.models) - len(found.audits)
    return Result(
        title=f"Pruthi et al. on {found.name}",
        notes=[note for note in (*found.notes, unlike(differs), unfinished(missing)) if note],
        summary=table,
        sections=[table, *_claims(found)],
        figures=[
            with_unlike(
                replace(one, key=f"{one.key}-{model}", title=f"{one.title} ({model})"),
                differs,
                [name for name in found.learned.failed if name.startswith(model)],
            )
            for model, audit in found.audits.items()
            for one in drawn.deception(audit)
        ],
        rows=pd.concat([_rows(found, model) for model in found.models], ignore_index=True),
        latex=table,
        columns=COLUMNS,
        not_learned=found.learned.sentence(),
        reports=[("runs", [(model, f"{model}/report.html") for model in found.audits])],
    )


def differences(found: Reproduction) -> list[str]:
    """List in words how a reproduction differs from the paper's settings."""
    settings = found.settings
    epochs = EPOCHS.get(settings.task, 15)
    return [
        *([TASKS[settings.task].unlike] if settings.task else []),
        *(
            []
            if settings.batch_size == 1
            else [f"batches of {settings.batch_size} texts instead of 1"]
        ),
        *(
            [f"bert is {Path(settings.base).name}"]
            if settings.base is not None and settings.base != PAPERS_BERT
            else []
        ),
        *(
            [f"{plural(settings.bert_epochs, 'epoch')} of bert instead of 4"]
            if settings.base is not None and settings.bert_epochs != BERT["epochs"]
            else []
        ),
        *(
            []
            if settings.seeds == SEEDS
            else [f"{plural(settings.seeds, 'seed')} instead of {SEEDS}"]
        ),
        *(
            []
            if settings.epochs == epochs
            else [f"{plural(settings.epochs, 'epoch')} instead of {epochs}"]
        ),
        *([] if settings.rule == "paper" else ["epochs chosen by the released code's rule"]),
        "the words are deleted, not replaced by neutral ones",
    ]


def _table(found: Reproduction) -> Table:
    lines = []
    for model in found.models:
        for key, runs in groups(found.runs(model)):
            name = key_name(key)
            mass = "–" if key is None else over_seeds(runs["mass"].tolist())
            blocked = "–" if key is None else over_seeds(runs["blocked"].tolist())
            extra = ["–", "–"]
            if key == 0:
                extra = [_number(runs[column]) for column in ("uniform", "least")]
            own = [model, found.learned.marked(name, training_name(model, key)), "ours"]
            lines.append([*own, over_seeds(runs["accuracy"].tolist()), mass, blocked, *extra])
            for numbers, source in ((AUTHORS, SOURCE), (REPLICATED, REPLICATION)):
                published = numbers.get((found.settings.task, model, key))
                if published is not None:
                    theirs = [_share(published.accuracy), _share(published.mass)]
                    lines.append([model, name, source, *theirs, "–", "–", "–"])
    heads = ["model", "training", "source", "accuracy", "mass", "blocked", "uniform", "least"]
    return Table(
        f"Accuracy and attention to impermissible words ({found.name})", heads, lines, HOW, labels=3
    )


def _rows(found: Reproduction, model: str) -> pd.DataFrame:
    """Return a row per training for CSV."""
    runs = found.runs(model).assign(model=model)
    keys = zip(runs["removed"], runs["strength"], runs["seed"], strict=True)
    learned = [
        found.learned.of(training_name(model, None if removed else strength), seed)
        for removed, strength, seed in keys
    ]
    return runs.assign(learned=pd.Series(learned, runs.index, dtype=object))


def key_name(key: float | None) -> str:
    """Return what a kind of training is called: its penalty, or None without the words."""
    return "without the words" if key is None else f"λ = {key:g}"


def training_name(model: str, key: float | None) -> str:
    """Return what the trainings of a model and a penalty are called."""
    return f"{model}, {key_name(key)}"


def _number(values: "pd.Series[float]") -> str:
    return "–" if values.isna().all() else f"{values.mean():.3f}"


def _share(per_cent: str) -> str:
    """Say that a published number is in per cent.

    >>> _share("96.3"), _share("–")
    ('96.3 %', '–')
    """
    return per_cent if per_cent == "–" else f"{per_cent} %"


def groups(runs: pd.DataFrame) -> list[tuple[float | None, pd.DataFrame]]:
    """Return the trainings without the words, and those of each penalty."""
    present = runs[~runs["removed"]]
    return [
        (None, runs[runs["removed"]]),
        *((float(str(strength)), part) for strength, part in present.groupby("strength")),
    ]


def _texts(found: Reproduction, model: str, column: str) -> dict[float | None, NDArray[np.float64]]:
    """Return per kind of training the mean over seeds of a column, text by text."""
    frame = found.table(model).to_pandas()
    frame["right"] = (frame["label"] == frame["predicted"]).astype(float)
    kinds: dict[float | None, pd.DataFrame] = {None: frame[frame["removed"]]}
    for strength, part in frame[~frame["removed"]].groupby("strength"):
        kinds[float(str(strength))] = part
    return {
        kind: part.groupby("row")[column].mean().sort_index().to_numpy(dtype=np.float64)
        for kind, part in kinds.items()
    }


def _interval(found: Reproduction, model: str, values: NDArray[np.float64]) -> tuple[float, float]:
    clusters = text_numbers(found.audit(model).tables["instances"])
    used = np.isfinite(values)
    return intervals.of_mean(values[used], clusters[used], 0, (-1.0, 1.0))


def _claim(found: Reproduction, text: str, gain: Gain, edge: float = 0.0) -> Claim:
    """Judge that the mean gain of the texts lies above `edge`, for every model and its largest penalty."""
    numbers, verdicts = [], []
    for model in found.models:
        strength = max(found.settings.penalties)
        each = gain(found, model, strength)
        low, high = _interval(found, model, each)
        shown = f"{signed(float(np.nanmean(each)))} [{signed(low)}, {signed(high)}]"
        number = f"{model}, λ = {strength:g}: {shown}"
        if training_name(model, 0.0) in found.learned.failed:
            numbers.append(f"{number}; not learned without penalty, not counted {MARK}")
            verdicts.append((False, False))
        else:
            numbers.append(number)
            verdicts.append((low > edge, high <= edge))
    verdict = "undecided"
    if all(yes for yes, _ in verdicts):
        verdict = "survives"
    elif any(no for _, no in verdicts):
        verdict = "does not"
    return Claim(text, verdict, tuple(numbers), over_texts(found.settings.seeds))


def _hidden(found: Reproduction, model: str, strength: float) -> NDArray[np.float64]:
    """Return what uniform weights put on the words, less what the penalised models do."""
    return _texts(found, model, "uniform")[strength] - _texts(found, model, "mass")[strength]


def _kept(found: Reproduction, model: str, strength: float) -> NDArray[np.float64]:
    """Return how often the penalised models are right, less those without penalty."""
    means = _texts(found, model, "right")
    return means[strength] - means[0.0]


def _used(found: Reproduction, model: str, strength: float) -> NDArray[np.float64]:
    """Return how often the penalised models are right, less those that never saw the words."""
    means = _texts(found, model, "right")
    return means[strength] - means[None]


def _claims(found: Reproduction) -> list[Claim]:
    return [
        _claim(
            found,
            "The penalty hides the words: they get less attention than uniform weights give them.",
            _hidden,
        ),
        _claim(
            found,
            f"The accuracy stays: with the largest penalty it is at most {TOLERANCE:.0%} below that without.",
            _kept,
            -TOLERANCE,
        ),
        _claim(
            found,
            "The words are used all the same: the penalised model beats one that never saw them.",
            _used,
        ),
    ]
