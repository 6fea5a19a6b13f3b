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
from heedmap.experiments.seed_intervals import mean_interval
from heedmap.experiments.seeds import over_seeds
from heedmap.papers.kit.claims import Check, above, judged
from heedmap.papers.kit.learned import Learned, Score, accuracy
from heedmap.papers.kit.reproduction import Reproduction
from heedmap.papers.kit.result import (
    Claim,
    Estimate,
    Result,
    Table,
    bracketed,
    changed_settings,
    outside,
    over_texts,
    signed,
)
from heedmap.papers.pruthi.published import AUTHORS, EPOCHS, REPLICATED, REPLICATION, SEEDS, SOURCE
from heedmap.papers.pruthi.settings import BERT, MODELS, PAPERS_BERT, TASKS, PruthiSettings
from heedmap.report import retraining_figures
from heedmap.report.charts import Figure

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
Gain = Callable[["Pruthi", str, float], NDArray[np.float64]]


@dataclass(frozen=True)
class Pruthi(Reproduction[PruthiSettings]):
    """One task: the audits of the models so far, with `deception`."""

    audits: dict[str, AuditResult]

    @property
    def models(self) -> list[str]:
        """The models so far; bert is two: penalised by the mean of its heads, or by the one that shows most."""
        names = (["bert-mean", "bert-max"] if name == "bert" else [name] for name in self.audits)
        return [name for variants in names for name in variants]

    def audit(self, model: str) -> AuditResult:
        """Return the audit of a model."""
        return self.audits[model.removesuffix("-mean").removesuffix("-max")]

    def table(self, model: str) -> pa.Table:
        """Return the table `deception` of a model."""
        heads = "max" if model.endswith("-max") else "mean"
        table = self.audit(model).tables["deception"]
        return table.filter(pc.equal(table["heads"], heads))

    def runs(self, model: str) -> pd.DataFrame:
        """Return a row per training of a model (see `deception.summary`)."""
        return summary(self.table(model))

    @cached_property
    def learned(self) -> Learned:
        """Which trainings without penalty have learned, by model.

        Of the others, penalised or without the words, it is the result whether they can.
        """
        models: dict[str, dict[object, list[Score]]] = {}
        for model in self.models:
            label = self.table(model).to_pandas().drop_duplicates("row")["label"].to_numpy()
            commonest = float(np.bincount(label).max() / len(label))
            runs = dict(groups(self.runs(model)))[0.0]
            theirs = AUTHORS.get((self.settings.task, model, 0.0))
            published = np.nan if theirs is None else float(theirs.accuracy) / 100
            models[training_name(model, 0.0)] = {
                seed: [accuracy(right, commonest, len(label), published)]
                for seed, right in zip(runs["seed"], runs["accuracy"], strict=True)
            }
        return Learned(models)

    def failed_in(self, figure: Figure) -> list[str]:
        """Return the models in a figure that have not learned: those of the run that it draws."""
        model = figure.key.rsplit("-", 1)[1]
        return [name for name in self.learned.failed if name.startswith(model)]

    @property
    def missing(self) -> int:
        """How many models are still to be run."""
        return len(self.settings.models) - len(self.audits)

    @property
    def differences(self) -> list[str]:
        """How it differs from the paper's settings."""
        settings = self.settings
        bert: list[str] = []
        if settings.base is not None:
            if settings.base != PAPERS_BERT:
                bert.append(f"bert is {Path(settings.base).name}")
            bert += changed_settings(
                settings, {"bert_epochs": "{epoch} of bert"}, {"bert_epochs": BERT["epochs"]}
            )
        return [
            *([TASKS[settings.task].unlike] if settings.task else []),
            *changed_settings(settings, {"batch_size": "batches of {text}"}, {"batch_size": 1}),
            *bert,
            *changed_settings(
                settings,
                {"seeds": "{seed}", "epochs": "{epoch}"},
                {"seeds": SEEDS, "epochs": EPOCHS.get(settings.task, 15)},
            ),
            *([] if settings.rule == "paper" else ["epochs chosen by the released code's rule"]),
            "the words are deleted, not replaced by neutral ones",
        ]


def result(pruthi: Pruthi) -> Result:
    """Make the result that all files of a reproduction show."""
    return pruthi.make_result(
        f"Pruthi et al. on {pruthi.name}",
        [_masses(pruthi), *_claims(pruthi)],
        figures=[
            replace(figure, key=f"{figure.key}-{model}", title=f"{figure.title} ({model})")
            for model, audit in pruthi.audits.items()
            for figure in retraining_figures.deception(audit)
        ],
        rows=pd.concat([_rows(pruthi, model) for model in pruthi.models], ignore_index=True),
        columns=COLUMNS,
        reports=[("runs", [(model, f"{model}/report.html") for model in pruthi.audits])],
    )


def _masses(pruthi: Pruthi) -> Table:
    lines, compared = [], []
    for model in pruthi.models:
        for key, runs in groups(pruthi.runs(model)):
            name = key_name(key)
            intervals_of = {of: mean_interval(runs[of].tolist()) for of in ("accuracy", "mass")}
            mass, blocked = (
                "–" if key is None else over_seeds(runs[column].tolist())
                for column in ("mass", "blocked")
            )
            bounds = [_number(runs[column]) for column in ("uniform", "least")]
            lines.append(
                [
                    model,
                    pruthi.learned.marked(name, training_name(model, key)),
                    "ours",
                    over_seeds(runs["accuracy"].tolist()),
                    mass,
                    blocked,
                    *(bounds if key == 0 else ("–", "–")),
                ]
            )
            for numbers, source in ((AUTHORS, SOURCE), (REPLICATED, REPLICATION)):
                published = numbers.get((pruthi.settings.task, model, key))
                if published is not None:
                    compared += [
                        (f"{model}, {name}, {column}", float(share) / 100, intervals_of[column])
                        for column, share in published._asdict().items()
                        if source == SOURCE and share[0] not in "–<"
                    ]
                    shares = [_share(published.accuracy), _share(published.mass)]
                    lines.append([model, name, source, *shares, "–", "–", "–"])
    heads = ["model", "training", "source", "accuracy", "mass", "blocked", "uniform", "least"]
    title = f"Accuracy and attention to impermissible words ({pruthi.name})"
    return Table(title, heads, lines, f"{HOW} {outside(compared)}".strip(), labels=3)


def _rows(pruthi: Pruthi, model: str) -> pd.DataFrame:
    """Return a row per training for CSV."""
    runs = pruthi.runs(model).assign(model=model)
    keys = zip(runs["removed"], runs["strength"], runs["seed"], strict=True)
    learned = [
        pruthi.learned.of(training_name(model, None if removed else strength), seed)
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


def _texts(pruthi: Pruthi, model: str, column: str) -> dict[float | None, NDArray[np.float64]]:
    """Return per kind of training the mean over seeds of a column, text by text."""
    frame = pruthi.table(model).to_pandas()
    frame["right"] = (frame["label"] == frame["predicted"]).astype(float)
    kinds: dict[float | None, pd.DataFrame] = {None: frame[frame["removed"]]}
    for strength, part in frame[~frame["removed"]].groupby("strength"):
        kinds[float(str(strength))] = part
    return {
        kind: part.groupby("row")[column].mean().sort_index().to_numpy(dtype=np.float64)
        for kind, part in kinds.items()
    }


def _claim(pruthi: Pruthi, text: str, gain: Gain, found: str, edge: float = 0.0) -> Claim:
    """Judge that the mean gain of the texts lies above `edge`, for every model and its largest penalty."""
    strength = max(pruthi.settings.penalties)
    checks = []
    for model in pruthi.models:
        gains = gain(pruthi, model, strength)
        defined = np.isfinite(gains)
        clusters = text_numbers(pruthi.audit(model).tables["instances"])
        low, high = interval = intervals.of_mean(gains[defined], clusters[defined], 0, (-1.0, 1.0))
        value = float(gains[defined].mean()) if defined.any() else np.nan
        name = f"{model}, λ = {strength:g}"
        line = f"{name}: {signed(value)} {bracketed(low, high)}"
        number = Estimate(name, value, low, high, edge)
        checks.append(Check(line, above(interval, edge), [training_name(model, 0.0)], number))
    basis = over_texts(pruthi.settings.seeds)
    return judged(text, checks, pruthi.learned, basis=basis, task=" without penalty", found=found)


def _reported(column: str, before: float | None, heading: str) -> str:
    """Say what the paper reports of its small models: a column `before`, and with the penalty λ = 1."""
    pairs = []
    for task, model in dict.fromkeys((task, model) for task, model, _ in AUTHORS):
        first, last = (AUTHORS.get((task, model, key)) for key in (before, 1.0))
        if model in MODELS and first is not None and last is not None:
            numbers = getattr(first, column), getattr(last, column)
            pairs.append(f"{task} {model} {numbers[0]} → {numbers[1]}")
    return f"{heading}, in per cent: {'; '.join(pairs)} ({SOURCE}, as a replication reprints them)."


def _hidden(pruthi: Pruthi, model: str, strength: float) -> NDArray[np.float64]:
    """Return what uniform weights put on the words, less what the penalised models do."""
    return _texts(pruthi, model, "uniform")[strength] - _texts(pruthi, model, "mass")[strength]


def _kept(pruthi: Pruthi, model: str, strength: float) -> NDArray[np.float64]:
    """Return how often the penalised models are right, less those without penalty."""
    means = _texts(pruthi, model, "right")
    return means[strength] - means[0.0]


def _used(pruthi: Pruthi, model: str, strength: float) -> NDArray[np.float64]:
    """Return how often the penalised models are right, less those that never saw the words."""
    means = _texts(pruthi, model, "right")
    return means[strength] - means[None]


def _claims(pruthi: Pruthi) -> list[Claim]:
    return [
        _claim(
            pruthi,
            "The penalty hides the words: they get less attention than uniform weights give them.",
            _hidden,
            _reported("mass", 0.0, "Attention to the words without penalty, and with λ = 1"),
        ),
        _claim(
            pruthi,
            f"The accuracy stays: with the largest penalty it is at most {TOLERANCE:.0%} below that without.",
            _kept,
            _reported("accuracy", 0.0, "Accuracy without penalty, and with λ = 1"),
            -TOLERANCE,
        ),
        _claim(
            pruthi,
            "The words are used all the same: the penalised model beats one that never saw them.",
            _used,
            _reported("accuracy", None, "Accuracy without the words, and with λ = 1"),
        ),
    ]
