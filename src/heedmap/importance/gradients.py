"""Gradient × input, attention held fixed or not (Jain & Wallace 2019, section 4.1)."""

import torch
from jaxtyping import Float
from torch import Tensor

from heedmap.data.batches import Batch
from heedmap.measures import log_odds
from heedmap.models.trace import Model, Trace


def gradient_times_input(
    model: Model, batch: Batch, trace: Trace, path: str = "closed"
) -> Float[Tensor, "B T"]:
    """|Σ_e ∂y/∂x_te · x_te|, the derivative along the one-hot entry of the word that stands there.

    On a `closed` path (the paper's) the gradient flows through the states and not through the attention,
    which is imposed as it was; on an `open` one it flows through everything. y is
    the log-odds of the predicted class: the paper differentiates its probability, which gives the same
    ranks (a positive factor p(1 − p) apart) until it rounds to 1, where every gradient is 0 and tau is
    undefined.
    """
    embedded = model.embed(batch).detach().requires_grad_()
    imposed = trace.attention if path == "closed" else None
    logits = model.logits_from(embedded, batch, imposed)
    target = log_odds(logits, trace.predicted).sum()
    (gradient,) = torch.autograd.grad(target, embedded)
    return model.on_tokens((gradient * embedded).sum(-1), batch).detach().abs()
