"""The items of bags in place of words: an item's number is the row of its vector."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from heedmap.data.item_vectors import ItemVectors
from heedmap.data.vocabulary import EOS, SOS, SPECIAL, UNK, Vocabulary


class ItemVocabulary(Vocabulary):
    """A vocabulary whose tokens are items with vectors of their own, from 4 up. It learns no words."""

    def __init__(self, vectors: ItemVectors) -> None:
        super().__init__([])
        self.vectors = vectors

    def encode(self, tokens: Sequence[str]) -> NDArray[np.int64]:
        """Number the items, between start and end marks: shape (len(tokens) + 2,)."""
        rows = map(self.vectors.row, tokens)
        numbers = (UNK if row is None else len(SPECIAL) + row for row in rows)
        return np.array([SOS, *numbers, EOS], dtype=np.int64)

    def decode(self, numbers: Sequence[int]) -> list[str]:
        """Return the names of the items of some numbers."""
        return [
            SPECIAL[number] if number < len(SPECIAL) else self.vectors.name(number - len(SPECIAL))
            for number in numbers
        ]

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and self.vectors.row(word) is not None
