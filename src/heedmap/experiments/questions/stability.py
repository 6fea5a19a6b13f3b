"""Would another training attend elsewhere? Other seeds (Wiegreffe & Pinter 2019, section 3.2).

How far the maps of equally good models lie apart is the noise that every other distance between maps is read
against: an adversary that is no farther than another seed shows nothing.
"""

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray

from heedmap.counterfactual.row_weights import permuted
from heedmap.data.batches import Ragged
from heedmap.experiments.columns import Columns, shared
from heedmap.experiments.context import AuditContext
from heedmap.experiments.findings import Finding
from heedmap.experiments.methods.kendall import tau_against
from heedmap.experiments.registry import Experiment, Row
from heedmap.experiments.results import Results, mean
from heedmap.experiments.text_tables import MAP_FACTS, null_where_nan, text_table
from heedmap.experiments.variants import Retraining, Variant, seeds
from heedmap.measures import LN2, jensen_shannon, levelled, total_variation
from heedmap.models.attention_classifier import AttentionClassifier

SHUFFLES = 5
MEASURES = ("gradient", "leave_one_out")


def variants(retraining: Retraining) -> list[Variant]:
    """Return the run's own training with other seeds."""
    return [Variant(seed) for seed in seeds(retraining)]


COLUMNS = Columns(
    "One row per text. What compares maps is null for texts of one token.",
    {
        **shared("row", "predicted", "n_tokens", "max_attention"),
        "jsd": (
            "nats, 0 to ln 2",
            "median over the seeds of the Jensen-Shannon divergence of their maps from the run's",
        ),
        "tvd": (
            "0 to 1",
            "median over the seeds of the total variation distance of the predictions",
        ),
        "change": ("0 to 1", "its mean"),
        "each_jsd": ("list per seed, nats", "each seed's divergence"),
        "each_tvd": ("list per seed, 0 to 1", "each seed's distance"),
        "tau": ("−1 to 1", "mean tau-b of the seeds' maps with the run's"),
        "tau_{measure}": (
            "−1 to 1",
            "mean tau-b of the seeds' maps with {measure} of the run's model: what a map reaches without "
            "being this model's",
        ),
        "shuffled_jsd": (
            "nats, 0 to ln 2",
            f"mean divergence of {SHUFFLES} shuffles of the run's own weights",
        ),
    },
    measure={"gradient": "the gradient", "leave_one_out": "leave-one-out"},
)


def stability(context: AuditContext) -> pa.Table:
    """Compare each text's map with those of the other seeds."""
    retraining = context.retraining
    assert retraining is not None
    outcomes = retraining.outcomes(variants(retraining))
    instances, total = context.table("instances"), len(context.split)
    importance = {name: context.table(name)["importance"].to_pylist() for name in MEASURES}
    names = ("tau", *(f"tau_{name}" for name in MEASURES), "shuffled_jsd")
    columns = {name: np.full(total, np.nan) for name in names}
    jsd, tvd = np.zeros((total, len(outcomes))), np.zeros((total, len(outcomes)))
    for trace in context.traces:
        rows, heatmap = trace.rows.numpy(force=True), trace.heatmap.double().cpu()
        mask, width = trace.mask.cpu(), trace.mask.shape[1]
        seed_heatmaps = torch.stack(
            [o.attention.padded(trace.rows.cpu(), width) for o in outcomes], 1
        ).double()
        jsd[rows] = jensen_shannon(
            heatmap.unsqueeze(1).expand_as(seed_heatmaps), seed_heatmaps
        ).numpy()
        probabilities = trace.logits.double().cpu().softmax(-1)
        seed_probabilities = torch.stack(
            [torch.from_numpy(o.logits[rows]) for o in outcomes], 1
        ).softmax(-1)
        tvd[rows] = total_variation(
            probabilities.unsqueeze(1).expand_as(seed_probabilities), seed_probabilities
        ).numpy()
        lists = [Ragged([importance[name][row] or [] for row in rows]) for name in MEASURES]
        places = torch.arange(len(rows))
        references = torch.stack(
            [heatmap, *(importances.padded(places, width).double() for importances in lists)], 1
        )
        references[:, 0] = levelled(references[:, 0], mask)
        taus = tau_against(
            levelled(seed_heatmaps, mask.unsqueeze(1)), references.nan_to_num(), mask
        ).mean(1)
        for name, values in zip(names, taus.T.numpy(), strict=False):
            columns[name][rows] = values
        rngs = context.generators("stability", trace.rows)
        blocks = permuted(trace.attention, trace.support, SHUFFLES, rngs)
        mixed = torch.cat([context.model.to_heatmap(trace, block).double() for block in blocks])
        columns["shuffled_jsd"][rows] = (
            jensen_shannon(heatmap.expand_as(mixed), mixed.cpu()).mean(0).numpy()
        )
    # A text of one token has one map only, so that no two trainings can differ on it.
    short = instances["n_tokens"].to_numpy() < 2
    for values in columns.values():
        values[short] = np.nan
    median = np.median(jsd, axis=1)
    median[short] = np.nan
    return text_table(
        context,
        {
            "jsd": pa.array(median, from_pandas=True),
            "tvd": np.median(tvd, axis=1),
            "change": tvd.mean(1),
            "each_jsd": pa.array(list(jsd), pa.list_(pa.float64())),
            "each_tvd": pa.array(list(tvd), pa.list_(pa.float64())),
            **null_where_nan(columns),
        },
        copied=MAP_FACTS,
    )


def _findings(results: Results) -> list[Finding]:
    jsd, shuffled = (results.column("stability", name) for name in ("jsd", "shuffled_jsd"))
    count = len(results.tables["stability"]["each_jsd"][0]) if len(jsd) else 0
    return [
        results.finding(
            "stability",
            "jsd",
            jsd,
            {"undefined: one token": results.short},
            topic="maps of other trainings",
            question="Would another training attend to other words?",
            measure=f"mean over texts of the median JSD between this map and those of {count} other seeds",
            meaning=f"0 = the same weights, {LN2:.2f} = none in common; read every other distance between maps "
            "against it",
            summary=f"the weights shuffled {mean(shuffled):z.2f}; the words in the same order: tau "
            f"{mean(results.column('stability', 'tau')):z.2f}; the predictions differ by "
            f"{mean(results.column('stability', 'change')):z.3f} (TVD)".replace("-", "−"),
            chance=shuffled,
            ceiling=0.0,
            lower=True,
        )
    ]


def _facts(row: Row) -> list[tuple[str, float | int | None]]:
    return [("JSD from the maps of other seeds", row["stability"]["jsd"])]


def noise(results: Results) -> float:
    """Return how far the maps of other seeds are, the mean of `jsd`; NaN if not known."""
    values: NDArray[np.float64] | None = results.optional("stability", "jsd")
    return np.nan if values is None else mean(values)


EXPERIMENT = Experiment(
    "stability",
    stability,
    columns=COLUMNS,
    needs=("classes",),
    place=152,
    applies=lambda model, split: isinstance(model, AttentionClassifier),
    findings=_findings,
    facts=_facts,
    variants=variants,
    figures=(
        "heedmap.report.retraining_figures:stability_violins",
        "heedmap.report.retraining_figures:stability_scatter",
    ),
)
