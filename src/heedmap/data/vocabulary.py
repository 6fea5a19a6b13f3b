"""Words and their numbers, as Jain & Wallace count them, and pretrained vectors of the words."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heedmap.data.streams import open_text, reading
from heedmap.errors import InputError

PAD, UNK, SOS, EOS = range(4)
SPECIAL = ("<pad>", "<unk>", "<sos>", "<eos>")
UNKNOWN_WORD = SPECIAL[UNK]
LONGEST_LINE = 1 << 17
"""Characters; the numbers of a vector have fewer."""


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
        """Count document frequencies in the training texts; always include the words in `always`."""
        frequency = Counter(word for text in texts for word in set(text))
        often = {word for word, count in frequency.items() if count >= min_df}
        return cls(sorted(often | set(always)))

    def __len__(self) -> int:
        return len(SPECIAL) + len(self.words)

    def encode(self, tokens: Sequence[str]) -> NDArray[np.int64]:
        """Number the tokens, between start and end marks: shape (len(tokens) + 2,)."""
        number = self._number
        return np.array([SOS, *(number.get(word, UNK) for word in tokens), EOS], dtype=np.int64)

    def decode(self, numbers: Sequence[int]) -> list[str]:
        """Return the words of some numbers."""
        words = [*SPECIAL, *self.words]
        return [words[number] for number in numbers]

    def __contains__(self, word: object) -> bool:
        return word in self._number


def read_vectors(path: Path, vocabulary: Vocabulary) -> tuple[NDArray[np.float32], int]:
    """Read the vectors of the vocabulary's words from lines `word v1 v2 ...`; .gz too.

    Returns them, of shape (V, E), and how many words were found.

    Words that the file does not have, and the four marks, get the zero vector, as in the papers'
    released code; they are trained like all others, but for padding. Only wanted lines are parsed.

    Raises:
        InputError: no such file, a line that is too long, whose numbers do not fit the first line's or are
            not finite, or none of the words.
    """
    check_there(path)
    numbers = {word: i for i, word in enumerate(vocabulary.words, len(SPECIAL))}
    matrix: NDArray[np.float32] | None = None
    count = 0
    try:
        with reading(path), open_text(path) as file:
            # At most LONGEST_LINE characters at a time: a line without an end would fill the memory.
            for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE + 1), ""), 1):
                if len(line) > LONGEST_LINE:
                    raise InputError(
                        f"{path}, line {number}: expected a word and its numbers, got a line of more than "
                        f"{LONGEST_LINE} characters"
                    )
                fields = line.rstrip().split(" ")
                if number == 1 and len(fields) == 2:  # word2vec's header: words, dimensions
                    continue
                if len(fields) == 1:
                    raise InputError(
                        f"{path}, line {number}: expected a word and its numbers, got "
                        f"{line[:60].strip()!r}; this is no file of word vectors"
                    )
                if matrix is None:
                    matrix = np.zeros((len(vocabulary), len(fields) - 1), dtype=np.float32)
                index = numbers.pop(fields[0], None)
                if index is None:
                    continue
                try:  # one number alone would be spread over all dimensions
                    values = np.array(fields[1:], dtype=np.float32).reshape(matrix.shape[1])
                    if not np.isfinite(values).all():
                        raise ValueError
                    matrix[index] = values
                except ValueError:
                    raise InputError(
                        f"{path}, line {number}: expected a word and {matrix.shape[1]} finite numbers, "
                        f"got {line[:60].strip()!r}"
                    ) from None
                count += 1
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not readable as a UTF-8 text file ({error})") from error
    if matrix is None or matrix.shape[1] == 0:
        raise InputError(f"{path}: no vectors; expected `word v1 v2 ...` a line")
    if not count:
        raise InputError(
            f"{path}: expected vectors of words in these texts, such as "
            f"{', '.join(vocabulary.words[:3])}; it has none of {len(vocabulary.words)} words"
        )
    return matrix, count


def vectors_hash(path: Path) -> str:
    """Hash a file's bytes: the same file gives the same hash, wherever it is.

    Raises:
        InputError: no such file, or unreadable.
    """
    check_there(path)
    status = path.stat()
    return _hash(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=8)
def _hash(path: Path, size: int, changed: int) -> str:
    """Hash each file once: some are of several gigabytes."""
    with reading(path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def check_there(path: Path) -> None:
    """Raise InputError where there is no file of vectors."""
    with reading(path):
        is_there = path.is_file()
    if not is_there:
        raise InputError(f"{path}: no such file; expected word vectors, `word v1 v2 ...` a line")
