"""Measure the gradient at every token, attention held fixed or not (Jain & Wallace 2019, section 4.1).

The released code also stores the gradient at the encoder's states. It is not offered here: with the
attention held fixed it is α_t p(1 − p) Σ_d w_d, proportional to the attention by construction.
"""

from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from heedmap.data.batches import Batch
from heedmap.measures import levelled, log_odds, rounding_of
from heedmap.models.trace import Model, Trace


def gradient_importance(
    model: Model,
    batch: Batch,
    trace: Trace,
    *,
    path: Literal["closed", "open"] = "closed",
    quantity: Literal["log-odds", "probability"] = "log-odds",
) -> Float[Tensor, "B T"]:
    """Return |Σ_e ∂y/∂x_te · x_te|, the derivative by the one-hot entry of the token's own word.

    Sizes that differ by rounding alone are equal (`measures.levelled`).

    Args:
        path: `closed` (the paper's): the gradient flows through the states but not through the attention,
            whose weights are imposed; `open`: it flows through everything.
        quantity: y is the log-odds of the predicted class, or (the paper's) its probability p. They differ by a
            positive factor p(1 − p), so the ranks are the same until p rounds to 1: then every gradient of p
            is 0 and tau undefined.
    """
    embedded = model.embed(batch).detach().requires_grad_()
    imposed = trace.attention if path == "closed" else None
    logits = model.logits_from(embedded, batch, imposed)
    if quantity == "log-odds":
        target = log_odds(logits, trace.predicted).sum()
    else:
        target = logits.softmax(-1).gather(-1, trace.predicted.unsqueeze(-1)).sum()
    (gradient,) = torch.autograd.grad(target, embedded)
    parts = gradient * embedded
    sizes = model.on_tokens(parts.sum(-1), batch).detach().abs()
    # The rounding error of a sum grows with the sizes of its parts, also where these cancel.
    summed = model.on_tokens(parts.abs().sum(-1), batch).detach()
    return levelled(sizes, batch.mask, rounding_of(summed))


def influence(model: Model, batch: Batch, labels: Int[Tensor, " B"]) -> Float[Tensor, "B T"]:
    """Return −∂NLL/∂g_t of a gate g_t = 1 on the embedding of each token: −Σ_e ∂NLL/∂x_te · x_te.

    Positive where more of the token makes the label more probable. The gradient flows through the attention
    (Snell et al. 2021, whose released code negates it twice). What differs by rounding alone is equal.
    """
    embedded = model.embed(batch).detach().requires_grad_()
    logits = model.logits_from(embedded, batch)
    loss = functional.cross_entropy(logits, labels.to(logits.device), reduction="sum")
    (gradient,) = torch.autograd.grad(loss, embedded)
    parts = (gradient * embedded).detach()
    sizes = model.on_tokens(parts.abs().sum(-1), batch)
    return levelled(-model.on_tokens(parts.sum(-1), batch), batch.mask, rounding_of(sizes))
