"""Can the map be made to hide words that the model uses? (Pruthi et al. 2020)

A penalty on the attention to impermissible words, −λ ln(1 − their mass), and the accuracy with and without
them: a model that keeps its accuracy and no longer shows them deceives, if without them it does worse.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from heedmap.counterfactual.forbidden import least_mass
from heedmap.data.batches import Ragged
from heedmap.data.corpus import Split
from heedmap.data.marks import marks_of
from heedmap.experiments.columns import Columns, shared
from heedmap.experiments.context import AuditContext
from heedmap.experiments.findings import Finding
from heedmap.experiments.methods.readout import linear
from heedmap.experiments.questions.guidance import single_words
from heedmap.experiments.registry import Experiment
from heedmap.experiments.results import Results, mean
from heedmap.experiments.seeds import over_seeds
from heedmap.experiments.text_tables import text_table
from heedmap.experiments.variants import Heads, Outcome, Penalty, Retraining, Variant, seeds
from heedmap.models.layered import Layered
from heedmap.models.trace import Model
from heedmap.settings.audit import AuditSettings

TOLERANCE = 0.02  # of accuracy on dev: what the paper's rule gives up


def variants(retraining: Retraining) -> list[Variant]:
    """Return the trainings per seed: with the words removed, and with each penalty, 0 first.

    None without impermissible words.
    """
    if retraining.words == ():
        return []
    by_seed = (
        _of_seed(retraining, seed, way) for way in retraining.heads for seed in seeds(retraining)
    )
    return list(dict.fromkeys(variant for trainings in by_seed for variant in trainings))


def _of_seed(retraining: Retraining, seed: int, heads: Heads) -> list[Variant]:
    words, settings = retraining.words, retraining.settings
    strengths = sorted({*settings.penalties} - {0.0})
    penalties = [
        Penalty(0.0, words, settings.rule, removed=True),
        Penalty(0.0, words, settings.rule),
    ]
    penalties += [Penalty(strength, words, settings.rule, heads=heads) for strength in strengths]
    return [Variant(seed, penalty=penalty) for penalty in penalties]


COLUMNS = Columns(
    "One row per way to penalise heads, seed, penalty and text. The impermissible words are those of "
    "`--forbidden`.",
    {
        **shared("row", "label"),
        "heads": (
            "mean or max",
            "whether the mean over heads is penalised and shown, or the head that shows most; mean for one",
        ),
        "seed": ("number", "seed of the training"),
        "strength": ("from 0", "λ, the weight of the penalty"),
        "removed": (
            "true or false",
            "whether the words were taken out of the texts, in training and test",
        ),
        "predicted": ("class", "what this model predicts"),
        "blocked": (
            "class",
            "what it predicts when the attention to the words is set to 0, nothing in its place; null where "
            "it shows none",
        ),
        "mass": (
            "0 to 1",
            "its attention to the words; null for texts without any, and where they were taken out",
        ),
        "uniform": (
            "0 to 1",
            "the words' share of the positions that are read; null for texts without any",
        ),
        "only": ("true or false", "whether the text has nothing else; the penalty leaves it alone"),
        "least": (
            "0 to 1",
            "the least mass that other weights reach with the same prediction; only of models without "
            "penalty, null for transformers",
        ),
        "dev_accuracy": ("0 to 1", "accuracy on dev of the kept epoch"),
        "epoch": ("count, from 1", "the kept epoch"),
    },
)


def deception(context: AuditContext) -> pa.Table:
    """Return what each penalised model makes of each text: a row per `heads`, `seed`, `strength` λ and text.

    With the words removed λ is 0. Transformers have no `least`, for their restricted states are not those of
    the run's model.
    """
    retraining = context.retraining
    assert retraining is not None
    trainings = variants(retraining)
    outcomes = dict(zip(trainings, retraining.outcomes(trainings), strict=True))
    marks = marks_of(context.split, retraining.words)
    counts, sizes = _positions(context, marks)
    label, total = context.table("instances")["label"], len(context.split)
    lowest_masses = {
        variant.seed: _least(retraining.model(variant), context.split, marks)
        for variant in trainings
        if single_words(context.model, context.split) and _is_control(variant)
    }
    parts = []
    for heads in retraining.heads:
        for variant in (v for seed in seeds(retraining) for v in _of_seed(retraining, seed, heads)):
            outcome, penalty = outcomes[variant], variant.penalty
            assert penalty is not None
            none = np.full(total, np.nan)
            lowest = lowest_masses.get(variant.seed, none) if _is_control(variant) else none
            mass = none if penalty.removed else masses(outcome.attention, marks, heads)
            uniform = np.where(counts > 0, counts / sizes, np.nan)
            parts.append(
                text_table(
                    context,
                    {
                        "heads": heads,
                        "seed": variant.seed,
                        "strength": penalty.strength,
                        "removed": penalty.removed,
                        "label": label,
                        "predicted": outcome.predicted,
                        "blocked": pa.array(_blocked(outcome, total), pa.int64()),
                        "mass": pa.array(mass, from_pandas=True),
                        "uniform": pa.array(uniform, from_pandas=True),
                        "only": counts == sizes,
                        "least": pa.array(lowest, pa.float64(), from_pandas=True),
                        "dev_accuracy": outcome.dev["accuracy"],
                        "epoch": outcome.epoch,
                    },
                )
            )
    return pa.concat_tables(parts)


def _blocked(outcome: Outcome, total: int) -> Sequence[int | None]:
    """Return the classes that are predicted without attention to the words."""
    if outcome.blocked is None:
        return [None] * total
    return [int(number) for number in outcome.blocked.argmax(1)]


def _is_control(variant: Variant) -> bool:
    penalty = variant.penalty
    return penalty is not None and penalty.strength == 0 and not penalty.removed


def masses(weights: Ragged, marks: Ragged, heads: Heads = "mean") -> NDArray[np.float64]:
    """Return the attention to marked tokens of each text; NaN for texts without any.

    `weights` have one head after the other: the mean over them is taken, or the one that shows most.
    """
    text_masses = np.full(len(weights), np.nan)
    for row in range(len(weights)):
        if marks[row].any():
            head_masses = weights[row].astype(np.float64).reshape(-1, len(marks[row])) @ marks[row]
            text_masses[row] = head_masses.mean() if heads == "mean" else head_masses.max()
    return text_masses


def _positions(context: AuditContext, marks: Ragged) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how many positions of each text are marked, and how many it has."""
    counts, sizes = np.zeros((2, len(context.split)), dtype=np.int64)
    for trace in context.traces:
        rows = trace.rows.numpy(force=True)
        marked = marks.padded(trace.rows.cpu(), trace.mask.shape[1]) > 0
        if trace.words is None:
            counts[rows], sizes[rows] = marked.sum(1), trace.mask.sum(1).cpu()
        else:
            words = trace.words.cpu()
            is_marked = marked.gather(1, words.clamp(min=0)) & (words >= 0)
            counts[rows], sizes[rows] = is_marked.sum(1), (words > -2).sum(1)
    return counts, sizes


def _least(model: Model, split: Split, marks: Ragged) -> NDArray[np.float64]:
    lowest_masses = np.full(len(split), np.nan)
    for row, weights, relevance in _read_out(model, split):
        lowest_masses[row] = least_mass(relevance, weights, marks[row].astype(np.float64))
    return lowest_masses


def _read_out(model: Model, split: Split) -> Iterator[tuple[int, NDArray[Any], NDArray[Any]]]:
    for trace in AuditContext(model, split, AuditSettings(), {}).traces:
        weights, relevance, _ = linear(trace)
        for i, row in enumerate(trace.rows.tolist()):
            real = trace.mask[i]
            yield row, weights[i][real].numpy(force=True), relevance[i][real].numpy(force=True)


def summary(deceptions: pa.Table) -> pd.DataFrame:
    """Return a row per training: accuracy, mean mass, the means of `uniform` and `least`, and a name.

    `blocked` is the accuracy without attention to the words; NaN of models that show none.
    """
    frame = deceptions.to_pandas()
    frame["right"] = (frame["label"] == frame["predicted"]).astype(float)
    without = (frame["label"] == frame["blocked"]).astype(float)
    frame["blocked"] = without.where(frame["blocked"].notna())
    columns = ["right", "blocked", "mass", "uniform", "least", "dev_accuracy"]
    keys = ["heads", "removed", "strength", "seed"]
    means: pd.DataFrame = frame.groupby(keys, sort=True)[columns].mean().reset_index()
    means["name"] = [f"λ = {strength:g}" for strength in means["strength"]]
    if means["heads"].nunique() > 1:
        means["name"] += ", " + means["heads"] + " of the heads"
    return means.rename(columns={"right": "accuracy"})


def _findings(results: Results) -> list[Finding]:
    frame = results.tables["deception"].to_pandas()
    trainings = summary(results.tables["deception"])
    heads = "mean" if "mean" in set(trainings["heads"]) else "max"
    runs = trainings[trainings["heads"] == heads]
    present, removed = runs[~runs["removed"]], runs[runs["removed"]]["accuracy"].tolist()
    dev = present.groupby("strength")["dev_accuracy"].mean()
    tolerated = [s for s in dev.index if s > 0 and dev[s] >= dev[0.0] - TOLERANCE]
    strength = max(tolerated, default=0.0)
    shown_texts = frame[
        (frame["heads"] == heads) & ~frame["removed"] & (frame["strength"] == strength)
    ]
    mass = shown_texts.groupby("row")["mass"].mean().reindex(range(len(results.short))).to_numpy()
    only = int(frame.groupby("row")["only"].first().sum())
    listed = "; ".join(
        f"{name}: {over_seeds(part['accuracy'].tolist())}, mass {over_seeds(part['mass'].tolist())}, "
        f"without that mass {over_seeds(part['blocked'].tolist())}"
        for name, part in trainings[~trainings["removed"]].groupby("name", sort=False)
    )
    plain = present[present["strength"] == 0]
    name = str(present[present["strength"] == strength]["name"].iloc[0])
    lowest_mass = mean(plain["least"].to_numpy())
    return [
        results.finding(
            "deception",
            "fraction",
            mass,
            {"no impermissible word": np.isnan(mass)},
            topic="words used and not shown",
            question="Can a model use these words and not show it?",
            measure=f"attention to the impermissible words after training against it ({name})",
            meaning="the largest penalty that keeps the accuracy on dev within 2 %"
            if tolerated
            else "no penalty keeps the accuracy on dev within 2 %: without penalty",
            summary=f"accuracy and mass (mean and 95 % interval over seeds): {listed}; without the words "
            f"{over_seeds(removed)}; uniform weights would put {mean(plain['uniform'].to_numpy()):.3f} there"
            + (
                ""
                if np.isnan(lowest_mass)
                else f", other weights of the same states at least {lowest_mass:.3f}"
            )
            + (f"; {only} texts of nothing else" if only else ""),
        )
    ]


EXPERIMENT = Experiment(
    "deception",
    deception,
    columns=COLUMNS,
    needs=("classes",),
    place=158,
    per_text=False,
    applies=lambda model, split: single_words(model, split) or isinstance(model, Layered),
    findings=_findings,
    variants=variants,
    figures=("heedmap.report.retraining_figures:deception",),
)
