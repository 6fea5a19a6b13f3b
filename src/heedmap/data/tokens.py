"""From a text to its tokens."""

import re
import sys
from collections.abc import Callable

# A word may hold apostrophes and hyphens inside it; every other visible character stands alone.
_WORD_OR_MARK = re.compile(r"\w+(?:['’\-]\w+)*|[^\w\s]")
_WITH_SPACE = {
    "words": re.compile(rf"\s*(?:{_WORD_OR_MARK.pattern})"),
    "spaces": re.compile(r"\s*\S+"),
}


def words(text: str) -> list[str]:
    """Lower-case words and single punctuation marks, for raw text."""
    return [sys.intern(token) for token in _WORD_OR_MARK.findall(text.lower())]


def spaces(text: str) -> list[str]:
    """What stands between white space, unchanged: for text that is tokenised already.

    Jain & Wallace split on single spaces; here a run of white space counts as one, so that no empty
    string becomes a token.
    """
    return [sys.intern(token) for token in text.split()]


def pieces(text: str, tokenizer: str) -> list[str]:
    """The same tokens with their case and the white space before them: joined they are the text.

    White space at the end is left out.
    """
    return [sys.intern(piece) for piece in _WITH_SPACE[tokenizer].findall(text)]


TOKENIZERS: dict[str, Callable[[str], list[str]]] = {"words": words, "spaces": spaces}
