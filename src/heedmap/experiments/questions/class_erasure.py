"""Does the map rank what speaks against a class as well as what speaks for it?

A word whose erasure makes no other class win may still matter: it speaks against a class, or only lowers one
that is not predicted. Decision flips do not see it; here each class is asked by itself (docs/erasure.md).
"""

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from heedmap.counterfactual.weight_erasure import along_each, smallest_each
from heedmap.experiments.columns import Columns, shared
from heedmap.experiments.context import AuditContext
from heedmap.experiments.cost import CostProbe
from heedmap.experiments.findings import Finding
from heedmap.experiments.methods.class_sides import SIDES, of_classes, sides, taus
from heedmap.experiments.methods.erasure_predictions import (
    SHUFFLES,
    is_closed,
    rest_in_words,
    shuffled,
    traces_of,
)
from heedmap.experiments.methods.readout import is_linear, linear
from heedmap.experiments.questions.decision_flips import efficiency
from heedmap.experiments.registry import Experiment
from heedmap.experiments.results import Results, mean, percent
from heedmap.files.tables import table
from heedmap.measures import levelled, rounding_of
from heedmap.models.trace import Trace

MOST = 12  # classes of a text: the predicted one and the likeliest others
COUNTS = ("exact", "attention", "product")


COLUMNS = Columns(
    f"One row per text and class: the predicted one and the likeliest others, at most {MOST}; of two classes "
    "the predicted one alone. No rows for texts of one token, and those not sampled where the read-out is not "
    "linear. A token speaks for a class if erasing its weight alone lowers the class's log-odds, against it if "
    "that raises them, by more than their rounding.",
    {
        **shared("row", "predicted"),
        "class": ("class", "the class that the row is of"),
        "sampled": ("true or false", "whether the text is asked for its taus"),
        "probability": ("0 to 1", "the class's probability"),
        "count_exact": (
            "count",
            "the fewest tokens without whose weights the class is ahead of the predicted one; 0 is a proof "
            "that there are none. Null for the predicted class, and where the read-out is not linear or "
            "sparse weights are normalised again",
        ),
        "count_attention": ("count", "tokens that this takes along the map; 0 for never"),
        "count_product": (
            "count",
            "tokens that this takes along weight × (read-out of the predicted class − of this one); 0 for "
            "never",
        ),
        "efficiency_chance": (
            "0 to 1",
            f"mean of `count_exact` / `count_attention` under {SHUFFLES} shuffles of the weights, both counted "
            "again; null where `count_exact` is 0 or null, or nothing puts the class ahead under them",
        ),
        "share_{side}": ("0 to 1", "share of the tokens that speak {side} the class"),
        "weight_{side}": (
            "0 to 1",
            "share of the map's weight on tokens that speak {side} the class",
        ),
        "tau_{side}": (
            "−1 to 1",
            "tau-b of the map with the size of the change of the log-odds, among tokens that speak {side} the "
            "class; null for fewer than two, if either is the same for all, or if the text is not `sampled`",
        ),
        "tau_{side}_chance": (
            "−1 to 1",
            "mean of the same under shuffled weights, everything computed again",
        ),
        "tau_{side}_largest": ("−1 to 1", "the largest that ties allow"),
    },
    side={side: side for side in SIDES},
)


def class_erasure(context: AuditContext) -> pa.Table:
    """Return what erasing tokens does to each class: a row per text and class.

    An answer that is ruled out is no class. Of two classes what speaks against one speaks for the other; their
    counts are those of the table `decision_flips`. Pairs of tokens are many: taus are of a sample
    (`search_instances`), also if the read-out is linear.
    """
    parts: list[dict[str, NDArray[np.float64]]] = []
    sample = context.sample("adversary", context.settings.search_instances)
    for trace in traces_of(context):
        is_sampled = torch.isin(trace.rows.cpu(), torch.from_numpy(sample)).to(trace.mask.device)
        parts.append(_of_batch(context, trace, is_sampled))
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    # Batches hold texts of similar lengths; the table is in the order of the texts.
    order = np.lexsort((columns["class"], columns["row"]))
    types = dict.fromkeys(
        ("row", "predicted", "class", *map("count_{}".format, COUNTS)), pa.int64()
    )
    types["sampled"] = pa.bool_()
    return table(
        {
            name: pa.array(values[order], pa.float64(), from_pandas=True).cast(
                types.get(name, pa.float64())
            )
            for name, values in columns.items()
        }
    )


def _of_batch(
    context: AuditContext, trace: Trace, is_sampled: Bool[Tensor, " B"]
) -> dict[str, NDArray[np.float64]]:
    """Return the columns for the rows of one batch."""
    shares = trace.logits.double().softmax(-1)
    classes = _classes(shares)  # (B, R)
    numbers: dict[str, Float[Tensor, "B R"]] = {
        "probability": shares.gather(1, classes),
        **_counts(context, trace, classes),
        **sides(context, trace, classes),
        **taus(context, trace, classes, is_sampled),
    }
    whole = {
        "row": trace.rows.unsqueeze(1).expand_as(classes),
        "predicted": trace.predicted.unsqueeze(1).expand_as(classes),
        "class": classes,
        "sampled": is_sampled.unsqueeze(1).expand_as(classes),
    }
    is_erasable = (trace.mask.sum(-1, keepdim=True) > 1) & (numbers["probability"] > 0)
    columns = whole | numbers
    return {
        name: values[is_erasable].double().numpy(force=True) for name, values in columns.items()
    }


def _classes(shares: Float[Tensor, "B C"]) -> Int[Tensor, "B R"]:
    """Return the classes of each text, the likeliest first; of two classes the first alone."""
    order = shares.argsort(dim=-1, descending=True, stable=True)
    return order[:, :1] if shares.shape[1] == 2 else order[:, :MOST]


def _counts(
    context: AuditContext, trace: Trace, classes: Int[Tensor, "B R"]
) -> dict[str, Float[Tensor, "B R"]]:
    names = (*(f"count_{name}" for name in COUNTS), "efficiency_chance")
    nothing = torch.full(classes.shape, torch.nan, dtype=torch.float64, device=classes.device)
    if classes.shape[1] == 1 or not is_closed(trace, context.settings.renormalise):
        return dict.fromkeys(names, nothing)
    weights, relevance, bias = linear(trace)
    # The predicted class first: only what is asked of is compared with it, however many classes there are.
    compared_classes = torch.cat([trace.predicted.unsqueeze(1), classes], 1)
    alone = of_classes(relevance + bias, compared_classes)
    rest = (
        weights,
        alone,
        bias.new_zeros(compared_classes.shape[1]),
        trace.mask,
        torch.zeros_like(trace.predicted),
    )
    exact = smallest_each(*rest)[0].count
    counts = {
        "count_exact": exact,
        "count_attention": along_each(trace.ranked_heatmap.double().unsqueeze(-1), *rest),
        "count_product": along_each(
            _products(trace, weights, of_classes(relevance, compared_classes)), *rest
        ),
    }
    chance = _by_chance(context, trace, classes).masked_fill(exact == 0, torch.nan)
    rival = classes != trace.predicted.unsqueeze(1)
    return {
        name: values.double()[:, 1:].where(rival, nothing)
        for name, values in {**counts, "efficiency_chance": chance}.items()
    }


def _products(
    trace: Trace, weights: Float[Tensor, "B T"], relevance: Float[Tensor, "B T R"]
) -> Float[Tensor, "B T R"]:
    """Return weight × (read-out of the first class − of each); what differs by rounding alone is equal."""
    slope = (relevance[..., :1] - relevance).transpose(1, 2).double()  # (B, R, T)
    mask, weights = trace.mask.unsqueeze(1), weights.double().unsqueeze(1)
    error = rounding_of(slope.abs().masked_fill(~mask, 0.0).amax(-1, keepdim=True)) * weights
    return levelled(slope * weights, mask, error).transpose(1, 2)


def _by_chance(
    context: AuditContext, trace: Trace, classes: Int[Tensor, "B R"]
) -> Float[Tensor, "B _"]:
    """Return the efficiency of shuffled weights, each beside its own smallest set.

    The first column is of the predicted class, the others of the `classes`. The class that is predicted under
    the shuffled weights is the one that another is to be put ahead of. NaN where no set of words does.
    """
    shares = []
    for shuffled_trace in shuffled(context, trace, "class_erasure"):
        weights, relevance, bias = linear(shuffled_trace)
        compared_classes = torch.cat([shuffled_trace.predicted.unsqueeze(1), classes], 1)
        rest = (
            weights,
            of_classes(relevance + bias, compared_classes),
            bias.new_zeros(compared_classes.shape[1]),
            shuffled_trace.mask,
            torch.zeros_like(shuffled_trace.predicted),
        )
        smallest_count = smallest_each(*rest)[0].count
        count = along_each(shuffled_trace.ranked_heatmap.double().unsqueeze(-1), *rest)
        share = torch.where(count > 0, smallest_count / count.clamp(min=1), 0.0).masked_fill(
            smallest_count == 0, torch.nan
        )
        shares.append(
            share.double().masked_fill(
                compared_classes == shuffled_trace.predicted.unsqueeze(1), torch.nan
            )
        )
    return torch.stack(shares).nanmean(0)


def _by_text(results: Results, name: str, is_class: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the mean of a column over some of a text's classes; NaN where there is none."""
    rows = results.column("class_erasure", "row").astype(int)
    values = results.column("class_erasure", name)
    return _means(rows, values, is_class, len(results.predicted))


def _means(
    rows: NDArray[np.int64], values: NDArray[np.float64], is_class: NDArray[np.bool_], total: int
) -> NDArray[np.float64]:
    is_defined = is_class & np.isfinite(values)
    count = np.bincount(rows[is_defined], minlength=total)
    sums = np.bincount(rows[is_defined], values[is_defined], minlength=total)
    return np.where(count > 0, sums / np.maximum(count, 1), np.nan)


def _findings(results: Results) -> list[Finding]:
    """Ask of the predicted class alone if there are two, else of each class."""
    several = len(results.classes) > 2
    has_exact = np.isfinite(results.column("class_erasure", "count_exact")).any()
    return [_against(results, several), *([_ahead(results)] if several and has_exact else [])]


def _against(results: Results, several: bool) -> Finding:
    is_answer = results.column("class_erasure", "class") == results.column(
        "class_erasure", "predicted"
    )
    is_any = np.ones(len(is_answer), dtype=bool)
    values = {
        f"{number}_{side}{suffix}": _by_text(results, f"{number}_{side}{suffix}", is_any)
        for side in SIDES
        for number, suffix in (("tau", ""), ("tau", "_chance"), ("share", ""), ("weight", ""))
    }
    has_both = np.isfinite(values["tau_for"]) & np.isfinite(values["tau_against"])
    less = mean((values["tau_against"] < values["tau_for"])[has_both].astype(float))
    # Few texts may have two words on a side, while under shuffled weights many do: like with like.
    fair = np.isfinite(values["tau_for"]) & np.isfinite(values["tau_for_chance"])

    def part(name: str) -> str:
        return percent(mean(values[name][np.isfinite(values["tau_against"])]))

    alone = "; what speaks against one of two classes speaks for the other"
    which = "the answer"
    if several:
        tau_of_answer, tau_of_rivals = (
            _number(_by_text(results, "tau_against", is_class))
            for is_class in (is_answer, ~is_answer)
        )
        alone = f"; against the answer itself {tau_of_answer}, against the other classes {tau_of_rivals}"
        which = (
            "each class"
            if len(results.classes) <= MOST
            else f"each of the {MOST} likeliest classes"
        )
    is_sampled = _by_text(results, "sampled", is_any) > 0
    return results.finding(
        "class_against",
        "tau",
        values["tau_against"],
        {
            "one token: nothing else is left": results.short,
            "not sampled": ~is_sampled,
            "fewer than two words against a class, or all alike": is_sampled,
        },
        topic="words against a class",
        question="Does the map rank the words that speak against a class as well as those that speak for it?",
        measure=f"mean Kendall tau-b of the map with the effect of erasing a word, among those against {which}",
        meaning="1 = same order, −1 = the reverse",
        summary=(
            f"among those for it {_number(values['tau_for'][fair])} (weights shuffled "
            f"{_number(values['tau_for_chance'][fair])}, n = {fair.sum()}); lower among those against it in "
            f"{percent(less)} of the {has_both.sum()} texts with both; "
            f"{part('share_against')} of the words speak against it and have {part('weight_against')} of the "
            f"weight, {part('share_for')} for it, with {part('weight_for')}{alone}; "
            f"{rest_in_words(results.settings.renormalise)}"
        ),
        chance=values["tau_against_chance"],
        ceiling=_by_text(results, "tau_against_largest", is_any),
    )


def _number(values: NDArray[np.float64]) -> str:
    value = mean(values)
    return f"{value:z.2f}".replace("-", "−") if np.isfinite(value) else "none"


def _ahead(results: Results) -> Finding:
    counts = {name: results.column("class_erasure", f"count_{name}") for name in COUNTS}
    rows = results.column("class_erasure", "row").astype(int)
    is_any, total = np.ones(len(rows), dtype=bool), len(results.predicted)
    shares = {
        name: _means(rows, efficiency(counts["exact"], counts[name]), is_any, total)
        for name in ("attention", "product")
    }
    never = counts["exact"][np.isfinite(counts["exact"])] == 0
    is_known = np.isfinite(_by_text(results, "count_exact", is_any))
    chance = _by_text(results, "efficiency_chance", is_any)
    return results.finding(
        "class_flips",
        "fraction",
        shares["attention"],
        {
            "one token: nothing else is left": results.short,
            "the smallest set is not known": ~is_known,
            "no set of words puts another class ahead: a proof": is_known,
        },
        topic="words that hold classes back",
        question="Does the map first name the words that keep each other class behind?",
        measure="mean of the fewest erased words that put a class ahead of the answer / those that the map's "
        "order takes, over the other classes",
        meaning="1 = as few as possible",
        summary=f"gradient × attention of the two classes {_number(shares['product'])}, the weights "
        f"shuffled {_number(chance)}; of {percent(mean(never.astype(float)))} of the other classes it is "
        f"proven that no set of words puts them ahead; {rest_in_words(results.settings.renormalise)}",
        chance=chance,
        ceiling=1.0,
    )


def _cost(probe: CostProbe) -> float:
    """Return seconds: little in closed form, else each token of the sample erased once, and under a shuffle."""
    context = probe.context
    if is_linear(probe.trace):
        return 0.0
    sampled = probe.sampled(context.settings.search_instances)
    return 3 * probe.again * sampled * float(context.lengths.sum())


EXPERIMENT = Experiment(
    "class_erasure",
    class_erasure,
    columns=COLUMNS,
    needs=("classes",),
    place=65,
    per_text=False,
    findings=_findings,
    figures=("heedmap.report.class_figures:by_class",),
    cost=_cost,
    in_chunks=True,
)
