"""Do attention and the other measures rank the tokens alike? (Jain & Wallace 2019, experiment 1)"""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pyarrow as pa

from heedmap.experiments.columns import Columns, shared
from heedmap.experiments.context import AuditContext
from heedmap.experiments.findings import Finding
from heedmap.experiments.methods.importance_measures import (
    COMPLETENESS_TOLERANCE,
    MEASURE_NAMES,
    MEASURES,
)
from heedmap.experiments.methods.kendall import kendall_tau
from heedmap.experiments.registry import Experiment, Row
from heedmap.experiments.results import Results, does, mean, percent
from heedmap.experiments.text_tables import text_table
from heedmap.files.tables import padded
from heedmap.measures import levelled

PAIRS = tuple(combinations(MEASURES, 2))
ELEMENTS = 1 << 22  # per block of pairwise comparisons: 32 MB


COLUMNS = Columns(
    "One row per text. NaN where tau is undefined: a text of one token, a measure that is the same for all "
    "tokens, or a text not sampled for integrated gradients.",
    {
        **shared("row", "predicted"),
        "tau_{pair}": ("−1 to 1", "Kendall's tau-b over the tokens, of {pair}"),
        "p_{pair}": ("0 to 1", "two-sided p of that tau"),
    },
    pair={f"{a}_{b}": f"{MEASURE_NAMES.get(a, a)} with {MEASURE_NAMES[b]}" for a, b in PAIRS},
)


def agreement(context: AuditContext) -> pa.Table:
    """Return Kendall's tau-b of every pair of measures over the text's tokens, with its two-sided p."""
    instances = context.table("instances")
    lists = [instances["attention"], *(context.table(m)["importance"] for m in MEASURES[1:])]
    taus = np.full((len(context.split), len(PAIRS)), np.nan)
    ps = taus.copy()
    first_index, second_index = np.array(
        [[MEASURES.index(a), MEASURES.index(b)] for a, b in PAIRS]
    ).T
    for rows, values, mask in padded(lists, ELEMENTS):
        values[:, 0] = levelled(values[:, 0], mask)
        result = kendall_tau(values, mask)
        taus[rows] = result.tau.numpy()[:, first_index, second_index]
        ps[rows] = result.p.numpy()[:, first_index, second_index]
    columns: dict[str, object] = {}
    for i, (a, b) in enumerate(PAIRS):
        columns[f"tau_{a}_{b}"] = taus[:, i]
        columns[f"p_{a}_{b}"] = ps[:, i]
    return text_table(context, columns, copied=["predicted"])


def _findings(results: Results) -> list[Finding]:
    with_others = [_with(results, measure, name) for measure, name in MEASURE_NAMES.items()]
    return [*with_others, _between_others(results)]


def _with(results: Results, measure: str, name: str) -> Finding:
    """Compare attention with one other measure."""
    values = results.column("agreement", f"tau_attention_{measure}")
    p = results.column("agreement", f"p_attention_{measure}")
    is_defined = np.isfinite(values)
    significant = p[is_defined] <= 0.05
    summary = f"{percent(mean(significant.astype(float)))} of the texts significant at .05"
    if (reverse := significant & (values[is_defined] < 0)).any():
        summary += f", {percent(mean(reverse.astype(float)))} in the reverse order"
    if measure == "integrated_gradients":
        summary += _incomplete(results)
    chance = {
        "random weights": results.optional("baselines", f"tau_random_{measure}"),
        "the model with its parameters shuffled": results.optional(
            "baselines", f"tau_twin_{measure}"
        ),
        "the maps of other seeds": results.optional("baselines", f"tau_other_seed_{measure}"),
        "the maps of several seeds": results.optional("stability", f"tau_{measure}"),
    }
    reached = [
        f"{who} {mean(taus):z.2f}"
        for who, taus in chance.items()
        if taus is not None and np.isfinite(taus).any()
    ]
    if reached:
        summary += "; " + ", ".join(reached).replace("-", "−")
    return results.finding(
        f"agreement_{measure}",
        "tau",
        values,
        results.undefined(measure),
        topic=f"same order as {name}",
        question=f"Does attention rank the words as {name} {does(name)}?",
        measure=f"mean Kendall tau-b, attention against {name}",
        meaning="1 = same order, −1 = the reverse",
        summary=summary,
        chance=results.optional("baselines", f"tau_shuffled_{measure}"),
        ceiling=results.optional("baselines", f"tau_largest_{measure}"),
    )


def _incomplete(results: Results) -> str:
    """Say for how many texts integrated gradients do not add up, in spite of more steps."""
    errors = results.changes("integrated_gradients", "completeness_error")
    errors = errors[np.isfinite(errors)]
    share, large = (
        mean((errors > COMPLETENESS_TOLERANCE).astype(float)),
        mean((errors > 1).astype(float)),
    )
    return (
        f"; the gradients miss what they should add up to by more than {COMPLETENESS_TOLERANCE:g} "
        f"{results.scale.evidence} in "
        f"{percent(share)} of the texts, by more than 1 in {percent(large)}"
    )


def _between_others(results: Results) -> Finding:
    """Compare the gradient with leave-one-out, for scale."""
    finding = results.finding(
        "agreement_yardstick",
        "tau",
        results.column("agreement", "tau_gradient_leave_one_out"),
        results.undefined("leave_one_out"),
        topic="the gradient against leave-one-out",
        question="For scale: do gradient and leave-one-out rank the words alike?",
        measure="mean Kendall tau-b, gradient against leave-one-out",
        meaning="what two measures of importance reach with each other, without attention",
    )
    return replace(finding, level="for comparison")


def _facts(row: Row) -> list[tuple[str, float | int | None]]:
    return [
        (f"τ with {name.removeprefix('the ')}", row["agreement"].get(f"tau_attention_{measure}"))
        for measure, name in MEASURE_NAMES.items()
    ]


EXPERIMENT = Experiment(
    "agreement",
    agreement,
    columns=COLUMNS,
    needs=("reading", "gradients"),
    place=50,
    findings=_findings,
    figures=(
        "heedmap.report.agreement_figures:tau_histograms",
        "heedmap.report.agreement_figures:tau_densities",
        "heedmap.report.agreement_figures:tau_differences",
    ),
    facts=_facts,
    in_chunks=True,
)
