"""Bags of digits whose label, and the items that decide it, are known: made from scikit-learn's `load_digits`.

A bag holds some of the 1,797 pictures of 8 × 8 pixels (a vector of 64 numbers from 0 to 1); its label is
whether one of them is a nine. An image is in bags of one split only. The name of an item ends in its digit.
"""

import numpy as np

from heedmap.data.item_vectors import ItemVectors, StoredBag, held_bag
from heedmap.data.rows import LabelledTexts, Parts, Row

SEED = 9
BAGS = {"train": 600, "dev": 120, "test": 200}
SHARES = {"train": 0.6, "dev": 0.15, "test": 0.25}  # of the pictures
SMALLEST, LARGEST = 8, 16  # items of a bag
NINE = 9
CLASSES = ("no nine", "nine")


def digit_bags() -> LabelledTexts:
    """Draw the bags, always the same ones: half of them hold one to three nines, which are marked."""
    from sklearn.datasets import load_digits

    pictures, digits = load_digits(return_X_y=True)
    vectors = (pictures / 16).astype(np.float32)
    rng = np.random.default_rng(SEED)
    order = rng.permutation(len(digits))
    ends = np.round(np.cumsum(list(SHARES.values())) * len(digits)).astype(int)[:-1]
    stored: dict[str, StoredBag] = {}
    drawn: dict[str, list[tuple[str, np.ndarray]]] = {}
    for split, members in zip(BAGS, np.split(order, ends), strict=True):
        nines, remaining = (
            members[(digits[members] == NINE) == is_nine] for is_nine in (True, False)
        )
        drawn[split] = []
        for number in range(BAGS[split]):
            size = int(rng.integers(SMALLEST, LARGEST + 1))
            count = int(rng.integers(1, 4)) if number % 2 else 0
            items = np.concatenate([rng.choice(nines, count), rng.choice(remaining, size - count)])
            drawn[split].append((f"{split}-{number}", rng.permutation(items)))
    for name, items in (bag for bags in drawn.values() for bag in bags):
        stored[name] = held_bag(vectors[items], f"bag {name}")
    store = ItemVectors(stored, vectors.shape[1], in_memory=False)
    parts: Parts = {
        split: [_row(store, name, digits[items]) for name, items in bags]
        for split, bags in drawn.items()
    }
    return LabelledTexts(parts, vectors=store)


def _row(store: ItemVectors, name: str, digits: np.ndarray) -> Row:
    tokens = store.names(name, [str(digit) for digit in digits.tolist()])
    marks = digits == NINE
    return Row(name, tokens, CLASSES[int(marks.any())], marks)
