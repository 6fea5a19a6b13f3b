"""Translate by beam search: the best of a few partial translations are kept at every step."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedmap.models.encoder_decoder import EncoderDecoder, State

Step = Callable[[Int[Tensor, "K T"], Int[Tensor, " K"]], Float[Tensor, "K V"]]
"""Gives the logits after partial translations, and is told which earlier one each of them continues."""


@torch.no_grad()
def search(
    step: Step,
    *,
    start: int,
    end: int,
    beams: int = 5,
    longest: int = 100,
    length_penalty: float = 1.0,
) -> list[int]:
    """Return the translation that a model gives by its next symbols, without the end.

    Partial translations are compared by their log-probability. The search ends when as many are finished as
    there are beams, or after `longest` symbols; the finished one with the largest log-probability over
    (symbols + 1) ** `length_penalty` is returned, or the best unfinished one if none is.
    """
    words, origins = torch.full((1, 1), start), torch.zeros(1, dtype=torch.long)
    total = torch.zeros(1)
    finished: list[tuple[float, list[int]]] = []
    for _ in range(longest):
        scores = total[:, None] + step(words, origins).log_softmax(-1)
        best, index = scores.flatten().topk(min(beams, scores.numel()))
        beam, symbol = index // scores.shape[1], index % scores.shape[1]
        is_end = symbol == end
        for i in is_end.nonzero()[:, 0].tolist():
            # Divided by the length, the end included: a sum alone would favour short translations.
            translation = words[beam[i], 1:].tolist()
            length = (len(translation) + 1) ** length_penalty
            finished.append((float(best[i]) / length, translation))
        keep = ~is_end
        if len(finished) >= beams or not keep.any():
            break
        words = torch.cat([words[beam[keep]], symbol[keep, None]], 1)
        total, origins = best[keep], beam[keep]
    if not finished:
        return [int(word) for word in words[0, 1:]]
    return max(finished, key=lambda pair: pair[0])[1]


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
    """Return the translation of one source by a recurrent decoder; see `search`."""
    states, state = model.encode(model.source(source[None]))

    def step(words: Int[Tensor, "K T"], origins: Int[Tensor, " K"]) -> Float[Tensor, "K V"]:
        nonlocal state
        decoded, state = model.decode(words[:, -1:], _taken(state, origins))
        beam_states = states.expand(len(words), -1, -1)
        weights = model.attend(decoded, beam_states)
        return model.emit(decoded, weights @ beam_states.unsqueeze(1))[:, 0]

    return search(step, start=start, end=end, beams=beams, longest=longest)


def _taken(state: State, beam: Int[Tensor, " K"]) -> State:
    if isinstance(state, tuple):
        return tuple(part[:, beam].contiguous() for part in state)
    return state[:, beam].contiguous()
