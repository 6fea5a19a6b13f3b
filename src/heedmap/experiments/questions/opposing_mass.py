"""Does the heat map highlight words that speak against the prediction?"""

import math

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from heedmap.errors import InputError
from heedmap.experiments.columns import Columns, shared
from heedmap.experiments.context import AuditContext
from heedmap.experiments.findings import Finding
from heedmap.experiments.methods.erasure_predictions import (
    rest_in_words,
    traces_of,
    without_each,
)
from heedmap.experiments.questions.importance import signed_change_without
from heedmap.experiments.registry import Experiment, Row
from heedmap.experiments.results import Results, mean, percent
from heedmap.experiments.text_tables import text_table

COLUMNS = Columns(
    "One row per text. NaN for a text of one token, which cannot be left out.",
    {
        **shared("row", "predicted"),
        "against": (
            "0 to 1",
            "share of the map's mass on tokens without which the predicted class is likelier: left out, or "
            "with their weights erased where the model cannot read again",
        ),
        "against_chance": (
            "0 to 1",
            "share of such tokens: the mean of `against` over all orders of the weights, if what a token "
            "says did not depend on them",
        ),
    },
)


def opposing_mass(context: AuditContext) -> pa.Table:
    """Return the share of the map's mass on tokens that speak against the prediction, by leave-one-out.

    A token speaks against it where the predicted class is likelier without it. `against_chance` is the mean of
    `against` over all orders of the map's weights, in closed form: the share of the tokens that speak against.
    Under other weights other tokens do, so that chance is measured in `baselines` (`against_shuffled`). The
    least possible is 0. NaN for a text of one token, which cannot be left out. Where the model cannot read
    again, a token's weight is erased instead.

    Raises:
        InputError: the run has a leave-one-out of an older version.
    """
    instances = context.table("instances")
    can_read = "reading" in context.model.capabilities
    changes = _left_out(context) if can_read else _erased(context)
    pairs = zip(instances["attention"].to_pylist(), changes, strict=True)
    shares = np.array([_against(np.array(heat), np.array(change)) for heat, change in pairs])
    columns = {"against": shares[:, 0], "against_chance": shares[:, 1]}
    return text_table(context, columns, copied=["predicted"])


def _left_out(context: AuditContext) -> list[list[float]]:
    """Return what the predicted class's probability loses without each token of each text."""
    without = context.table("leave_one_out")
    if "signed" not in without.column_names:
        raise InputError(
            "leave_one_out: expected a column `signed`, which tables of older versions do not have; "
            "audit again with --overwrite, or into another folder"
        )
    signed: list[list[float]] = without["signed"].to_pylist()
    return signed


def _erased(context: AuditContext) -> list[list[float]]:
    """Return what it loses without each token's weight; NaN for texts of one token, and those not sampled."""
    losses = [[math.nan]] * len(context.split)
    for trace in traces_of(context):
        logits_without = without_each(context.model, trace, context.settings.renormalise)
        change = signed_change_without(trace.logits, logits_without, context.model.precision)
        for row, values, is_token in zip(trace.rows.tolist(), change, trace.mask, strict=True):
            if is_token.sum() > 1:
                losses[row] = values[is_token].tolist()
    return losses


def _against(heat: NDArray[np.float64], change: NDArray[np.float64]) -> tuple[float, float]:
    """Return the share of mass and of tokens where the change is negative; NaN if a change is undefined."""
    if np.isnan(change).any() or heat.sum() <= 0:
        return np.nan, np.nan
    return float(heat[change < 0].sum() / heat.sum()), float((change < 0).mean())


def _findings(results: Results) -> list[Finding]:
    values = results.column("opposing_mass", "against")
    chance = results.optional("baselines", "against_shuffled")
    share = results.column("opposing_mass", "against_chance")
    said = f"{percent(mean(share))} of the words are such words"
    removal = "removal makes"
    if not results.can_read:
        removal = "erased weight makes"
        said += f"; {rest_in_words(results.settings.renormalise)}"
    return [
        results.finding(
            "opposing_mass",
            "fraction",
            values,
            {"one token: it cannot be left out": results.short},
            topic="avoids words against the answer",
            question="Does the map highlight words that speak against the answer?",
            measure=f"mean share of the map's mass on words whose {removal} the answer likelier",
            meaning="0 = none of it, 1 = all",
            summary=said,
            chance=chance,
            ceiling=0.0,
            lower=True,
        )
    ]


def _facts(row: Row) -> list[tuple[str, float | int | None]]:
    return [("mass on words against the answer", row["opposing_mass"]["against"])]


EXPERIMENT = Experiment(
    "opposing_mass",
    opposing_mass,
    columns=COLUMNS,
    needs=("classes",),
    place=57,
    findings=_findings,
    figures=("heedmap.report.smallest_change_figures:against",),
    facts=_facts,
    in_chunks=True,
)
