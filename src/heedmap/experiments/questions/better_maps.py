"""What would show better what the answer rests on than the map on trial, if anything?"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from heedmap.experiments import intervals
from heedmap.experiments.columns import Columns, shared
from heedmap.experiments.context import AuditContext
from heedmap.experiments.cost import BACKWARD, CostProbe
from heedmap.experiments.findings import Finding
from heedmap.experiments.pooling import by_text
from heedmap.experiments.questions.head_mixture import even_if_zero, importance_of, sampled
from heedmap.experiments.questions.importance_mass import mass_under_map
from heedmap.experiments.questions.scan import SCAN_SHARE
from heedmap.experiments.registry import Experiment, HeatMap, Row
from heedmap.experiments.results import ROUNDED, Results, attained, mean, signed_percent
from heedmap.experiments.text_tables import SampledColumn, text_table
from heedmap.models.layered import Layered

OF_ATTENTION = ("head_mixture", "single")
GRADIENTS = ("gradient", "integrated_gradients")
MEASURED = ("mass", "largest", "null")
KEY = "better_maps"
FEWEST = 20  # distinct texts that choose, and that judge
NAMED = 3  # heads of a mix that are named
VIEWS = {"gradient": "gradient × attention"}  # others are called as they are

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


COLUMNS = Columns(
    "One row per text. Null where leave-one-out is 0 for all words or undefined, and for texts not sampled. "
    "Maps and leave-one-out are scaled to sum to 1; a map of zeros is even.",
    {
        **shared("row"),
        "chooses": ("0 or 1", "whether the text chooses (1) or judges (0) what would do better"),
        "chance": ("0 to 1", "1 / n_tokens"),
        "mass_{map}": ("0 to 1", "Σ c m, the share of leave-one-out that lies under {map}"),
        "largest_{map}": (
            "0 to 1",
            "the same with both sorted: the most that {map} can find in any order",
        ),
        "null_{map}": (
            "0 to 1",
            "what the null of {map} finds: of mix and single those fitted to shuffled leave-one-out, else "
            "`chance`",
        ),
        "head_mixture": (
            "list per token, sums to 1",
            "the mixed map itself; null for all texts if it is withheld, as not certainly better",
        ),
    },
    map={
        "trial": "the map on trial",
        "gradient": "the gradient",
        "integrated_gradients": "integrated gradients",
        "head_mixture": "the mix of heads",
        "single": "the single map that finds most",
    },
)


def better_maps(context: AuditContext) -> pa.Table:
    """Return how much of leave-one-out other maps find than the one on trial, on the same texts.

    Candidates are gradient and integrated gradients; of models with layers and heads also `head_mixture`
    and `single`, which are fitted and chosen on the texts that `chooses` marks (see
    `heedmap.experiments.questions.head_mixture`).
    """
    sample, half = sampled(context)
    nulls = _nulls(context)
    keys = ["trial", *GRADIENTS, *nulls]
    names = ["chooses", "chance", *(f"{quantity}_{key}" for key in keys for quantity in MEASURED)]
    columns: dict[str, dict[int, float]] = {name: {} for name in names}
    columns["chooses"] = dict(zip(sample.tolist(), half.astype(float).tolist(), strict=True))
    mixes: dict[int, Floats] = {}
    for row, maps in _maps(context, sample):
        if "head_mixture" in maps:
            mixes[row] = maps["head_mixture"]
        target = importance_of(context, row)
        if not np.isfinite(target).all():
            continue
        chance = columns["chance"][row] = 1 / len(target)
        for key, weights in maps.items():
            heat = even_if_zero(weights)
            columns[f"mass_{key}"][row] = mass_under_map(heat, target)
            columns[f"largest_{key}"][row] = mass_under_map(np.sort(heat), np.sort(target))
            columns[f"null_{key}"][row] = nulls[key][row] if key in nulls else chance
    maps_table = text_table(
        context,
        {name: SampledColumn.of_numbers(by_row) for name, by_row in columns.items()},
    )
    if "head_mixture" in nulls:
        tables = {
            "instances": context.table("instances"),
            "head_mixture": context.table("head_mixture"),
            "better_maps": maps_table,
        }
        results = Results(by_text(tables), context.settings, context.model.classes)
        (mix,) = (candidate for candidate in judge(results) if candidate.key == "head_mixture")
        shown = SampledColumn({} if mix.withheld else mixes, pa.list_(pa.float64()))
        maps_table = maps_table.append_column("head_mixture", shown.of_rows(0, maps_table.num_rows))
    return maps_table


def _nulls(context: AuditContext) -> dict[str, dict[int, float]]:
    """Return by text what mix and single map find if they come from shuffled leave-one-out."""
    if not isinstance(context.model, Layered):
        return {}
    maps = context.table("head_mixture").to_pandas()
    return {
        # What a weighting of maps finds is the weighted mean of what they find.
        name: (maps["mass"].where(maps[shuffled] > 0, 0.0) * maps[shuffled])
        .groupby(maps["row"])
        .sum()
        .to_dict()
        for name, shuffled in (("head_mixture", "mixed_shuffled"), ("single", "single_shuffled"))
    }


def _maps(
    context: AuditContext, sample: NDArray[np.int64]
) -> Iterator[tuple[int, dict[str, Floats]]]:
    """Yield each sampled text's maps."""
    lists = {
        "trial": context.table("instances")["attention"],
        **{name: context.table(name)["importance"] for name in GRADIENTS},
    }

    def others(row: int) -> dict[str, Floats]:
        lists_of_text = {name: values[row].as_py() for name, values in lists.items()}
        return {
            name: np.array(scores, float)
            for name, scores in lists_of_text.items()
            if scores is not None
        }

    model = context.model
    if not isinstance(model, Layered):
        for row in sample.tolist():
            yield row, others(row)
        return
    layer_maps = model.maps()
    weights = (
        context.table("head_mixture")
        .slice(0, len(layer_maps))
        .to_pandas()[["mixed", "single"]]
        .to_numpy()
    )
    weighted_maps = np.flatnonzero(weights.any(1))
    if not len(weighted_maps):  # no text could choose
        weighted_maps = np.array([0])
    for batch in context.batches_of(sample, shares=SCAN_SHARE):
        heatmaps = (
            model.heat_maps(batch, [layer_maps[i] for i in weighted_maps])
            .double()
            .numpy(force=True)
        )
        for row, of_text in zip(batch.rows.tolist(), heatmaps, strict=True):
            fixed = others(row)
            mix, single = weights[weighted_maps].T @ even_if_zero(of_text[:, : len(fixed["trial"])])
            yield row, {**fixed, "head_mixture": mix, "single": single}


@dataclass(frozen=True)
class Candidate:
    """A map beside the one on trial, on the texts that judge.

    `mass` and `largest` are NaN for other texts. [`low`, `high`] is the interval of the mean `share` of the
    attainable. `withheld` says why it is not to be shown instead; empty if it may be.
    """

    key: str
    name: str
    mass: Floats
    largest: Floats
    share: float
    low: float
    high: float
    withheld: str

    @property
    def percent(self) -> str:
        """Put the share in words, with its interval."""
        return _percent(self.share, self.low, self.high)


def judge(results: Results) -> list[Candidate]:
    """Judge the candidates on the texts that did not choose, and put first the one chosen by the others.

    Each is held against the map on trial on the texts that both have: integrated gradients have fewer.

    Chosen is, of those whose mean share of the attainable and of the importance is above the map's on trial,
    the one that finds most. It is withheld unless, on the other texts, the 95 % intervals of all these paired
    differences lie above 0: what it finds less what its null finds; less what the map on trial finds; and the
    same of the shares of the attainable.
    """
    chooses, chance = (results.column("better_maps", name) for name in ("chooses", "chance"))
    names = _names(results)
    keys = ["trial", *names]
    masses = {key: results.column("better_maps", f"mass_{key}") for key in keys}
    largest = {key: results.column("better_maps", f"largest_{key}") for key in keys}
    defined = {key: np.isfinite(masses[key]) & np.isfinite(masses["trial"]) for key in names}
    choosing = {key: defined[key] & (chooses == 1) for key in names}
    judging = {key: defined[key] & (chooses == 0) for key in names}
    share = {key: attained(masses[key], chance, largest[key]) for key in keys}

    def interval(key: str, values: Floats, bound: float) -> tuple[float, float]:
        is_judging, seed = judging[key], results.settings.seed
        rounded = np.round(values[is_judging], ROUNDED)
        return intervals.of_mean(rounded, results.clusters[is_judging], seed, (-bound, bound))

    def withheld(key: str) -> str:
        texts = [len(np.unique(results.clusters[half[key]])) for half in (choosing, judging)]
        if min(texts) < FEWEST:
            return (
                f"too few distinct texts: {texts[0]} to choose and {texts[1]} to judge, {FEWEST} are "
                "needed of each"
            )
        null = results.column("better_maps", f"null_{key}")
        null_name = "as fitted to shuffled leave-one-out" if key in OF_ATTENTION else "chance"
        for verdict, difference, bound in (
            (f"not certainly better than {null_name}", masses[key] - null, 1.0),
            ("not certainly better than the map on trial", masses[key] - masses["trial"], 1.0),
            ("not certainly nearer to its best order", share[key] - share["trial"], 2.0),
        ):
            low, high = interval(key, difference, bound)
            if not low > 0:
                numbers = f"{mean(difference[judging[key]]):z.2f} [{low:z.2f}, {high:z.2f}]"
                return f"{verdict} (difference {numbers.replace('-', '−')})"
        return ""

    candidates = []
    for key, name in names.items():
        low, high = interval(key, share[key], 1.0)
        value, best_mass = (np.where(judging[key], x[key], np.nan) for x in (masses, largest))
        attained_share = mean(share[key][judging[key]])
        candidates.append(
            Candidate(key, name, value, best_mass, attained_share, low, high, withheld(key))
        )

    def rank(candidate: Candidate) -> tuple[bool, float]:
        is_choosing = choosing[candidate.key]
        if not is_choosing.any():
            return False, 0.0
        gain, nearer = (
            float((x[candidate.key][is_choosing] - x["trial"][is_choosing]).mean())
            for x in (masses, share)
        )
        return min(gain, nearer) > 0, gain

    return sorted(candidates, key=rank, reverse=True)


def _names(results: Results) -> dict[str, str]:
    """Return the candidates' names by key."""
    names = {"gradient": "gradient × input", "integrated_gradients": "integrated gradients"}
    if "head_mixture" not in results.tables:
        return names
    maps = results.tables["head_mixture"].to_pandas().drop_duplicates(["view", "layer", "head"])
    mixed = maps[maps["mixed"] > 0].sort_values("mixed", ascending=False, kind="stable")
    heads = [
        f"{_place(head_map)} {head_map.mixed:z.0%}" for head_map in mixed.head(NAMED).itertuples()
    ]
    if len(mixed) > NAMED:
        heads.append(f"{len(mixed) - NAMED} others")
    single = [
        f"{VIEWS.get(head_map.view, head_map.view)}, {_place(head_map)}"
        for head_map in maps[maps["single"] > 0].itertuples()
    ]
    return {
        "head_mixture": f"a mix of heads ({', '.join(heads) or 'none'})",
        "single": f"the single map {single[0] if single else 'none'}",
        **names,
    }


def _place(head_map: Any) -> str:
    head = "mean over heads" if pd.isna(head_map.head) else f"head {head_map.head:z.0f}"
    return f"layer {head_map.layer} {head}"


def _percent(share: float, low: float, high: float) -> str:
    if not math.isfinite(share):
        return "an undefined share"
    if not math.isfinite(low):
        return signed_percent(share)
    return f"{signed_percent(share)} [{signed_percent(low)}, {signed_percent(high)}]"


def _findings(results: Results) -> list[Finding]:
    best, *runners_up = judge(results)
    chooses, chance, of_trial, of_best = (
        results.column("better_maps", name)
        for name in ("chooses", "chance", "mass_trial", f"mass_{best.key}")
    )
    trial = _share_of_trial(results, best)
    clause = f"{best.name}: {best.percent} of the attainable, against {trial} of this map"
    of_attention = [
        candidate
        for candidate in runners_up
        if candidate.key in OF_ATTENTION and not candidate.withheld
    ]
    if of_attention and best.key not in OF_ATTENTION:
        clause += f"; of attention, {of_attention[0].name}: {of_attention[0].percent}"
    listed = "; ".join(f"{candidate.name} {candidate.percent}" for candidate in runners_up)
    finding = results.finding(
        KEY,
        "importance_mass",
        best.mass,
        {
            "not sampled": np.isnan(chooses),
            "undefined: one token": results.short,
            "used to choose the map": chooses == 1,
            f"not sampled for {best.name}": np.isfinite(of_trial) & np.isnan(of_best),
        },
        topic="a better map",
        question="Would another heat map show better what the answer rests on?",
        measure=f"mean share of the importance (leave-one-out) that lies under {best.name}",
        meaning=(
            "chosen on half of the texts, judged by leave-one-out on the others, of which this map reaches "
            f"{trial} of the attainable and the other candidates {listed}; gradients are no attention. "
            "Leave-one-out, the judge here, can be shown itself; it costs one pass of the model per word"
        ),
        chance=chance,
        ceiling=best.largest,
    )
    return [
        replace(
            finding,
            level="for comparison",
            reading=f"none is certain to; {best.name}: {best.withheld}"
            if best.withheld
            else clause,
            because="" if best.withheld else f"show {best.name}",
        )
    ]


def _share_of_trial(results: Results, best: Candidate) -> str:
    """Return the share of the map on trial on the texts that judge."""
    judging = np.isfinite(best.mass)
    columns = (
        results.column("better_maps", name) for name in ("mass_trial", "chance", "largest_trial")
    )
    share = attained(*(values[judging] for values in columns))
    clusters, seed = results.clusters[judging], results.settings.seed
    rounded = np.round(share, ROUNDED)
    return _percent(mean(share), *intervals.of_mean(rounded, clusters, seed, (-1.0, 1.0)))


def _heat_maps(row: Row) -> list[HeatMap]:
    mix = row["better_maps"].get("head_mixture")
    return [] if mix is None else [HeatMap("heads mixed to fit leave-one-out", "attention", mix)]


def _cost(probe: CostProbe) -> float:
    if not isinstance(probe.context.model, Layered):
        return 0.0
    # Backward too, where the single map is one of the gradient.
    return probe.reading(BACKWARD, probe.context.settings.scan_instances)


EXPERIMENT = Experiment(
    "better_maps",
    better_maps,
    columns=COLUMNS,
    needs=("reading", "gradients", "classes"),
    place=95,
    findings=_findings,
    heat_maps=_heat_maps,
    cost=_cost,
)
