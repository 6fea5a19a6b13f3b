"""Does the map mark what people marked? (ERASER's agreement with human rationales, DeYoung et al. 2020)

Plausible is not faithful: people mark what convinces them, whatever the model rests on. So these numbers never
speak for a map, and `calibrate` does not grade them.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa

from heedmap.experiments.columns import Columns, shared
from heedmap.experiments.context import AuditContext
from heedmap.experiments.findings import Finding
from heedmap.experiments.methods.erasure_predictions import traces_of
from heedmap.experiments.methods.rankings import RANKINGS, scores_of, shuffles_of
from heedmap.experiments.registry import Experiment, Row
from heedmap.experiments.results import Results, mean
from heedmap.experiments.text_tables import null_where_nan, text_table
from heedmap.importance.rationale_agreement import (
    average_precision,
    average_precision_by_chance,
    chosen,
    iou_f1,
    iou_f1_at_most,
    number_of,
    token_f1,
    token_f1_at_best,
    token_f1_by_chance,
)

MEASURES = {"auprc": "AUPRC", "token_f1": "token F1", "iou_f1": "IOU F1"}


COLUMNS = Columns(
    "One row per text. Null where all tokens are marked or none, or the ranking is undefined or not sampled.",
    {
        **shared("row", "predicted", "n_tokens"),
        "marked": ("count, from 0", "tokens that people marked"),
        "count": (
            "count, from 1",
            "k, the tokens that are chosen: the share that people mark on average, rounded up",
        ),
        "{measure}_{ranking}": ("0 to 1", "{measure} of {ranking} for the marked tokens"),
        "{measure}_chance": (
            "0 to 1",
            "{measure} of a random order: expected, of the spans the mean of five",
        ),
        "token_f1_best": ("0 to 1", "token F1 of the best k tokens"),
        "iou_f1_best": ("0 to 1", "IOU F1 that no k tokens exceed"),
    },
    measure={
        "auprc": "average precision (AUPRC)",
        "token_f1": "F1 over tokens of the first k",
        "iou_f1": "F1 over spans of the first k (IOU > ½)",
    },
    ranking=RANKINGS,
)


def plausibility(context: AuditContext) -> pa.Table:
    """Compare each ranking R with the marked tokens: `auprc_R`, and the F1 of tokens and spans of its first k.

    `count` is k: of the text's tokens the share that people mark on average, rounded up, as ERASER has it;
    the mean is over the audited texts in which they mark any. `auprc_chance` and `token_f1_chance` are expected
    of a random order; `iou_f1_chance` is the mean of five. `token_f1_best` is what the best k tokens reach,
    `iou_f1_best` is not exceeded by any; of `auprc` it is 1.

    Null where all tokens are marked or none, or the ranking is undefined: integrated gradients are of a sample,
    and so are the read-out's where it is not linear (`search_instances`).
    """
    assert context.split.rationale is not None
    gold = [np.asarray(mask, dtype=bool) for mask in context.split.rationale]
    share = mean_share(gold)
    total = len(gold)
    names = [f"{m}_{ranking}" for m in MEASURES for ranking in (*RANKINGS, "chance")]
    columns = {name: np.full(total, np.nan) for name in (*names, "token_f1_best", "iou_f1_best")}
    counts = [number_of(share, len(mask)) for mask in gold]
    for row, scores in scores_of(context, traces_of(context)).items():
        marked, count = gold[row], counts[row]
        if not marked.any() or marked.all():
            continue
        numbers = {
            f"{measure}_{name}": value
            for name, token_scores in scores.items()
            for measure, value in zip(MEASURES, agreement(marked, token_scores, count), strict=True)
        }
        random_scores = shuffles_of(context, "plausibility", row, len(marked))
        numbers |= {
            "auprc_chance": average_precision_by_chance(marked),
            "token_f1_chance": token_f1_by_chance(marked, count),
            "iou_f1_chance": float(
                np.mean([iou_f1(marked, chosen(x, count)) for x in random_scores])
            ),
            "token_f1_best": token_f1_at_best(marked, count),
            "iou_f1_best": iou_f1_at_most(marked, count),
        }
        for name, value in numbers.items():
            columns[name][row] = value
    return text_table(
        context,
        {
            "marked": [int(mask.sum()) for mask in gold],
            "n_tokens": [len(mask) for mask in gold],
            "count": counts,
            **null_where_nan(columns),
        },
        copied=["predicted"],
    )


def agreement(marked: np.ndarray, scores: np.ndarray, count: int) -> tuple[float, float, float]:
    """Return AUPRC, token F1 and IOU F1 of one ranking of a text, in the order of MEASURES."""
    hard = chosen(scores, count)
    return average_precision(marked, scores), token_f1(marked, hard), iou_f1(marked, hard)


def mean_share(gold: list[np.ndarray]) -> Fraction:
    """Return the mean share of marked tokens, over the texts with any; 0 if there are none."""
    shares = [Fraction(int(mask.sum()), len(mask)) for mask in gold if mask.any()]
    # A sum of many exact fractions is slow; the mean is rounded to a millionth, above which all are rounded up.
    return (
        Fraction(round(sum(map(float, shares)) / len(shares) * 10**6), 10**6)
        if shares
        else Fraction(0)
    )


def _findings(results: Results) -> list[Finding]:
    share = results.column("plausibility", "marked") / results.column("plausibility", "n_tokens")
    findings = []
    for measure, words in MEASURES.items():
        values = {
            name: results.column("plausibility", f"{measure}_{name}")
            for name in (*RANKINGS, "chance")
        }
        is_defined = np.isfinite(values["attention"])
        best = results.optional("plausibility", f"{measure}_best")
        at_best = "at best 1" if best is None else f"at most {mean(best[is_defined]):z.2f}"
        by_ranking = ", ".join(
            f"{RANKINGS[name]} {mean(values[name]):z.2f}"
            for name in RANKINGS
            if name != "attention"
        )
        # Of the F1 of spans only a bound is known, which is no ceiling to be measured against.
        ceiling = {"auprc": 1.0, "token_f1": best, "iou_f1": None}[measure]
        findings.append(
            replace(
                results.finding(
                    f"plausibility_{measure}",
                    "fraction",
                    values["attention"],
                    {
                        "people marked all words or none": (share == 0) | (share == 1),
                        "not sampled": ~is_defined,
                    },
                    topic=f"marked words ({words})",
                    question=f"Does the map highlight the words that are marked in the data ({words})?",
                    measure=f"mean {words} of the map for the marked words",
                    meaning="plausible is not faithful: high agreement says nothing of what the model rests on",
                    summary=f"{by_ranking}; by chance {mean(values['chance'][is_defined]):z.2f}, {at_best}",
                    chance=None if ceiling is None else values["chance"],
                    ceiling=ceiling,
                ),
                level="for comparison",
            )
        )
    return findings


def _facts(row: Row) -> list[tuple[str, float | int | None]]:
    return [("AUPRC of attention", row["plausibility"]["auprc_attention"])]


EXPERIMENT = Experiment(
    "plausibility",
    plausibility,
    columns=COLUMNS,
    needs=("reading", "gradients"),
    place=82,
    applies=lambda model, split: split.rationale is not None,
    findings=_findings,
    facts=_facts,
    in_chunks=True,
)
