"""Planted bags: items are digits, and those of some digits decide. A model reads each item by itself.

The vectors of items are pictures (scikit-learn's `load_digits`), of which those to learn from are others than
those of the audit, or one-hot vectors. Class c is decided by the digits 2 c and 2 c + 1; the remaining digits
say nothing. The name of an item ends in its digit.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray

from heedmap.calibration.by_hand import set_margin
from heedmap.calibration.construction import Check, checked, is_accurate, is_taught, weights_of
from heedmap.calibration.families import PlantedModel
from heedmap.calibration.plants import (
    DIGITS,
    PER_CLASS,
    WITHOUT_CUES,
    Design,
    Drawing,
    Plant,
    labels_of,
    text_length,
)
from heedmap.calibration.trained import DEV, SIZE, fit_plant
from heedmap.data.corpus import Corpus, Split
from heedmap.data.item_vectors import SIGN, ItemVectors, held_bag
from heedmap.data.item_vocabulary import ItemVocabulary
from heedmap.data.vocabulary import SPECIAL
from heedmap.models.attention_classifier import TextClassifier
from heedmap.settings.models import ModelSettings
from heedmap.settings.training import TrainSettings
from heedmap.training.objective import seeded

PICTURES, ONE_HOT, BY_HAND = "bags of pictures", "bags of one-hot vectors", "bags by hand"
TRAIN = 1000  # bags to learn from
COPIES = 60  # items of each digit where all have the same vector
PARTS = ("train", "audited")
# An item of little weight among thirty is learned slowly.
SETTINGS = TrainSettings(epochs=30, learning_rate=0.01, selection="accuracy")


@dataclass(frozen=True, eq=False)
class Digits:
    """Items that are digits: their vectors, and the digit of each by its row."""

    vectors: ItemVectors
    digits: NDArray[np.int64]

    @property
    def vocabulary(self) -> ItemVocabulary:
        """Return the vocabulary by which a model reads them."""
        return ItemVocabulary(self.vectors)

    def drawn(self, digits: Sequence[int], part: str, rng: np.random.Generator) -> list[str]:
        """Draw the names of items of some digits, for a part ("train", else those of the audit)."""
        pool = PARTS.index("train" if part == "train" else "audited")
        start, end = self.vectors.starts[pool : pool + 2]
        of_part = self.digits[start:end]
        numbers = [int(rng.choice(np.flatnonzero(of_part == digit))) for digit in digits]
        return [
            f"{PARTS[pool]}:{number}{SIGN}{digit}"
            for number, digit in zip(numbers, digits, strict=True)
        ]


def digits_for(plant: Plant) -> Digits:
    """Return the items of a plant: pictures for models that learn from them, else one-hot vectors."""
    if plant.encoder == PICTURES:
        from sklearn.datasets import load_digits

        pictures, digits = load_digits(return_X_y=True)
        order = plant.generator("pictures").permutation(len(digits))
        vectors, digits = (pictures[order] / 16).astype(np.float32), digits[order]
    else:
        digits = np.tile(np.arange(DIGITS), 2 * COPIES)
        vectors = np.eye(DIGITS, dtype=np.float32)[digits]
    halves = zip(PARTS, np.array_split(vectors, 2), strict=True)
    bags = {part: held_bag(half, part) for part, half in halves}
    return Digits(ItemVectors(bags, vectors.shape[1], in_memory=True), digits.astype(np.int64))


def digit_of(item: str) -> int:
    """Return the digit of an item."""
    return int(item.rpartition(SIGN)[2])


def class_of(digit: int) -> int:
    """Return the class that a digit decides, if it decides one."""
    return digit // PER_CLASS


def is_deciding(plant: Plant, digit: int) -> bool:
    """Whether a digit decides a class."""
    return class_of(digit) < plant.classes


def is_attended(digit: int) -> bool:
    """Whether a digit draws attention in a partly right plant: one of the two of each class does."""
    return digit % PER_CLASS == 0


def write_bags(plant: Plant, items: Digits, count: int, part: str, design: Design) -> Split:
    """Write bags; `rationale` marks the deciding items.

    In a partly right plant the deciding items of a bag are all of the digit that draws attention, in the share
    of the design, or all of the other one. Of the bags to learn from some have no deciding item, and a label
    that is drawn: no class becomes the default.
    """
    rng = plant.generator(part)
    labels = labels_of(plant, count, rng)
    is_empty = (rng.random(count) < WITHOUT_CUES) & (part == "train")
    others = [digit for digit in range(DIGITS) if not is_deciding(plant, digit)]
    tokens, rationale = [], []
    for label, empty in zip(labels.tolist(), is_empty.tolist(), strict=True):
        choices = [0, 1]
        if design.kind == "partly":
            choices = [0] if rng.random() < design.share else [1]
        classes = [label] * plant.deciding
        if plant.opposing and plant.deciding > 1:
            classes.append((label + 1 + int(rng.integers(plant.classes - 1))) % plant.classes)
        digits = [] if empty else [PER_CLASS * c + int(rng.choice(choices)) for c in classes]
        digits += rng.choice(others, size=text_length(plant, rng) - len(digits)).tolist()
        bag = items.drawn(rng.permutation(digits).tolist(), part, rng)
        tokens.append(bag)
        rationale.append(np.array([is_deciding(plant, digit_of(item)) for item in bag]))
    keys = [f"{part}-{i}" for i in range(count)]
    return Split(keys, tokens, labels, rationale, vectors=items.vectors)


def with_other_digits(items: Digits, plant: Plant, split: Split) -> Split:
    """Replace the deciding items of every class by those of the next one, and the labels accordingly."""
    rng = plant.generator("other digits")
    span = PER_CLASS * plant.classes
    tokens = []
    for bag in split.tokens:
        digits = [digit_of(item) for item in bag]
        following = [(d + PER_CLASS) % span if is_deciding(plant, d) else d for d in digits]
        tokens.append(items.drawn(following, "audited", rng))
    return replace(split, tokens=tokens, labels=(split.labels + 1) % plant.classes)


def scores_of(
    plant: Plant, design: Design, digits: NDArray[np.int64], deciding: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return how much attention each item draws, for `Drawing`: shape (4 + items, 2).

    Args:
        plant: of which are the sharpness, and whether the scores are learned: then they are by digit only.
        design: where the attention is.
        digits: of the items.
        deciding: by digit, whether it decides.
    """
    rng = plant.generator("scores")
    noise = rng.normal(size=len(digits)) * (0.1 if plant.score == "fixed" else 0.0)
    others = rng.permutation(np.flatnonzero(~deciding))
    of_digits = np.zeros(DIGITS)
    if design.kind == "faithful":
        of_digits[deciding] = plant.sharpness
    elif design.kind == "reversed":
        of_digits[others] = plant.sharpness
    elif design.kind == "irrelevant":
        of_digits[others[: (len(others) + 1) // 2]] = plant.sharpness
    elif design.kind == "partly":
        noise = rng.uniform(0, plant.sharpness, size=len(digits)) * ~deciding[digits]
        attended = [is_attended(digit) for digit in range(DIGITS)]
        of_digits[deciding & attended] = 2 * plant.sharpness
    elif design.kind == "uniform":
        noise[:] = 0.0
    scores = np.zeros((len(SPECIAL) + len(digits), 2))
    scores[len(SPECIAL) :, 0] = of_digits[digits] + noise
    return scores


def settings_of(plant: Plant, encoder: str, width: int) -> ModelSettings:
    """Return the settings of a model of bags; scores that are fixed are put in later."""
    score = "log_odds" if plant.score == "fixed" else plant.score
    return ModelSettings.of(
        encoder=encoder, score=score, embedding_size=width, hidden_size=max(SIZE, width)
    )


def train_model(
    plant: Plant, items: Digits, scores: NDArray[np.float64], train: Split, dev: Split
) -> TextClassifier:
    """Train a model with an mlp encoder, whose weights are the plant's: fixed, or taught."""
    settings = settings_of(plant, "mlp", items.vectors.width)
    with seeded(plant.seed):
        model = TextClassifier(settings, items.vocabulary, [str(c) for c in range(plant.classes)])
    drawing = Drawing(scores)
    fixed = plant.score == "fixed"
    if fixed:
        model.score = drawing
    fit_plant(model, plant, train, dev, None if fixed else drawing.of_batch, settings=SETTINGS)
    return model


def model_by_hand(
    plant: Plant, items: Digits, scores: NDArray[np.float64], dev: Split
) -> TextClassifier:
    """Make a model that reads what each digit says off its one-hot vector, divided by its usual weight."""
    model = TextClassifier(
        settings_of(plant, "none", DIGITS), items.vocabulary, [str(c) for c in range(plant.classes)]
    )
    model.score = Drawing(scores)
    usual = usual_weights(model, dev)
    effects = plant.noise * plant.generator("values").normal(size=(DIGITS, plant.classes))
    for digit in range(DIGITS):
        if is_deciding(plant, digit):
            effects[digit] = np.eye(plant.classes)[class_of(digit)] / plant.deciding
    reads = torch.from_numpy((effects / usual[:, None]).T)
    with torch.no_grad():
        model.decoder.weight.copy_(reads[1:] - reads[:1] if plant.classes == 2 else reads)
        model.decoder.bias.zero_()
    return model.eval().requires_grad_(False)


def usual_weights(model: TextClassifier, split: Split) -> Float[np.ndarray, " D"]:
    """Return the mean weight of an item of each digit; 1 of one that does not occur."""
    weights = weights_of(model, split).double().numpy()
    total, seen = np.zeros(DIGITS), np.zeros(DIGITS)
    for row, bag in zip(weights, split.tokens, strict=True):
        digits = [digit_of(item) for item in bag]
        np.add.at(total, digits, row[: len(bag)])
        np.add.at(seen, digits, 1)
    return np.where(seen > 0, total / np.maximum(seen, 1), 1.0)


def make_bags(
    design: Design, checks: Sequence[Check], plant: Plant, corpus: Corpus | None = None
) -> PlantedModel:
    """Make a plant on bags that are drawn for it: by hand, or trained."""
    items = digits_for(plant)
    dev = write_bags(plant, items, DEV, "dev", design)
    test = write_bags(plant, items, plant.texts, "test", design)
    deciding = np.array([is_deciding(plant, digit) for digit in range(DIGITS)])
    scores = scores_of(plant, design, items.digits, deciding)
    if plant.encoder == BY_HAND:
        model = model_by_hand(plant, items, scores, dev)
    else:
        training = write_bags(plant, items, TRAIN, "train", design)
        model = train_model(plant, items, scores, training, dev)

    is_right = [
        is_accurate("held-out bags"),
        is_accurate("items of another class", partial(with_other_digits, items)),
    ]
    return finished([*is_right, *checks], plant, scores, model, dev, test)


def finished(
    checks: Sequence[Check],
    plant: Plant,
    scores: NDArray[np.float64],
    model: TextClassifier,
    dev: Split,
    test: Split,
) -> PlantedModel:
    """Give a model the plant's margin, and check it, and whether learned weights are the plant's."""
    set_margin(model, test, plant.margin)
    taught = [] if plant.score == "fixed" else [is_taught(Drawing(scores).of_batch)]
    return checked([*checks, *taught], plant, model, dev, test)
