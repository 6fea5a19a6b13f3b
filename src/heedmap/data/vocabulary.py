"""Words and their numbers, as Jain & Wallace count them."""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

PAD, UNK, SOS, EOS = range(4)
SPECIAL = ("<pad>", "<unk>", "<sos>", "<eos>")
UNKNOWN_WORD = SPECIAL[UNK]


class Vocabulary:
    """The words that occur in at least `min_df` training texts, in alphabetical order, from 4 up.

    0 to 3 are padding, unknown word, start and end of the text.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.words = list(words)
        self._number = {word: i for i, word in enumerate(self.words, len(SPECIAL))}

    @classmethod
    def build(
        cls, texts: Iterable[Sequence[str]], min_df: int, always: Iterable[str] = ()
    ) -> "Vocabulary":
        """Count document frequencies in the training texts; the words in `always` are in any case."""
        frequency = Counter(word for text in texts for word in set(text))
        often = {word for word, count in frequency.items() if count >= min_df}
        return cls(sorted(often | set(always)))

    def __len__(self) -> int:
        return len(SPECIAL) + len(self.words)

    def encode(self, tokens: Sequence[str]) -> NDArray[np.int64]:
        """Word numbers between start and end marks: shape (len(tokens) + 2,)."""
        number = self._number
        return np.array([SOS, *(number.get(word, UNK) for word in tokens), EOS], dtype=np.int64)

    def __contains__(self, word: object) -> bool:
        return word in self._number
