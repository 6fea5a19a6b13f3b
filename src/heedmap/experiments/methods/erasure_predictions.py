"""Predictions with some tokens' weights erased: in closed form, or by imposing what is left on the model.

A token is erased in every row of the layer on trial. What is left of a row is scaled to the row's mass
("scale", as Serrano & Smith 2019), or its scores are normalised again without the token ("again"). For a
softmax both are the same; a sparse normaliser may give weight to other tokens. A row of which nothing is left
is 0. Earlier layers do not run again.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from heedmap.counterfactual import weight_erasure as closed
from heedmap.counterfactual.row_weights import permuted
from heedmap.errors import InputError
from heedmap.experiments.context import AuditContext
from heedmap.experiments.methods.readout import is_linear, linear
from heedmap.measures import levelled, log_odds, rounding_of
from heedmap.models.normalisers import normalise
from heedmap.models.trace import Model, Trace
from heedmap.settings.audit import Renormalise

ELEMENTS = 1 << 21  # weights imposed at a time: 8 MB
SHUFFLES = 3  # of a text's weights
LEFT = {
    "scale": "scaled to the same mass",
    "again": "normalised again from their scores",
}
A_SINK = 0.01  # a row with less mass than 1 by this much leaves some to no token


def rest_in_words(renormalise: Renormalise) -> str:
    """Say what is done with the weights that an erased word leaves.

    >>> rest_in_words("scale")
    'the weights that an erased word leaves are scaled to the same mass'
    """
    return f"the weights that an erased word leaves are {LEFT[renormalise]}"


def texts_of(context: AuditContext) -> NDArray[np.int64]:
    """Return the rows to ask: all of them where the read-out is linear, else the adversary's sample."""
    if is_linear(next(context.traces)):
        return np.arange(len(context.split))
    return context.sample("adversary", context.settings.search_instances)


def traces_of(context: AuditContext) -> Iterator[Trace]:
    """Yield the traces of these texts.

    Raises:
        InputError: what is left is to be normalised again, and the scores are not known.
    """
    first_trace = next(context.traces)
    if (
        context.settings.renormalise == "again"
        and differs(first_trace)
        and first_trace.scores is None
    ):
        raise InputError(
            "renormalise = 'again': expected a softmax, or a model whose scores are known, got "
            f"{first_trace.normaliser} without its scores; leave it out, to scale the weights that are left"
        )
    if is_linear(first_trace):
        yield from context.traces
        return
    for batch in context.batches_of(texts_of(context)):
        yield context.model.trace(batch)


def shuffled(context: AuditContext, trace: Trace, name: str) -> Iterator[Trace]:
    """Yield the traces under the text's weights in other orders: what is asked of them again is chance.

    Of scores that are normalised again it is these that are shuffled. `name` is that of the experiment, which
    seeds the orders. There are SHUFFLES of them, or one where the read-out is not linear.
    """
    again = context.settings.renormalise == "again" and differs(trace)
    values = trace.scores if again else trace.attention
    assert values is not None
    rngs = context.generators(name, trace.rows)
    count = SHUFFLES if is_linear(trace) else 1
    everything = torch.ones_like(trace.mask).unsqueeze(0)
    for block in permuted(values, trace.support, count, rngs):
        for shuffled_values in block:
            shuffled_trace = (
                replace(trace, scores=shuffled_values)
                if again
                else replace(trace, attention=shuffled_values)
            )
            if again:
                shuffled_trace = replace(
                    shuffled_trace, attention=left(shuffled_trace, everything, "again")[0]
                )
            weights = shuffled_trace.attention.unsqueeze(0)
            with torch.no_grad():
                logits = context.model.predict(trace, weights)[0]
            yield replace(
                shuffled_trace, heatmap=context.model.to_heatmap(trace, weights)[0], logits=logits
            )


def differs(trace: Trace) -> bool:
    """Return whether normalising again gives other weights than scaling what is left."""
    return trace.normaliser != "softmax"


def is_closed(trace: Trace, renormalise: Renormalise) -> bool:
    """Return whether the closed forms apply: a linear read-out, and what is left of the weights is scaled."""
    return is_linear(trace) and (renormalise == "scale" or not differs(trace))


def without_each(
    model: Model, trace: Trace, renormalise: Renormalise = "scale"
) -> Float[Tensor, "B T C"]:
    """Return the logits without each token in turn."""
    if is_closed(trace, renormalise):
        weights, relevance, bias = linear(trace)
        return closed.without_each(weights, relevance, bias, trace.mask)
    if renormalise == "again" and differs(trace):
        return _without_each_again(model, trace)
    size = trace.mask.shape[1]
    is_kept = ~torch.eye(size, dtype=torch.bool, device=trace.mask.device)
    logits = imposed(
        model, trace, is_kept.unsqueeze(1).expand(-1, len(trace.mask), -1), renormalise
    )
    return logits.transpose(0, 1)


def _without_each_again(model: Model, trace: Trace) -> Float[Tensor, "B T C"]:
    """Normalise again without each token that has weight: without another, the threshold stays where it is."""
    order = ranked(trace.ranked_heatmap, trace.mask)
    weighty = int((trace.heatmap > 0).sum(-1).max())
    place = order.argsort(-1)
    erased_place = (
        torch.arange(weighty + 1, device=place.device)[:, None, None] - 1
    )  # first, without none
    logits = imposed(model, trace, place != erased_place, "again")
    whole = logits[:1].transpose(0, 1).expand(-1, place.shape[1], -1)
    token_index = order[:, :weighty, None].expand(-1, -1, logits.shape[-1])
    return whole.scatter(1, token_index, logits[1:].transpose(0, 1))


def along(
    model: Model, trace: Trace, ranking: Float[Tensor, "B T"], renormalise: Renormalise = "scale"
) -> closed.Flip:
    """Erase the tokens of the largest `ranking` first until another class is predicted, while any is left."""
    if is_closed(trace, renormalise):
        weights, relevance, bias = linear(trace)
        return closed.along(ranking, weights, relevance, bias, trace.mask, trace.predicted)
    order = ranked(ranking, trace.mask)
    place = order.argsort(dim=-1)
    size = trace.mask.shape[1]
    heat = trace.heatmap.double().gather(1, order)
    if size < 2:
        return closed.Flip(torch.zeros_like(order[:, 0]), torch.zeros_like(heat[:, 0]))
    counts = torch.arange(1, size, device=place.device)
    logits = imposed(model, trace, place >= counts[:, None, None], renormalise)
    flips = (logits.argmax(-1) != trace.predicted) & (counts.unsqueeze(1) < trace.mask.sum(-1))
    if renormalise == "scale":  # a sparse normaliser may leave words without weight
        flips &= (heat.flip(-1).cumsum(-1).flip(-1)[:, 1:] > 0).T
    does_flip, flip_index = flips.any(0), flips.long().argmax(0)
    mass = heat.cumsum(-1).gather(1, flip_index.unsqueeze(-1)).squeeze(-1)
    return closed.Flip((flip_index + 1) * does_flip, torch.where(does_flip, mass, 0.0))


def with_nothing_left(model: Model, trace: Trace) -> Bool[Tensor, " B"]:
    """Return whether another class is predicted once every token is erased: of our own models, by the bias."""
    if is_linear(trace):
        _, _, bias = linear(trace)
        return (bias > bias[trace.predicted].unsqueeze(1)).any(-1)
    nothing = torch.zeros_like(trace.mask).unsqueeze(0)
    return imposed(model, trace, nothing)[0].argmax(-1) != trace.predicted


@torch.no_grad()
def imposed(
    model: Model, trace: Trace, is_kept: Bool[Tensor, "S B T"], renormalise: Renormalise = "scale"
) -> Float[Tensor, "S B C"]:
    """Return the logits in float64 where only tokens in `is_kept` have weight, some weightings at a time."""
    weightings_at_once = max(1, ELEMENTS // trace.attention.numel())
    parts = [
        model.predict(trace, left(trace, part, renormalise)).double()
        for part in torch.split(is_kept, weightings_at_once)
    ]
    return torch.cat(parts)


def left(
    trace: Trace, is_kept: Bool[Tensor, "S B T"], renormalise: Renormalise = "scale"
) -> Float[Tensor, "S B K P"]:
    """Return the weights where only the tokens in `is_kept` have any; positions of no token, as [CLS], stay.

    "again" needs no scores of a softmax: without the positions I it is α_t / (1 − Σ_I α), which differs from
    scaling only where some of a row's mass goes to no position (a sink).
    """
    if (words := trace.words) is not None:
        word_index = words.clamp(min=0).expand(len(is_kept), -1, -1)
        is_kept = is_kept.gather(-1, word_index) | (words < 0)
    if renormalise == "again" and differs(trace):
        assert trace.scores is not None
        return normalise(
            trace.scores.expand(len(is_kept), -1, -1, -1),
            is_kept.unsqueeze(2) & trace.support,
            trace.normaliser,
        ).to(trace.attention)
    weights = trace.attention * is_kept.unsqueeze(2)
    mass, rest = trace.attention.sum(-1, keepdim=True), weights.sum(-1, keepdim=True)
    scale = mass / torch.where(rest > 0, rest, 1.0)
    if renormalise == "again":
        erased = 1.0 - mass + rest
        sink = (mass < 1.0 - A_SINK) & (erased > 0)
        scale = torch.where(sink, 1.0 / torch.where(sink, erased, 1.0), scale)
    return weights * scale


def slopes(model: Model, trace: Trace) -> tuple[Float[Tensor, "B T"], Float[Tensor, "B T"]]:
    """Return the gradient of the predicted class's log-odds by each token's weights, and the same times them.

    The weights are free: the gradient neither passes through the softmax nor keeps their sum. A text's tokens
    are ranked as by the gradient of the probability (Serrano & Smith 2019), which vanishes where it rounds to
    1. A token's number is the sum over its positions in every row; numbers that differ by rounding alone are
    equal.
    """
    with torch.enable_grad():
        weights = trace.attention.detach().clone().requires_grad_(True)
        logits = model.predict(trace, weights.unsqueeze(0))[0]
        (slope,) = torch.autograd.grad(log_odds(logits, trace.predicted).sum(), weights)
    slope = slope.masked_fill(~trace.support, 0.0).double()
    error = rounding_of(slope.abs().amax(dim=(1, 2), keepdim=True)).expand_as(slope)
    numbers = ((slope, error), (slope * trace.attention, error * trace.attention))
    by_slope, by_product = (
        levelled(on_tokens(trace, number.sum(1)), trace.mask, on_tokens(trace, bound.sum(1)))
        for number, bound in numbers
    )
    return by_slope, by_product


def on_tokens(trace: Trace, values: Float[Tensor, "B P"]) -> Float[Tensor, "B T"]:
    """Sum values at positions over each token."""
    if trace.words is None:
        return values.masked_fill(~trace.mask, 0.0)
    real = trace.words >= 0
    result = values.new_zeros(trace.mask.shape)
    return result.scatter_add(1, trace.words.clamp(min=0), values.masked_fill(~real, 0.0))


def ranked(heat: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"]) -> Int[Tensor, "B T"]:
    """Return each text's tokens, the largest weight first, padding last; ties in the order of the text."""
    order: Tensor = (
        heat.double().masked_fill(~mask, -torch.inf).argsort(dim=-1, descending=True, stable=True)
    )
    return order
