"""Which heat map of a model with layers and heads agrees with the other measures, if any?"""

import numpy as np
import pandas as pd
import pyarrow as pa
import torch
from numpy.typing import NDArray
from scipy import stats

from heedmap.experiments.columns import Columns, shared
from heedmap.experiments.context import AuditContext
from heedmap.experiments.cost import CostProbe
from heedmap.experiments.findings import Finding
from heedmap.experiments.intervals import standard_error
from heedmap.experiments.methods.kendall import tau_against
from heedmap.experiments.registry import Experiment
from heedmap.experiments.repeats import first_half
from heedmap.experiments.results import Results
from heedmap.experiments.text_tables import map_table
from heedmap.importance.flow import LONGEST
from heedmap.measures import levelled
from heedmap.models.layered import Layered

REFERENCES = ("leave_one_out", "gradient")
SCAN_SHARE = 8  # memory for all layers' weights with their graph
ELEMENTS = 1 << 24  # pairwise comparisons at a time: 128 MB
PASSES = 6.0  # cost of all maps of a text, in forward passes
REACH = 0.4
HALF = 0.5  # share of the texts whose words a map must rank to be compared
ENOUGH = 0.9  # share of the texts for which a map must be computed to be compared
FAMILY = 0.05  # family-wise error rate of the scan's intervals


MAP = {
    "view": ("text", "how the map is made of the weights, as `--view`"),
    "layer": ("number, from 0", "the layer"),
    "head": ("number, from 0", "the head; null for the mean over heads"),
}
COLUMNS = Columns(
    "One row per text and map of the model, for a sample of the texts. NaN where tau is undefined (one word, a "
    "constant map) or the map was not computed.",
    {
        **shared("row"),
        **MAP,
        "computed": ("true or false", "whether there is the map: a flow may take too long"),
        "tau_leave_one_out": ("−1 to 1", "tau-b of the map with leave-one-out"),
        "tau_gradient": ("−1 to 1", "tau-b of the map with the gradient"),
    },
)


def scan(context: AuditContext) -> pa.Table:
    """Return Kendall's tau-b of every heat map the model could show with leave-one-out and the gradient.

    One row per text and map (`view`, `layer`, `head`; null for the mean over heads), for a seeded sample of
    the texts. NaN where tau is undefined (one word, a constant map), or where the map was not `computed` (a
    flow that would take too long).
    """
    model = context.model
    assert isinstance(model, Layered)
    layer_maps = model.maps()
    lists = {name: context.table(name)["importance"] for name in REFERENCES}
    rows, taus, computed = [], [], []
    sample = context.sample("scan", context.settings.scan_instances)
    for batch in context.batches_of(sample, shares=SCAN_SHARE):
        maps = model.heat_maps(batch, layer_maps).double()
        references = torch.zeros(len(maps), len(REFERENCES), maps.shape[2], dtype=torch.float64)
        for i, row in enumerate(batch.rows.tolist()):
            for r, name in enumerate(REFERENCES):
                values = lists[name][row].as_py()
                references[i, r, : len(values)] = torch.tensor(values, dtype=torch.float64)
        # tau compares all pairs of words, so that memory grows with their square.
        texts_at_once = max(1, ELEMENTS // (maps.shape[1] * maps.shape[2] ** 2))
        for start in range(0, len(maps), texts_at_once):
            part = slice(start, start + texts_at_once)
            mask = batch.mask[part].cpu()
            taus.append(
                tau_against(levelled(maps[part].cpu(), mask.unsqueeze(1)), references[part], mask)
            )
        rows.append(batch.rows)
        computed.append(~maps.isnan().any(-1).cpu())
    tau = torch.cat(taus).numpy()
    return map_table(
        torch.cat(rows).tolist(),
        layer_maps,
        {
            "computed": torch.cat(computed).flatten(),
            **{f"tau_{name}": tau[:, :, r].ravel() for r, name in enumerate(REFERENCES)},
        },
    )


def _best_map(results: Results) -> Finding:
    """Choose the best map on one half of the sampled texts and measure it on the other: no selection bias.

    All maps are compared on the same texts. A map that is constant over a text counts as tau 0 there; one
    that is constant in most texts is not compared. A map that was not computed for more than a tenth of the
    texts is not compared either; texts that lack any other map are left out.
    """
    taus, computed = _by_map(results.tables["scan"])
    # The others have one word, or a constant leave-one-out.
    ranked = np.isfinite(taus.to_numpy()).any(1)
    compared = computed[ranked].mean() >= ENOUGH
    constant = np.isfinite(taus)[ranked].mean() < HALF
    compared &= ~constant
    missing = ~computed.loc[:, compared]
    common = ranked & ~missing.any(axis=1).to_numpy()
    values = taus.loc[:, compared].to_numpy(dtype=np.float64)
    filled = np.nan_to_num(values, nan=0.0)
    rows, total = taus.index.to_numpy(), len(results.predicted)
    texts = results.clusters[rows]
    half = first_half(texts, results.settings.seed)
    is_choosing, is_measured = half & common, ~half & common
    in_sample, for_choice = np.zeros(total, dtype=bool), np.zeros(total, dtype=bool)
    in_sample[rows] = True
    for_choice[rows[is_choosing]] = True
    sampled = np.full(total, np.nan)
    which = "none: too few texts with two words to choose one and measure it"
    if is_choosing.any() and is_measured.any():
        best = int(np.argmax(filled[is_choosing].mean(0)))
        sampled[rows[is_measured]] = values[is_measured, best]
        view, layer, head = taus.columns[compared][best]
        which = f"{view}, layer {layer}, " + ("mean over heads" if head < 0 else f"head {head}")
    reach = _certain(filled[common], texts[common], REACH)
    return results.finding(
        "best_map_leave_one_out",
        "tau",
        sampled,
        {
            "not sampled for the scan": ~in_sample,
            "used to choose the map": for_choice,
            "undefined: one token": results.short,
            **_not_computed(missing[ranked], total),
        },
        topic="the best map of all",
        question="Is there any heat map of this model that ranks the words as leave-one-out does?",
        measure=f"mean Kendall tau-b with leave-one-out of the best of {values.shape[1]} maps: {which}",
        meaning=(
            f"chosen on half of the texts, measured on the others; with all {values.shape[1]} judged at once "
            f"on all of them (Bonferroni, {1 - FAMILY:.0%}), {reach} lie above {REACH} for certain"
            + _not_compared(computed[ranked], constant)
        ),
    )


def _by_map(table: pa.Table) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return tau, and whether it was computed: a row per text, a column per map (head −1: mean over heads)."""
    scan = table.to_pandas()
    scan["head"] = scan["head"].fillna(-1).astype(int)
    if "computed" not in scan:  # tables of 0.2 have none
        scan["computed"] = True
    wide = scan.set_index(["row", "view", "layer", "head"])[["tau_leave_one_out", "computed"]]
    taus, computed = (wide[name].unstack(["view", "layer", "head"]) for name in wide)
    return taus, computed.astype(bool)


def _not_computed(missing: pd.DataFrame, total: int) -> dict[str, NDArray[np.bool_]]:
    """Return the texts that are not compared because a view's maps are missing, by reason."""
    reasons = {}
    for view in dict.fromkeys(missing.columns.get_level_values("view")):
        rows = missing.index[missing[view].any(axis=1)].to_numpy()
        reasons[_why(view)] = np.isin(np.arange(total), rows)
    return reasons


def _not_compared(computed: pd.DataFrame, constant: "pd.Series[bool]") -> str:
    """Describe the maps that are not compared."""
    text = ""
    for view in dict.fromkeys(computed.columns.get_level_values("view")):
        of_view = computed[view].mean()
        if len(of_view) and of_view.max() < ENOUGH:
            text += f"; not compared, for it is there for {of_view.max():.0%} of the texts: {_why(view)}"
    if count := int((constant & (computed.mean() >= ENOUGH)).sum()):
        text += f"; not compared, for they are the same for all words of most texts: {count} maps"
    return text


def _why(view: str) -> str:
    return f"{view} not computed" + (
        f": text longer than {LONGEST} positions" if view == "flow" else ""
    )


def _certain(values: NDArray[np.float64], texts: NDArray[np.int64], edge: float) -> int:
    """Count the columns whose mean lies above the edge, by simultaneous (Bonferroni) t-intervals."""
    count = 0
    for column in values.T:
        is_defined = np.isfinite(column)
        error, distinct = standard_error(column[is_defined], texts[is_defined])
        if distinct > 1:
            width = stats.t.ppf(1 - FAMILY / (2 * values.shape[1]), distinct - 1) * error
            count += column[is_defined].mean() - width > edge
    return int(count)


def _cost(probe: CostProbe) -> float:
    return probe.reading(PASSES, probe.context.settings.scan_instances)


EXPERIMENT = Experiment(
    "scan",
    scan,
    columns=COLUMNS,
    place=90,
    per_text=False,
    applies=lambda model, split: isinstance(model, Layered),
    findings=lambda results: [_best_map(results)],
    figures=("heedmap.report.layer_figures:scans",),
    cost=_cost,
)
