"""The first experiments on a translator: permutation, adversary and leave-one-out, per target position."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedmap.counterfactual.constrained import search
from heedmap.experiments.methods.kendall import tau_against
from heedmap.experiments.questions.importance import change_without
from heedmap.measures import jensen_shannon, levelled, total_variation
from heedmap.models.encoder_decoder import EncoderDecoder
from heedmap.papers.kit.translators import Encoded
from heedmap.papers.snell.translation_task import Sentence, read_sentence

PERMUTATIONS = 100
SENTENCES = 20
EPSILON = 0.05  # Jain & Wallace's for pairs of texts
RESTARTS, STEPS = 2, 15


def predict(
    model: EncoderDecoder, sentence: Sentence, weights: Float[Tensor, "S T I"]
) -> Float[Tensor, "S T V"]:
    """Return the logits of every target position under other weights over the source."""
    count = len(weights)
    sums = weights.to(sentence.states.dtype) @ sentence.states[0]
    heads = model.settings.heads
    contexts = sums.unsqueeze(1).expand(-1, heads, -1, -1)
    return model.emit(sentence.decoded.expand(count, -1, -1), contexts)


def permuted(
    model: EncoderDecoder, sentence: Sentence, rng: np.random.Generator
) -> Float[Tensor, " T"]:
    """Return the median change of each prediction (TVD) if its weights are shuffled."""
    steps, size = sentence.attention.shape
    probabilities = sentence.logits.softmax(-1)
    changes = []
    for _ in range(PERMUTATIONS):
        order = torch.from_numpy(rng.permuted(np.tile(np.arange(size), (steps, 1)), axis=1))
        shuffled = sentence.attention.gather(1, order)
        changes.append(
            total_variation(probabilities, predict(model, sentence, shuffled[None])[0].softmax(-1))
        )
    return torch.stack(changes).median(0).values


def leave_one_out(
    model: EncoderDecoder, pairs: Encoded, row: int, sentence: Sentence
) -> Float[Tensor, "T S"]:
    """Return the change of each prediction (TVD) if a source position is removed and the rest read again.

    Positions whose changes differ by the rounding of the logits alone tie (`measures.resolution`).
    """
    source, _, inputs, _ = pairs.batch([row])
    size = source.shape[1]
    if size < 2:
        return torch.full(sentence.attention.shape, torch.nan)
    remaining = torch.tensor([[i for i in range(size) if i != out] for out in range(size)])
    logits, _ = model(source[0][remaining], inputs.expand(size, -1))
    return change_without(sentence.logits, logits.transpose(0, 1), logits.dtype)


def adversary(
    model: EncoderDecoder, sentence: Sentence, seed: Sequence[int]
) -> tuple[Float[Tensor, " T"], Float[Tensor, " T"]]:
    """Return the JSD of the most different weights found that keep each prediction, and a bound on any."""
    steps, size = sentence.attention.shape
    support = torch.ones(steps, 1, size, dtype=torch.bool)
    generators = []
    for step in range(steps):
        number = np.random.SeedSequence([*seed, step]).generate_state(1)[0]
        generators.append(torch.Generator().manual_seed(int(number)))
    adversarial = search(
        lambda weights: predict(model, sentence, weights[:, :, 0]),
        lambda weights: weights[..., 0, :],
        sentence.attention.unsqueeze(1),
        support,
        support[:, 0],
        sentence.logits,
        epsilon=EPSILON,
        restarts=RESTARTS,
        steps=STEPS,
        generators=generators,
    )
    return adversarial.jsd, adversarial.upper


def experiments(model: EncoderDecoder, pairs: Encoded, seed: int) -> dict[str, float]:
    """Return the means over all target positions of SENTENCES sentences, evenly over the split."""
    count = len(pairs.source)
    rows = sorted(
        set(np.linspace(0, count - 1, min(count, SENTENCES)).round().astype(int).tolist())
    )
    measures: dict[str, list[Tensor]] = {}
    for row in rows:
        sentence = read_sentence(model, pairs, row)
        uniform = torch.full_like(sentence.attention, 1 / sentence.attention.shape[1])
        everything = torch.ones_like(uniform, dtype=torch.bool)
        probabilities = sentence.logits.softmax(-1)
        with torch.no_grad():
            removed = leave_one_out(model, pairs, row, sentence)
            values_by_measure = {
                "permuted, TVD": permuted(model, sentence, np.random.default_rng([seed, row])),
                "uniform, TVD": total_variation(
                    probabilities, predict(model, sentence, uniform[None])[0].softmax(-1)
                ),
                "leave-one-out, τ": tau_against(
                    levelled(sentence.attention, everything).unsqueeze(1),
                    removed.unsqueeze(1),
                    everything,
                ).flatten(),
                "uniform, JSD": jensen_shannon(sentence.attention, uniform),
            }
        values_by_measure["adversary, JSD"], values_by_measure["adversary, largest JSD"] = (
            adversary(model, sentence, [seed, row])
        )
        for name, values in values_by_measure.items():
            measures.setdefault(name, []).append(values)
    return {name: float(torch.cat(values).nanmean()) for name, values in measures.items()}
