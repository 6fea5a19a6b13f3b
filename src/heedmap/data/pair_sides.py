"""The texts of a pair that attention is audited over: one given the other, or both."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from heedmap.data.corpus import Split
from heedmap.errors import InputError
from heedmap.settings.data import DataSettings

MARKS_OF_TEXT = "marks of words: those of the text alone are known, and they are not read (kept)"


def audited_sides(split: Split, settings: DataSettings) -> tuple[Split, dict[str, int]]:
    """Return pairs with attention over the side that the settings name, and a count of marks that are not read.

    Splits of single texts stay as they are.

    Raises:
        InputError: a side is named of single texts.
    """
    if split.queries is None or not settings.raw:
        option = "--first" if settings.first else "--side"
        if settings.side != "text" or settings.first:
            raise InputError(
                f"{option}: expected pairs of texts, got single texts; name the column of the second text with "
                "--query-column, or leave it out"
            )
        return split, {}
    query_first, queries = settings.first == "query", split.queries
    if settings.side == "text":
        return replace(split, query_first=query_first), {}
    counted = {} if split.rationale is None else {MARKS_OF_TEXT: len(split)}
    split = replace(split, rationale=None, written=None)
    if settings.side == "query":
        texts = [list(tokens) for tokens in split.tokens]
        other_first = not query_first
        return (
            replace(split, tokens=queries, queries=texts, query_first=other_first),
            counted,
        )
    firsts: Sequence[list[str]]
    firsts, seconds = split.tokens, queries
    if query_first:
        firsts, seconds = seconds, list(split.tokens)
    tokens = [[*words, *words_after] for words, words_after in zip(firsts, seconds, strict=True)]
    lengths = np.array([len(words) for words in firsts], dtype=np.int64)
    return replace(split, tokens=tokens, queries=None, seconds=lengths), counted
