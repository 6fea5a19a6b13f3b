"""Bags of vectors from memory: a list of arrays, with a label for each."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from heedmap.data.assembly import to_train
from heedmap.data.corpus import Corpus
from heedmap.data.foreign_arrays import as_floats, as_numpy
from heedmap.data.item_vectors import ItemVectors, StoredBag, common_width, held_bag
from heedmap.data.labels import label_text
from heedmap.data.padding import without_padding
from heedmap.data.rows import LabelledTexts, Row
from heedmap.errors import InputError
from heedmap.keywords import split, takes
from heedmap.nouns import BAGS
from heedmap.settings.base import OptionSubset
from heedmap.settings.data import DataSettings

# A bag is read whole.
IN_MEMORY: dict[str, Any] = {"source": "bags in memory", "max_tokens": 1 << 30, "nouns": BAGS}
_DRAWN = ("seed", "train_texts", "test_texts")
DRAWN = OptionSubset(DataSettings, *(DataSettings.options().keys() - {*_DRAWN}))
"""How the splits are drawn."""


@takes(DRAWN)
def load_bags(
    bags: Any,
    labels: Sequence[Any],
    *,
    names: Sequence[str] | None = None,
    coordinates: Any = None,
    **settings: Any,
) -> Corpus:
    """Make a corpus of bags of vectors, such as the patches of slides, that are in memory.

    Bags in files are read by `heedmap.load`, which does not hold them all in memory.

    >>> import numpy as np, heedmap as hm
    >>> rng = np.random.default_rng(0)
    >>> corpus = hm.load_bags([rng.normal(size=(5, 4)) + i % 2 for i in range(40)], ["a", "b"] * 20)
    >>> len(corpus.splits["test"]), corpus.splits["test"].tokens[0][:2]
    (8, ['0:0', '0:1'])

    Args:
        bags: a vector for each item of each bag, (T, D): arrays or tensors of any framework, also masked ones.
        labels: the class of each bag.
        names: of the bags [0, 1, ...].
        coordinates: where the items of each bag lie, (T, 2).
        {options}

    Raises:
        InputError: what was expected, what came and what to do.
    """
    (options,) = split("load_bags", settings, DRAWN)
    texts = labelled_bags(bags, labels, names, coordinates)
    corpus = to_train(texts, DataSettings.of(**IN_MEMORY, **options))
    corpus.warn()
    return corpus


def labelled_bags(
    bags: Any,
    labels: Sequence[Any] | None,
    names: Sequence[str] | None = None,
    coordinates: Any = None,
) -> LabelledTexts:
    """Return bags that are in memory as texts of items; without labels theirs are empty.

    Raises:
        InputError: as `load_bags`.
    """
    parts, _, notes = without_padding({"bags": bags, "coordinates": coordinates})
    arrays = [as_floats(bag, f"bags[{i}]") for i, bag in enumerate(parts["bags"])]
    count = len(arrays)
    if not count:
        raise InputError("bags: expected bags with a vector for each item, got none")
    width = common_width({f"bags[{i}]": array.shape for i, array in enumerate(arrays)})
    keys = [str(i) for i in range(count)] if names is None else [str(n).strip() for n in names]
    if len(keys) != count or len(set(keys)) != count or "" in keys:
        raise InputError(f"names: expected {count} different names, one for each bag, got others")
    class_names = [""] * count if labels is None else [label_text(label) for label in labels]
    if len(class_names) != count:
        raise InputError(f"labels: expected {count}, one for each bag, got {len(class_names)}")
    places = parts.get("coordinates", [None] * count)
    stored = {
        key: _stored(f"bags[{i}]", array, place)
        for i, (key, array, place) in enumerate(zip(keys, arrays, places, strict=True))
    }
    vectors = ItemVectors(stored, width, in_memory=True)
    rows = [Row(key, vectors.names(key), name) for key, name in zip(keys, class_names, strict=True)]
    return LabelledTexts({"all": rows}, notes=notes, vectors=vectors)


def _stored(name: str, array: np.ndarray, place: Any) -> StoredBag:
    narrow = array.astype(np.float32)
    if place is None:
        return held_bag(narrow, name)
    coordinates = as_numpy(place, f"coordinates of {name}").astype(np.float64)
    if coordinates.shape != (len(array), 2):
        raise InputError(
            f"coordinates of {name}: expected the shape ({len(array)}, 2), a place for each item, got "
            f"{coordinates.shape}"
        )
    return held_bag(narrow, name, coordinates)
