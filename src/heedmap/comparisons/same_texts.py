"""Which texts of several runs are the same, whatever their tokenizers made of them."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

FEWEST_LETTERS = 40  # of a text that counts as the cut beginning of a longer one

Letters = tuple[str, str]


class TextIds(NamedTuple):
    """Numbers of a run's texts, the same for the same text in every run.

    `texts` numbers the distinct texts; `ids` also tells the occurrences of a repeated text apart.
    """

    ids: NDArray[np.int64]
    texts: NDArray[np.int64]


def text_ids(tables: Sequence[pa.Table]) -> list[TextIds]:
    """Number the texts of several runs' `instances`, one row per text.

    Two texts are the same if they have the same letters, case and white space aside, and the same query:
    models that read other tokens of them read the same text. So do models that cut a long text at other
    places: texts of one key, of which one begins the other. Occurrences of a repeated text are matched in
    their order.
    """
    letters = [_letters(table) for table in tables]
    whole = _uncut(tables, letters)
    numbers: dict[Letters, int] = {}
    occurrences: dict[tuple[int, int], int] = {}
    numbered = []
    for run_letters, run_whole in zip(letters, whole, strict=True):
        seen: Counter[int] = Counter()
        texts, ids = [], []
        for text in (run_whole.get(i, own) for i, own in enumerate(run_letters)):
            number = numbers.setdefault(text, len(numbers))
            texts.append(number)
            ids.append(occurrences.setdefault((number, seen[number]), len(occurrences)))
            seen[number] += 1
        numbered.append(TextIds(np.array(ids, dtype=np.int64), np.array(texts, dtype=np.int64)))
    return numbered


def _letters(table: pa.Table) -> list[Letters]:
    """Return each text's letters, and those of its query."""
    queries = table["query"].to_pylist() if "query" in table.column_names else None
    return [
        (_joined(tokens), "" if queries is None else _joined(queries[i]))
        for i, tokens in enumerate(table["tokens"].to_pylist())
    ]


def _joined(tokens: Sequence[str]) -> str:
    return "".join("".join(tokens).split()).casefold()


def _uncut(
    tables: Sequence[pa.Table], letters: Sequence[Sequence[Letters]]
) -> list[dict[int, Letters]]:
    """Return for each run the texts that are cut, by row, with the letters of the longest form elsewhere."""
    forms: dict[tuple[str, str], set[str]] = {}
    keys = [table["key"].to_pylist() for table in tables]
    for run_keys, run_letters in zip(keys, letters, strict=True):
        for key, (text, query) in zip(run_keys, run_letters, strict=True):
            forms.setdefault((key, query), set()).add(text)
    longest = {
        (key, text): whole
        for key, texts in forms.items()
        if len(texts) > 1
        for text in texts
        if len(text) >= FEWEST_LETTERS
        and (whole := max((t for t in texts if t.startswith(text)), key=len)) != text
    }
    return [
        {
            row: (longest[(key, query), text], query)
            for row, (key, (text, query)) in enumerate(zip(run_keys, run_letters, strict=True))
            if ((key, query), text) in longest
        }
        for run_keys, run_letters in zip(keys, letters, strict=True)
    ]
