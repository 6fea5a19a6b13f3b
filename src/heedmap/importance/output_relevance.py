"""Compute the output relevance: what each source position says about a target word (Snell et al. 2021).

Through the model's own non-linear head: log p(y_t | d_t, context := h_s), as if all attention were on s. In
the linear form of the authors' slides: the logit of y_t in W h_s, without the decoder's state.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedmap.models.encoder_decoder import ACTIVATIONS, EncoderDecoder

BLOCK = 1 << 24  # numbers of the largest temporary: 64 MB


def output_relevance(
    model: EncoderDecoder,
    decoded: Float[Tensor, "B T H"],
    states: Float[Tensor, "B S D"],
    targets: Int[Tensor, "B T"],
) -> Float[Tensor, "B T S"]:
    """Return log p(y_t | d_t, context := h_s), in blocks that bound the memory.

    The head's first layer is linear in state and context: both halves are computed once for all pairs.
    """
    size = model.settings.size
    weight, act = model.hidden.weight, ACTIVATIONS[model.settings.activation]
    from_decoder = decoded @ weight[:, :size].T + model.hidden.bias
    from_source = _contexts(model, states) @ weight[:, size:].T
    count, steps, length = *targets.shape, states.shape[1]
    relevance = from_source.new_empty(count, steps, length)
    rows = max(1, BLOCK // max(1, length * len(model.output.weight)))
    for text in range(count):
        for start in range(0, steps, rows):
            part = slice(start, start + rows)
            pairs = act(from_decoder[text, part, None] + from_source[text])
            share = model.output(pairs).log_softmax(-1)
            target_index = targets[text, part, None, None].expand(-1, length, 1)
            relevance[text, part] = share.gather(-1, target_index).squeeze(-1)
    return relevance


def linear_relevance(
    model: EncoderDecoder, states: Float[Tensor, "B S D"], targets: Int[Tensor, "B T"]
) -> Float[Tensor, "B T S"]:
    """Return W_y · h_s, W the product of the linear layers from a source state to the logits."""
    context = _contexts(model, states) @ model.hidden.weight[:, model.settings.size :].T
    return model.output.weight[targets] @ context.transpose(1, 2)


def _contexts(model: EncoderDecoder, states: Float[Tensor, "B S D"]) -> Float[Tensor, "B S H"]:
    """Return what the decoder gets if every head looks at one position alone."""
    return torch.stack([project(states) for project in model.contexts]).mean(0)
