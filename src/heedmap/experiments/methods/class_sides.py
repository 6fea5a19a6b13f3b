"""What speaks for a class and what against it, and how far the map ranks either."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedmap.experiments.context import AuditContext
from heedmap.experiments.methods.erasure_predictions import is_closed, shuffled, without_each
from heedmap.experiments.methods.kendall import tau_against
from heedmap.experiments.methods.readout import linear
from heedmap.measures import ROUNDINGS, log_odds_each, tied_changes
from heedmap.models.trace import Trace

SIDES = ("for", "against")


def changes(
    context: AuditContext, trace: Trace, classes: Int[Tensor, "B R"]
) -> Float[Tensor, "B T R"]:
    """Return what the log-odds of some classes of each text gain where a token's weight is erased.

    What rounding can cause is 0, and gains that differ by no more are equal (`measures.tied_changes`), so
    words that read the same are ties. A logit's rounding is that of the model's precision, at the size of the
    largest one of the text.
    """
    renormalise = context.settings.renormalise
    logits_without = without_each(context.model, trace, renormalise)
    if is_closed(trace, renormalise):  # not the model's logits, which are rounded more
        weights, relevance, bias = linear(trace)
        logits = torch.einsum("bt,btc->bc", weights, relevance) + bias
    else:
        logits = trace.logits.double()
    lead, lead_without = log_odds_each(logits), log_odds_each(logits_without)
    possible = logits.softmax(-1) > 0
    largest = logits.abs().masked_fill(~possible, 1.0).amax(-1).clamp(min=1.0)
    rounding = 2 * ROUNDINGS * torch.finfo(context.model.precision).eps * largest
    change = (lead_without - lead.unsqueeze(1)).masked_fill(~trace.mask.unsqueeze(-1), 0.0)
    change_of_classes = of_classes(change, classes).transpose(1, 2)
    tied = tied_changes(change_of_classes, trace.mask.unsqueeze(1), rounding[:, None, None])
    return tied.transpose(1, 2)


def sides(
    context: AuditContext, trace: Trace, classes: Int[Tensor, "B R"]
) -> dict[str, Float[Tensor, "B R"]]:
    """Return the shares of the tokens and of the map's weight for and against some classes of each text."""
    change = changes(context, trace, classes)
    heat = trace.heatmap.double().unsqueeze(-1)
    size = trace.mask.sum(-1, keepdim=True).clamp(min=1)
    numbers = {}
    for side, on_it in zip(SIDES, (change < 0, change > 0), strict=True):
        numbers[f"share_{side}"] = on_it.sum(1) / size
        numbers[f"weight_{side}"] = (heat * on_it).sum(1) / heat.sum(1)
    return numbers


def of_classes(
    values: Float[Tensor, "B T C"], classes: Int[Tensor, "B R"]
) -> Float[Tensor, "B T R"]:
    """Return the values of some classes of each text."""
    return values.gather(2, classes.unsqueeze(1).expand(-1, values.shape[1], -1))


def taus(
    context: AuditContext, trace: Trace, classes: Int[Tensor, "B R"], is_asked: Bool[Tensor, " B"]
) -> dict[str, Float[Tensor, "B R"]]:
    """Return tau of the texts asked, and what chance and ties make of it."""
    names = [f"tau_{side}{suffix}" for side in SIDES for suffix in ("", "_chance", "_largest")]
    shape = classes.shape
    columns = {name: torch.full(shape, torch.nan, dtype=torch.float64) for name in names}
    if not is_asked.any():
        return {name: values.to(classes.device) for name, values in columns.items()}
    map_taus = _tau(context, trace, classes, is_asked)
    shuffles = [
        _tau(context, shuffled_trace, classes, is_asked)
        for shuffled_trace in shuffled(context, trace, "class_erasure")
    ]
    for side in SIDES:
        tau, largest = map_taus[side]
        chance = torch.stack([shuffled_taus[side][0] for shuffled_taus in shuffles]).nanmean(0)
        for name, values in (("", tau), ("_chance", chance), ("_largest", largest)):
            columns[f"tau_{side}{name}"][is_asked.cpu()] = values
    return {name: values.to(classes.device) for name, values in columns.items()}


def _tau(
    context: AuditContext, trace: Trace, classes: Int[Tensor, "B R"], is_asked: Bool[Tensor, " B"]
) -> dict[str, tuple[Float[Tensor, "b R"], Float[Tensor, "b R"]]]:
    """Return tau-b of the map with the size of the changes, by side, and the largest that ties allow."""
    change = changes(context, trace, classes)[is_asked].transpose(1, 2).cpu()  # (b, R, T)
    heat = trace.ranked_heatmap[is_asked].double().cpu().unsqueeze(1).expand_as(change)
    taus_by_side = {}
    for side, on_it in zip(SIDES, (change < 0, change > 0), strict=True):
        pair = [values.flatten(0, 1) for values in (heat, change.abs())]
        mask = on_it.flatten(0, 1)
        sorted_values = [values.masked_fill(~mask, torch.inf).sort(-1).values for values in pair]
        is_token = sorted_values[0].isfinite()  # as many as there are, now in front
        taus = [
            tau_against(map_values.unsqueeze(1), change_sizes.unsqueeze(1), tokens)[:, 0, 0].view(
                change.shape[:2]
            )
            for (map_values, change_sizes), tokens in (
                (pair, mask),
                ([values.masked_fill(~is_token, 0.0) for values in sorted_values], is_token),
            )
        ]
        taus_by_side[side] = (taus[0], taus[1])
    return taus_by_side
