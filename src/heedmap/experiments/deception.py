"""Can the map be made to hide words that the model uses? (Pruthi et al. 2020)

A penalty on the attention to impermissible words, −λ ln(1 − their mass), and the accuracy with and without
them: a model that keeps its accuracy and no longer shows them deceives, if without them it does worse.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from heedmap.counterfactual.forbidden import least_mass
from heedmap.data.batches import Ragged
from heedmap.data.corpus import Split
from heedmap.data.marks import marks_of
from heedmap.experiments.evidence import Evidence
from heedmap.experiments.findings import Finding
from heedmap.experiments.guidance import single_words
from heedmap.experiments.readout import linear
from heedmap.experiments.registry import Experiment
from heedmap.experiments.results import Results, mean
from heedmap.experiments.seeds import over_seeds
from heedmap.experiments.variants import Penalty, Retraining, Variant, seeds
from heedmap.files.tables import table
from heedmap.models.trace import Model
from heedmap.settings import AuditSettings

TOLERANCE = 0.02  # of accuracy on dev: what the paper's rule gives up


def variants(retraining: Retraining) -> list[Variant]:
    """Return the trainings per seed: with the words removed, and with each penalty, 0 first.

    None without impermissible words.
    """
    if retraining.words == ():
        return []
    return [one for seed in seeds(retraining) for one in _of_seed(retraining, seed)]


def _of_seed(retraining: Retraining, seed: int) -> list[Variant]:
    words, settings = retraining.words, retraining.settings
    strengths = sorted({0.0, *settings.penalties})
    how = [Penalty(0.0, words, settings.rule, removed=True)]
    how += [Penalty(strength, words, settings.rule) for strength in strengths]
    return [Variant(seed, penalty=one) for one in how]


def deception(evidence: Evidence) -> pa.Table:
    """Return what each penalised model makes of each text: a row per `seed`, `strength` λ and text.

    `removed`: the model was trained and asked without the impermissible words (λ = 0). `mass` is the attention
    to them, null for texts that have none; `uniform` is their share of the text's tokens, what uniform weights
    would put there; `only` marks texts of nothing else, which the penalty leaves alone. `least` is the least
    mass that other weights could reach with the same prediction, of the models without penalty.
    """
    retraining = evidence.retraining
    assert retraining is not None
    asked = variants(retraining)
    marks = marks_of(evidence.split, retraining.words)
    counts = np.array([marks[row].sum() for row in range(len(marks))])
    sizes = np.array([len(marks[row]) for row in range(len(marks))])
    parts = []
    for variant, outcome in zip(asked, retraining.outcomes(asked), strict=True):
        how = variant.penalty
        assert how is not None
        total = len(evidence.split)
        least = np.full(total, np.nan)
        if how.strength == 0 and not how.removed:
            least = _least(retraining.model(variant), evidence.split, marks)
        mass = np.full(total, np.nan) if how.removed else masses(outcome.attention, marks)
        parts.append(
            table(
                {
                    "row": range(total),
                    "seed": [variant.seed] * total,
                    "strength": [how.strength] * total,
                    "removed": [how.removed] * total,
                    "label": evidence.table("instances")["label"],
                    "predicted": outcome.predicted,
                    "mass": pa.array(mass, from_pandas=True),
                    "uniform": pa.array(
                        np.where(counts > 0, counts / sizes, np.nan), from_pandas=True
                    ),
                    "only": counts == sizes,
                    "least": pa.array(least, pa.float64(), from_pandas=True),
                    "dev_accuracy": [outcome.dev["accuracy"]] * total,
                    "epoch": [outcome.epoch] * total,
                }
            )
        )
    return pa.concat_tables(parts)


def masses(weights: Ragged, marks: Ragged) -> NDArray[np.float64]:
    """Return the attention to marked tokens of each text; NaN for texts without any."""
    pairs = ((weights[row].astype(np.float64), marks[row]) for row in range(len(weights)))
    return np.array([float(w @ m) if m.any() else np.nan for w, m in pairs], dtype=np.float64)


def _least(model: Model, split: Split, marks: Ragged) -> NDArray[np.float64]:
    found = np.full(len(split), np.nan)
    for row, weights, relevance in _read_out(model, split):
        found[row] = least_mass(relevance, weights, marks[row].astype(np.float64))
    return found


def _read_out(model: Model, split: Split) -> Iterator[tuple[int, NDArray[Any], NDArray[Any]]]:
    for trace in Evidence(model, split, AuditSettings()).traces:
        weights, relevance, _ = linear(trace)
        for i, row in enumerate(trace.rows.tolist()):
            real = trace.mask[i]
            yield row, weights[i][real].numpy(force=True), relevance[i][real].numpy(force=True)


def summary(found: pa.Table) -> pd.DataFrame:
    """Return a row per training: accuracy, mean mass and the means of `uniform` and `least`."""
    frame = found.to_pandas()
    frame["right"] = (frame["label"] == frame["predicted"]).astype(float)
    columns = ["right", "mass", "uniform", "least", "dev_accuracy"]
    keys = ["removed", "strength", "seed"]
    means: pd.DataFrame = frame.groupby(keys, sort=True)[columns].mean().reset_index()
    return means.rename(columns={"right": "accuracy"})


def _findings(results: Results) -> list[Finding]:
    runs = summary(results.tables["deception"])
    present = runs[~runs["removed"]]
    dev = present.groupby("strength")["dev_accuracy"].mean()
    kept = [s for s in dev.index if s > 0 and dev[s] >= dev[0.0] - TOLERANCE]
    strength = max(kept, default=0.0)
    frame = results.tables["deception"].to_pandas()
    chosen = frame[~frame["removed"] & (frame["strength"] == strength)]
    mass = chosen.groupby("row")["mass"].mean().reindex(range(len(results.short))).to_numpy()
    only = int(frame.groupby("row")["only"].first().sum())
    listed = "; ".join(
        f"λ {s:g}: {over_seeds(part['accuracy'].tolist())}, mass {over_seeds(part['mass'].tolist())}"
        for s, part in present.groupby("strength")
    )
    removed = runs[runs["removed"]]["accuracy"].tolist()
    plain = present[present["strength"] == 0]
    return [
        results.finding(
            "deception",
            "fraction",
            mass,
            {"no impermissible word": np.isnan(mass)},
            question="Can a model use these words and not show it?",
            measure=f"attention to the impermissible words after training against it (λ {strength:g})",
            meaning="the largest penalty that keeps the accuracy on dev within 2 %"
            if kept
            else "no penalty keeps the accuracy on dev within 2 %: without penalty",
            summary=f"accuracy and mass (mean and 95 % interval over seeds): {listed}; without the words "
            f"{over_seeds(removed)}; uniform weights would put {mean(plain['uniform'].to_numpy()):.3f} there, "
            f"other weights of the same states at least {mean(plain['least'].to_numpy()):.3f}"
            + (f"; {only} texts of nothing else" if only else ""),
        )
    ]


EXPERIMENTS = (
    Experiment(
        "deception",
        deception,
        place=158,
        per_text=False,
        applies=single_words,
        findings=_findings,
        variants=variants,
        figures=("heedmap.report.retraining_figures:deception",),
    ),
)
