"""How much must be erased before the decision flips, along the map and at the very least?

Serrano & Smith 2019; the smallest set is exact (`heedmap.counterfactual.weight_erasure`).
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Float
from torch import Tensor

from heedmap.counterfactual.weight_erasure import smallest
from heedmap.experiments.columns import Columns, shared
from heedmap.experiments.context import AuditContext
from heedmap.experiments.cost import BACKWARD, CostProbe
from heedmap.experiments.findings import Finding
from heedmap.experiments.methods.erasure_predictions import (
    along,
    is_closed,
    rest_in_words,
    traces_of,
    with_nothing_left,
)
from heedmap.experiments.methods.erasure_predictions import shuffled as shuffled_traces
from heedmap.experiments.methods.flip_sets import RANKINGS, first_words, rankings
from heedmap.experiments.methods.readout import is_linear, linear
from heedmap.experiments.registry import Experiment, Row
from heedmap.experiments.results import Results, mean, percent
from heedmap.experiments.text_tables import text_table
from heedmap.models.trace import Trace

SHUFFLES = 5  # random rankings, as in the paper


COLUMNS = Columns(
    "One row per text. Tokens' weights are erased one after another, the first of a ranking first, until "
    "another class is predicted, while any token is left. Null for texts of one token, and those not sampled "
    "where the read-out is not linear. Columns of leave-one-out are null where the model cannot read again.",
    {
        **shared("row", "predicted", "n_tokens"),
        "count_{ranking}": (
            "count",
            "tokens that this takes by {ranking}; 0 if no number of them does",
        ),
        "mass_{ranking}": ("0 to 1", "attention on these tokens; null if no number of them does"),
        "efficiency_{ranking}": (
            "0 to 1",
            "`count_exact` / `count_{ranking}`: 0 if it never flips, null if nothing does. Where `count_exact` "
            "is not known, the fewest that any of the rankings needs",
        ),
        "count_exact": (
            "count",
            "tokens of the smallest set that flips; 0 is a proof that none does. Null where the read-out is "
            "not linear, or sparse weights are normalised again",
        ),
        "mass_exact": ("0 to 1", "attention on that set"),
        "smallest_set": (
            "list of places, from 0",
            "the tokens of that set; where it is not known, the first of the ranking that needs the fewest. "
            "Null where nothing flips",
        ),
        "count_random": (
            f"list of {SHUFFLES} counts",
            "tokens that flipping takes by each of so many random orders",
        ),
        "mass_random": (f"list of {SHUFFLES}, 0 to 1", "attention on these tokens"),
        "efficiency_random": ("0 to 1", "mean efficiency of these orders"),
        "efficiency_shuffled": (
            "0 to 1",
            "mean efficiency of the map under shuffled weights, beside their own smallest set; null where that "
            "is not known, or nothing flips under them",
        ),
        "fraction_attention": ("0 to 1", "`count_attention` / `n_tokens`; null if it never flips"),
        "empty_flips": (
            "true or false",
            "whether another class is predicted with all tokens erased, which Serrano & Smith count as a flip "
            "of every ranking",
        ),
    },
    ranking=RANKINGS,
)


def decision_flips(context: AuditContext) -> pa.Table:
    """Erase tokens one after another, until another class is predicted, while any token is left.

    The largest of a ranking are first; `gradient` and `product` are signed (see `slopes`). Where a sparse
    normaliser's weights are normalised again, no smallest set is known: what is kept then has other weights
    with every set.
    """
    total = len(context.split)
    names = (*RANKINGS, "exact")
    columns = {
        f"{quantity}_{name}": np.full(total, np.nan)
        for name in names
        for quantity in ("count", "mass")
    }
    empty = np.full(total, np.nan)
    shuffled = {quantity: np.full((total, SHUFFLES), np.nan) for quantity in ("count", "mass")}
    by_chance = np.full(total, np.nan)
    sets: list[list[int] | None] = [None] * total
    renormalise = context.settings.renormalise
    for trace in traces_of(context):
        rows = trace.rows.numpy(force=True)
        # A text of one token has nothing left to predict from once that is erased.
        long = (trace.mask.sum(-1) > 1).numpy(force=True)
        values_by_ranking = rankings(context, trace)
        for name, ranking in values_by_ranking.items():
            _put(columns, name, rows, along(context.model, trace, ranking, renormalise), long)
        changed = with_nothing_left(context.model, trace).numpy(force=True)
        empty[rows] = np.where(long, changed, np.nan)
        if is_closed(trace, renormalise):
            weights, relevance, bias = linear(trace)
            smallest_flip, erased = smallest(weights, relevance, bias, trace.mask, trace.predicted)
            _put(columns, "exact", rows, smallest_flip, long)
            by_chance[rows] = np.where(long, _by_chance(context, trace), np.nan)
        else:
            counts = [
                {
                    f"count_{name}": int(np.nan_to_num(columns[f"count_{name}"][row]))
                    for name in RANKINGS
                }
                for row in rows
            ]
            erased = first_words(trace, values_by_ranking, counts)
        for row, is_long, words in zip(rows.tolist(), long, erased, strict=True):
            sets[row] = words.nonzero().flatten().tolist() if is_long and words.any() else None
        for k, ranking in enumerate(_shuffles(context, trace)):
            flip = along(context.model, trace, ranking, renormalise)
            random_columns = {
                f"{quantity}_random": np.full(total, np.nan) for quantity in ("count", "mass")
            }
            _put(random_columns, "random", rows, flip, long)
            for quantity, values in shuffled.items():
                values[rows, k] = random_columns[f"{quantity}_random"][rows]
    sizes = context.table("instances")["n_tokens"].to_numpy()
    columns |= _efficiencies(columns, shuffled["count"], sizes)
    columns["efficiency_shuffled"] = by_chance
    return text_table(
        context,
        {
            **{name: _nullable(name, values) for name, values in columns.items()},
            "smallest_set": pa.array(sets, pa.list_(pa.int64())),
            "empty_flips": pa.array(empty, pa.float64(), from_pandas=True).cast(pa.bool_()),
            **{
                f"{quantity}_random": pa.array(
                    [None if np.isnan(row).all() else row.tolist() for row in values],
                    pa.list_(pa.float64()),
                )
                for quantity, values in shuffled.items()
            },
        },
        copied=["predicted", "n_tokens"],
    )


def _by_chance(context: AuditContext, trace: Trace) -> np.ndarray:
    """Return the mean efficiency of shuffled weights as a ranking, each beside its own smallest set."""
    shares = []
    for shuffled_trace in shuffled_traces(context, trace, "flips_shuffled"):
        weights, relevance, bias = linear(shuffled_trace)
        smallest_flip, _ = smallest(
            weights, relevance, bias, shuffled_trace.mask, shuffled_trace.predicted
        )
        flip = along(
            context.model,
            shuffled_trace,
            shuffled_trace.ranked_heatmap.double(),
            context.settings.renormalise,
        )
        counts = (erasure.count.double() for erasure in (smallest_flip, flip))
        shares.append(torch.from_numpy(efficiency(*(count.numpy(force=True) for count in counts))))
    return torch.stack(shares).nanmean(0).numpy()


def _efficiencies(
    columns: dict[str, np.ndarray], random: np.ndarray, size: np.ndarray
) -> dict[str, np.ndarray]:
    counts = {name: columns[f"count_{name}"] for name in RANKINGS}
    smallest_count = columns["count_exact"]
    if not np.isfinite(smallest_count).any():
        smallest_count = fewest([*counts.values(), *random.T])
    efficiencies = {
        f"efficiency_{name}": efficiency(smallest_count, count) for name, count in counts.items()
    }
    efficiencies["efficiency_random"] = np.mean(
        [efficiency(smallest_count, random_count) for random_count in random.T], axis=0
    )
    map_count = counts["attention"]
    efficiencies["fraction_attention"] = np.where(map_count > 0, map_count / size, np.nan)
    return efficiencies


def _nullable(name: str, values: np.ndarray) -> pa.Array:
    of_type = pa.int64() if name.startswith("count") else pa.float64()
    return pa.array(values, of_type, from_pandas=True, safe=False)


def _put(
    columns: dict[str, np.ndarray],
    name: str,
    rows: np.ndarray,
    flip: object,
    long: np.ndarray,
) -> None:
    count, mass = (
        getattr(flip, quantity).double().numpy(force=True) for quantity in ("count", "mass")
    )
    columns[f"count_{name}"][rows] = np.where(long, count, np.nan)
    columns[f"mass_{name}"][rows] = np.where(long & (count > 0), mass, np.nan)


def _shuffles(context: AuditContext, trace: Trace) -> Float[Tensor, "S B T"]:
    """Draw random rankings of each text from its own generator, whatever the padding."""
    result = torch.zeros(SHUFFLES, *trace.mask.shape, dtype=torch.float64)
    for i, rng in enumerate(context.generators("flips", trace.rows)):
        real = trace.mask[i].cpu()
        result[:, i, real] = torch.from_numpy(rng.random((SHUFFLES, int(real.sum()))))
    return result.to(trace.mask.device)


def efficiency(smallest_count: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Return k_min / k of a ranking: 0 where it never flips, NaN where no set does.

    >>> efficiency(np.array([1.0, 2.0, 2.0, 0.0]), np.array([1.0, 5.0, 0.0, 0.0]))
    array([1. , 0.4, 0. , nan])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(count > 0, smallest_count / count, 0.0)
    return np.where((smallest_count > 0) & np.isfinite(count), share, np.nan)


def fewest(counts: Sequence[np.ndarray]) -> np.ndarray:
    """Return per text the fewest that any ranking needs: 0 where none flips, NaN where it was not asked."""
    stacked = np.stack(counts)
    smallest_count = np.where(stacked > 0, stacked, np.inf).min(0)
    return np.where(
        np.isfinite(stacked[0]), np.where(np.isfinite(smallest_count), smallest_count, 0.0), np.nan
    )


def _findings(results: Results) -> list[Finding]:
    exact = bool(np.isfinite(results.column("decision_flips", "count_exact")).any())
    shares = {
        name: results.column("decision_flips", f"efficiency_{name}")
        for name in (*RANKINGS, "random")
    }
    others = [name for name in RANKINGS if name != "attention"]
    if not results.can_read:
        others.remove("leave_one_out")
    by_ranking = ", ".join(f"{RANKINGS[name]} {mean(shares[name]):z.2f}" for name in others)
    is_sampled = np.isfinite(results.column("decision_flips", "count_attention"))
    flippable = np.isfinite(shares["attention"])
    fractions = results.column("decision_flips", "fraction_attention")[flippable]
    fractions = fractions[np.isfinite(fractions)]
    again = (
        results.settings.renormalise == "again"
        and results.optional("erasure", "above_scale") is not None
    )
    unknown = "the smallest set has no closed form where weights are normalised again; " * again
    return [
        results.finding(
            "decision_flips",
            "fraction",
            shares["attention"],
            {
                "one token: nothing else is left": results.short,
                "not sampled": ~is_sampled,
                "no set of words flips the answer while one is left: a proof"
                if exact
                else "no ranking flips the answer": is_sampled & ~flippable,
            },
            topic="erasing along the map",
            question="How soon does the answer change if words are erased in the order of the map?",
            measure="mean of the fewest erased words that change the answer / those that the map's order takes",
            meaning=f"1 = as few as possible{'' if exact else ' among these rankings'}",
            summary=f"{unknown}{by_ranking}, at random {mean(shares['random']):z.2f}; the map's order changes "
            f"{percent(mean((shares['attention'][flippable] > 0).astype(float)))} of these texts, after a "
            f"median of {percent(float(np.median(fractions)) if len(fractions) else np.nan)} of the words; "
            f"{rest_in_words(results.settings.renormalise)}",
            chance=results.optional("decision_flips", "efficiency_shuffled") if exact else None,
            ceiling=1.0 if exact else None,
        )
    ]


def _facts(row: Row) -> list[tuple[str, float | int | None]]:
    counts = row["decision_flips"]
    return [
        ("words erased until the answer changes", counts["count_attention"] or None),
        ("the fewest that change it", counts["count_exact"] or None),
    ]


def _cost(probe: CostProbe) -> float:
    """Return seconds: little in closed form, else each ranking of the sample word by word."""
    context = probe.context
    if is_closed(probe.trace, context.settings.renormalise):
        return 0.0
    linear_here = is_linear(probe.trace)
    sampled = 1.0 if linear_here else probe.sampled(context.settings.search_instances)
    passes = len(RANKINGS) + SHUFFLES
    return (
        sampled
        * probe.again
        * (float(context.lengths.sum()) * passes + BACKWARD * len(context.lengths))
    )


EXPERIMENT = Experiment(
    "decision_flips",
    decision_flips,
    columns=COLUMNS,
    needs=("classes",),
    place=64,
    findings=_findings,
    figures=("heedmap.report.erasure_figures:curves",),
    facts=_facts,
    cost=_cost,
    in_chunks=True,
)
