"""Does an adversary's attention become anti-correlated with its explanations? (Snell et al.'s slides)

The slides say so of Wiegreffe & Pinter's trained adversaries. Each of `trained_adversary` is asked what this
model is asked: its own map against its own leave-one-out and gradient, beside its control (λ = 0).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import torch
from numpy.typing import NDArray
from scipy import stats

from heedmap.counterfactual.row_weights import permuted
from heedmap.experiments.columns import Columns, shared
from heedmap.experiments.context import AuditContext
from heedmap.experiments.findings import Finding
from heedmap.experiments.intervals import standard_error
from heedmap.experiments.methods.importance_measures import MEASURE_NAMES
from heedmap.experiments.questions.baselines import (
    SHUFFLES,
    TEXTS,
    ascending,
    importance_of,
    importance_under,
    mean_over_orders,
    share_under,
    tau_of_map,
)
from heedmap.experiments.questions.importance import GRADIENT_SHARE
from heedmap.experiments.questions.trained_adversary import SEED, answer_bound, name_of, variants
from heedmap.experiments.registry import Experiment
from heedmap.experiments.results import Results, mean
from heedmap.files.tables import table
from heedmap.models.attention_classifier import AttentionClassifier
from heedmap.models.trace import Model
from heedmap.terminal.progress import track

ASKED = {name: MEASURE_NAMES[name] for name in ("leave_one_out", "gradient")}
LEVEL = 0.95  # of all intervals of the question together

COLUMNS = Columns(
    f"One row per model (this one, the control, and each adversary) and text, of a sample of {TEXTS} texts.",
    {
        **shared("row"),
        "model": ("run, control or adversary", "whose map and importance they are"),
        "direction": (
            "adversary or base",
            "which of the two maps comes first in the KL of the loss; empty for this model",
        ),
        "strength": ("from 0", "λ, the weight of the KL in the loss; null for this model"),
        "dev_tvd": ("0 to 1", "mean total variation distance of the predictions on dev"),
        "dev_jsd": ("nats, 0 to ln 2", "mean Jensen-Shannon divergence of the maps on dev"),
        "tau_{measure}": ("−1 to 1", "tau-b of the model's map with its own {measure}"),
        "tau_shuffled_{measure}": (
            "−1 to 1",
            f"mean tau-b under {SHUFFLES} shuffles of its weights within the text, the measure computed again "
            "under each",
        ),
        "tau_largest_{measure}": ("−1 to 1", "the largest tau-b that the ties allow"),
        "mass_{measure}": ("0 to 1", "share of its importance (by {measure}) under its map"),
        "mass_shuffled_{measure}": (
            "0 to 1",
            "mean share under those shuffled weights, the importance computed again under each",
        ),
        "mass_largest_{measure}": (
            "0 to 1",
            "the share if the largest weight lay on the most important token, and so on",
        ),
    },
    measure=ASKED,
)


def adversary_agreement(context: AuditContext) -> pa.Table:
    """Compare every adversary's map with its own importance, and this model's with its own."""
    retraining = context.retraining
    assert retraining is not None
    trainings = variants(retraining)
    outcomes = retraining.outcomes(trainings)
    rows = context.sample("adversary_agreement", TEXTS)
    parts = [_rows_of("run", "", np.nan, {}, rows, agreement_of(context.model, context, rows))]
    for variant, outcome in track([*zip(trainings, outcomes, strict=True)]):
        adversary = variant.adversary
        assert adversary is not None
        numbers = agreement_of(retraining.model(variant), context, rows)
        kind = "adversary" if adversary.strength > 0 else "control"
        parts.append(
            _rows_of(kind, adversary.direction, adversary.strength, outcome.dev, rows, numbers)
        )
    return pa.concat_tables(parts)


def _rows_of(
    model: str,
    direction: str,
    strength: float,
    dev: dict[str, float],
    rows: NDArray[np.int64],
    numbers: dict[str, NDArray[np.float64]],
) -> pa.Table:
    single = {
        "strength": strength,
        "dev_tvd": dev.get("tvd", np.nan),
        "dev_jsd": dev.get("jsd", np.nan),
    }
    columns = {name: np.full(len(rows), value) for name, value in single.items()} | numbers
    nullable = {
        name: pa.array(values, pa.float64(), from_pandas=True) for name, values in columns.items()
    }
    named = {"model": [model] * len(rows), "direction": [direction] * len(rows)}
    return table({"row": rows, **named, **nullable})


def agreement_of(
    model: Model, context: AuditContext, rows: Sequence[int] | NDArray[np.int64]
) -> dict[str, NDArray[np.float64]]:
    """Return τ and the importance under the map of a model's own measures for some texts, NaN if undefined.

    Chance and ceiling are of the same texts; every model's weights are shuffled in the same order.
    """
    settings = context.settings
    of_model = AuditContext(model, context.split, settings, context.experiments)
    index = {int(row): i for i, row in enumerate(rows)}
    columns = {
        f"{number}_{name}": np.full(len(rows), np.nan)
        for name in ASKED
        for number in (
            "tau", "tau_shuffled", "tau_largest", "mass", "mass_shuffled", "mass_largest",
        )
    }  # fmt: skip

    def put(name: str, batch_rows: list[int], values: torch.Tensor) -> None:
        columns[name][[index[row] for row in batch_rows]] = values.double().numpy(force=True)

    for batch in of_model.batches_of(rows, shares=GRADIENT_SHARE):
        trace = model.trace(batch)
        heat, mask, batch_rows = trace.heatmap, trace.mask, batch.rows.tolist()
        texts = [context.texts[row] for row in batch_rows]
        for name, values in importance_of(model, settings, batch, trace, texts):
            sorted_heat, sorted_values = ascending(heat, mask), ascending(values, mask)
            put(f"tau_{name}", batch_rows, tau_of_map(heat, values, mask))
            put(f"tau_largest_{name}", batch_rows, tau_of_map(sorted_heat, sorted_values, mask))
            put(f"mass_{name}", batch_rows, share_under(heat, values, mask))
            put(f"mass_largest_{name}", batch_rows, share_under(sorted_heat, sorted_values, mask))
        rngs = context.generators("adversary_agreement", trace.rows)
        shuffles = torch.cat(list(permuted(trace.attention, trace.support, SHUFFLES, rngs)))
        maps = model.to_heatmap(trace, shuffles)
        for name, under, _ in importance_under(
            model, settings, batch, trace, texts, shuffles, slow=False
        ):
            taus = torch.stack([tau_of_map(*pair, mask) for pair in zip(maps, under, strict=True)])
            put(f"tau_shuffled_{name}", batch_rows, mean_over_orders(taus, trace))
            shares = share_under(maps, under, mask)
            put(f"mass_shuffled_{name}", batch_rows, mean_over_orders(shares, trace))
    return columns


@dataclass(frozen=True)
class Agreement:
    """One model's numbers by text: `numbers[column]` has one per audited text, NaN where it was not sampled."""

    model: str
    direction: str
    strength: float
    dev_tvd: float
    dev_jsd: float
    numbers: dict[str, NDArray[np.float64]]


def agreements(compared: pa.Table, total: int) -> list[Agreement]:
    """Return the models of a table: this one, the control, the adversaries by direction and λ."""
    frame: pd.DataFrame = compared.to_pandas()
    return [
        Agreement(
            str(kind),
            str(direction),
            float(part["strength"].iloc[0]),
            float(part["dev_tvd"].iloc[0]),
            float(part["dev_jsd"].iloc[0]),
            {
                name: part.set_index("row")[name].reindex(range(total)).to_numpy(dtype=np.float64)
                for name in frame.columns
                if name.startswith(("tau_", "mass_"))
            },
        )
        for (kind, direction, _), part in frame.groupby(
            ["model", "direction", "strength"], sort=False, dropna=False
        )
    ]


def corrected(
    values: NDArray[np.float64], clusters: NDArray[np.int64], tries: int
) -> tuple[float, float]:
    """Return Student's interval of the mean, one of `tries` that hold together (Bonferroni); NaN is left out.

    Texts that repeat are one observation. NaN of fewer than two distinct texts.
    """
    is_defined = np.isfinite(values)
    error, distinct = standard_error(values[is_defined], clusters[is_defined])
    if distinct < 2:
        return np.nan, np.nan
    tail = (1 - LEVEL) / (2 * max(1, tries))
    width = float(stats.t.isf(tail, distinct - 1)) * error
    centre = float(values[is_defined].mean())
    return centre - width, centre + width


def word_for(tau: tuple[float, float], change: tuple[float, float]) -> str:
    """Return what the intervals of τ, and of its difference from the control's, show."""
    if tau[1] < 0:
        return "anti-correlated"
    if change[1] < 0:
        return "less correlated than its control" + (
            ", and still correlated" if tau[0] > 0 else ", whether still correlated is undecided"
        )
    if change[0] > 0:
        return "more correlated than its control"
    return "undecided: no difference from its control is seen"


def _findings(results: Results) -> list[Finding]:
    models = agreements(results.tables["adversary_agreement"], len(results.short))
    return [_finding(results, models, measure) for measure in ASKED]


def _finding(results: Results, models: list[Agreement], measure: str) -> Finding:
    """Judge each adversary by one measure, and show the one that is chosen on dev."""
    run, control, *trained = models
    column, tries = f"tau_{measure}", len(ASKED) * len(trained)
    bound, _ = answer_bound(results)
    close = [model for model in trained if model.dev_tvd <= bound]
    chosen = max(close or trained or [control], key=lambda model: model.dev_jsd)

    def word(model: Agreement) -> str:
        tau = corrected(model.numbers[column], results.clusters, tries)
        difference = model.numbers[column] - control.numbers[column]
        return word_for(tau, corrected(difference, results.clusters, tries))

    words = [word(model) for model in trained]
    counts = ", ".join(
        f"{sum(text.startswith(start) for text in words)} {start}"
        for start in ("anti-correlated", "less correlated", "more correlated")
    )
    beside = "; ".join(
        f"{name} τ {mean(model.numbers[column]):.2f} (chance "
        f"{mean(model.numbers[f'tau_shuffled_{measure}']):.2f}), importance under the map "
        f"{mean(model.numbers[f'mass_{measure}']):.2f} (chance "
        f"{mean(model.numbers[f'mass_shuffled_{measure}']):.2f})"
        for name, model in (("it has", chosen), ("the control", control), ("this model", run))
    ).replace("-", "−")
    name = MEASURE_NAMES[measure].removeprefix("the ")
    who = "of those that answer close on dev" if close else "none answers close on dev; of all,"
    adversary, values = name_of(chosen.strength, chosen.direction), chosen.numbers[column]
    not_sampled = np.ones(len(results.short), dtype=bool)
    not_sampled[results.tables["adversary_agreement"]["row"].to_numpy()] = False
    return results.finding(
        "adversary_agreement" + ("" if measure == "leave_one_out" else f"_{measure}"),
        "tau",
        np.where(results.short, np.nan, values),
        {"not sampled": not_sampled, "undefined: one token": results.short},
        topic=f"a trained adversary against its own {name}",
        question=f"Is an adversary's map anti-correlated with its own {name}?",
        measure=f"mean Kendall tau-b of the map of {adversary} ({SEED}) with its own {name}",
        meaning=f"{word(chosen) if trained else 'no adversary was trained'}; {who} the one that attends most "
        "differently there",
        summary=f"{beside}; of {len(trained)} adversaries {counts} ({tries} intervals, together at 95 %)",
    )


EXPERIMENT = Experiment(
    "adversary_agreement",
    adversary_agreement,
    columns=COLUMNS,
    needs=("classes",),
    place=157,
    per_text=False,
    applies=lambda model, split: isinstance(model, AttentionClassifier),
    findings=_findings,
    variants=variants,
    figures=("heedmap.report.adversary_agreement_figures:agreement_by_strength",),
)
