"""Families of models that answer whether two words differ (XOR): neither says anything alone.

Without context no state knows two words, so there is no XOR.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from heedmap.calibration.by_hand import classifier_by_hand, noise_effects
from heedmap.calibration.construction import (
    MANY,
    Check,
    Construction,
    exchanged,
    finish,
    is_accurate,
    is_not_above_chance,
    is_not_on,
    is_on,
    makers,
    marks_of,
)
from heedmap.calibration.families import Family, PlantedModel
from heedmap.calibration.plants import LETTERS, WITH_CONTEXT, Plant, other_words
from heedmap.calibration.trained import DEV
from heedmap.data.corpus import Corpus, Split
from heedmap.data.vocabulary import SPECIAL, Vocabulary
from heedmap.models.encoders import NoEncoder


class Product(NoEncoder):
    """An encoder whose state at t is noise_t + carrier_t · (Σ_s left_s) (Σ_s right_s) · (1, −1).

    Per word it reads the left bit (±1, or 0 for other words), the right one, whether its state carries the
    product, and two numbers of noise.
    """

    def __init__(self) -> None:
        super().__init__(2, 2)

    def forward(
        self, embedded: Float[Tensor, "B L E"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "B L D"]:
        """Return the states of all positions."""
        left_bits, right_bits, carrier, *noise = embedded.unbind(-1)
        product = left_bits.sum(1, keepdim=True) * right_bits.sum(1, keepdim=True)
        # Equal bits speak for class 0.
        evidence = carrier * product
        return torch.stack([noise[0] + evidence, noise[1] - evidence], dim=-1)


BITS = 3  # words per side and bit


def bit_word(side: str, bit: int, k: int) -> str:
    """Return the k-th word of a bit: left or right."""
    return f"{side}{bit}{LETTERS[k]}"


def bit_of(word: str) -> int:
    """Return the bit that a word stands for."""
    return int(word[-2])


def is_left(word: str) -> bool:
    """Whether a word is a left bit."""
    return word.startswith("left")


def is_right(word: str) -> bool:
    """Whether a word is a right bit."""
    return word.startswith("right")


def is_bit(word: str) -> bool:
    """Whether a word is a bit."""
    return is_left(word) or is_right(word)


def write_xor(plant: Plant, count: int, part: str) -> Split:
    """Write texts with a left and a right bit in either order, side by side: a window of three sees both."""
    rng = plant.generator(part)
    tokens: list[list[str]] = []
    labels: list[int] = []
    for i in rng.permutation(count).tolist():
        left_bit, right_bit = i % 2, (i // 2) % 2
        pair = [
            bit_word("left", left_bit, int(rng.integers(BITS))),
            bit_word("right", right_bit, int(rng.integers(BITS))),
        ]
        text = other_words(plant, rng)
        place = int(rng.integers(1, len(text) - 3))
        text[place : place + 2] = pair if rng.random() < 0.5 else pair[::-1]
        tokens.append(text)
        labels.append(left_bit ^ right_bit)
    rationale = [np.array([is_bit(word) for word in text]) for text in tokens]
    return Split([f"{part}-{i}" for i in range(count)], tokens, np.array(labels), rationale)


def flipped(word: str) -> str:
    """Return the word of the other bit."""
    return f"{word[:-2]}{1 - bit_of(word)}{word[-1]}"


def with_other_left(plant: Plant, split: Split) -> Split:
    """Flip the left bit, and so the label."""
    return exchanged(split, lambda w: flipped(w) if is_left(w) else w, 1 - split.labels)


def with_other_right(plant: Plant, split: Split) -> Split:
    """Flip the right bit, and so the label."""
    return exchanged(split, lambda w: flipped(w) if is_right(w) else w, 1 - split.labels)


def with_both_others(plant: Plant, split: Split) -> Split:
    """Flip both bits, which leaves the label."""
    return exchanged(split, lambda w: flipped(w) if is_bit(w) else w)


def xor_words(plant: Plant) -> list[str]:
    """Return all bits' words."""
    return [bit_word(s, b, k) for s in ("left", "right") for b in (0, 1) for k in range(BITS)]


def xor_scores(attended: str, plant: Plant, vocabulary: Vocabulary) -> NDArray[np.float64]:
    """Return scores by which both words draw the attention, one or neither: shape (V, 2)."""
    rng = plant.generator("scores")
    scores = np.zeros((len(vocabulary), 2))
    scores[:, 0] = (
        rng.uniform(0, plant.sharpness, size=len(vocabulary))
        if attended == "neither"
        else 0.1 * rng.normal(size=len(vocabulary))
    )
    for i, word in enumerate(vocabulary.words, len(SPECIAL)):
        if is_bit(word):
            on = attended == "both" or (attended == "one" and is_left(word))
            scores[i, 0] = plant.sharpness if on else 0.0
    return scores


def xor_construction(attended: str, checks: Sequence[Check]) -> Construction:
    """Return the construction where both words are attended to, one or neither."""
    return Construction(
        write=write_xor,
        scores=partial(xor_scores, attended),
        checks=[
            is_accurate(),
            is_accurate("texts with another left word", with_other_left),
            is_accurate("texts with another right word", with_other_right),
            is_accurate("texts with two other words", with_both_others),
            *checks,
        ],
        words=xor_words,
        training=MANY,
    )


def _xor_by_hand(
    attended: str, construction: Construction, plant: Plant, corpus: Corpus | None = None
) -> PlantedModel:
    dev, test = write_xor(plant, DEV, "dev"), write_xor(plant, plant.texts, "test")
    words = {word for split in (dev, test) for text in split.tokens for word in text}
    vocabulary = Vocabulary(sorted(words | set(xor_words(plant))))
    model = classifier_by_hand(
        plant,
        vocabulary,
        np.zeros((len(vocabulary), 3, 2)),
        xor_scores(attended, plant, vocabulary),
    )
    numbers = torch.zeros(len(vocabulary), 5)
    numbers[:, 3:] = torch.from_numpy(noise_effects(plant, vocabulary))
    for i, word in enumerate(vocabulary.words, len(SPECIAL)):
        if is_bit(word):
            numbers[i, int(is_right(word))] = 1.0 - 2.0 * bit_of(word)
            numbers[i, 3:] = 0.0
        # Where no bit is attended to, every state carries the product.
        carries = {"both": is_bit(word), "one": is_left(word), "neither": True}[attended]
        numbers[i, 2] = float(carries)
    numbers[: len(SPECIAL)] = 0.0
    model.encoder, model.embedding = Product(), torch.nn.Embedding(len(numbers), 5, padding_idx=0)
    with torch.no_grad():
        model.embedding.weight.copy_(numbers)
    model.requires_grad_(False)
    return finish(construction, plant, model, dev, test)


def _xor_family(
    name: str, attended: str, checks: Sequence[Check], encoders: Sequence[str], reason: str
) -> Family:
    construction = xor_construction(attended, checks)
    on = {"both": "both words", "one": "one of the two", "neither": "random other words"}[attended]
    return Family(
        name=name,
        truth="right" if attended == "both" else "wrong",
        recipe=f"The class is whether two neighbouring words are of different kinds. The weights are on {on}.",
        reason=reason,
        makers={
            "by hand": partial(_xor_by_hand, attended, construction),
            **makers(construction, encoders),
        },
        choices={
            "classes": (2,),
            "sharpness": (4.0, 5.0, 6.0) if attended != "neither" else (2.0, 3.0, 4.0),
            "deciding": (2,),
            "opposing": (False,),
        },
        times=2 if attended == "both" else 1,
    )


_LEFT, _RIGHT = marks_of(is_left), marks_of(is_right)

FAMILIES = (
    _xor_family(
        "XOR, both attended",
        "both",
        [is_on("left words", _LEFT, 0.25), is_on("right words", _RIGHT, 0.25)],
        WITH_CONTEXT,
        "Both words make the answer, and the answer is read from their states.",
    ),
    _xor_family(
        "XOR, one attended",
        "one",
        [is_on("left words", _LEFT), is_not_on("right words", _RIGHT, 0.15)],
        WITH_CONTEXT,
        "The highlighted word alone says nothing of the class.",
    ),
    _xor_family(
        "XOR, neither attended",
        "neither",
        [is_not_above_chance("the two words", maximum=1.0)],
        # Windows of a convolution do not reach random words.
        ("lstm", "gru"),
        "The map is on words that say nothing.",
    ),
)
