"""Translate by beam search: the best of a few partial translations are kept at every step."""

import torch
from jaxtyping import Int
from torch import Tensor

from heedmap.models.encoder_decoder import EncoderDecoder, State


@torch.no_grad()
def translate(
    model: EncoderDecoder,
    source: Int[Tensor, " S"],
    *,
    start: int,
    end: int,
    beams: int = 5,
    longest: int = 100,
) -> list[int]:
    """Return the translation of one source, without the end.

    Partial translations are compared by their log-probability. The search ends when as many are finished as
    there are beams, or after `longest` symbols; the finished one with the largest log-probability per symbol is
    returned, or the best unfinished one if none is.
    """
    states, state = model.encode(model.source(source[None]))
    words = source.new_full((1, 1), start)
    total = torch.zeros(1)
    finished: list[tuple[float, list[int]]] = []
    for _ in range(longest):
        decoded, state = model.decode(words[:, -1:], state)
        beam_states = states.expand(len(words), -1, -1)
        weights = model.attend(decoded, beam_states)
        logits = model.emit(decoded, weights @ beam_states.unsqueeze(1))[:, 0]
        scores = total[:, None] + logits.log_softmax(-1)
        best, index = scores.flatten().topk(min(beams, scores.numel()))
        beam, symbol = index // scores.shape[1], index % scores.shape[1]
        is_end = symbol == end
        for i in is_end.nonzero()[:, 0].tolist():
            # Per symbol, the end included: a sum alone would favour short translations.
            translation = words[beam[i], 1:].tolist()
            finished.append((float(best[i]) / (len(translation) + 1), translation))
        keep = ~is_end
        if len(finished) >= beams or not keep.any():
            break
        words = torch.cat([words[beam[keep]], symbol[keep, None]], 1)
        total, state = best[keep], _taken(state, beam[keep])
    if not finished:
        return [int(word) for word in words[0, 1:]]
    return max(finished, key=lambda pair: pair[0])[1]


def _taken(state: State, beam: Int[Tensor, " K"]) -> State:
    if isinstance(state, tuple):
        return tuple(part[:, beam].contiguous() for part in state)
    return state[:, beam].contiguous()
