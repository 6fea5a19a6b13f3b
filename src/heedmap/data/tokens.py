"""From a text to its tokens."""

import re
import sys
from collections.abc import Callable

# A word may hold apostrophes and hyphens inside it; every other visible character stands alone.
_WORD_OR_MARK = re.compile(r"\w+(?:['’\-]\w+)*|[^\w\s]")


def words(text: str) -> list[str]:
    """Lower-case words and single punctuation marks, for raw text."""
    return [sys.intern(token) for token in _WORD_OR_MARK.findall(text.lower())]


def spaces(text: str) -> list[str]:
    """What stands between white space, unchanged: for text that is tokenised already.

    Jain & Wallace split on single spaces; here a run of white space counts as one, so that no empty
    string becomes a token.
    """
    return [sys.intern(token) for token in text.split()]


TOKENIZERS: dict[str, Callable[[str], list[str]]] = {"words": words, "spaces": spaces}
