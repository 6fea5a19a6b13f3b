"""Leave-one-out in closed form, for models that read each token by itself: no context between tokens.

With e_t = exp(s_t), what each row of weights gives without token j is

    Σ_{t≠j} e_t R[t] / Σ_{t≠j} e_t

The sums without j are those before j and those after it, so that nothing is subtracted: a token with nearly all
of the weight costs no digits. It takes O(T), where reading again takes O(T²). What is left of a text by any
other deletion is a softmax over what is kept.
"""

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedmap.data.batches import Batch
from heedmap.data.texts import Text
from heedmap.models.attention_classifier import AttentionClassifier, TextClassifier
from heedmap.models.encoders import MLP, Average, NoEncoder
from heedmap.models.per_class_classifier import PerClassClassifier
from heedmap.models.scores import Lexical
from heedmap.models.trace import Readout, Trace

ELEMENTS = 1 << 22  # weights at a time, over (mask, row, token)


def reads_alone(model: AttentionClassifier, deletion: str) -> bool:
    """Return whether a deletion from a text has a closed form."""
    # The exact types: of a subclass it is not known what a deletion changes.
    return (
        type(model) in (TextClassifier, PerClassClassifier)
        and type(model.encoder) in (Average, MLP, NoEncoder)
        and not isinstance(model.score, Lexical)
        and model.settings.normaliser == "softmax"
        and deletion == "remove"
    )


@torch.no_grad()
def without_each(model: AttentionClassifier, batch: Batch) -> Float[Tensor, "B T C"]:
    """Return logits of each text without its token t; NaN where t is padding or the only token."""
    scores, readout = _scores(model, batch)
    largest, place = scores.max(-1, keepdim=True)
    contexts = _without_each(torch.exp(scores - largest), readout)
    # Beside the token with the largest score the others may underflow: without it they are scaled anew.
    remaining = scores.scatter(-1, place, -torch.inf)
    weights = torch.softmax(remaining, -1).nan_to_num(nan=0.0)
    anew = torch.einsum("bkt,bktc->bkc", weights, readout.relevance.double())
    index = place.unsqueeze(-1).expand(*place.shape, anew.shape[-1])
    contexts = contexts.scatter(2, index, anew.unsqueeze(2))
    return _logits(contexts, readout, batch.mask)


@torch.no_grad()
def logits_of_kept(
    model: AttentionClassifier, text: Text, keep_masks: Bool[np.ndarray, "J T"]
) -> Float[Tensor, "J C"]:
    """Return logits of a text with only some of its tokens, J masks of them, in float64."""
    scores, readout = _scores(model, model.batch([text], [0]))
    is_kept = torch.from_numpy(keep_masks).unsqueeze(1)
    parts = []
    for part in torch.split(is_kept, max(1, ELEMENTS // scores[0].numel())):
        weights = torch.softmax(scores[0].masked_fill(~part, -torch.inf), -1)
        parts.append(torch.einsum("jkt,ktc->jc", weights, readout.relevance[0].double()))
    return torch.cat(parts) + readout.bias.double()


def _scores(model: AttentionClassifier, batch: Batch) -> tuple[Float[Tensor, "B K T"], Readout]:
    """Return the scores in float64, −∞ at padding, and the read-out."""
    states = model.encode(model.embed(batch), batch)
    trace = model.trace(batch)
    assert trace.readout is not None
    if isinstance(model, PerClassClassifier):
        scores = model.row_scores(states)
    else:
        scores = model.scores(states, batch).unsqueeze(1)
    return scores.double().masked_fill(~batch.mask.unsqueeze(1), -torch.inf), trace.readout


@torch.no_grad()
def without_each_under(
    trace: Trace, attention: Float[Tensor, "S B K T"]
) -> Float[Tensor, "S B T C"]:
    """Return the same under S imposed weightings: without a token, the others' weights are scaled."""
    readout = trace.readout
    assert readout is not None
    parts = [_without_each(weights.double(), readout) for weights in attention]
    return torch.stack([_logits(part, readout, trace.mask) for part in parts])


def _without_each(weights: Float[Tensor, "B K T"], readout: Readout) -> Float[Tensor, "B K T C"]:
    """Return Σ_{t≠j} w_t R[t] / Σ_{t≠j} w_t for each j; 0 where the others have no weight."""
    weights = weights.unsqueeze(-1)
    mass = _others(weights)
    total = _others(weights * readout.relevance.double())
    return torch.where(mass > 0, total / torch.where(mass > 0, mass, 1.0), 0.0)


def _others(values: Float[Tensor, "B K T C"]) -> Float[Tensor, "B K T C"]:
    """Return the sum of all values but each."""
    before = values.cumsum(2).roll(1, 2)
    after = values.flip(2).cumsum(2).roll(1, 2)
    before[:, :, :1], after[:, :, :1] = 0.0, 0.0
    return before + after.flip(2)


def _logits(
    contexts: Float[Tensor, "B K T C"], readout: Readout, mask: Bool[Tensor, "B T"]
) -> Float[Tensor, "B T C"]:
    logits = contexts.sum(1) + readout.bias.double()
    is_defined = mask & (mask.sum(1, keepdim=True) > 1)
    return logits.masked_fill(~is_defined.unsqueeze(-1), torch.nan).to(readout.bias.dtype)
