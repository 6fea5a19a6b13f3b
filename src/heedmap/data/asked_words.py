"""Read texts with a word that a model is asked about: tagged words, or words that a mask hides.

    {"tokens": ["Ada", "met", "Bob"], "ner_tags": ["B-PER", "O", "B-PER"]}      a text per word with a label
    {"text": "The keys [MASK] here.", "target": "are", "foil": "is"}           a text per mask

A word is asked about in a text of its own, so that a sentence with three labelled words is three texts.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from heedmap.data.chosen_columns import Columns, find_column
from heedmap.data.columns import Rows
from heedmap.data.corpus import Split
from heedmap.data.labelled_rows import LabelledTable
from heedmap.data.labels import is_missing, label_text
from heedmap.data.readers import SPLIT_NAMES, SPLITS
from heedmap.data.rows import ColumnSpec, LabelledTexts, PackedRows, Row, chosen, gathered
from heedmap.data.text_names import places, text_keys
from heedmap.data.text_values import list_of_words, written_text
from heedmap.data.texts import HIDDEN
from heedmap.data.tokens import spaced, tokenizer_of
from heedmap.errors import InputError
from heedmap.settings.data import DataSettings
from heedmap.terminal.output import some_of

WORDS = ("tokens", "words", "text", "sentence", "word", "token")
TAGS = ("ner_tags", "pos_tags", "tags", "labels", "upos", "label", "tag")
SENTENCES = ("sentence #", "sentence_id", "sentence_idx", "sent_id")
TEXT = ("text", "sentence", "sentences")
HIDDEN_WORD = ("target", "answer", "word", "label")
FOIL = ("foil", "distractor", "wrong")
OUTSIDE = "O"
UNASKED = "-100"  # what transformers leaves out of the loss
FIRST_AND_SECOND = ("first in the alphabet", "second in the alphabet")
"""The classes of a masked language model: the two words of which one is hidden, in the order of the alphabet.

Neither is always the right one, as the hidden word and its foil would be.
"""
_MASK = re.compile(r"\[mask\]|<mask>", re.IGNORECASE)


def in_sentences(table: Rows, settings: DataSettings) -> Rows:
    """Return a table of a word in each row, the first or each with its sentence's number, as one of sentences.

    Raises:
        InputError: a word in each row, and no column of these numbers.
    """
    words = find_column(table, settings.text, WORDS) if settings.asks == "words" else None
    values = [] if words is None else [v for v in table.values(words) if not is_missing(v)]
    if len(values) < 2 or not all(isinstance(v, str) and len(v.split()) == 1 for v in values):
        return table
    if (name := find_column(table, None, SENTENCES)) is None:
        raise InputError(
            f"{table.source or settings.source}: expected a sentence in each row, got a word (column {words}); "
            f"add a column {SENTENCES[1]} that numbers the sentences"
        )
    pairs = enumerate(pairwise([None, *table.values(name)]))
    starts = [i for i, (previous, x) in pairs if i == 0 or not (is_missing(x) or x == previous)]
    firsts, lists = table.take(starts), (words, find_column(table, settings.label, TAGS))

    def sentences(column: str) -> list[Any]:
        if column not in lists:
            return firsts.values(column)
        return [table.values(column)[i:j] for i, j in pairwise([*starts, len(table)])]

    note = f"a word in each row: read as {len(starts)} sentences by the column {name}"
    return replace(firsts, values=sentences, notes=[*table.notes, note])


def asked_rows(table: Rows, part: str, settings: DataSettings) -> LabelledTable:
    """Read the rows of a table as texts that each ask about a word: of tagged words, or of a mask.

    `part` is the table's own split, `all` where it has none.

    Raises:
        InputError: columns that are not there; as many labels as words are wanted, and one mask with two words.
    """
    of_masks = settings.asks == "masks"
    columns = _masked_columns(table, settings) if of_masks else _tagged_columns(table, settings)
    splits = find_column(table, None, ("split", "exp_split")) if part == "all" else None
    split_names = table.values(splits) if splits else [part] * len(table)
    id_column = find_column(table, settings.id, ("id",))
    keys, notes = text_keys(table, id_column, guessed=settings.id is None)
    names = keys or places(table)
    left_out: Counter[str] = Counter()
    values = [table.values(name) if name else [None] * len(table) for name in columns]
    parts: defaultdict[str, PackedRows] = defaultdict(PackedRows)
    for number, (key, split_name, *row_values) in enumerate(
        zip(names, split_names, *values, strict=True)
    ):
        split = SPLIT_NAMES.get(str(split_name).strip().lower(), split_name)
        if split not in (*SPLITS, "all"):
            left_out[f"split column says {split!r}"] += 1
            continue
        if is_missing(row_values[0]):
            left_out["empty text"] += 1
            continue
        try:
            texts = (
                _masked(key, row_values, columns, settings)
                if of_masks
                else _tagged(key, row_values, columns, table)
            )
        except InputError as error:
            raise InputError(f"{table.place_of(number)}: {error}") from error
        for row in texts:
            parts[split].append(row)
    text, label = columns[0], columns[1]
    id_name = id_column if keys else None
    by_split = {split: gathered(rows) for split, rows in parts.items()}
    return LabelledTable(Columns(text, label, id=id_name), by_split, left_out, notes)


def for_outputs(
    texts: LabelledTexts, settings: DataSettings, outputs: Sequence[str]
) -> tuple[LabelledTexts, Sequence[str]]:
    """Return what is asked of a model with these outputs, and the names of the outputs.

    Words that are labelled as outside everything are left out and counted, unless all words are asked about or
    all are labelled so. The outputs of a masked language model are named by the two words, if all texts have
    the same two.
    """
    if settings.asks == "masks":
        return _named_by_words(texts, outputs)
    texts = _with_names(texts, settings, outputs)
    parts = {name: chosen(part, OUTSIDE.__ne__) for name, part in texts.parts.items()}
    total = sum(map(len, texts.parts.values()))
    count = total - sum(map(len, parts.values()))
    if settings.asked == "all" or count in (0, total):
        return texts, outputs
    reason = f"words labelled {OUTSIDE}, which --asked all asks about too"
    return replace(texts, parts=parts, left_out={**texts.left_out, reason: count}), outputs


def _with_names(
    texts: LabelledTexts, settings: DataSettings, outputs: Sequence[str]
) -> LabelledTexts:
    """Return texts with the names of the model's outputs for labels that are their numbers, from 0 up."""
    labels = {row.label for part in texts.parts.values() for row in part}
    numbers = {str(number): name for number, name in enumerate(outputs)}
    if settings.classes is not None or "0" not in labels or not labels <= numbers.keys():
        return texts
    parts = {
        name: gathered(replace(row, label=numbers[row.label]) for row in part)
        for name, part in texts.parts.items()
    }
    note = f"labels are read as the numbers of the model's outputs: 0 is {outputs[0]}"
    return replace(texts, parts=parts, notes=[*texts.notes, note])


def _named_by_words(
    texts: LabelledTexts, outputs: Sequence[str]
) -> tuple[LabelledTexts, Sequence[str]]:
    choices = {row.choices for part in texts.parts.values() for row in part}
    pair = next(iter(choices)) if len(choices) == 1 else None
    if pair is None:
        return texts, outputs
    names = dict(zip(FIRST_AND_SECOND, pair, strict=True))
    parts = {
        name: gathered(replace(row, label=names[row.label]) for row in part)
        for name, part in texts.parts.items()
    }
    return replace(texts, parts=parts), list(pair)


def _tagged_columns(table: Rows, settings: DataSettings) -> tuple[str, str | None]:
    words = find_column(table, settings.text, WORDS)
    tags = find_column(table, settings.label, TAGS)
    if words is None or tags is None:
        role, names = ("words", WORDS) if words is None else ("labels", TAGS)
        raise InputError(
            f"{table.source or settings.source}: expected for a model of token classification a column of "
            f"lists of words and one of lists of as many labels; no column of {role} ({' / '.join(names)}); "
            f"the columns are {some_of(table.columns, 20)}; name them with --text-column and --label-column"
        )
    return words, tags


def _tagged(key: str, values: Sequence[Any], columns: Sequence[Any], table: Rows) -> list[Row]:
    """Return a text per word of a row, each with the word's label."""
    words = words_of(values[0], columns[0])
    tags = [_tag(tag, columns[1], table) for tag in _list(values[1], columns[1])]
    if len(words) != len(tags):
        raise InputError(
            f"expected as many labels as words, got {len(tags)} labels ({columns[1]}) of {len(words)} words "
            f"({columns[0]})"
        )
    tagged_words = [(word, tag) for word, tag in zip(words, tags, strict=True) if word]
    tokens = spaced(word for word, _ in tagged_words)
    return [
        Row(f"{key}, word {place + 1}", tokens, tag, target=place)
        for place, (_, tag) in enumerate(tagged_words)
        if tag not in ("", UNASKED)
    ]


def words_of(written: Any, column: str) -> list[str]:
    """Return the words of a row, by a list of them or a text at its spaces.

    Raises:
        InputError: something else.
    """
    words = _list(written, column)
    for word in words:
        if not isinstance(word, str):
            raise InputError(
                f"expected a list of words in column {column}, got {word!r:.40} in it; write words as text, or "
                "leave the row out"
            )
    return words


def _list(value: Any, column: str) -> list[Any]:
    """Return the entries of a list, of one that is written as text, or of a text at its spaces."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [*value]
    if isinstance(value, str):
        if (words := list_of_words(value)) is not None:
            return [*words]
        return (value.strip("[]").replace(",", " ") if value[:1] == "[" else value).split()
    raise InputError(f"expected a list in column {column}, got {value!r:.60}")


def _tag(tag: Any, column: str, table: Rows) -> str:
    if is_missing(tag):
        return ""
    name = label_text(tag)
    names = table.class_names.get(column)
    if names is not None and name.isdigit() and int(name) < len(names):
        return names[int(name)]
    return name


def _masked_columns(table: Rows, settings: DataSettings) -> tuple[str, str, str]:
    columns = {
        "text": find_column(table, settings.text, TEXT),
        "label": find_column(table, settings.label, HIDDEN_WORD),
        "foil": find_column(table, settings.foil, FOIL),
    }
    if missing := [role for role, column in columns.items() if column is None]:
        descriptions = {"text": "the text", "label": "the hidden word", "foil": "the foil"}
        raise InputError(
            f"{table.source or settings.source}: expected for a masked language model columns of the text with "
            f"one {HIDDEN}, of the word that it hides, and of a foil; no column of {descriptions[missing[0]]}; "
            f"the columns are {some_of(table.columns, 20)}; name it with --{missing[0]}-column, or to classify "
            "texts fine-tune the model first: `heedmap train --model`"
        )
    return str(columns["text"]), str(columns["label"]), str(columns["foil"])


def _masked(
    key: str, values: Sequence[Any], columns: Sequence[Any], settings: DataSettings
) -> list[Row]:
    """Return the text of a row with its mask."""
    text = written_text(values[0], columns[0], settings, ColumnSpec())
    words = [
        written_text(value, column, settings, ColumnSpec()).strip()
        for value, column in zip(values[1:], columns[1:], strict=True)
    ]
    if not all(words) or words[0] == words[1]:
        raise InputError(
            f"expected a hidden word ({columns[1]}) and another one as its foil ({columns[2]}), got "
            f"{words[0]!r:.40} and {words[1]!r:.40}"
        )
    tokens, target = with_mask(text, settings)
    first, second = sorted(words)
    label = FIRST_AND_SECOND[words[0] == second]
    return [Row(key, tokens, label, target=target, choices=(first, second))]


def asked_text(
    text: str, target: str, foil: str | None, settings: DataSettings, asks: str | None
) -> Split:
    """Return a split of one text that asks about a word: `target`, a word of it or its number from 1 up.

    Where masks are asked about (`asks`), the text has one, which hides `target` or `foil`.

    Raises:
        InputError: no such word, or several; no foil of a hidden word, or one of a word that is not hidden.
    """
    label = np.zeros(1, dtype=np.int64)
    if asks == "masks":
        if foil is None or foil == target:
            raise InputError(
                f"expected beside the hidden word {target!r:.40} another one as its foil (--foil), got "
                f"{'none' if foil is None else 'the same'}"
            )
        tokens, place = with_mask(text, settings)
        first, second = sorted((target, foil))
        return Split(
            ["text"], [tokens], label, targets=np.array([place]), choices=[(first, second)]
        )
    if foil is not None:
        raise InputError(
            f"--foil {foil:.40}: expected a masked language model, got one that classifies words; leave it out"
        )
    tokens = [*tokenizer_of(settings)(text)]
    return Split(["text"], [tokens], label, targets=np.array([place_of_word(tokens, target)]))


def place_of_word(tokens: Sequence[str], target: str, named: str = "as --target") -> int:
    """Return the place of the word that is asked about: one of the tokens, or its number from 1 up.

    `named` says where the user names it.

    Raises:
        InputError: no such word, or several.
    """
    places = [place for place, token in enumerate(tokens) if token.strip() == target]
    if not places and target.isdigit() and 1 <= int(target) <= len(tokens):
        places = [int(target) - 1]
    if len(places) != 1:
        count = (
            f"stands in the text {len(places)} times" if places else "does not stand in the text"
        )
        raise InputError(
            f"expected {named} a word of the text, or its number from 1 to {len(tokens)}, got "
            f"{target!r:.40}, which {count}"
        )
    return places[0]


def with_mask(text: str, settings: DataSettings) -> tuple[list[str], int]:
    """Return the tokens of a text with one mask, and the place of the mask.

    Raises:
        InputError: a text with another number of masks.
    """
    masks = [*_MASK.finditer(text)]
    if len(masks) != 1:
        raise InputError(
            f"expected a text with one {HIDDEN} in place of the hidden word, got {len(masks)} of them in "
            f"{text!r:.60}"
        )
    left_side, right_side = text[: masks[0].start()], text[masks[0].end() :]
    stripped = left_side.rstrip()
    tokens = tokenizer_of(settings)
    start = [*tokens(stripped)]
    end = [*tokens(right_side)]
    space = "" if end else right_side  # white space alone has no token
    return [*start, f"{left_side[len(stripped) :]}{HIDDEN}{space}", *end], len(start)
