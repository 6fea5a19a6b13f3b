"""Do the measures find the tokens that are known to decide the label?"""

from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.stats import rankdata

from heedmap.experiments.columns import Columns, shared
from heedmap.experiments.context import AuditContext
from heedmap.experiments.findings import Finding
from heedmap.experiments.methods.importance_measures import MEASURE_NAMES, MEASURES
from heedmap.experiments.methods.rankings import ranked_heats
from heedmap.experiments.registry import Experiment, Row
from heedmap.experiments.results import Results, does, mean, percent
from heedmap.experiments.text_tables import text_table

COLUMNS = Columns(
    "One row per text. NaN where the rationale holds all tokens or none, or the measure is undefined.",
    {
        **shared("row", "predicted"),
        "rationale_share": ("0 to 1", "share of the tokens that are in the gold rationale"),
        "auc_{measure}": (
            "0 to 1",
            "ROC AUC of {measure} for the rationale's tokens: ½ by chance, 1 if these come first; ties count "
            "half",
        ),
        "hit_{measure}": (
            "0 to 1",
            "whether the first token by {measure} is in the rationale; of several first ones, their share",
        ),
    },
    measure={"attention": "attention", **MEASURE_NAMES},
)


def rationale(context: AuditContext) -> pa.Table:
    """Return per text each measure's ROC AUC as a score for "this token is in the gold rationale"."""
    assert context.split.rationale is not None
    gold = [np.asarray(mask, dtype=bool) for mask in context.split.rationale]
    columns: dict[str, object] = {
        "rationale_share": [float(mask.mean()) for mask in gold],
    }
    for measure in MEASURES:
        source = (
            ranked_heats(context).values()
            if measure == "attention"
            else context.table(measure)["importance"].to_pylist()
        )
        scores = [None if v is None else np.array(v) for v in source]
        pairs = list(zip(gold, scores, strict=True))
        columns[f"auc_{measure}"] = [_auc(mask, score) for mask, score in pairs]
        columns[f"hit_{measure}"] = [_hit(mask, score) for mask, score in pairs]
    return text_table(context, columns, copied=["predicted"])


def _auc(gold: NDArray[np.bool_], scores: NDArray[np.float64] | None) -> float:
    """Return the Mann-Whitney U / (n₊ n₋)."""
    positives, negatives = int(gold.sum()), int((~gold).sum())
    if scores is None or not positives or not negatives or np.isnan(scores).any():
        return float("nan")
    return float(
        (rankdata(scores)[gold].sum() - positives * (positives + 1) / 2) / (positives * negatives)
    )


def _hit(gold: NDArray[np.bool_], scores: NDArray[np.float64] | None) -> float:
    if scores is None or np.isnan(scores).any() or not gold.any() or gold.all():
        return float("nan")
    return float(gold[scores == scores.max()].mean())


def _findings(results: Results) -> list[Finding]:
    attention = _finds(results, "attention", "attention")
    # The others are for comparison.
    by_measure = [_finds(results, measure, name) for measure, name in MEASURE_NAMES.items()]
    return [attention, *(replace(finding, level="for comparison") for finding in by_measure)]


def _finds(results: Results, measure: str, name: str) -> Finding:
    values = results.column("rationale", f"auc_{measure}")
    hits = results.column("rationale", f"hit_{measure}")
    share = results.column("rationale", "rationale_share")
    return results.finding(
        f"rationale_{measure}",
        "auc",
        values,
        {
            "the rationale holds all words or none": (share == 0) | (share == 1),
            **results.undefined(measure),
        },
        topic=f"gold rationale, by {name}",
        question=f"{does(name).title()} {name} find the words that decide the label?",
        measure=f"mean ROC AUC of {name} for the gold rationale",
        meaning="0.5 = chance, 1 = always",
        summary=f"its first word is one of them in {percent(mean(hits))}",
    )


def _facts(row: Row) -> list[tuple[str, float | int | None]]:
    return [("ROC AUC of attention", row["rationale"]["auc_attention"])]


EXPERIMENT = Experiment(
    "rationale",
    rationale,
    columns=COLUMNS,
    needs=("reading", "gradients"),
    place=80,
    applies=lambda model, split: split.rationale is not None,
    findings=_findings,
    figures=("heedmap.report.agreement_figures:rationale",),
    facts=_facts,
    in_chunks=True,
)
