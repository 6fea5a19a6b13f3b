"""Pictures whose deciding patch is known: one of scikit-learn's `load_digits` on noise.

A picture has 32 × 32 pixels: 4 × 4 places of 8 × 8. One place holds a digit, and the picture's class is which;
the others hold the pixels of some digit in a random order, so that neither how bright a place is nor a single
pixel of it tells. An image of a digit is in pictures of one split only.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from heedmap.data.item_vectors import ItemVectors, StoredBag, held_bag
from heedmap.data.pictures import Grid
from heedmap.data.rows import LabelledTexts, Parts, Row
from heedmap.nouns import PICTURES

SEED = 8
PLACES, SIDE = 4, 8  # places along a side of the picture, pixels along one of a place
PER_IMAGE = {"train": 6, "dev": 2, "test": 1}  # pictures of each image of a digit
SHARES = {"train": 0.7, "dev": 0.1, "test": 0.2}  # of the images
CLASSES = tuple(str(digit) for digit in range(10))


@dataclass(frozen=True)
class DigitPicture:
    """A picture (32, 32, 3) of bytes, its digit, and the row and column of the place that holds it."""

    key: str
    colours: NDArray[np.uint8]
    digit: int
    row: int
    column: int

    def marks(self, rows: int, columns: int) -> NDArray[np.bool_]:
        """Return which patches of a grid of other size, row by row, the digit's place reaches into."""
        down = _overlap(self.row, rows)
        across = _overlap(self.column, columns)
        return np.outer(down, across).flatten()


def _overlap(place: int, count: int) -> NDArray[np.bool_]:
    starts = np.arange(count) * PLACES
    return (starts < (place + 1) * count) & (starts + PLACES > place * count)


def drawn_pictures(split: str) -> Iterator[DigitPicture]:
    """Draw the pictures of a split (train, dev or test), always the same ones."""
    from sklearn.datasets import load_digits

    images, digits = load_digits(return_X_y=True)
    images = images.reshape(-1, SIDE, SIDE)
    order = np.random.default_rng(SEED).permutation(len(digits))
    ends = np.round(np.cumsum(list(SHARES.values())) * len(digits)).astype(int)[:-1]
    number = list(SHARES).index(split)
    members, rng = np.split(order, ends)[number], np.random.default_rng([SEED, number])
    for count, member in enumerate(np.repeat(members, PER_IMAGE[split]).tolist()):
        noise = images[rng.choice(members, PLACES * PLACES)].reshape(PLACES * PLACES, -1)
        places = rng.permuted(noise, axis=1).reshape(PLACES, PLACES, SIDE, SIDE)
        row, column = rng.integers(0, PLACES, 2).tolist()
        places[row, column] = images[member]
        grey = places.transpose(0, 2, 1, 3).reshape(PLACES * SIDE, PLACES * SIDE)
        colours = np.repeat(np.round(grey * (255 / 16)).astype(np.uint8)[..., None], 3, axis=2)
        yield DigitPicture(f"{split}-{count}", colours, int(digits[member]), row, column)


def digit_pictures(grid: Grid) -> LabelledTexts:
    """Return the test pictures as texts of a model's patches, with those that the digit reaches into marked."""
    stored: dict[str, StoredBag] = {}
    drawn = list(drawn_pictures("test"))
    for picture in drawn:
        vectors = grid.cut(picture.colours)
        stored[picture.key] = replace(
            held_bag(vectors, f"picture {picture.key}", grid.coordinates()),
            read_picture=partial(grid.shown, vectors),
        )
    store, signs = ItemVectors(stored, grid.width, in_memory=False), grid.signs()
    rows = [
        Row(p.key, store.names(p.key, signs), CLASSES[p.digit], p.marks(grid.rows, grid.columns))
        for p in drawn
    ]
    parts: Parts = {"test": rows}
    return LabelledTexts(parts, vectors=store, nouns=PICTURES)
