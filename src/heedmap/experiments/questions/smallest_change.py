"""How far must the heat map be bent before the answer changes, and how free is it meanwhile?"""

import time
from collections.abc import Callable, Container

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedmap.counterfactual import exact
from heedmap.counterfactual.local_search import best_pair
from heedmap.counterfactual.row_weights import permuted
from heedmap.counterfactual.simplex_share import share_drawn, share_within
from heedmap.counterfactual.smallest_change import (
    Change,
    farthest_order_mass,
    largest_divergence,
    smallest_divergence,
    smallest_mass,
)
from heedmap.counterfactual.tolerance import Instances, canonical_order
from heedmap.data.batches import scatter_rows
from heedmap.experiments.columns import Columns, shared
from heedmap.experiments.context import AuditContext
from heedmap.experiments.cost import CostProbe
from heedmap.experiments.findings import Finding
from heedmap.experiments.methods.readout import is_linear, linear
from heedmap.experiments.methods.smallest_change_search import passes_per_text, search_all
from heedmap.experiments.registry import Experiment, Row
from heedmap.experiments.results import Results, mean
from heedmap.experiments.text_tables import MAP_FACTS, null_where_nan, text_table
from heedmap.measures import jensen_shannon
from heedmap.models.trace import Trace
from heedmap.settings.models import SLOW

SHUFFLES = 6  # 3!: with up to three tokens every order comes equally often
DRAWS = 2000  # from the simplex, for more than two classes
ELEMENTS = 1 << 21  # numbers of the maps of a batch that are bent together: 16 MB
NO_CHANGE = "no weights whatever change the answer: a proof"
NOT_FOUND = "no weights that change the answer were found"


COLUMNS = Columns(
    "One row per text. Where the read-out is linear the distances are global optima; elsewhere they are upper "
    "bounds from line searches for a sample of the texts, null for the others, and some columns are missing.",
    {
        **shared("row", "predicted", "n_tokens", "max_attention"),
        "least_tvd": (
            "0 to 1",
            "the least mass that must move, ½ Σ |α − α̂|, before another class is predicted (a tie counts); "
            "null where no weights change the class, or none were found",
        ),
        "least_jsd": ("nats, 0 to ln 2", "the least JSD from the map, likewise"),
        "least_jsd_gap": ("nats, from 0", "distance of `least_jsd` to its certified bound"),
        "least_tvd_largest": (
            "0 to 1",
            "the largest `least_tvd` of any order of the same weights; of more than two classes no order has "
            "more",
        ),
        "changeable": (
            "true or false",
            "whether any weights change the class; where it is searched for, true or unknown",
        ),
        "shuffled_{number}": (
            "as `{number}`",
            f"mean of `{{number}}` over {SHUFFLES} shuffles of the weights within the text, each at its own "
            "prediction",
        ),
        "shuffled_from_answer_tvd": (
            "0 to 1",
            "mean least mass from the shuffled weights to another class than the model's; 0 where they "
            "predict one already",
        ),
        "shuffled_flipped": (
            "0 to 1",
            "share of the shuffles that predict another class than the model's",
        ),
        "own_maximum": (
            "nats, 0 to ln 2",
            "the largest JSD from the map to any that weights make, whatever is predicted; of a transformer's "
            "maps a bound",
        ),
        "jsd_share": ("0 to 1", "the adversary's `jsd` as a share of `own_maximum`"),
        "jsd_share_upper": ("0 to 1", "the adversary's `jsd_upper` as a share of it"),
        "jsd_share_pairs": (
            "0 to 1",
            "the same by single positions and pairs of positions alone: the optimum for two classes, a lower "
            "bound for more",
        ),
        "simplex_share": (
            "0 to 1",
            f"share of all weightings that predict the same within ε: exact for two classes, of {DRAWS} draws "
            "for more",
        ),
    },
    number={name: name for name in ("least_tvd", "least_jsd", "jsd_share_pairs", "simplex_share")},
)


def smallest_change(context: AuditContext) -> pa.Table:
    """Return the distance to the nearest weights that change the predicted class, and how free the map is.

    Where the read-out is linear all distances are global optima (`counterfactual.smallest_change`). If the
    weights had nothing to do with what they are on, they would be as far from a change as the `shuffled_...`
    are on average, each at *its own* predicted class. `shuffled_from_answer_...` is larger for the model's own
    weights even if those are random, because the answer was computed from them.

    Elsewhere the distances are upper bounds, of the heat map (see `smallest_change_search`). Nothing depends on
    the order of the tokens.
    """
    linear_here = is_linear(next(context.traces))
    columns = measured(context) if linear_here else search_all(context)
    adversary = context.table("adversary")
    jsd, upper = (
        adversary[name].to_numpy(zero_copy_only=False).astype(np.float64)
        for name in ("jsd", "jsd_upper")
    )
    if not linear_here:
        # Weights of one layer hardly move a rollout: its own reach is what there is to be free in.
        columns["own_maximum"] = np.minimum(columns["own_maximum"], upper)
    largest = columns["own_maximum"]
    for name, bound in (("jsd_share", jsd), ("jsd_share_upper", upper)):
        columns[name] = np.minimum(bound, largest) / np.where(largest > 0, largest, np.nan)
    return text_table(context, null_where_nan(columns), copied=MAP_FACTS)


def is_searched(columns: Container[str]) -> bool:
    """Return whether a table with these columns has upper bounds from a search, not optima."""
    return "least_jsd_gap" not in columns


def measured(context: AuditContext) -> dict[str, np.ndarray]:
    """Return the columns where the read-out is linear."""
    rows, parts = [], []
    for trace in context.traces:
        rows.append(trace.rows)
        parts.append(_of_batch(context, trace))
    columns = {name: scatter_rows(rows, [part[name] for part in parts]) for name in parts[0]}
    arrays = {name: column.double().numpy(force=True) for name, column in columns.items()}
    finite = {name: np.where(np.isfinite(x), x, np.nan) for name, x in arrays.items()}
    return {**finite, "changeable": np.isfinite(arrays["least_tvd"])}


def _of_batch(context: AuditContext, trace: Trace) -> dict[str, Float[Tensor, " B"]]:
    weights, relevance, bias = linear(trace)
    order = canonical_order(weights, relevance, trace.mask)
    weights, mask = weights.gather(1, order), trace.mask.gather(1, order)
    relevance = relevance.gather(1, order.unsqueeze(-1).expand(relevance.shape))
    rest = (relevance, bias, mask)
    rngs = context.generators("bending", trace.rows)
    shuffles = torch.cat(
        list(permuted(weights.unsqueeze(1), mask.unsqueeze(1), SHUFFLES, rngs))
    ).squeeze(2)
    maps = torch.cat([weights[None], shuffles])
    logits = torch.einsum("sbt,btc->sbc", maps, relevance) + bias
    epsilon, answer = context.settings.epsilon, trace.predicted.expand(len(maps), -1)
    # The model's own prediction is that of its logits in its own precision.
    predicted = torch.cat([answer[:1], logits[1:].argmax(-1)])
    mass, _ = _distances(smallest_mass, maps, *rest, predicted)
    from_answer, _ = _distances(smallest_mass, shuffles, *rest, answer[1:])
    divergence, bound = _distances(smallest_divergence, maps, *rest, predicted)
    pairs = torch.stack([_share_by_pairs(weighting, *rest, epsilon) for weighting in maps])
    if len(bias) == 2:
        shares = share_within(logits, *rest, epsilon)
    else:
        shares = share_drawn(logits, *rest, epsilon, DRAWS, rngs)
    columns = {
        "least_tvd_largest": farthest_order_mass(weights, *rest, answer[0]),
        "least_jsd_gap": divergence[0] - bound[0],
        "shuffled_from_answer_tvd": from_answer.mean(0),
        "shuffled_flipped": (predicted[1:] != answer[1:]).double().mean(0),
        "own_maximum": largest_divergence(weights, mask),
    }
    for name, values in (
        ("least_tvd", mass),
        ("least_jsd", divergence),
        ("jsd_share_pairs", pairs),
        ("simplex_share", shares),
    ):
        columns |= {name: values[0], f"shuffled_{name}": values[1:].mean(0)}
    return columns


def _distances(
    nearest: Callable[..., Change],
    maps: Float[Tensor, "S B T"],
    relevance: Float[Tensor, "B T C"],
    bias: Float[Tensor, " C"],
    mask: Bool[Tensor, "B T"],
    predicted: Int[Tensor, "S B"],
) -> tuple[Float[Tensor, "S B"], Float[Tensor, "S B"]]:
    """Return the distances of S maps per text and their certified bounds, some maps at a time."""
    maps_at_once = max(1, ELEMENTS // max(1, relevance.numel()))
    parts = []
    for weights, answers in zip(
        torch.split(maps, maps_at_once), torch.split(predicted, maps_at_once), strict=True
    ):
        times = len(weights)
        problem = (relevance.repeat(times, 1, 1), bias, mask.repeat(times, 1), answers.flatten())
        change = nearest(weights.flatten(0, 1), *problem)
        parts.append(torch.stack([change.distance, change.lower_bound]).reshape(2, times, -1))
    distance, lower_bound = torch.cat(parts, dim=1)
    return distance, lower_bound


def _share_by_pairs(
    weights: Float[Tensor, "B T"],
    relevance: Float[Tensor, "B T C"],
    bias: Float[Tensor, " C"],
    mask: Bool[Tensor, "B T"],
    epsilon: float,
) -> Float[Tensor, " B"]:
    """Return the largest JSD within ε that one or two positions reach, as a share of the map's own maximum."""
    if len(bias) == 2:
        jsd = exact.adversary(weights, relevance, bias, mask, epsilon).jsd
    else:
        adversary_weights = best_pair(
            Instances.from_readout(weights, relevance, bias, mask, epsilon)
        )
        jsd = jensen_shannon(adversary_weights, weights)
    largest = largest_divergence(weights, mask)
    return torch.where(largest > 0, jsd / largest, torch.nan)


def _findings(results: Results) -> list[Finding]:
    columns = results.tables["smallest_change"].column_names
    findings = [_bent(results), _changeable(results), _free(results)]
    return findings if is_searched(columns) else [*findings, _same(results)]


def _bent(results: Results) -> Finding:
    searched = is_searched(results.tables["smallest_change"].column_names)
    values = results.column("smallest_change", "least_tvd")
    shuffled = results.column("smallest_change", "shuffled_least_tvd")
    sampled = results.column("smallest_change", "own_maximum")
    is_defined = np.isfinite(values) & ~results.short
    fair = is_defined & np.isfinite(shuffled)
    fair_note = ""
    if fair.sum() < is_defined.sum():
        fair_note = f" (n = {fair.sum()}; the map there {_number(mean(values[fair]))})"
    return results.finding(
        "smallest_change",
        "mass",
        np.where(results.short, np.nan, values),
        {
            "not asked: the flow would have to be recomputed for every weighting that is tried": np.full(
                len(values), results.view in SLOW
            ),
            "one token: no other weights": results.short,
            "not sampled for the search": np.isnan(sampled),
            NOT_FOUND if searched else NO_CHANGE: np.isnan(values),
        },
        topic="hard to bend to another answer",
        question="How far must the heat map be bent before the answer changes?",
        measure="mean least share of the map's mass that must be moved"
        + (", at most: found by line searches" if searched else ""),
        meaning="0 = the least change suffices, 1 = all of it must move",
        summary=f"{_number(mean(shuffled[fair]))} from the same weights shuffled within the text, to an answer "
        f"other than theirs{fair_note}",
        chance=shuffled,
        ceiling=results.optional("smallest_change", "least_tvd_largest"),
    )


def _changeable(results: Results) -> Finding:
    searched = is_searched(results.tables["smallest_change"].column_names)
    values = results.column("smallest_change", "changeable")
    if searched:
        values = np.where(
            np.isfinite(results.column("smallest_change", "own_maximum")), values == 1, np.nan
        )
    return results.finding(
        "changeable",
        "fraction",
        np.where(results.short, np.nan, values),
        {
            "one token: no other weights": results.short,
            "not sampled for the search": np.isnan(values),
        },
        topic="whether weights can decide",
        question="Could any weights at all change the answer?",
        measure="share of the texts where some weights give another answer"
        + (", at least: found by line searches" if searched else ""),
        meaning="of the others nothing is known"
        if searched
        else "of the others the answer does not rest on the weights: the states alone decide it",
    )


def _free(results: Results) -> Finding:
    """Compare the freedom at the same prediction with what the text allows at all."""
    share, upper = (results.column("smallest_change", f"jsd_share{end}") for end in ("", "_upper"))
    two = (
        len(results.classes) == 2
        and "shuffled_jsd_share_pairs" in results.tables["smallest_change"].column_names
    )
    shuffled = results.optional("smallest_change", "shuffled_jsd_share_pairs")
    is_defined = np.isfinite(share)
    parts = [] if two else [f"at most {_number(mean(upper))}"]
    if shuffled is not None and not two:
        pair_mean = mean(results.column("smallest_change", "jsd_share_pairs")[is_defined])
        parts.append(f"with one or two words alone {_number(pair_mean)}")
    if shuffled is not None:
        parts.append(f"{_number(mean(shuffled[is_defined]))} for the same weights shuffled")
    return results.finding(
        "relative_freedom",
        "fraction",
        share,
        {
            "one token: no other weights": results.short,
            "not sampled for the search": np.isnan(share),
        },
        topic="freedom of the map",
        question="How much of its freedom does the heat map keep when the answer must stay?",
        measure=f"mean of the largest JSD within {results.settings.epsilon:g} of the prediction, as a "
        "share of the largest with any weights" + ("" if two else ", at least"),
        meaning="0 = no other heat map, 1 = as if the answer did not matter",
        summary=", ".join(parts),
        chance=shuffled if two else None,
        ceiling=0.0,
        lower=True,
    )


def _same(results: Results) -> Finding:
    exactly = len(results.classes) == 2
    return results.finding(
        "simplex_share",
        "fraction",
        np.where(results.short, np.nan, results.column("smallest_change", "simplex_share")),
        {"one token: no other weights": results.short},
        np.median,
        topic="maps that predict the same",
        question="How many of all heat maps give the same prediction?",
        measure=f"median share of all weightings within {results.settings.epsilon:g} of the prediction"
        + ("" if exactly else f", of {DRAWS} drawn evenly"),
        meaning="0 = hardly any other, 1 = all",
        chance=results.optional("smallest_change", "shuffled_simplex_share"),
        ceiling=0.0,
        lower=True,
    )


def _number(value: float) -> str:
    return f"{value:.3f}" if np.isfinite(value) else "none"


def _facts(row: Row) -> list[tuple[str, float | int | None]]:
    mine = row["smallest_change"]
    qualifier = "at most " if is_searched(mine) else ""
    return [
        (
            f"mass to move for another answer{', ' + qualifier.strip() if qualifier else ''}",
            mine["least_tvd"],
        ),
        ("share of all weightings with this prediction", mine.get("simplex_share")),
    ]


def _cost(probe: CostProbe) -> float:
    """Return seconds: measured on the batch of the forecast, or passes above the weights."""
    context, texts = probe.context, len(probe.context.lengths)
    if not is_linear(probe.trace):
        searched = probe.sampled(context.settings.search_instances) * texts
        return searched * passes_per_text() * probe.again
    start = time.perf_counter()
    _of_batch(context, probe.trace)
    return (time.perf_counter() - start) / len(probe.trace.rows) * probe.squares()


EXPERIMENT = Experiment(
    "smallest_change",
    smallest_change,
    columns=COLUMNS,
    needs=("classes",),
    place=75,
    findings=_findings,
    figures=(
        "heedmap.report.smallest_change_figures:bent",
        "heedmap.report.smallest_change_figures:relative_freedom",
    ),
    facts=_facts,
    cost=_cost,
    in_chunks=True,
)
