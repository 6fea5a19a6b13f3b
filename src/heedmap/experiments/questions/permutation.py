"""Does it matter which token gets which weight? (Jain & Wallace 2019, experiment 2a)"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from heedmap.counterfactual.permute import orders, permuted_logits
from heedmap.counterfactual.row_weights import permuted, turned, uniform
from heedmap.data.batches import scatter_rows
from heedmap.experiments.columns import Columns, shared
from heedmap.experiments.context import AuditContext
from heedmap.experiments.cost import CostProbe
from heedmap.experiments.findings import Finding
from heedmap.experiments.methods.readout import is_linear, linear
from heedmap.experiments.registry import Experiment, Intervention, Row
from heedmap.experiments.results import Results, mean, percent
from heedmap.experiments.text_tables import MAP_FACTS, text_table
from heedmap.measures import change_in_prediction
from heedmap.models.trace import Trace

BASES = 5  # shuffled weights that are asked the same question
NAMES = (
    "median_tvd", "mean_tvd", "flipped", "uniform_tvd", "uniform_flipped",
    "chance_tvd", "largest_tvd", "uniform_chance", "uniform_largest",
)  # fmt: skip
LOGITS = 1 << 21  # computed at a time: 16 MB


COLUMNS = Columns(
    "One row per text. A change is the total variation distance (TVD) of two predictions, ½ Σ |p − q|. Of a "
    "model that gives a number a change is |difference| of the outputs instead, in their unit; no class flips "
    "(NaN).",
    {
        **shared("row", "predicted", "n_tokens", "max_attention"),
        "median_tvd": ("0 to 1", "median change under shuffles of the text's weights"),
        "mean_tvd": ("0 to 1", "mean change under the same shuffles"),
        "flipped": ("0 to 1", "share of the shuffles that change the predicted class"),
        "uniform_tvd": ("0 to 1", "change under uniform weights, at test only"),
        "uniform_flipped": ("0 or 1", "whether they change the predicted class"),
        "moved_tvd": (
            "0 to 1",
            "change where the weights are put on other words: the largest on that with the smallest, and so on",
        ),
        "moved_flipped": ("0 or 1", "whether this changes the predicted class"),
        "chance_tvd": (
            "0 to 1",
            f"mean `median_tvd` of up to {BASES} of the shuffles, each taken for the model's own weights",
        ),
        "largest_tvd": (
            "0 to 1",
            "the largest change from the model's own weights, or any of these, to a shuffle",
        ),
        "uniform_chance": ("0 to 1", "mean `uniform_tvd` of the same shuffles"),
        "uniform_largest": (
            "0 to 1",
            "the largest `uniform_tvd` of the model's order and any shuffle",
        ),
    },
)


def permutation(context: AuditContext) -> pa.Table:
    """Permute each text's weights at random S times, all else held fixed.

    Several rows are permuted independently, each within its support. If a text has no more than S orders,
    each counts once (`permute.orders`): with S = 100 and one row on trial, texts of up to four tokens. The
    median is as in the paper. Uniform weights are over each row's support.
    """
    rng = context.generator("permutation")
    rows, parts = [], []
    for trace in context.traces:
        weightings = (
            uniform(trace.attention, trace.support),
            turned(trace.attention, trace.support),
        )
        imposed = context.model.predict(trace, torch.stack(weightings)).transpose(0, 1)
        even, moved = imposed[:, :1], imposed[:, 1:]
        rows.append(trace.rows)
        part = _under_permutations(context, trace, even, rng)
        part["moved_tvd"] = _change(trace.logits, moved)[:, 0]
        part["moved_flipped"] = _flips(trace.logits, moved)[:, 0]
        parts.append(part)
    columns = {name: scatter_rows(rows, [part[name] for part in parts]) for name in parts[0]}
    return text_table(context, columns, copied=MAP_FACTS)


Numbers = dict[str, Float[Tensor, " B"]]


def _under_permutations(
    context: AuditContext, trace: Trace, even: Float[Tensor, "B 1 C"], rng: np.random.Generator
) -> Numbers:
    """Return the columns; logits are computed in blocks."""
    times = context.settings.permutations
    counts = [min(count, times) for count in orders(trace.support.sum(-1))]
    if not is_linear(trace):
        rngs = context.generators("permutation", trace.rows)
        blocks = permuted(trace.attention, trace.support, times, rngs)
        logits = torch.cat([context.model.predict(trace, block) for block in blocks])
        return _summary(trace.logits, logits.transpose(0, 1), even, counts)
    weights, relevance, bias = linear(trace)
    rows = max(1, LOGITS // (times * len(bias)))
    parts = []
    for start in range(0, len(weights), rows):
        part = slice(start, start + rows)
        logits = permuted_logits(
            weights[part], trace.mask[part], relevance[part], bias, times, rng
        ).to(bias.device)
        parts.append(_summary(trace.logits[part], logits, even[part], counts[part]))
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


def _summary(
    logits_of_map: Float[Tensor, "B C"],
    logits: Float[Tensor, "B S C"],
    even: Float[Tensor, "B 1 C"],
    counts: Sequence[int],
) -> Numbers:
    """Return the columns from the first `counts` orders of each text."""
    change, flips = _change(logits_of_map, logits), _flips(logits_of_map, logits)
    # The same questions asked of shuffled weights.
    bases = [logits[:, k] for k in range(min(BASES, logits.shape[1]))]
    of_bases = torch.stack([_change(base, logits) for base in bases], dim=1)
    from_even, uniform_change = _change(even.squeeze(1), logits), _change(logits_of_map, even)[:, 0]
    columns = {name: change.new_empty(len(counts)) for name in NAMES}
    for count in set(counts):
        rows = [i for i, c in enumerate(counts) if c == count]
        shuffle_changes = of_bases[rows][:, : min(BASES, count), :count]
        # torch's median of an even number of values is the lower one, hence quantile.
        columns["median_tvd"][rows] = change[rows, :count].quantile(0.5, dim=1)
        columns["mean_tvd"][rows] = change[rows, :count].mean(1)
        columns["flipped"][rows] = flips[rows, :count].mean(1)
        columns["chance_tvd"][rows] = shuffle_changes.quantile(0.5, dim=2).mean(1)
        columns["largest_tvd"][rows] = torch.maximum(
            change[rows, :count].amax(1), shuffle_changes.amax((1, 2))
        )
        columns["uniform_chance"][rows] = from_even[rows, : min(BASES, count)].mean(1)
        columns["uniform_largest"][rows] = torch.maximum(
            from_even[rows, :count].amax(1), uniform_change[rows]
        )
    return columns | {
        "uniform_tvd": uniform_change,
        "uniform_flipped": _flips(logits_of_map, even)[:, 0],
    }


def _change(
    logits_of_map: Float[Tensor, "B C"], logits: Float[Tensor, "B S C"]
) -> Float[Tensor, "B S"]:
    return change_in_prediction(logits_of_map.unsqueeze(1).expand_as(logits), logits)


def _flips(
    logits_of_map: Float[Tensor, "B C"], logits: Float[Tensor, "B S C"]
) -> Float[Tensor, "B S"]:
    if logits.shape[-1] == 1:
        return logits.new_full(logits.shape[:-1], torch.nan).double()  # there is no class to change
    return (logits.argmax(-1) != logits_of_map.argmax(-1, keepdim=True)).double()


def _findings(results: Results) -> list[Finding]:
    findings = [_shuffled(results)]
    if "uniform_tvd" in results.tables["permutation"].column_names:  # tables of 0.1 have none
        findings.append(_uniform(results))
    return findings


def _shuffled(results: Results) -> Finding:
    short, derived = results.short, results.derived
    flipped = results.column("permutation", "flipped")[~short]
    changes = np.where(short, np.nan, results.changes("permutation", "median_tvd"))
    return results.finding(
        "permutation",
        results.scale.kind,
        changes,
        {"one token: nothing to permute": short},
        np.median,
        topic="shuffled weights",
        question="Does it matter which word gets which weight?"
        if not derived
        else "Does it matter which position gets which weight in the layer?",
        measure=f"median {results.scale.change} under {results.settings.permutations} shuffles of the "
        "weights" + (" of the layer, of which the map is made" if derived else ""),
        meaning=results.scale.meaning,
        chance=results.optional_changes("permutation", "chance_tvd"),
        ceiling=results.optional_changes("permutation", "largest_tvd"),
        summary=_moved(results, changes)
        or f"most shuffles flip {percent(mean((flipped > 0.5).astype(float)))} of the texts",
    )


def _moved(results: Results, changes: NDArray[np.float64]) -> str:
    """Say the median change in the unit of the output; empty of classes, whose flips are counted."""
    if results.scale.unit is None or not np.isfinite(changes).any():
        return ""
    return (
        f"in the median of the texts that is {results.scale.amount(float(np.nanmedian(changes)))}"
    )


def _uniform(results: Results) -> Finding:
    """Say how uniform weights change the prediction, at test only."""
    short, derived = results.short, results.derived
    flipped = results.column("permutation", "uniform_flipped")[~short]
    changes = np.where(short, np.nan, results.changes("permutation", "uniform_tvd"))
    return results.finding(
        "uniform",
        results.scale.kind,
        changes,
        {"one token: it has all the weight": short},
        np.median,
        topic="equal weights",
        question="Does it matter that the weights are not all the same?"
        if not derived
        else "Does it matter that the layer's weights are not all the same?",
        measure=f"median {results.scale.change} under uniform weights"
        + (" in the layer" if derived else "")
        + ", at test only",
        meaning=results.scale.meaning,
        chance=results.optional_changes("permutation", "uniform_chance"),
        ceiling=results.optional_changes("permutation", "uniform_largest"),
        summary=_moved(results, changes)
        or f"another class is predicted for {percent(mean(flipped))} of the texts",
    )


def _facts(row: Row) -> list[tuple[str, float | int | None]]:
    change = "change of the output" if _is_number(row) else "TVD"
    return [
        (f"median {change}, shuffled", row["permutation"]["median_tvd"]),
        (f"{change}, even weights", row["permutation"].get("uniform_tvd")),
    ]


def _is_number(row: Row) -> bool:
    """Return whether the model gives a number, whose changes are in its unit and no TVD."""
    return len(row["instances"]["probabilities"]) == 1


def _interventions(row: Row) -> list[Intervention]:
    numbers = row["permutation"]
    if _is_number(row):
        return []  # they are shown as total variation distances
    return [
        Intervention(name, numbers.get(tvd), numbers.get(flipped))
        for name, tvd, flipped in (
            ("all weights equal", "uniform_tvd", "uniform_flipped"),
            ("weights shuffled (median of all shuffles)", "median_tvd", "flipped"),
            (
                "the largest weights moved to the words with the smallest",
                "moved_tvd",
                "moved_flipped",
            ),
        )
    ]


def _cost(probe: CostProbe) -> float:
    return len(probe.context.lengths) * probe.context.settings.permutations * probe.again


EXPERIMENT = Experiment(
    "permutation",
    permutation,
    columns=COLUMNS,
    place=60,
    findings=_findings,
    figures=(
        "heedmap.report.entropy_figures:entropy",  # how far the weights are from uniform
        "heedmap.report.violin_figures:permutation",
    ),
    facts=_facts,
    interventions=_interventions,
    cost=_cost,
    in_chunks=True,
)
