"""Mark tokens: those of a list of words, or those that the data mark."""

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

import numpy as np

from heedmap.data.batches import Ragged
from heedmap.data.corpus import Corpus, Split
from heedmap.errors import InputError
from heedmap.terminal.output import remark

BY_DATA = "marked"
SHOWN = 5  # near misses


def marked_words(text: str, corpus: Corpus) -> tuple[str, ...] | None:
    """Return the words of a list `he,she,...`, or of a file with one per line; None for what the data mark.

    Words are compared without regard to case. Of several, those that occur nowhere are named in a warning.

    Raises:
        InputError: no word, an unreadable file, no word that occurs in the texts (with near misses), or data
            that mark nothing.
    """
    if text == BY_DATA:
        without = [name for name, split in corpus.splits.items() if split.rationale is None]
        if without:
            raise InputError(
                f"--forbidden {BY_DATA}: expected marked tokens in every split, {corpus.name} has none in "
                f"{', '.join(without)}; list the words instead: --forbidden he,she"
            )
        return None
    words = _words(text)
    tokens = {
        token.strip().lower()
        for split in corpus.splits.values()
        for text_tokens in split.tokens
        for token in text_tokens
    }
    missing = [word for word in words if word not in tokens]
    if missing:
        suggestions = "; ".join(_near(word, sorted(tokens)) for word in missing)
        if len(missing) == len(words):
            raise InputError(
                f"--forbidden: expected words of the texts, none of these occurs: {suggestions}"
            )
        remark(f"--forbidden: not in the texts: {suggestions}")
    return tuple(word for word in words if word in tokens)


def _words(text: str) -> list[str]:
    try:
        path = Path(text)
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else text.split(",")
    except (OSError, ValueError) as error:
        raise InputError(
            f"--forbidden {text}: cannot be read ({error}); expected a word per line"
        ) from error
    words = sorted({line.strip().lower() for line in lines if line.strip()})
    if not words:
        raise InputError(
            f"--forbidden {text!r}: expected words, he,she,... or a file with one per line"
        )
    return words


def _near(word: str, vocabulary: Sequence[str]) -> str:
    close = get_close_matches(word, vocabulary, SHOWN)
    return f"{word} (near: {', '.join(close)})" if close else f"{word} (nothing near)"


def marks_of(split: Split, words: tuple[str, ...] | None) -> Ragged:
    """Return 1 for marked tokens and 0 for others, text by text.

    `words` are in lower case; None for the tokens that the data mark.
    """
    if words is None:
        assert split.rationale is not None
        return Ragged([np.asarray(mask, dtype=np.float32) for mask in split.rationale])
    marked = set(words)
    return Ragged(
        [
            np.array([token.strip().lower() in marked for token in text], np.float32)
            for text in split.tokens
        ]
    )
