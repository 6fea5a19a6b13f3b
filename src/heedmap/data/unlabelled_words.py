"""Words of a file that a model is asked about, to be explained: their labels need not be known."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from heedmap.data.asked_words import (
    HIDDEN_WORD,
    OUTSIDE,
    TAGS,
    WORDS,
    asked_rows,
    in_sentences,
    place_of_word,
    words_of,
)
from heedmap.data.chosen_columns import find_column
from heedmap.data.columns import Rows
from heedmap.data.corpus import Split
from heedmap.data.labels import is_missing, label_text
from heedmap.data.readers import dialect_of, read_rows
from heedmap.data.text_names import places, text_keys
from heedmap.data.text_values import list_of_words
from heedmap.data.tokens import spaced, tokenizer_of
from heedmap.data.unlabelled import Unlabelled
from heedmap.errors import InputError
from heedmap.settings.data import DataSettings
from heedmap.terminal.output import some_of

_TARGET = HIDDEN_WORD[:1]


def read_unlabelled_words(settings: DataSettings) -> Unlabelled:
    """Read a text for each word of a file that is asked about, as `settings.asks` says.

    Of masks the columns are those of an audit. Of words, a column `target` names the word of each text, or its
    number from 1 up; else a column of labels says which words are asked about, as in an audit: those that are
    not labelled O, unless all are. Where there is neither, all words are.

    Raises:
        InputError: as `read_rows`, no such columns, or a word that cannot be asked about, with the row.
    """
    rows = in_sentences(read_rows(Path(settings.source), **dialect_of(settings)), settings)
    target = None if settings.asks == "masks" else find_column(rows, None, _TARGET)
    tags = find_column(rows, settings.label, TAGS)
    if target is None and (settings.asks == "masks" or tags is not None):
        return _labelled(rows, settings)
    id_column = find_column(rows, settings.id, ("id",))
    keys, notes = text_keys(rows, id_column, guessed=settings.id is None)
    column = find_column(rows, settings.text, WORDS)
    if column is None:
        raise InputError(
            f"{settings.source}: expected a column of texts or of lists of words ({' / '.join(WORDS)}), got "
            f"{some_of(rows.columns, 20)}; name it with --text-column"
        )
    targets = [None] * len(rows) if target is None else rows.values(target)
    keyed_splits: list[tuple[str, Split]] = []
    left_out: Counter[str] = Counter()
    for number, (key, text, word) in enumerate(
        zip(keys or places(rows), rows.values(column), targets, strict=True)
    ):
        if is_missing(text) or (isinstance(text, str) and not text.strip()):
            left_out["rows are empty"] += 1
            continue
        try:
            tokens, is_list = _tokens(text, column, settings)
            if target is None:
                keyed_splits += [
                    (f"{key}, word {place + 1}", _split_of(tokens, place, pretokenized=is_list))
                    for place in range(len(tokens))
                    if tokens[place].strip()
                ]
            else:
                place = _place(tokens, word, target)
                keyed_splits.append((key, _split_of(tokens, place, pretokenized=is_list)))
        except InputError as error:
            raise InputError(f"{rows.place_of(number)}: {error}") from error
    return _of_splits(settings, keyed_splits, left_out, [*rows.notes_on(settings.text), *notes])


def _labelled(rows: Rows, settings: DataSettings) -> Unlabelled:
    """Read the words that an audit would ask about, without asking whose classes the labels are."""
    table = asked_rows(rows, "all", settings)
    labelled_words = [row for part in table.parts.values() for row in part]
    classed_words = [
        row for row in labelled_words if settings.asks == "masks" or row.label != OUTSIDE
    ]
    chosen_words = classed_words or labelled_words
    left_out, is_list = Counter(table.left_out), settings.asks == "words"
    if outside := len(labelled_words) - len(chosen_words):
        left_out[f"words labelled {OUTSIDE}"] = outside
    return _of_splits(
        settings,
        [
            (row.key, _split_of(row.tokens, row.target, row.choices, pretokenized=is_list))
            for row in chosen_words
        ],
        left_out,
        [*rows.notes_on(settings.text), *table.notes],
    )


def _split_of(
    tokens: Sequence[str],
    place: int | None,
    choices: tuple[str, str] | None = None,
    *,
    pretokenized: bool,
) -> Split:
    return Split(
        ["text"],
        [list(tokens)],
        np.zeros(1, dtype=np.int64),
        targets=np.array([place]),
        choices=None if choices is None else [choices],
        pretokenized=pretokenized,
    )


def _tokens(text: Any, column: str, settings: DataSettings) -> tuple[list[str], bool]:
    """Return the words of a list, or of a text as the model's are split, and whether it is a list."""
    if isinstance(text, str) and list_of_words(text) is None:
        return [*tokenizer_of(settings)(text)], False
    return spaced(filter(None, words_of(text, column))), True


def _place(tokens: Sequence[str], word: Any, column: str) -> int:
    if is_missing(word):
        raise InputError(
            f"expected in the column {column} a word of the text, or its number, got none"
        )
    return place_of_word(tokens, label_text(word), f"in the column {column}")


def _of_splits(
    settings: DataSettings,
    keyed_splits: Sequence[tuple[str, Split]],
    left_out: Counter[str],
    notes: Sequence[str],
) -> Unlabelled:
    if not keyed_splits:
        raise InputError(f"{settings.source}: expected texts that ask about a word, got none")
    splits = [split for _, split in keyed_splits]
    texts = ["".join(split.tokens[0]) for split in splits]
    return Unlabelled([key for key, _ in keyed_splits], texts, None, left_out, [*notes], splits)
