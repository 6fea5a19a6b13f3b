"""Planted transformers of which one head attends to the deciding words, or none does."""

import torch

from heedmap.calibration import plants
from heedmap.calibration.hand_layers import Layout, mirrored
from heedmap.calibration.plants import Plant, spaced, vocabulary_of, write_texts
from heedmap.calibration.transformer import POSITIONS, planted_transformer
from heedmap.data.vocabulary import SPECIAL
from heedmap.experiments.context import AuditContext
from heedmap.experiments.registry import registered
from heedmap.settings.audit import AuditSettings

FAITHFUL = ("row", 1, 0)


def planted_evidence(kind="faithful", seed=0, texts=80, head="mean", **plant):
    """The tables of a planted BERT: of its last layer's heads the first is of that kind, the other random."""
    design = {"faithful": plants.FAITHFUL, "irrelevant": plants.IRRELEVANT}[kind]
    plant = Plant(f"{kind} head", "transformer by hand", seed, texts=texts, **plant)
    split = write_texts(plant, texts, "test")
    vocabulary = vocabulary_of(plant, split)
    model = planted_transformer(plant, design, split, vocabulary)
    attend_at_random(model.model.bert, plant, len(vocabulary))
    model = type(model)(
        model.model,
        model.tokenizer,
        model.settings.model_copy(update={"head": head}),
        model.classes,
    )
    settings = AuditSettings(
        seed=seed, gradient_path="open", descent_steps=0, integrated_gradients_steps=4
    )
    return AuditContext(model, spaced(split), settings, registered())


def attend_at_random(bert, plant, words):
    """Let the last layer's second head attend by random scores, which the first layer passes on no more."""
    at = Layout(plant.classes, POSITIONS)
    scores = torch.from_numpy(
        plant.generator("other head").uniform(0, 2 * plant.sharpness, words)
    ).float()
    scores[: len(SPECIAL)] = -60.0
    alone = torch.zeros(words, at.size)
    alone[:, at.following] = scores
    first, second = (layer.attention.self for layer in bert.encoder.layer)
    with torch.no_grad():
        table = bert.embeddings.word_embeddings.weight
        table[:, [at.following, at.size + at.following]] = mirrored(alone)[
            :, [at.following, at.size + at.following]
        ]
        first.value.weight[at.size + at.count] = 0.0
        second.key.weight[at.size] = 0.0
        second.key.weight[at.size, at.following] = 1.0
