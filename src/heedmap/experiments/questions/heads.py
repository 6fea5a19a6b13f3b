"""What do the heads of a model do: where does their mass go, and how free are their weights?"""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray

from heedmap.experiments.columns import Columns, shared
from heedmap.experiments.context import AuditContext
from heedmap.experiments.cost import CostProbe
from heedmap.experiments.findings import Finding
from heedmap.experiments.registry import Experiment
from heedmap.experiments.results import Results
from heedmap.files.tables import table
from heedmap.models.layered import Layered
from heedmap.settings.models import TransformerSettings

HEADS_SHARE = 8  # memory for all layers' weights with their graph
PASSES = 4.0  # cost of the facts of all heads, in forward passes


COLUMNS = Columns(
    "One row per text, layer and head, for a sample of the texts. T are a head's values through the output "
    "projection; its columns are there where that is known. `{kind}` is words, punctuation or a special token.",
    {
        **shared("row"),
        "positions": ("count, from 1", "positions that the model reads"),
        "layer": ("number, from 0", "the layer"),
        "head": ("number, from 0", "the head"),
        "share_{kind}": (
            "0 to 1",
            "mass of the head on {kind}, mean over the rows of real positions",
        ),
        "within": (
            "0 to 1",
            "mass of the rows of a pair's words on words of the same text; only where texts are pairs",
        ),
        "across": ("0 to 1", "mass of these rows on words of the other text"),
        "entropy": ("nats, 0 to ln positions", "mean entropy of these rows"),
        "row_on_words": (
            "0 to 1",
            "mass on words of the row that the classifier reads, or of the mean of all if it reads all",
        ),
        "rank": ("count, from 0", "rank of T"),
        "free": (
            "count, from 0",
            "positions − rank: dimensions in which a row may move without changing the head's output",
        ),
        "free_on_simplex": ("count, from 0", "the same of rows that still sum to 1"),
        "effective_share": (
            "0 to 1",
            "‖effective attention‖ / ‖attention‖ of the row that the classifier reads; 1 if the head's output "
            "determines it",
        ),
    },
)


def heads(context: AuditContext) -> pa.Table:
    """Return facts of every head: where its mass goes, how sharp it is, how free its weights are.

    One row per text, layer and head, for a seeded sample of the texts; columns from `Layered.layer_facts`.
    """
    model = context.model
    assert isinstance(model, Layered)
    sample = context.sample("heads", context.settings.scan_instances)
    rows: list[int] = []
    lengths: list[int] = []
    parts: list[dict[str, torch.Tensor]] = []
    for batch in context.batches_of(sample, shares=HEADS_SHARE):
        parts.append(model.layer_facts(batch))
        rows += batch.rows.tolist()
        lengths += context.lengths[batch.rows.cpu().numpy()].tolist()
    whole = {name: torch.cat([part[name] for part in parts]).cpu().numpy() for name in parts[0]}
    shape = next(iter(whole.values())).shape
    # Facts are (texts, layers, heads): the indices of a number are its text, layer and head.
    index = np.indices(shape)
    return table(
        {
            "row": np.array(rows)[index[0]].ravel(),
            "positions": np.array(lengths)[index[0]].ravel(),
            "layer": index[1].ravel(),
            "head": index[2].ravel(),
            **{name: values.ravel() for name, values in whole.items()},
        }
    )


def _findings(results: Results) -> list[Finding]:
    findings = [_on_words(results)]
    if "effective_share" in results.tables["heads"].column_names:
        findings.append(_identified(results))
    return findings


def _by_text(results: Results, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean over the heads on trial per text; NaN for texts that were not sampled."""
    table = results.tables["heads"]
    layers, heads = (table[name].to_numpy() for name in ("layer", "head"))
    layer, head = int(layers.max()), None
    if isinstance(results.model, TransformerSettings):
        layer, head = results.model.on_trial(layer + 1, int(heads.max()) + 1)
    on_trial = layers == layer
    if head is not None:
        on_trial &= heads == head
    rows = table["row"].to_numpy()[on_trial]
    total = len(results.predicted)
    sums = np.bincount(rows, values[on_trial], minlength=total)
    counts = np.bincount(rows, minlength=total)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _on_words(results: Results) -> Finding:
    table = results.tables["heads"]
    names = [name for name in table.column_names if name.startswith("share_")]
    share = _by_text(results, results.column("heads", "row_on_words"))
    special = {
        name.removeprefix("share_"): float(
            np.nanmean(_by_text(results, results.column("heads", name)))
        )
        for name in names
        if name not in ("share_words", "share_punctuation")
    }
    listed = ", ".join(f"{name} {x:.0%}" for name, x in special.items() if x >= 0.005)
    meaning = (
        "the rest is on special tokens, which no heat map of words shows; of all rows of the layer they "
        f"get: {listed or 'none'}"
    )
    if "within" in table.column_names:
        own_mass, other_mass = (
            float(np.nanmean(_by_text(results, results.column("heads", name))))
            for name in ("within", "across")
        )
        meaning = (
            "the rest is on special tokens and on words that no map is of; in the layer the words of a text "
            f"pay {own_mass:.0%} of their attention to the same text and {other_mass:.0%} to the other, and of "
            f"all rows special tokens get: {listed or 'none'}"
        )
    return results.finding(
        "on_words",
        "words",
        share,
        {"not sampled": np.isnan(share)},
        topic="attention on words",
        question="Does the attention fall on the words that the heat map shows?",
        measure="mean share of the row's mass that is on words, layer on trial",
        meaning=meaning,
    )


def _identified(results: Results) -> Finding:
    share = _by_text(results, results.column("heads", "effective_share"))
    free = results.column("heads", "free_on_simplex")
    rank = results.column("heads", "rank")
    share_free = float(np.mean(free > 0)) if len(free) else 0.0
    finding = results.finding(
        "identified",
        "identified",
        share,
        {"not sampled": np.isnan(share)},
        topic="weights fixed by the output",
        question="Do the weights of a head follow from what the head puts out?",
        measure="mean share of the weights' norm that is effective attention, layer on trial",
        meaning=(
            f"1 = no other weights give the head's output; {share_free:.0%} of all text-head pairs have room "
            f"(longest rank {int(np.nanmax(rank)) if len(rank) else 0}); same output of a head, not only "
            "same prediction"
        ),
    )
    return replace(finding, level="for comparison")


def _cost(probe: CostProbe) -> float:
    return probe.reading(PASSES, probe.context.settings.scan_instances)


EXPERIMENT = Experiment(
    "heads",
    heads,
    columns=COLUMNS,
    place=100,
    per_text=False,
    applies=lambda model, split: isinstance(model, Layered),
    findings=_findings,
    figures=("heedmap.report.head_figures:heads",),
    cost=_cost,
)
