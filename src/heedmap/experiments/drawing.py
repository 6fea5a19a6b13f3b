"""The order in which an audit with a budget draws its texts, and after how many it looks at its answer."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from heedmap.data.corpus import Split
from heedmap.experiments.generators import named_generator
from heedmap.experiments.rule import FEWEST_TEXTS

LOOKS = 19  # at most
FIRST_LOOK = FEWEST_TEXTS + 1
BEFORE = (1, 2, 4, 8)  # texts after which only the time is looked at


def in_drawing_order(split: Split, seed: int) -> Split:
    """Return the texts in the order in which they are drawn: from each labelled class in turn.

    Within a class, and where there are no labels, the order is random. A class that is used up is passed over.
    The windows of a long text stay together, and texts are numbered in their order.
    """
    numbers = np.arange(len(split)) if split.text_of is None else np.unique(split.text_of)
    rng = named_generator(seed, "drawing")
    random_order = rng.permutation(len(numbers))
    labels = split.labels_of_texts[random_order] if split.labelled else np.zeros(len(numbers))
    turn_of_class = {label: turn for turn, label in enumerate(rng.permutation(np.unique(labels)))}
    rounds = _rounds(labels)
    turns = np.array([turn_of_class[label] for label in labels])
    order = random_order[np.lexsort((turns, rounds))]
    if split.text_of is None:
        return split.take(order)
    rows_of_text = [np.flatnonzero(split.text_of == numbers[place]) for place in order]
    drawn = split.take(np.concatenate(rows_of_text))
    sizes = [len(rows) for rows in rows_of_text]
    return replace(drawn, text_of=np.repeat(np.arange(len(sizes)), sizes))


def first_texts(drawing: Split, count: int) -> Split:
    """Return the first texts of a drawing order, with all their windows."""
    text_of = np.arange(len(drawing)) if drawing.text_of is None else drawing.text_of
    return drawing.take(range(np.searchsorted(text_of, count)))


def _rounds(labels: NDArray[np.generic]) -> NDArray[np.int64]:
    """Return of each text how many of its label come before it."""
    rounds = np.zeros(len(labels), dtype=np.int64)
    for label in np.unique(labels):
        is_label = labels == label
        rounds[is_label] = np.arange(is_label.sum())
    return rounds


def looks(total: int) -> list[int]:
    """Return after how many texts the answer is looked at: at most LOOKS times, the last time after all.

    >>> looks(300)[:4], looks(300)[-2:], len(looks(300))
    ([16, 19, 22, 26], [255, 300], 19)
    >>> looks(9)
    [9]
    """
    if total <= FIRST_LOOK:
        return [total]
    sizes = np.geomspace(FIRST_LOOK, total, LOOKS).round().astype(np.int64)
    return [int(size) for size in np.unique(sizes)]


def stops(total: int) -> list[int]:
    """Return after how many texts an audit may stop: those of the looks, and few enough to mind the time.

    >>> stops(20)
    [1, 2, 4, 8, 16, 17, 18, 19, 20]
    """
    return sorted({*(size for size in BEFORE if size < total), *looks(total)})
