"""The toy bags of xMIL (Hense et al. 2024, section 4.1), written from their description, of one-hot vectors.

A bag holds 30 digits from 0 to 9.

* `four_bags`: class 1 if there is an eight, 2 if there is a nine, 3 if there are both, else 0.
* `pos_neg`: class 1 if there are more different digits of 4, 6, 8 than of 5, 7, 9, else 0.
* `adjacent_pairs`: class 1 if there are two digits from 0 to 4 that follow each other (1 and 2), else 0.

The paper has pictures of MNIST in place of the one-hot vectors. Its bags are drawn so that the classes are
balanced; how, its text does not say: here each bag draws which digits it may hold until its class is the one
that is due. Marked are the items that the rule of the class rests on; class 0 of the first and the last rests
on none.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from heedmap.data.item_vectors import ItemVectors, held_bag
from heedmap.data.rows import LabelledTexts, Row

SEED = 4
BAGS = {"train": 800, "dev": 160, "test": 200}
ITEMS, DIGITS = 30, 10
Digits = NDArray[np.int64]
Rule = Callable[[Digits], tuple[int, NDArray[np.bool_]]]


def four_bags(digits: Digits) -> tuple[int, NDArray[np.bool_]]:
    """Return the class of a bag by its digits, and the items that it rests on."""
    eight, nine = bool((digits == 8).any()), bool((digits == 9).any())
    return eight + 2 * nine, np.isin(digits, (8, 9))


def pos_neg(digits: Digits) -> tuple[int, NDArray[np.bool_]]:
    """Return the class of a bag by its digits, and the items that it rests on: those of its own sign."""
    positive, negative = (np.isin(digits, signed) for signed in ((4, 6, 8), (5, 7, 9)))
    is_more = len(np.unique(digits[positive])) > len(np.unique(digits[negative]))
    return int(is_more), positive if is_more else negative


def adjacent_pairs(digits: Digits) -> tuple[int, NDArray[np.bool_]]:
    """Return the class of a bag by its digits, and the items that it rests on."""
    small = np.unique(digits[digits <= 4])
    paired = [d for d in small if d + 1 in small or d - 1 in small]
    return int(len(paired) > 0), np.isin(digits, paired)


RULES: dict[str, tuple[Rule, int]] = {
    "four_bags": (four_bags, 4),
    "pos_neg": (pos_neg, 2),
    "adjacent_pairs": (adjacent_pairs, 2),
}


def toy_bags(name: str) -> LabelledTexts:
    """Draw the bags of a toy, always the same ones, with as many bags of each class."""
    rule, classes = RULES[name]
    rng = np.random.default_rng([SEED, *name.encode()])
    one_hot = np.eye(DIGITS, dtype=np.float32)
    drawn = {
        split: [(f"{split}-{i}", _draw(rule, i % classes, rng)) for i in range(count)]
        for split, count in BAGS.items()
    }
    bags = {
        key: held_bag(one_hot[digits], f"bag {key}")
        for part in drawn.values()
        for key, digits in part
    }
    store = ItemVectors(bags, DIGITS, in_memory=False)
    parts: dict[str, list[Row]] = {}
    for split, part in drawn.items():
        parts[split] = []
        for key, digits in part:
            label, marks = rule(digits)
            tokens = store.names(key, [str(digit) for digit in digits.tolist()])
            parts[split].append(Row(key, tokens, str(label), marks))
    return LabelledTexts(parts, vectors=store)


def _draw(rule: Rule, label: int, rng: np.random.Generator) -> Digits:
    while True:
        allowed = np.flatnonzero(rng.random(DIGITS) < rng.random())
        if len(allowed) and rule(digits := rng.choice(allowed, ITEMS))[0] == label:
            return digits
