"""Families in which weights and words are apart: of the two questions one is answered yes, the other no."""

from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from heedmap.calibration.by_hand import (
    WAYS,
    classifier_by_hand,
    cue_effects,
    values_for,
)
from heedmap.calibration.construction import (
    Check,
    after_the_rationale,
    finish,
    is_not_on,
    is_on,
    makers,
)
from heedmap.calibration.cue_families import cue_construction
from heedmap.calibration.families import Family, PlantedModel
from heedmap.calibration.plants import (
    DECEPTIVE,
    FAITHFUL,
    WITH_CONTEXT,
    Plant,
    cues_of,
    is_cue,
    scores_of,
    write_texts,
)
from heedmap.calibration.trained import DEV
from heedmap.data.batches import Batch
from heedmap.data.corpus import Corpus, Split
from heedmap.data.vocabulary import SPECIAL, Vocabulary
from heedmap.measures import total_variation
from heedmap.models.attention_classifier import TextClassifier

SHUFFLES = 5
CHANGED = 0.5  # the least share of answers that change under shuffled weights, where these matter
UNMOVED = 0.02  # the mean TVD of predictions under shuffled weights, at most, where they do not
STEADY = 0.2  # strength of the loss that makes states alike


def _shuffled(plant: Plant, weights: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"]) -> Tensor:
    """Return the weights of each text in SHUFFLES random orders: (S, B, 1, T)."""
    rng = plant.generator("shuffles")
    result = torch.zeros(SHUFFLES, *weights.shape)
    for i, length in enumerate(mask.sum(1).tolist()):
        for s in range(SHUFFLES):
            result[s, i, :length] = weights[i, torch.from_numpy(rng.permutation(length))]
    return result.unsqueeze(2)


def _under_shuffles(
    plant: Plant, model: TextClassifier, dev: Split
) -> tuple[Float[Tensor, "B C"], Float[Tensor, "S B C"]]:
    trace = model.trace(model.batch(dev.texts, range(len(dev))))
    shuffled = _shuffled(plant, trace.heatmap, trace.mask)
    return trace.logits, model.predict(trace, shuffled)


def _weights_matter(plant: Plant, model: TextClassifier, dev: Split) -> str:
    """Check that half of the answers change under shuffled weights."""
    logits, shuffled = _under_shuffles(plant, model, dev)
    share = float((shuffled.argmax(-1) != logits.argmax(-1)).float().mean())
    return "" if share >= CHANGED else f"shuffled weights change {share:.2f} of the answers"


def _weights_do_not_matter(plant: Plant, model: TextClassifier, dev: Split) -> str:
    """Check that shuffled weights hardly change the predictions."""
    logits, shuffled = _under_shuffles(plant, model, dev)
    distance = float(
        total_variation(shuffled.softmax(-1), logits.softmax(-1).expand_as(shuffled)).mean()
    )
    return "" if distance <= UNMOVED else f"shuffled weights change predictions by {distance:.2f}"


def _says_else_elsewhere(
    model: TextClassifier, states: Tensor, weights: Tensor, batch: Batch
) -> Float[Tensor, ""]:
    """Teach that all other states speak for the next class."""
    mean = 1 / batch.mask.sum(1, keepdim=True)
    unattended = (batch.mask & (weights < mean)).to(states)
    # Not the mean over all others alone, which a few states could make.
    random_weights = unattended * torch.rand_like(unattended)
    uneven = random_weights / random_weights.sum(1, keepdim=True).clamp(min=1e-9)
    outputs = model.as_logits(model.projection(torch.matmul(uneven.unsqueeze(1), states))).squeeze(
        1
    )
    labels = (batch.labels + 1) % len(model.classes)
    return functional.cross_entropy(outputs, labels, reduction="sum")


def _says_the_same_everywhere(
    model: TextClassifier, states: Tensor, weights: Tensor, batch: Batch
) -> Float[Tensor, ""]:
    """Teach that all states say the same."""
    relevance = model.as_logits(torch.matmul(states, model.projection.weight.T))
    context = torch.matmul(weights.unsqueeze(1), relevance)
    deviation = (relevance - context).square().sum(-1).masked_fill(~batch.mask, 0.0)
    return STEADY * (deviation.sum(1) / batch.mask.sum(1)).sum()


_BEHIND: list[Check] = [
    is_on("the words behind the cues", after_the_rationale),
    is_not_on("the cues"),
    _weights_matter,
]
ELSEWHERE = replace(cue_construction(DECEPTIVE, _BEHIND), further=_says_else_elsewhere)
EVERYWHERE = replace(
    cue_construction(FAITHFUL, [is_on("the cues"), _weights_do_not_matter]),
    way=lambda plant, word: "spread",
    further=_says_the_same_everywhere,
)


def _elsewhere_by_hand(plant: Plant, corpus: Corpus | None = None) -> PlantedModel:
    """Make a model whose states all speak against the class of the text, but for those behind its cues."""
    dev, test = (
        write_texts(plant, n, p, DECEPTIVE) for n, p in ((DEV, "dev"), (plant.texts, "test"))
    )
    words = {word for split in (dev, test) for text in split.tokens for word in text}
    vocabulary = Vocabulary(sorted(words | set(cues_of(plant))))
    scores, effects = scores_of(plant, DECEPTIVE, vocabulary), cue_effects(plant, vocabulary)
    # Noise is left out: a word's own state would hold it.
    cues = np.array([False] * len(SPECIAL) + [is_cue(word) for word in vocabulary.words])
    effects[~cues] = 0.0
    values = values_for(plant, dev, vocabulary, 2 * effects, scores, lambda word: "moved")
    values[:, WAYS.index("spread")] = -effects
    return finish(
        ELSEWHERE, plant, classifier_by_hand(plant, vocabulary, values, scores), dev, test
    )


FAMILIES = (
    Family(
        name="weights matter, words do not",
        truth="wrong",
        recipe="The states behind the cues speak for the class, all others against it. The weights are on the "
        "words behind the cues.",
        reason="Other weights change the answer, but the highlighted words say nothing: any other word in "
        "their place would be highlighted as well.",
        # Without context the state behind a cue knows nothing of it.
        makers={"by hand": _elsewhere_by_hand, **makers(ELSEWHERE, WITH_CONTEXT)},
        choices={"sharpness": (5.0, 6.0, 7.0), "deciding": (1, 2), "opposing": (False,)},
    ),
    Family(
        name="words matter, weights do not",
        truth="words",
        recipe="Every state holds the evidence of the whole text. The weights are on the cues.",
        reason="The cues make the answer, but it is read from any other state as well.",
        # Windows of a convolution hold nothing of distant cues; nor do states without context.
        makers=makers(EVERYWHERE, ("lstm", "gru"), ("by hand",)),
        choices={"sharpness": (4.0, 5.0, 6.0), "opposing": (False,)},
    ),
)
