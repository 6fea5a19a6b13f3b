"""Compute integrated gradients (Sundararajan et al. 2017), and refine them without reading a point twice."""

from collections.abc import MutableMapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from heedmap.data.batches import Batch
from heedmap.importance.quadrature import clenshaw_curtis
from heedmap.importance.recurrent_integrated_gradients import recurrent_attributions
from heedmap.measures import levelled, log_odds, rounding_of
from heedmap.models.attention_classifier import AttentionClassifier
from heedmap.models.classifier import Classifier
from heedmap.models.encoders import GRU, LSTM
from heedmap.models.trace import Model, Trace

POSITIONS = 16_384  # at most so many positions have their graphs held at a time


@dataclass(frozen=True)
class PathReading:
    """What one text's gradients are at the points of its path: per token their product with the whole way.

    `sizes` are the same with the absolute value of each part of an embedding: what rounding grows with.
    `outcome` has the log-odds at both ends. All are in float64, on the CPU.
    """

    parts: Float[Tensor, "A n"]
    sizes: Float[Tensor, "A n"]
    outcome: Float[Tensor, "2"]


Readings = MutableMapping[int, PathReading]
"""By the text's row."""


def integrated_gradients(
    model: Model,
    batch: Batch,
    trace: Trace,
    steps: int,
    imposed: Tensor | None = None,
    readings: Readings | None = None,
) -> tuple[Float[Tensor, "B T"], Float[Tensor, " B"]]:
    """Return |attribution| per token to the log-odds of the predicted class, and the completeness error.

    The path leads from zero vectors at the tokens (start and end marks stay) to the text; the attention changes
    along it, unless weights (B, K, P) are imposed. The error is |Σ attributions − (y(text) − y(baseline))|, in
    log-odds; if it is large, more steps are needed. Of recurrent models they are the points of Gauss-Legendre
    quadrature, of the others Clenshaw-Curtis's steps.

    `readings` is filled with what was read. If it has each text's reading of half as many steps, that is not
    read again; a recurrent model neither fills nor uses it.
    """
    embedded = model.embed(batch).detach()
    baseline = embedded.masked_fill(model.token_positions(batch).unsqueeze(-1), 0.0)
    # A model of sentences is one too, but its encoder does not read the words.
    if (
        isinstance(model, AttentionClassifier)
        and type(model).encode is Classifier.encode
        and isinstance(model.encoder, LSTM | GRU)
    ):
        values, summed, error = recurrent_attributions(
            model, model.encoder, batch, (baseline, embedded), trace.predicted, steps, imposed
        )
        values = values.abs().masked_fill(~batch.mask, 0.0)
        return levelled(values, batch.mask, rounding_of(summed)), error
    points, weights = (torch.from_numpy(numbers) for numbers in clenshaw_curtis(steps))
    rows = batch.rows.tolist()
    halves = [readings.get(row) for row in rows] if readings is not None else [None] * len(rows)
    halved = [half for half in halves if half is not None and 2 * len(half.parts) == steps + 2]
    is_refined = len(halved) == len(rows)
    parts, sizes, outcomes = _along_path(
        model, batch, trace, (baseline, embedded), points[1::2] if is_refined else points, imposed
    )
    if is_refined:
        parts, sizes = (
            _interleaved(_padded([getattr(half, name) for half in halved], new.shape[-1]), new)
            for name, new in (("parts", parts), ("sizes", sizes))
        )
        ends = torch.stack([half.outcome for half in halved], dim=1)
    else:
        ends = outcomes[[0, -1]]
    if readings is not None:
        for i, (row, count) in enumerate(zip(rows, batch.lengths.tolist(), strict=True)):
            readings[row] = PathReading(parts[:, i, :count], sizes[:, i, :count], ends[:, i])
    attributions, summed = (torch.einsum("a,abt->bt", weights, value) for value in (parts, sizes))
    error = (attributions.sum(1) - (ends[1] - ends[0])).abs().to(embedded)
    values = attributions.abs().to(embedded).masked_fill(~batch.mask, 0.0)
    return levelled(values, batch.mask, rounding_of(summed).to(batch.mask.device)), error


def _along_path(
    model: Model,
    batch: Batch,
    trace: Trace,
    ends: tuple[Float[Tensor, "B L E"], Float[Tensor, "B L E"]],
    points: Float[Tensor, " A"],
    imposed: Tensor | None,
) -> tuple[Float[Tensor, "A B T"], Float[Tensor, "A B T"], Float[Tensor, "A B"]]:
    """Return the tokens' parts at points of the path, the sums of their absolute parts, and the log-odds."""
    baseline, text = ends
    way = text - baseline
    at_once = max(1, min(POSITIONS, model.tokens_at_once) // max(1, text[..., 0].numel()))
    parts: list[Tensor] = []
    sizes: list[Tensor] = []
    outcomes: list[Tensor] = []
    for start in range(0, len(points), at_once):
        part = points[start : start + at_once]
        times = len(part)
        path = baseline + part.to(text).view(-1, 1, 1, 1) * way
        path = path.flatten(0, 1).requires_grad_()
        many = batch.repeated(times)
        weights = None if imposed is None else imposed.repeat(times, 1, 1)
        outcome = log_odds(model.logits_from(path, many, weights), trace.predicted.repeat(times))
        (gradient,) = torch.autograd.grad(outcome.sum(), path)
        products = gradient.view(times, *way.shape) * way
        for values, of_embedding in ((parts, products), (sizes, products.abs())):
            on_tokens = model.on_tokens(of_embedding.sum(-1).flatten(0, 1), many)
            values.append(on_tokens.view(times, len(way), -1).cpu().double())
        outcomes.append(outcome.detach().view(times, -1).cpu().double())
    return torch.cat(parts), torch.cat(sizes), torch.cat(outcomes)


def _padded(values: list[Float[Tensor, "A _"]], width: int) -> Float[Tensor, "A B T"]:
    """Put the texts' numbers side by side, 0 beyond their last tokens."""
    together = values[0].new_zeros(len(values[0]), len(values), width)
    for i, value in enumerate(values):
        together[:, i, : value.shape[1]] = value
    return together


def _interleaved(
    every_second: Float[Tensor, "A B T"], between: Float[Tensor, "N B T"]
) -> Float[Tensor, "M B T"]:
    together = between.new_empty(len(every_second) + len(between), *between.shape[1:])
    together[::2], together[1::2] = every_second, between
    return together
