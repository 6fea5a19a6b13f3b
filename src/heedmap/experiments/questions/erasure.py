"""Does it matter more to erase the most attended word than another? (Serrano & Smith 2019)"""

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedmap.experiments.columns import Columns, shared
from heedmap.experiments.context import AuditContext
from heedmap.experiments.cost import BACKWARD, CostProbe
from heedmap.experiments.findings import Finding
from heedmap.experiments.methods.erasure_predictions import (
    LEFT,
    ranked,
    rest_in_words,
    shuffled,
    slopes,
    traces_of,
    without_each,
)
from heedmap.experiments.methods.flip_table import flip_table, in_words
from heedmap.experiments.methods.readout import is_linear
from heedmap.experiments.registry import Experiment, Intervention, Row
from heedmap.experiments.results import Results, mean, percent
from heedmap.experiments.text_tables import MAP_FACTS, null_where_nan, text_table
from heedmap.measures import (
    change_in_prediction,
    jensen_shannon,
    log_odds,
    resolution,
    tied_changes,
)
from heedmap.models.trace import Trace
from heedmap.settings.audit import Renormalise

BY_ATTENTION = ("top", "second", "lowest", "random")
# Who is first by a score, and a random other one.
PAIRS = {
    "attention": ("top", "random"),
    "gradient": ("gradient", "random_gradient"),
    "product": ("product", "random_product"),
}
ITEMS = (*BY_ATTENTION, *(item for score in ("gradient", "product") for item in PAIRS[score]))
NUMBERS = ("weight", "js", "margin", "tvd", "flip")
# Under the other way to renormalise, where it differs.
OTHERWISE = ("flip_top", "js_top", "above", "flips")


COLUMNS = Columns(
    "One row per text. One token's weight is erased, the rest renormalised, and the output decoded again. NaN "
    "for texts of one token, and those not sampled where the read-out is not linear.",
    {
        **shared("row", "predicted", "n_tokens", "max_attention"),
        "{token}": ("number, from 0", "place in the text of {token}"),
        "weight_{token}": ("0 to 1", "weight in the map of {token}"),
        "js_{token}": (
            "nats, 0 to ln 2",
            "Jensen-Shannon divergence of the predictions with and without the weight of {token}",
        ),
        "margin_{token}": (
            "log-odds",
            "what the predicted class's log-odds lose without the weight of {token}",
        ),
        "tvd_{token}": (
            "0 to 1",
            "total variation distance of the predictions with and without the weight of {token}",
        ),
        "flip_{token}": (
            "0 or 1",
            "whether another class is predicted without the weight of {token}",
        ),
        "above": (
            "0 to 1",
            "share of the other tokens whose erasure changes the prediction less (TVD) than that of the most "
            "attended one, ties counting half; ½ on average for a token at random",
        ),
        "above_shuffled": (
            "0 to 1",
            "mean of `above` under shuffled weights, with every effect computed again under them",
        ),
        "decides_shuffled": (
            "0 to 1",
            "mean of `flip_top` under shuffled weights, of those under which the erasure of some token flips "
            "the answer; null where there are none",
        ),
        "flips": (
            "0 to 1",
            "share of the text's tokens whose erasure, alone, changes the predicted class",
        ),
        "js_mean": ("nats, 0 to ln 2", "mean divergence over all tokens, each erased alone"),
        "{number}_{how}": (
            "as `{number}`",
            "`{number}` with the weights that are left {how}; only of sparse normalisers, and only the way "
            "that the settings did not choose",
        ),
    },
    token={
        "top": "the most attended token",
        "second": "the second most attended token",
        "lowest": "the least attended token",
        "random": "a random other token than the top one (`random_item`: or, as in the released code, any "
        "but the first)",
        "gradient": "the token of the largest gradient of the predicted class by the weights",
        "random_gradient": "a random other token than that of the largest gradient",
        "product": "the token of the largest gradient × weight",
        "random_product": "a random other token than that of the largest gradient × weight",
    },
    number={name: name for name in OTHERWISE},
    how=LEFT,
)


def erasure(context: AuditContext) -> pa.Table:
    """Erase one token's weight, scale the rest to the same mass (`renormalise`), and decode again.

    Gradient and gradient × weight are signed (see `slopes`), and each has a random other token of its own.
    A random one is uniform over the others, as in the paper; with `random_item` "code" it is drawn as in the
    released code: any position but the first, the top one included.
    """
    total = len(context.split)
    columns = {f"{number}_{item}": np.full(total, np.nan) for item in ITEMS for number in NUMBERS}
    names = ("above", "above_shuffled", "decides_shuffled", "flips", "js_mean")
    columns |= {name: np.full(total, np.nan) for name in (*ITEMS, *names)}
    if next(context.traces).scores is not None:
        reference_mode = other_way(context.settings.renormalise)
        columns |= {f"{name}_{reference_mode}": np.full(total, np.nan) for name in OTHERWISE}
    for trace in traces_of(context):
        rows = trace.rows.numpy(force=True)
        for name, values in _of_batch(context, trace).items():
            columns[name][rows] = values.double().numpy(force=True)
    return text_table(context, null_where_nan(columns), copied=MAP_FACTS)


def _of_batch(context: AuditContext, trace: Trace) -> dict[str, Float[Tensor, " B"]]:
    model, renormalise = context.model, context.settings.renormalise
    places = _places(context, trace)
    columns = {item: place.double() for item, place in places.items()}
    columns |= _effects(trace, without_each(model, trace, renormalise), places, model.precision)
    if trace.scores is not None:
        reference_mode = other_way(renormalise)
        effects = _effects(
            trace,
            without_each(model, trace, reference_mode),
            {"top": places["top"]},
            model.precision,
        )
        columns |= {f"{name}_{reference_mode}": effects[name] for name in OTHERWISE}
    columns |= _by_chance(context, trace)
    short = trace.mask.sum(-1) < 2
    return {name: values.masked_fill(short, torch.nan) for name, values in columns.items()}


def _by_chance(context: AuditContext, trace: Trace) -> dict[str, Float[Tensor, " B"]]:
    """Return what erasing the most attended token does under shuffled weights.

    A large weight changes more than a small one whatever stands there, so that chance is above that of a token
    at random.
    """
    model, renormalise = context.model, context.settings.renormalise
    above, decides = [], []
    for shuffled_trace in shuffled(context, trace, "erasure_shuffled"):
        top = {"top": ranked(shuffled_trace.ranked_heatmap, shuffled_trace.mask)[:, 0]}
        without = without_each(model, shuffled_trace, renormalise)
        effects = _effects(shuffled_trace, without, top, model.precision)
        above.append(effects["above"])
        decides.append(effects["flip_top"].masked_fill(effects["flips"] == 0, torch.nan))
    return {
        "above_shuffled": torch.stack(above).mean(0),
        "decides_shuffled": torch.stack(decides).nanmean(0),
    }


def other_way(renormalise: Renormalise) -> Renormalise:
    """Return the other way to renormalise."""
    return "scale" if renormalise == "again" else "again"


def _effects(
    trace: Trace,
    logits_without: Float[Tensor, "B T C"],
    places: dict[str, Int[Tensor, " B"]],
    precision: torch.dtype,
) -> dict[str, Float[Tensor, " B"]]:
    """Return the columns of numbers, from the logits without each token, computed in `precision`.

    Tokens whose effects differ by no more than rounding tie, such as a word that is repeated.
    """
    mask = trace.mask
    logits = trace.logits.double().unsqueeze(1).expand_as(logits_without)
    top_class = trace.predicted.unsqueeze(1).expand(mask.shape)
    numbers = {
        "weight": trace.heatmap.double(),
        "js": jensen_shannon(logits.softmax(-1), logits_without.softmax(-1)),
        "margin": log_odds(logits, top_class) - log_odds(logits_without, top_class),
        "tvd": change_in_prediction(logits, logits_without),
        "flip": (logits_without.argmax(-1) != top_class).double(),
    }
    columns = {
        f"{name}_{item}": values.gather(1, place.unsqueeze(1)).squeeze(1)
        for item, place in places.items()
        for name, values in numbers.items()
    }
    sizes = mask.sum(-1)
    rounding = resolution(trace.logits, logits_without, precision).unsqueeze(-1)
    effect = tied_changes(numbers["tvd"], mask, rounding)
    top_effect = effect.gather(1, places["top"].unsqueeze(1))
    below = ((effect < top_effect) + 0.5 * (effect == top_effect)) * mask
    # Without the top one itself.
    columns["above"] = (below.sum(-1) - 0.5) / (sizes - 1).clamp(min=1)
    for name, number in (("flips", "flip"), ("js_mean", "js")):
        columns[name] = (numbers[number] * mask).sum(-1) / sizes
    return columns


def _places(context: AuditContext, trace: Trace) -> dict[str, Int[Tensor, " B"]]:
    """Return the erased token of each text, by item."""
    scores = dict(zip(PAIRS, (trace.ranked_heatmap, *slopes(context.model, trace)), strict=True))
    orders = {name: ranked(values, trace.mask) for name, values in scores.items()}
    order = orders["attention"]
    last_place = (trace.mask.sum(-1) - 1).clamp(min=0)
    places = {
        "second": order[:, min(1, order.shape[1] - 1)],
        "lowest": order.gather(1, last_place.unsqueeze(1)).squeeze(1),
    }
    for name, (top, random_item) in PAIRS.items():
        places[top] = orders[name][:, 0]
        seed = "erasure" if name == "attention" else f"erasure_{name}"
        places[random_item] = _random(context, trace, orders[name], seed)
    return places


def _random(
    context: AuditContext, trace: Trace, order: Int[Tensor, "B T"], seed: str
) -> Int[Tensor, " B"]:
    """Return a random token of each text but the first in order; of a text of one token, that one."""
    sizes = trace.mask.sum(-1).tolist()
    tokens = []
    for i, rng in enumerate(context.generators(seed, trace.rows)):
        real = trace.mask[i].nonzero().flatten()
        if sizes[i] < 2:
            tokens.append(int(real[0]))
        elif context.settings.random_item == "paper":
            tokens.append(int(order[i, rng.integers(1, sizes[i])]))
        else:
            tokens.append(int(real[rng.integers(1, sizes[i])]))
    return torch.tensor(tokens, device=order.device)


def _findings(results: Results) -> list[Finding]:
    return [_above(results), _flip(results)]


def _left_out(results: Results) -> dict[str, np.ndarray]:
    return {
        "one token: nothing else is left": results.short,
        "not sampled": np.isnan(results.column("erasure", "above")),
    }


def _above(results: Results) -> Finding:
    gaps = results.column("erasure", "js_top") - results.column("erasure", "js_random")
    less = mean((gaps < 0)[np.isfinite(gaps)].astype(float))
    return results.finding(
        "erasure",
        "fraction",
        results.column("erasure", "above"),
        _left_out(results),
        topic="erasing the first word",
        question="Does it matter more to erase the most attended word than another?",
        measure="mean share of the other words whose erased weight changes the prediction less",
        meaning="1 = none matters more, 0.5 = as for a word at random; to erase a large weight changes more "
        "than to erase a small one, whatever stands there",
        summary=f"the divergence is smaller than for one random other word in {percent(less)} of the texts; "
        f"{rest_in_words(results.settings.renormalise)}{_otherwise(results)}",
        chance=results.optional("erasure", "above_shuffled"),
        ceiling=1.0,
    )


def _otherwise(results: Results) -> str:
    """Say what the other way to renormalise changes, where there is another."""
    reference_mode = other_way(results.settings.renormalise)
    above, flips = (
        results.optional("erasure", f"{x}_{reference_mode}") for x in ("above", "flip_top")
    )
    if above is None or flips is None:
        return ""
    map_flips = results.column("erasure", "flip_top")
    return (
        f"; {LEFT[reference_mode]} it is {mean(above):.2f}, and the most attended "
        f"word flips {percent(mean(flips))} of the answers (here {percent(mean(map_flips))})"
    )


def _flip(results: Results) -> Finding:
    top, random_flips = (results.column("erasure", f"flip_{item}") for item in ("top", "random"))
    share = results.column("erasure", "flips")
    decided_by_top = np.where(share > 0, top, np.nan)
    return results.finding(
        "decision_flip",
        "fraction",
        decided_by_top,
        {**_left_out(results), "no single erasure changes the answer": share == 0},
        topic="one deciding word",
        question="Where one word's weight decides, is it the most attended one's?",
        measure="share of the texts that one erased weight flips in which the most attended word's does",
        meaning="1 = in all of them",
        summary=f"{in_words(flip_table(top, random_flips, results.clusters))}; "
        f"{rest_in_words(results.settings.renormalise)}",
        chance=results.optional("erasure", "decides_shuffled"),
        ceiling=1.0,
    )


def _facts(row: Row) -> list[tuple[str, float | int | None]]:
    return [
        ("JSD, most attended word erased", row["erasure"]["js_top"]),
        ("words that matter less when erased", row["erasure"]["above"]),
    ]


def _interventions(row: Row) -> list[Intervention]:
    numbers = row["erasure"]
    return [
        Intervention(name, numbers[f"tvd_{item}"], numbers[f"flip_{item}"])
        for name, item in (
            ("the weight of the most attended word erased", "top"),
            ("the weight of a random other word erased", "random"),
        )
        if f"tvd_{item}" in numbers
    ]


def _cost(probe: CostProbe) -> float:
    """Return seconds: nothing in closed form, else each token of the sample erased once, and in a shuffle."""
    if is_linear(probe.trace):
        return 0.0
    context = probe.context
    passes = 2 * float(context.lengths.sum()) + BACKWARD * len(context.lengths)
    return probe.again * passes * probe.sampled(context.settings.search_instances)


EXPERIMENT = Experiment(
    "erasure",
    erasure,
    columns=COLUMNS,
    needs=("classes",),
    place=62,
    findings=_findings,
    figures=(
        "heedmap.report.erasure_figures:differences",
        "heedmap.report.erasure_figures:decision_flips",
    ),
    facts=_facts,
    interventions=_interventions,
    cost=_cost,
    in_chunks=True,
)
