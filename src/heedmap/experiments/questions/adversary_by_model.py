"""Where are adversaries easy to find? Other encoders and normalisers on the same texts.

An open question of the survey. For each, how far other weights of one text can go with the same prediction, and
how far a model goes that is trained to.
"""

import numpy as np
import pandas as pd
import pyarrow as pa

from heedmap.experiments.columns import Columns, shared
from heedmap.experiments.context import AuditContext
from heedmap.experiments.findings import Finding
from heedmap.experiments.questions.guidance import single_words
from heedmap.experiments.registry import Experiment
from heedmap.experiments.results import Results, mean
from heedmap.experiments.text_tables import text_table
from heedmap.experiments.variants import Retraining, Variant
from heedmap.measures import jensen_shannon
from heedmap.terminal.progress import track

ENCODERS = ("lstm", "cnn", "average")
NORMALISERS = ("softmax", "entmax15", "sparsemax")


def variants(retraining: Retraining) -> list[Variant]:
    """Return a model per encoder and normaliser, and the same from another seed."""
    return [
        Variant(retraining.seed + 1 + k, encoder=encoder, normaliser=normaliser)
        for encoder in ENCODERS
        for normaliser in NORMALISERS
        for k in range(2)
    ]


COLUMNS = Columns(
    "One row per encoder, normaliser and text.",
    {
        **shared("row", "label"),
        "encoder": ("text", "the encoder of the model"),
        "normaliser": ("text", "the normaliser of its attention"),
        "predicted": ("class", "what it predicts"),
        "jsd": (
            "nats, 0 to ln 2",
            "how far other weights of the text go with the same prediction, as in `adversary`",
        ),
        "seed_jsd": (
            "nats, 0 to ln 2",
            "how far the map of the same model from another seed is (Jensen-Shannon divergence)",
        ),
    },
)


def adversary_by_model(context: AuditContext) -> pa.Table:
    """Return how far adversaries and other seeds go, a row per encoder, normaliser and text."""
    retraining = context.retraining
    assert retraining is not None
    trainings = variants(retraining)
    outcomes = retraining.outcomes(trainings)
    # Without the paper's search, which is slow and finds less.
    settings = context.settings.model_copy(update={"descent_steps": 0})
    parts = []
    # Trainings come in pairs: a kind of model, and the same kind from another seed.
    for i in track(range(0, len(trainings), 2)):
        model = retraining.model(trainings[i])
        model_context = AuditContext(model, context.split, settings, context.experiments)
        adversaries = model_context.table("adversary")
        total = len(context.split)
        between = np.full(total, np.nan)
        for trace in model_context.traces:
            width = trace.mask.shape[1]
            seed_attention = outcomes[i + 1].attention.padded(trace.rows.cpu(), width).double()
            between[trace.rows.numpy(force=True)] = jensen_shannon(
                trace.heatmap.double().cpu(), seed_attention
            )
        parts.append(
            text_table(
                context,
                {
                    "encoder": trainings[i].encoder,
                    "normaliser": trainings[i].normaliser,
                    "label": context.table("instances")["label"],
                    "predicted": outcomes[i].predicted,
                    "jsd": adversaries["jsd"],
                    "seed_jsd": between,
                },
            )
        )
    return pa.concat_tables(parts)


def by_model(adversaries: pa.Table) -> pd.DataFrame:
    """Return a row per encoder and normaliser: accuracy, and the means of both divergences."""
    frame = adversaries.to_pandas()
    frame["accuracy"] = (frame["label"] == frame["predicted"]).astype(float)
    keys = ["encoder", "normaliser"]
    means: pd.DataFrame = frame.groupby(keys, sort=False)[["accuracy", "jsd", "seed_jsd"]].mean()
    return means.reset_index()


def _findings(results: Results) -> list[Finding]:
    rows = by_model(results.tables["adversary_by_model"])
    frame = results.tables["adversary_by_model"].to_pandas()
    values = frame.groupby("row")["jsd"].mean().reindex(range(len(results.short))).to_numpy()
    listed = "; ".join(
        f"{kind.encoder} {kind.normaliser} {kind.jsd:.2f} ({kind.seed_jsd:.2f})"
        for kind in rows.itertuples()
    )
    return [
        results.finding(
            "adversary_by_model",
            "jsd",
            np.where(results.short, np.nan, values),
            {"undefined: one token": results.short},
            topic="adversaries by kind of model",
            question="On these texts, with which models are adversaries easy to find?",
            measure=f"mean JSD of the adversarial weights, over {len(rows)} encoders and normalisers",
            meaning="how far other weights of a text can go with the same prediction",
            summary=f"by model, and in brackets how far the map of another seed is: {listed}; accuracies from "
            f"{mean(rows['accuracy'].to_numpy()):.3f}",
        )
    ]


EXPERIMENT = Experiment(
    "adversary_by_model",
    adversary_by_model,
    columns=COLUMNS,
    needs=("classes",),
    place=162,
    per_text=False,
    applies=single_words,
    findings=_findings,
    variants=variants,
    figures=("heedmap.report.retraining_figures:ease",),
)
