"""Read a sentence with its translation, and what a translator's maps are of it; sources without a word."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedmap.experiments.questions.importance import change_without
from heedmap.models.beam_search import search
from heedmap.models.transformer_translator import CrossCall
from heedmap.papers.kit.translators import Encoded
from heedmap.papers.lu.calibration import CalibratedTranslator, calibrated, normalised

Maps = Float[Tensor, "L H T S"]


@dataclass(frozen=True)
class Sentence:
    """One pair, read with the right target before each step: weights of all layers, and masks if it has any."""

    logits: Float[Tensor, "T V"]
    attention: Maps
    masks: Maps | None
    fused: Maps

    @cached_property
    def maps(self) -> dict[str, Maps]:
        """The maps by name, each of whose rows sums to 1: a, a_c, 1 − m, and the fused weights."""
        if self.masks is None:
            return {"attention": self.attention}
        return {
            "attention": self.attention,
            "calibrated": normalised(calibrated(self.attention, self.masks)),
            "mask": normalised(1 - self.masks),
            "fused": normalised(self.fused),
        }


@torch.no_grad()
def read_sentence(model: CalibratedTranslator, pairs: Encoded, row: int) -> Sentence:
    """Read one pair."""
    calls: list[CrossCall] = []
    masks: list[Tensor] = []
    fused: list[Tensor] = []

    def record(call: CrossCall) -> Float[Tensor, "B H T S"]:
        calls.append(call)
        weights = call.weights
        if model.calibration is not None:
            masks.append(model.calibration.masks(call))
            weights = model.calibration.fused(call, masks[-1])
        fused.append(weights)
        return weights

    source, lengths, inputs, _ = pairs.batch([row])
    logits = model.translator(source, inputs, lengths, record)
    attention = torch.cat([call.weights for call in calls])
    return Sentence(logits[0], attention, torch.cat(masks) if masks else None, torch.cat(fused))


def evened(
    weights: Float[Tensor, "B H T S"], real: Bool[Tensor, "B S"]
) -> Float[Tensor, "B H T S"]:
    """Return the same weight for every real source position, the sum of each row kept."""
    return weights.sum(-1, keepdim=True) * normalised(real[:, None, None].to(weights.dtype))


def leave_one_out(
    model: CalibratedTranslator, pairs: Encoded, row: int, sentence: Sentence
) -> tuple[Float[Tensor, "T W"], Float[Tensor, " T"]]:
    """Return the change of each prediction (TVD) without each source word, and without the end.

    A prediction is the distribution of the next sub-word, given the right ones before it. The word's
    sub-words are removed and the rest is read again. Changes that differ by rounding alone tie.
    """
    numbers, words = pairs.source[row], pairs.source_words[row]
    remaining = [
        [number for number, index in zip(numbers, words, strict=True) if index != word]
        for word in [*range(max(words) + 1), -1]
    ]
    rest = Encoded(remaining, [pairs.target[row]] * len(remaining), [], [])
    source, lengths, inputs, _ = rest.batch(range(len(remaining)))
    with torch.no_grad():
        (logits,) = model(source, inputs, lengths)
    changes = change_without(sentence.logits, logits.transpose(0, 1), logits.dtype)
    return changes[:, :-1], changes[:, -1]


def leave_unattended(
    model: CalibratedTranslator, pairs: Encoded, row: int, sentence: Sentence
) -> Float[Tensor, "T W"]:
    """Return the same where a source word is read, but gets no cross-attention in any layer.

    Its weight goes to the other positions in proportion.
    """
    index = torch.tensor(pairs.source_words[row])
    source, lengths, inputs, _ = pairs.batch([row] * (int(index.max()) + 1))
    attended = index != torch.arange(len(source))[:, None]

    def without(call: CrossCall) -> Float[Tensor, "B H T S"]:
        weights = model.hook(call)
        rest = weights * attended[:, None, None]
        remaining_mass = rest.sum(-1, keepdim=True).clamp(min=torch.finfo(rest.dtype).tiny)
        return rest * (weights.sum(-1, keepdim=True) / remaining_mass)

    with torch.no_grad():
        logits = model.translator(source, inputs, lengths, without)
    return change_without(sentence.logits, logits.transpose(0, 1), logits.dtype)


@torch.no_grad()
def translate(
    model: CalibratedTranslator,
    source: Sequence[int],
    *,
    start: int,
    end: int,
    beams: int,
    length_penalty: float,
    longest: int,
) -> list[int]:
    """Return the translation of one source by beam search, without the end."""
    states, real = model.translator.encode(torch.tensor([source]))

    def step(words: Int[Tensor, "K T"], origins: Int[Tensor, " K"]) -> Float[Tensor, "K V"]:
        count = len(words)
        logits: Tensor = model.translator.decode(
            words, states.expand(count, -1, -1), real.expand(count, -1), model.hook
        )
        return logits[:, -1]

    return search(
        step, start=start, end=end, beams=beams, longest=longest, length_penalty=length_penalty
    )
