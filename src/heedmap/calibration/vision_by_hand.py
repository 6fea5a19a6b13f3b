"""Planted vision transformers whose every weight is set by hand: a ViT of two layers (`hand_layers`).

The projection of patches finds a pattern's numbers exactly: there are fewer patterns than pixels. A patch that
is left out leaves its place empty, so the place before another is the nearest one that is there.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from heedmap.calibration.hand_layers import (
    STRONG,
    AttentionMaps,
    Gathered,
    Layout,
    clear,
    configuration,
    mirrored,
    passing_maps,
    reading_maps,
    set_maps,
    the_nearest,
)
from heedmap.calibration.planted_pictures import (
    SIDE,
    Glyphs,
    PlantedPictures,
    patterns,
    side_of,
)
from heedmap.calibration.plants import Plant
from heedmap.data.corpus import Split
from heedmap.data.vocabulary import SPECIAL, Vocabulary


def vision_by_hand(
    plant: Plant,
    split: Split,
    vocabulary: Vocabulary,
    values: NDArray[np.float64],
    scores: NDArray[np.float64],
    gathered: Gathered = "everywhere",
    mark_scores: Mapping[str, float] | None = None,
) -> PlantedPictures:
    """Make the model of its words' values and scores: as `heedmap.calibration.transformer.transformer_by_hand`.

    Args:
        plant: has the number of classes and of patches.
        split: not read, for all pictures have as many patches.
        vocabulary: the words.
        values: by `heedmap.calibration.by_hand.WAYS`, (V, 3, C).
        scores: of words, to themselves and to the next one, (V, 2).
        gathered: where values go that are spread.
        mark_scores: of "[CLS]" in the second layer; without one it has no weight.
    """
    from transformers import ViTConfig, ViTForImageClassification

    count, positions = plant.classes, plant.length + 1
    layout = Layout(count, positions)
    config = ViTConfig(
        **configuration(layout, layers=2),
        image_size=side_of(plant) * SIDE,
        patch_size=SIDE,
        label2id={str(c): c for c in range(count)},
    )
    model: Any = ViTForImageClassification(config)
    glyphs = patterns(plant, vocabulary, variants=1)
    numbers = _numbers(layout, values, scores)
    with torch.no_grad():
        clear(model)
        _set_embeddings(model.vit.embeddings, layout, glyphs, numbers, mark_scores or {})
        passing, reading = (layer.attention for layer in model.vit.layers)
        _set(passing, passing_maps(layout, gathered, the_nearest(positions)))
        _set(reading, reading_maps(layout, {layout.one: layout.score}))
        model.classifier.weight[:, layout.collected] = torch.eye(count)
    model.eval().requires_grad_(False)
    return PlantedPictures(model, plant, glyphs)


def _numbers(
    layout: Layout, values: NDArray[np.float64], scores: NDArray[np.float64]
) -> Float[Tensor, "V D"]:
    """Return the numbers of the state that each word begins with."""
    words = torch.zeros(len(values) - len(SPECIAL), layout.size, dtype=torch.float64)
    for k, columns in enumerate((layout.own, layout.spread, layout.moved)):
        words[:, columns] = torch.from_numpy(values[len(SPECIAL) :, k])
    # The first layer takes a mean over all positions where plants of our own take a sum.
    words[:, layout.spread] *= layout.positions
    words[:, [layout.score, layout.following]] = torch.from_numpy(scores[len(SPECIAL) :])
    return words


def _set_embeddings(
    embeddings: Any,
    layout: Layout,
    glyphs: Glyphs,
    numbers: Float[Tensor, "V D"],
    mark_scores: Mapping[str, float],
) -> None:
    pixels = torch.from_numpy(glyphs.pixels[0]).double()
    projection = embeddings.patch_embeddings.projection.weight
    solution = mirrored(torch.linalg.pinv(pixels) @ numbers).T
    projection.copy_(solution.view(projection.shape))
    places = torch.zeros(layout.positions, layout.size)
    places[:, layout.place] = torch.eye(layout.positions)
    places[:, layout.one] = 1.0
    embeddings.position_embeddings[0] = mirrored(places)
    mark = torch.zeros(1, layout.size)
    mark[0, [layout.score, layout.is_mark["[CLS]"]]] = torch.tensor(
        [mark_scores.get("[CLS]", -STRONG), 1.0]
    )
    embeddings.cls_token[0] = mirrored(mark)


def _set(attention: Any, maps: AttentionMaps) -> None:
    set_maps(maps, attention.q_proj, attention.k_proj, attention.v_proj, attention.o_proj)
