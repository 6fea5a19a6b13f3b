"""What speaks for a class and what against it, and how far the map ranks either."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedmap.experiments.context import AuditContext
from heedmap.experiments.methods.erasure_predictions import is_closed, shuffled, without_each
from heedmap.experiments.methods.readout import linear
from heedmap.kendall import tau_against
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
    how = context.settings.renormalise
    after = without_each(context.model, trace, how)
    if is_closed(trace, how):  # not the model's logits, which are rounded more
        weights, relevance, bias = linear(trace)
        before = torch.einsum("bt,btc->bc", weights, relevance) + bias
    else:
        before = trace.logits.double()
    one, other = log_odds_each(before), log_odds_each(after)
    possible = before.softmax(-1) > 0
    largest = before.abs().masked_fill(~possible, 1.0).amax(-1).clamp(min=1.0)
    rounding = 2 * ROUNDINGS * torch.finfo(context.model.precision).eps * largest
    change = (other - one.unsqueeze(1)).masked_fill(~trace.mask.unsqueeze(-1), 0.0)
    asked = of_classes(change, classes).transpose(1, 2)
    tied = tied_changes(asked, trace.mask.unsqueeze(1), rounding[:, None, None])
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
    context: AuditContext, trace: Trace, classes: Int[Tensor, "B R"], asked: Bool[Tensor, " B"]
) -> dict[str, Float[Tensor, "B R"]]:
    """Return tau of the texts asked, and what chance and ties make of it."""
    names = [f"tau_{side}{what}" for side in SIDES for what in ("", "_chance", "_largest")]
    shape = classes.shape
    columns = {name: torch.full(shape, torch.nan, dtype=torch.float64) for name in names}
    if not asked.any():
        return {name: values.to(classes.device) for name, values in columns.items()}
    own = _tau(context, trace, classes, asked)
    shuffles = [
        _tau(context, one, classes, asked) for one in shuffled(context, trace, "class_erasure")
    ]
    for side in SIDES:
        tau, largest = own[side]
        chance = torch.stack([one[side][0] for one in shuffles]).nanmean(0)
        for name, values in (("", tau), ("_chance", chance), ("_largest", largest)):
            columns[f"tau_{side}{name}"][asked.cpu()] = values
    return {name: values.to(classes.device) for name, values in columns.items()}


def _tau(
    context: AuditContext, trace: Trace, classes: Int[Tensor, "B R"], asked: Bool[Tensor, " B"]
) -> dict[str, tuple[Float[Tensor, "b R"], Float[Tensor, "b R"]]]:
    """Return tau-b of the map with the size of the changes, by side, and the largest that ties allow."""
    change = changes(context, trace, classes)[asked].transpose(1, 2).cpu()  # (b, R, T)
    heat = trace.ranked_heatmap[asked].double().cpu().unsqueeze(1).expand_as(change)
    found = {}
    for side, on_it in zip(SIDES, (change < 0, change > 0), strict=True):
        pair = [values.flatten(0, 1) for values in (heat, change.abs())]
        mask = on_it.flatten(0, 1)
        last = [values.masked_fill(~mask, torch.inf).sort(-1).values for values in pair]
        first = last[0].isfinite()  # as many as there are, now in front
        taus = [
            tau_against(one.unsqueeze(1), other.unsqueeze(1), of)[:, 0, 0].view(change.shape[:2])
            for (one, other), of in (
                (pair, mask),
                ([values.masked_fill(~first, 0.0) for values in last], first),
            )
        ]
        found[side] = (taus[0], taus[1])
    return found
