"""Pretrained word vectors from a text file: `word v1 v2 ...` a line, .gz too."""

import hashlib
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heedmap.data.streams import open_text, reading
from heedmap.data.vocabulary import SPECIAL, Vocabulary
from heedmap.errors import InputError

LONGEST_LINE = 1 << 17
"""Characters: more than any vector's numbers have."""


def read_vectors(path: Path, vocabulary: Vocabulary) -> tuple[NDArray[np.float32], int]:
    """The vectors of the vocabulary's words, shape (V, E), and how many words were found.

    Words that the file does not have, and the four marks, get the zero vector, as in the papers'
    released code; they are trained like all others, but for padding. Only wanted lines are parsed.

    Raises:
        InputError: no such file, a line that is too long, whose numbers do not fit the first line's or are
            not finite, or none of the words.
    """
    check_there(path)
    numbers = {word: i for i, word in enumerate(vocabulary.words, len(SPECIAL))}
    matrix: NDArray[np.float32] | None = None
    found = 0
    try:
        with reading(path), open_text(path) as file:
            # A piece at a time: a line without an end would fill the memory.
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
                found += 1
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not readable as a UTF-8 text file ({error})") from error
    if matrix is None or matrix.shape[1] == 0:
        raise InputError(f"{path}: no vectors; expected `word v1 v2 ...` a line")
    if not found:
        raise InputError(
            f"{path}: expected vectors of words in these texts, such as "
            f"{', '.join(vocabulary.words[:3])}; it has none of {len(vocabulary.words)} words"
        )
    return matrix, found


def vectors_hash(path: Path) -> str:
    """A hash of the file's bytes: the same file gives the same, wherever it is.

    Raises:
        InputError: no such file, or unreadable.
    """
    check_there(path)
    about = path.stat()
    return _hash(path, about.st_size, about.st_mtime_ns)


@lru_cache(maxsize=8)
def _hash(path: Path, size: int, changed: int) -> str:
    """Once a file: some are of several gigabytes."""
    with reading(path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def check_there(path: Path) -> None:
    """Raises InputError where there is no file of vectors."""
    with reading(path):
        there = path.is_file()
    if not there:
        raise InputError(f"{path}: no such file; expected word vectors, `word v1 v2 ...` a line")
