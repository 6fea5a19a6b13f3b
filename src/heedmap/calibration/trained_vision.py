"""Planted vision transformers that are trained: a ViT of two layers, taught as the planted BERT is."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedmap.calibration.planted_pictures import (
    SIDE,
    PlantedPictures,
    ReadsWords,
    digits,
    patterns,
    picturing_of,
    side_of,
)
from heedmap.calibration.plants import VIT_ON_DIGITS, Plant
from heedmap.calibration.trained import with_some_lacking
from heedmap.calibration.trained_transformer import HEADS, INITIAL, LAYERS, SIZE, Lesson, teach
from heedmap.data.corpus import Split
from heedmap.data.texts import Text
from heedmap.data.vocabulary import Vocabulary
from heedmap.huggingface.picture_classifier import read_by_patches
from heedmap.training.objective import seeded


def train_vision(
    plant: Plant, vocabulary: Vocabulary, train: Split, dev: Split, lesson: Lesson
) -> PlantedPictures:
    """Train a model on pictures of texts; the arguments are those of `train_transformer`."""
    make_glyphs = digits if plant.encoder == VIT_ON_DIGITS else patterns
    glyphs = make_glyphs(plant, vocabulary)
    with seeded(plant.seed):
        model = _model(plant)
    reader, _ = read_by_patches(model, picturing_of(model, plant))
    reader.table.pictures = glyphs.patches(plant.length)
    outputs = [layer.attention.o_proj for layer in model.vit.layers]
    taught = ReadsWords(reader, glyphs, plant.seed)
    train = with_some_lacking(plant, train)
    teach(taught, outputs, plant, partial(_encode, vocabulary), train, dev, lesson)
    return PlantedPictures(model, plant, glyphs)


def _encode(vocabulary: Vocabulary, text: Text) -> NDArray[np.int64]:
    # A picture has no [SEP].
    return vocabulary.encode(text)[:-1]


def _model(plant: Plant) -> Any:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        hidden_size=SIZE,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=2 * SIZE,
        image_size=side_of(plant) * SIDE,
        patch_size=SIDE,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=INITIAL,
        id2label={c: str(c) for c in range(plant.classes)},
        label2id={str(c): c for c in range(plant.classes)},
    )
    make: Any = ViTForImageClassification._from_config
    return make(config, attn_implementation="eager")
