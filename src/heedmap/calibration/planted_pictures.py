"""Planted pictures: the words of a planted text are patches, in reading order.

A word is shown as a pattern of colours, or as one of the pictures of a digit (scikit-learn's `load_digits`).
A text of as many words as a picture has patches becomes a picture of them, and `PlantedPictures`, a vision
transformer as heedmap opens any other, reads it. The pictures of a word that a model has learned from are
others than those of the audit.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from heedmap.calibration.plants import DIGITS, PER_CLASS, Plant, class_of, is_cue, number_of
from heedmap.data.corpus import Split
from heedmap.data.item_vectors import SIGN, ItemVectors, held_bag
from heedmap.data.vocabulary import SPECIAL, Vocabulary
from heedmap.huggingface.patch_model import PatchModel
from heedmap.huggingface.patch_tokens import FIRST
from heedmap.huggingface.picture_classifier import PictureClassifier, read_by_patches
from heedmap.huggingface.picture_loading import Picturing, picturing
from heedmap.settings.models import TransformerSettings

CHANNELS, SIDE = 3, 8  # of a patch
# Pictures of each word, of which half are to learn from. Those of a digit are more different.
BLURRED, DRAWN = 12, 40
BLUR = 0.3  # standard deviation of the pixels' noise, which are between −1 and 1
BAG = "patches"


@dataclass(frozen=True, eq=False)
class Glyphs:
    """How each word is shown: pixels (variants, words, CHANNELS · SIDE²), between −1 and 1."""

    pixels: Float[np.ndarray, "N V D"]
    words: Vocabulary

    @property
    def seen(self) -> int:
        """Return how many variants are to learn from: half of them, or the only one."""
        return max(1, len(self.pixels) // 2)

    @property
    def unseen(self) -> range:
        """Return the variants of the audit."""
        return range(len(self.pixels) // 2, len(self.pixels))

    def rows(
        self, words: Int[np.ndarray, "*shape"], variants: Any, places: Any, count: int
    ) -> Int[np.ndarray, "*shape"]:
        """Return the rows of words in the vectors of `patches`, by their variants and places."""
        rows: NDArray[np.int64] = (variants * self.pixels.shape[1] + words) * count + places
        return rows

    def patches(self, count: int) -> ItemVectors:
        """Return the vectors of all variants of all words, each at every place of a picture of `count`."""
        flat = self.pixels.reshape(-1, self.pixels.shape[-1]).repeat(count, axis=0)
        return ItemVectors({BAG: held_bag(flat, BAG)}, flat.shape[1], in_memory=True)


def patterns(plant: Plant, vocabulary: Vocabulary, variants: int = BLURRED) -> Glyphs:
    """Return a pattern for each word, of which each variant has noise of its own; one alone has none."""
    rng = plant.generator("patterns")
    plain = rng.choice([-1.0, 1.0], size=(len(vocabulary.words), CHANNELS * SIDE**2))
    shape = (variants, *plain.shape)
    noise = BLUR * rng.normal(size=shape) if variants > 1 else np.zeros(shape)
    return Glyphs(np.clip(plain + noise, -1, 1).astype(np.float32), vocabulary)


def digits(plant: Plant, vocabulary: Vocabulary, variants: int = DRAWN) -> Glyphs:
    """Return pictures of digits: class c is decided by the digits 2 c and 2 c + 1, the others say nothing."""
    from sklearn.datasets import load_digits

    images, numbers = load_digits(return_X_y=True)
    rng = plant.generator("digits")
    # No picture is among those to learn from and among those of the audit.
    halves = np.array_split(rng.permutation(len(numbers)), 2)
    of_words = np.array([digit_of(plant, word) for word in vocabulary.words])
    rows = np.zeros((variants, len(of_words)), dtype=np.int64)
    for variant in range(variants):
        pool = halves[2 * variant // variants]
        for digit in np.unique(of_words):
            is_here = of_words == digit
            rows[variant, is_here] = rng.choice(pool[numbers[pool] == digit], size=is_here.sum())
    pixels = np.tile(images[rows] / 8 - 1, CHANNELS)
    return Glyphs(pixels.astype(np.float32), vocabulary)


def digit_of(plant: Plant, word: str) -> int:
    """Return the digit that a word is shown as: of cues by their class and their half of its cues."""
    if is_cue(word):
        return PER_CLASS * class_of(word) + number_of(word) * PER_CLASS // plant.cues
    silent = range(PER_CLASS * plant.classes, DIGITS)
    return silent[int(word.removeprefix("word")) % len(silent)]


class PlantedPictures(PictureClassifier):
    """A vision transformer that reads planted texts as pictures."""

    def __init__(self, model: Any, plant: Plant, glyphs: Glyphs) -> None:
        settings = TransformerSettings(source="planted")
        super().__init__(
            *read_by_patches(model, picturing_of(model, plant)),
            settings,
            [str(c) for c in range(plant.classes)],
        )
        self.glyphs = glyphs
        self.look_up(glyphs.patches(self.grid.count))

    def shown(self, split: Split) -> Split:
        """Return texts of words as pictures: each word is the patch at its place."""
        vocabulary, unseen = self.glyphs.words, self.glyphs.unseen
        tokens = []
        for number, text in enumerate(split.tokens):
            words = vocabulary.encode(text)[1:-1] - len(SPECIAL)
            places = np.arange(len(text))
            variants = unseen.start + (number + places) % len(unseen)
            rows = self.glyphs.rows(words, variants, places, self.grid.count)
            tokens.append(
                [f"{BAG}:{row}{SIGN}{word}" for row, word in zip(rows, text, strict=True)]
            )
        return replace(split, tokens=tokens)


def picturing_of(model: Any, plant: Plant) -> Picturing:
    """Return how a model of transformers sees a plant's pictures."""
    from transformers import ViTImageProcessorPil

    size = dict.fromkeys(("height", "width"), side_of(plant) * SIDE)
    processor = ViTImageProcessorPil(size=size, image_mean=[0.5] * 3, image_std=[0.5] * 3)
    return picturing(model, processor, "planted")


def side_of(plant: Plant) -> int:
    """Return the patches along a side of a plant's pictures."""
    side = math.isqrt(plant.length)
    assert side**2 == plant.length, f"{plant}: {plant.length} patches are no square"
    return side


class ReadsWords(torch.nn.Module):
    """A model of patches that is given the numbers of words, [CLS] first: (B, 1 + patches).

    While it learns, each word is shown as one of the pictures to learn from, which are drawn.
    """

    def __init__(self, reader: PatchModel, glyphs: Glyphs, seed: int) -> None:
        super().__init__()
        self.reader, self.glyphs = reader, glyphs
        self.rng = np.random.default_rng([seed, *b"shown"])

    def forward(self, input_ids: Int[Tensor, "B N"], **options: Any) -> Any:
        """Return the logits (B, C), and what the options ask for."""
        words: NDArray[np.int64] = input_ids[:, 1:].numpy() - len(SPECIAL)
        count = words.shape[1]
        unseen = self.glyphs.unseen.start
        variants = (
            self.rng.integers(self.glyphs.seen, size=words.shape) if self.training else unseen
        )
        rows = self.glyphs.rows(words, variants, np.arange(count), count)
        ids = torch.cat([torch.ones_like(input_ids[:, :1]), torch.from_numpy(FIRST + 2 * rows)], 1)
        return self.reader(input_ids=ids, **options)
