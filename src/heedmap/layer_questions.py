"""Findings on models with layers and heads: which heat map, if any, and what heads do."""

from dataclasses import asdict

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from scipy import stats

from heedmap.findings import Finding
from heedmap.importance.flow import LONGEST
from heedmap.makers import Makers
from heedmap.settings import TransformerSettings

REACH = 0.4  # moderate agreement, as in BANDS["tau"]
HALF = 0.5  # of the texts whose words a map must rank to be compared with the others
ENOUGH = 0.9  # of the texts that a map must be computed for to be compared with the others
FAMILY = 0.05  # chance that any interval of the scan misses


def layer_findings(makers: Makers) -> list[Finding]:
    """The scan over all heat maps, the mass on words, and the part that reaches the output."""
    found = [_best_map(makers)]
    if "heads" in makers.tables:
        found.append(_on_words(makers))
        if "effective_share" in makers.tables["heads"].column_names:
            found.append(_identified(makers))
    return found


def _best_map(makers: Makers) -> Finding:
    """Chosen on one half of the sampled texts, its number from the other half: no winner's luck.

    All maps are compared on the same texts: a map that is the same for all words of a text ranks none of
    them, and counts as tau 0 in the comparison; where it does so in most texts it is not compared. One that
    was not computed is another matter: what is missing for more than a tenth of the texts is not compared,
    and the texts that lack another are left out.
    """
    taus, computed = _by_map(makers.tables["scan"])
    ranked = np.isfinite(taus.to_numpy()).any(
        1
    )  # else the text has one word, or leave-one-out is constant
    compared = computed[ranked].mean() >= ENOUGH
    constant = np.isfinite(taus)[ranked].mean() < HALF
    compared &= ~constant
    missing = ~computed.loc[:, compared]
    common = ranked & ~missing.any(axis=1).to_numpy()
    values = taus.loc[:, compared].to_numpy(dtype=np.float64)
    filled = np.nan_to_num(values, nan=0.0)
    rows, total = taus.index.to_numpy(), len(makers.predicted)
    half = np.zeros(len(rows), dtype=bool)
    rng = np.random.default_rng([makers.settings.seed, *b"halves"])
    half[rng.permutation(len(rows))[: len(rows) // 2]] = True
    first, second = half & common, ~half & common
    in_sample, chose = np.zeros(total, dtype=bool), np.zeros(total, dtype=bool)
    in_sample[rows] = True
    chose[rows[first]] = True
    sampled = np.full(total, np.nan)
    which = "none: too few texts with two words to choose one and measure it"
    if first.any() and second.any():
        at = int(np.argmax(filled[first].mean(0)))
        sampled[rows[second]] = values[second, at]
        view, layer, head = taus.columns[compared][at]
        which = f"{view}, layer {layer}, " + ("mean over heads" if head < 0 else f"head {head}")
    reach = _certain(filled[common], REACH)
    return makers.finding(
        "best_map_leave_one_out",
        "tau",
        sampled,
        {
            "not sampled for the scan": ~in_sample,
            "used to choose the map": chose,
            "undefined: one token": makers.short,
            **_not_computed(missing[ranked], total),
        },
        question="Is there any heat map of this model that ranks the words as leave-one-out does?",
        measure=f"mean Kendall tau-b with leave-one-out of the best of {values.shape[1]} maps: {which}",
        meaning=(
            f"chosen on half of the texts, measured on the others; with all {values.shape[1]} judged at once "
            f"on all of them (Bonferroni, {1 - FAMILY:.0%}), {reach} lie above {REACH} for certain"
            + _not_compared(computed[ranked], constant)
        ),
    )


def _by_map(table: pa.Table) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Tau, and whether the map was computed: a row a text, a column a map (head −1: the mean over heads)."""
    scan = table.to_pandas()
    scan["head"] = scan["head"].fillna(-1).astype(int)
    if "computed" not in scan:  # tables of 0.2 have none
        scan["computed"] = True
    wide = scan.set_index(["row", "view", "layer", "head"])[["tau_leave_one_out", "computed"]]
    taus, computed = (wide[name].unstack(["view", "layer", "head"]) for name in wide)
    return taus, computed.astype(bool)


def _not_computed(missing: pd.DataFrame, total: int) -> dict[str, NDArray[np.bool_]]:
    """Which texts are not compared for want of a view's maps."""
    reasons = {}
    for view in dict.fromkeys(missing.columns.get_level_values("view")):
        rows = missing.index[missing[view].any(axis=1)].to_numpy()
        reasons[_why(view)] = np.isin(np.arange(total), rows)
    return reasons


def _not_compared(computed: pd.DataFrame, constant: "pd.Series[bool]") -> str:
    """What is said of maps that are not compared."""
    said = ""
    for view in dict.fromkeys(computed.columns.get_level_values("view")):
        of_view = computed[view].mean()
        if len(of_view) and of_view.max() < ENOUGH:
            said += f"; not compared, for it is there for {of_view.max():.0%} of the texts: {_why(view)}"
    if count := int((constant & (computed.mean() >= ENOUGH)).sum()):
        said += f"; not compared, for they are the same for all words of most texts: {count} maps"
    return said


def _why(view: str) -> str:
    return f"{view} not computed" + (
        f": text longer than {LONGEST} positions" if view == "flow" else ""
    )


def _certain(values: NDArray[np.float64], edge: float) -> int:
    """How many columns' means lie above the edge, by t-intervals that hold all at once."""
    n = np.isfinite(values).sum(0)
    enough = n > 1
    if not enough.any():
        return 0
    part = values[:, enough]
    spread = np.nanstd(part, axis=0, ddof=1) / np.sqrt(n[enough])
    width = stats.t.ppf(1 - FAMILY / (2 * values.shape[1]), n[enough] - 1)
    return int((np.nanmean(part, axis=0) - width * spread > edge).sum())


def _by_text(makers: Makers, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean over the heads on trial, text by text; NaN for texts that were not sampled."""
    table = makers.tables["heads"]
    layers, heads = (table[name].to_numpy() for name in ("layer", "head"))
    layer, head = int(layers.max()), None
    if isinstance(makers.model, TransformerSettings):
        layer, head = makers.model.on_trial(layer + 1, int(heads.max()) + 1)
    on_trial = layers == layer
    if head is not None:
        on_trial &= heads == head
    rows = table["row"].to_numpy()[on_trial]
    total = len(makers.predicted)
    sums = np.bincount(rows, values[on_trial], minlength=total)
    counts = np.bincount(rows, minlength=total)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _on_words(makers: Makers) -> Finding:
    table = makers.tables["heads"]
    names = [name for name in table.column_names if name.startswith("share_")]
    share = _by_text(makers, makers.column("heads", "row_on_words"))
    special = {
        name.removeprefix("share_"): float(
            np.nanmean(_by_text(makers, makers.column("heads", name)))
        )
        for name in names
        if name not in ("share_words", "share_punctuation")
    }
    told = ", ".join(f"{name} {x:.0%}" for name, x in special.items() if x >= 0.005)
    return makers.finding(
        "on_words",
        "words",
        share,
        {"not sampled": np.isnan(share)},
        question="Does the attention fall on the words that the heat map shows?",
        measure="mean share of the row's mass that is on words, layer on trial",
        meaning=(
            "the rest is on special tokens, which no heat map of words shows; of all rows of the layer they "
            f"get: {told or 'none'}"
        ),
    )


def _identified(makers: Makers) -> Finding:
    share = _by_text(makers, makers.column("heads", "effective_share"))
    free = makers.column("heads", "free_on_simplex")
    rank = makers.column("heads", "rank")
    some = float(np.mean(free > 0)) if len(free) else 0.0
    finding = makers.finding(
        "identified",
        "identified",
        share,
        {"not sampled": np.isnan(share)},
        question="Do the weights of a head follow from what the head puts out?",
        measure="mean share of the weights' norm that is effective attention, layer on trial",
        meaning=(
            f"1 = no other weights give the head's output; {some:.0%} of all text-head pairs have room "
            f"(longest rank {int(np.nanmax(rank)) if len(rank) else 0}); same output of a head, not only "
            "same prediction"
        ),
    )
    return Finding(**{**asdict(finding), "level": "undecided"})
