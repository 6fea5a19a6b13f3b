"""The documents of a corpus word for word, as files in ERASER's layout name them, with what people marked."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heedmap.data.embedded import EMBEDDED
from heedmap.data.eraser_rows import docids, is_eraser
from heedmap.data.in_memory import InMemory
from heedmap.data.selection import read_labelled
from heedmap.data.streams import reading
from heedmap.errors import InputError
from heedmap.settings.data import DataSettings

CARRIERS = (
    "a folder in ERASER's layout, a table with a column evidence_spans, SST with its token_labels or trees, "
    "and the embedded reviews, reviews-stars, biographies-gender, babi_qa1, babi_qa2 and babi_qa3"
)


@dataclass(frozen=True)
class Document:
    """A whole text: its words, separated by white space, and which of them people marked."""

    docid: str
    words: list[str]
    marked: NDArray[np.bool_]


def without_rationales(source: str) -> InputError:
    """Make the error for a corpus without marks whose agreement with people is asked for."""
    return InputError(
        f"{source}: expected texts with the words that people marked, got texts without; corpora that carry "
        f"them: {CARRIERS}"
    )


def documents(settings: DataSettings, in_memory: InMemory | None = None) -> dict[str, Document]:
    """Read a corpus's documents by key: those of its test split, or all where it has none. None is cut.

    `in_memory` are its texts where they come from there.

    Raises:
        InputError: it cannot be read, or has no marks.
    """
    by_word = settings.model_copy(update={"tokenizer": "spaces", "raw": False})
    with reading(settings.source):
        parts = read_labelled(by_word, in_memory).parts
    rows = parts.get("test") or [row for part in parts.values() for row in part]
    if all(row.rationale is None for row in rows):
        raise without_rationales(settings.source)
    folder = Path(settings.source)
    names = docids(folder) if settings.source not in EMBEDDED and is_eraser(folder) else {}
    return {
        row.key: Document(
            names.get(row.key, row.key),
            row.tokens,
            np.zeros(len(row.tokens), dtype=bool) if row.rationale is None else row.rationale,
        )
        for row in rows
    }


def owners(words: Sequence[str], tokens: Sequence[str]) -> list[list[int]] | None:
    """Return which of a model's tokens each word of a document is read as: none where the text was cut.

    The tokens are the document's letters again, in lower case or not, up to the cut. None if they are not.
    """
    text, token_letters = ([_letters(part) for part in parts] for parts in (words, tokens))
    if not "".join(text).startswith("".join(token_letters)):
        return None
    tokens_of: list[list[int]] = [[] for _ in words]
    ends = np.cumsum([len(part) for part in text])
    start = 0
    for number, part in enumerate(token_letters):
        start_word, end_word = np.searchsorted(ends, [start, start + len(part) - 1], side="right")
        for word in range(int(start_word), int(end_word) + 1):
            tokens_of[word].append(number)
        start += len(part)
    return tokens_of


def _letters(text: str) -> str:
    return "".join(text.lower().split())
