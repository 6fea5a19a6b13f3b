"""Read the rows of a table as labelled texts: which columns are which, and what their values mean."""

import json
import re
import reprlib
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache, partial
from typing import Any

from heedmap.data.columns import Rows, check_single_column, joined, parts_of
from heedmap.data.compact import MANY
from heedmap.data.labels import (
    check_single,
    is_missing,
    kind_text,
    label_text,
    plain,
    trimmed,
    written_value,
)
from heedmap.data.markup import without_html
from heedmap.data.pair_columns import guessed_pair, query_comes_first
from heedmap.data.rationale_columns import NOT_FOUND, SENTIMENT, marked_words, rationale_of
from heedmap.data.readers import SPLIT_NAMES, SPLITS
from heedmap.data.rows import TEXT_COLUMNS, ColumnSpec, PackedRows, Parts, Row, gathered
from heedmap.data.text_names import places
from heedmap.data.tokens import TOKENIZERS, pieces
from heedmap.errors import InputError
from heedmap.settings.data import DataSettings
from heedmap.terminal.output import quoted, some_of

_QUOTED = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
_ENDS = {"[]": "brackets", "()": "brackets", "''": "single quotes"}
_LIST = re.compile(rf"\[\s*(?:{_QUOTED}(?:\s*,\s*|\s+|(?=\s*\])))*\]", re.DOTALL)


@dataclass(frozen=True)
class Columns:
    """The columns of a table that are read, by their names; `first` is a pair's text that is read first."""

    text: str
    label: str | None = None
    query: str | None = None
    id: str | None = None
    first: str | None = None

    def named(self) -> dict[str, str]:
        """Return those that there are, by the names of their settings."""
        return {name: column for name, column in vars(self).items() if column is not None}


@dataclass(frozen=True)
class LabelledTable:
    """The columns that are read of a table, and the rows that have a text and a label by split.

    With counts of the rows that are left out, and notes.
    """

    columns: Columns
    parts: Parts
    left_out: Mapping[str, int]
    notes: Sequence[str]


def labelled_rows(
    table: Rows, part: str, settings: DataSettings, spec: ColumnSpec
) -> LabelledTable:
    """Read the rows of a table as labelled texts.

    Where `spec` names no label column, a text is enough, and the rows' labels are empty. `part` is the table's
    own split, `all` where it has none.

    Raises:
        InputError: columns that are not there, or values that are no texts and labels, with the row.
    """
    table = with_text(table, settings, spec)
    columns = choose_columns(table, settings, spec)
    class_names = table.class_names.get(columns.label or "")
    tokenize = spec.tokenize or tokenizer_of(settings)
    split_column = find_column(table, None, ("split", "exp_split")) if part == "all" else None
    split_names = table.values(split_column) if split_column else [part] * len(table)
    answers = [None] * len(table) if columns.label is None else table.values(columns.label)
    left_out = Counter(trimmed(answers, part))
    read_marks = marked_words(table, columns.text, columns.label)
    if read_marks is None and SENTIMENT in table.columns:
        left_out[f"{SENTIMENT} that are no sentiments of words: not read (kept)"] += len(table)
    keys, key_notes = text_keys(table, columns.id, guessed=settings.id is None)
    if keys is None:
        columns, keys = replace(columns, id=None), places(table)
    texts, text_notes = text_values(table, columns.text)
    queries, query_notes = (
        text_values(table, columns.query) if columns.query else ([None] * len(table), [])
    )
    parts: defaultdict[str, PackedRows] = defaultdict(PackedRows)
    for number, (key, value, answer, split_name, question) in enumerate(
        zip(keys, texts, answers, split_names, queries, strict=True)
    ):
        split = SPLIT_NAMES.get(str(split_name).strip().lower(), split_name)
        if split not in (*SPLITS, "all"):
            left_out[f"split column says {split!r}"] += 1
            continue
        try:
            label = "" if columns.label is None else _class_name(answer, columns.label, class_names)
            if columns.label is not None and not label:
                left_out["label missing" if split == "all" else f"{split}: label missing"] += 1
                continue
            written = written_text(value, columns.text, settings, spec)
            tokens = tokenize(written)
            query = None
            if columns.query is not None:
                query = tokenize(written_text(question, columns.query, settings, spec))
            if not tokens or query == []:
                column = columns.text if not tokens or columns.query is None else columns.query
                left_out[" ".join(["empty", *column.split()])] += 1
                continue
            rationale = None
            if read_marks is not None:
                marks = read_marks(number, label)
                rationale, is_known = rationale_of(*marks, tokens, tokenize)
                if not is_known:
                    left_out[f"{split}: {NOT_FOUND}"] += 1
            # Raw tokens joined are the text: it need not be kept twice.
            row = Row(
                key, tokens, label, rationale, query, written=None if settings.raw else written
            )
        except InputError as error:
            raise InputError(f"{table.place_of(number)}: {error}") from error
        parts[split].append(row)
    if columns.label is not None:
        labels = dict.fromkeys(label for rows in parts.values() for label in rows.column("label"))
        check_single(settings.source, columns.label, list(labels))
    by_split = {split: gathered(rows) for split, rows in parts.items()}
    return LabelledTable(
        columns,
        by_split,
        left_out,
        [*_notes_on_pair(table, columns, settings, spec), *key_notes, *text_notes, *query_notes],
    )


def with_text(rows: Rows, settings: DataSettings, spec: ColumnSpec) -> Rows:
    """Return rows with the column of the text, where that is several columns joined."""
    return joined(rows, settings.text or spec.text[0])


def choose_columns(rows: Rows, settings: DataSettings, spec: ColumnSpec) -> Columns:
    """Find the columns that are named, or those with names that are guessed.

    Raises:
        InputError: columns that are not there, or one that is read as two.
    """
    guesses: dict[str, Sequence[str]] = {
        "text": spec.text, "label": spec.label, "query": spec.query, "id": ("id",),
    }  # fmt: skip
    named = {name: getattr(settings, name) for name in guesses}
    columns = {name: find_column(rows, named[name], guesses[name]) for name in guesses}
    if _may_be_a_pair(settings, spec) and (pair := guessed_pair(rows.columns)) is not None:
        columns["text"], columns["query"] = pair
    if not spec.label and settings.text is None and len(rows.columns) == 1:
        columns["text"] = rows.columns[0]  # of texts alone
    needed = [
        name
        for name in guesses
        if name == "text" or named[name] or (name in ("label", "query") and guesses[name])
    ]
    if missing := [name for name in needed if columns[name] is None]:
        names_by_role = {
            spec.role if name == "text" else name: named[name] or " / ".join(guesses[name])
            for name in missing
        }
        raise _missing(rows, settings, names_by_role)
    text, label, query = columns["text"], columns["label"], columns["query"]
    assert text is not None
    for role, column in (("query", query), ("label", label)):
        if column in (text, *map(str.strip, text.split(","))):
            raise InputError(
                f"{settings.source}: {column} is read as the {spec.role} and as the {role}; name two columns "
                f"with --{spec.role}-column and --{role}-column"
            )
    return Columns(text, label, query, columns["id"], _read_first(rows, settings, text, query))


def _may_be_a_pair(settings: DataSettings, spec: ColumnSpec) -> bool:
    """Return whether two columns with the usual names of a pair are one: of a transformer, if none is named."""
    is_named = settings.text is not None or settings.query is not None
    return settings.raw and not is_named and spec.text == TEXT_COLUMNS


def _notes_on_pair(
    rows: Rows, columns: Columns, settings: DataSettings, spec: ColumnSpec
) -> list[str]:
    """Say that two columns are read as a pair, where one of them would be read as single texts, too."""
    is_guessed = _may_be_a_pair(settings, spec) and columns.query is not None
    if not is_guessed or find_column(rows, None, spec.text) is None:
        return []
    return [
        f"columns {columns.text} and {columns.query} are read as pairs of texts; to read {columns.text} alone, "
        f"name it with --text-column {columns.text} (in Python text={columns.text!r})"
    ]


def _read_first(rows: Rows, settings: DataSettings, text: str, query: str | None) -> str | None:
    """Return the text of a pair that a transformer reads first; None for single texts, and our own models."""
    if query is None or not settings.raw:
        return None
    return settings.first or ("query" if query_comes_first(rows.columns, text, query) else "text")


def _missing(rows: Rows, settings: DataSettings, names_by_role: Mapping[str, str]) -> InputError:
    absent = {
        role: ", ".join(n for n in parts_of(names, rows.columns) if n not in rows.columns) or names
        for role, names in names_by_role.items()
    }
    read_as = f" ({rows.read_as})" if len(rows.columns) == 1 and rows.read_as else ""
    options = " and ".join(f"--{role}-column" for role in names_by_role)
    no_columns = " and ".join(f"no {role} column ({names})" for role, names in absent.items())
    return InputError(
        f"{rows.source or settings.source}: {no_columns}; the columns are "
        f"{some_of(rows.columns, 20)}{read_as}; name {'it' if len(absent) == 1 else 'them'} with "
        f"{options} (in Python {', '.join(f'{role}=' for role in absent)})"
        f"{rows.hint}"
    )


def find_column(rows: Rows, name: str | None, guesses: Sequence[str]) -> str | None:
    """Return the column that is named, or else the first of the guesses; None where it is not there.

    A guess may be written in any case; where columns differ by case alone, it is the one that is written as
    the guess, or else the first.

    Raises:
        InputError: several columns of that name.
    """
    if name is not None:
        column = next((exact for exact in (name, name.strip()) if exact in rows.columns), None)
    else:
        by_name = {column.strip().lower(): column for column in reversed(rows.columns)}
        by_name.update({column: column for column in rows.columns})
        column = next((by_name[guess] for guess in guesses if guess in by_name), None)
    if column is not None:
        check_single_column(rows, column)
    return column


def tokenizer_of(settings: DataSettings) -> Callable[[str], list[str]]:
    """Return what makes tokens of a text, where no data set has a way of its own.

    Texts that repeat one of the last MANY get the same list, which nobody may change.
    """
    tokenize = partial(pieces, tokenizer=settings.tokenizer) if settings.raw else None
    return lru_cache(MANY)(tokenize or TOKENIZERS[settings.tokenizer])


# --- names of texts ---------------------------------------------------------------------------------------


def text_keys(
    rows: Rows, column: str | None, *, guessed: bool
) -> tuple[list[str] | None, list[str]]:
    """Name each row by its own id, and by its place where that is missing, or too where it names other rows.

    Returns:
        the names, and notes; no names where the column was `guessed` and has lists or objects.

    Raises:
        InputError: lists or objects in a column that was named.
    """
    if column is None:
        return places(rows), []
    try:
        ids = _ids(rows, column)
    except InputError as error:
        if not guessed:
            raise
        return None, [f"{error}; the column is not read, and texts are named by their place"]
    counts = Counter(ids)
    missing = counts.pop("", 0)
    duplicates = [name for name, count in counts.items() if count > 1]
    if not missing and not duplicates:
        return ids, []
    named = [
        (name, f"{name} ({place})" if name else place)
        for name, place in zip(ids, places(rows), strict=True)
    ]
    ambiguous = {"", *duplicates}
    # An id may be written as a place that another row is now named by.
    taken_places = {by_place for name, by_place in named if name in ambiguous}
    duplicates += [name for name in counts if name in taken_places and name not in ambiguous]
    ambiguous.update(duplicates)
    problems = [f"{missing} missing"] if missing else []
    if duplicates:
        examples = some_of([quoted(name) for name in duplicates], 3)
        problems.append(f"{len(duplicates)} of several rows ({examples})")
    note = f"ids in column {column}: {' and '.join(problems)}; these texts are named by their place in the data"
    return [by_place if name in ambiguous else name for name, by_place in named], [note]


def _ids(rows: Rows, column: str) -> list[str]:
    ids = []
    for i, value in enumerate(rows.values(column)):
        try:
            ids.append("" if is_missing(value) else label_text(value))
        except InputError as error:
            raise InputError(
                f"{rows.place_of(i)}, {column}: expected a text or a number as the id of a text, got "
                f"{kind_text(value)} ({reprlib.repr(value)})"
            ) from error
    return ids


# --- values -----------------------------------------------------------------------------------------------


def text_values(rows: Rows, column: str) -> tuple[list[Any], list[str]]:
    """Return the values of a column of texts, and notes; where all are lists, their words with spaces between.

    Raises:
        InputError: half a character in a list that is written as text, or, where others are lists of words, a
            list that holds something else, with the row.
    """
    values = rows.values(column)
    lists = [list_of_words(value) for value in values]
    some_words = any(lists)
    for i, (value, words) in enumerate(zip(values, lists, strict=True)):
        if some_words and words is None and isinstance(value, list | tuple):
            stranger = next(word for word in value if not isinstance(word, str))
            raise InputError(
                f"{rows.place_of(i)}: expected a list of words in column {column}, as in other rows, got "
                f"{reprlib.repr(stranger)} in it; write each word as text, or leave the row out"
            )
    count = sum(words is not None for words in lists)
    if not count:
        return values, _enclosed(values, column)
    present = sum(not is_missing(value) for value in values)
    if count == present:
        for i in (i for i, words in enumerate(lists) if not _is_whole(words)):
            raise InputError(
                f"{rows.place_of(i)}: expected text, got half a character (a lone surrogate) in column "
                f"{column}; write it whole, or leave the row out"
            )
        note = (
            f"texts in column {column} are lists of words, of which each is read with a space between its "
            "words"
        )
        return [None if words is None else " ".join(words) for words in lists], [note]
    if any(
        isinstance(value, str) and words is not None
        for value, words in zip(values, lists, strict=True)
    ):
        note = (
            f"texts in column {column} that are lists written as text: {count} of {present}; their brackets "
            "and quotes are read as marks: write them as plain text"
        )
        return values, [note]
    return values, []


def _enclosed(values: Sequence[Any], column: str) -> list[str]:
    """Note texts that are read with what encloses them, where most begin and end so."""
    texts = [value.strip() for value in values if isinstance(value, str) and value.strip()]
    ends = Counter(text[0] + text[-1] for text in texts if len(text) > 1)
    return [
        f"texts in column {column} that are in {marks}: {ends[end]} of {len(texts)}; these marks are read as "
        "part of the text: if they are none, write the texts without them"
        for end, marks in _ENDS.items()
        if 2 * ends[end] > len(texts)
    ]


def list_of_words(value: Any) -> list[str] | None:
    """Return the words of a list, or of one that is written as text; None where a value is neither.

    >>> list_of_words("['a', 'b c']"), list_of_words("['a' 'b']"), list_of_words("[sic]")
    (['a', 'b c'], ['a', 'b'], None)
    """
    if isinstance(value, str):
        text = value.strip()
        if not _LIST.fullmatch(text):
            return None
        try:
            return list(json.loads(text))
        except ValueError:
            pass
        try:
            return [written_value(word) for word in re.findall(_QUOTED, text)]
        except ValueError:
            return None
    if isinstance(value, list | tuple) and all(isinstance(word, str) for word in value):
        return [str.__str__(word) for word in value]
    return None


def _is_whole(words: Sequence[str] | None) -> bool:
    try:
        "".join(words or ()).encode()
    except UnicodeEncodeError:
        return False
    return True


def written_text(value: Any, column: str, settings: DataSettings, spec: ColumnSpec) -> str:
    """Return a value as a text, without markup where the settings say so; empty where it is missing.

    It is cleaned as its data set is.

    Raises:
        InputError: a list, an object or bytes.
    """
    if is_missing(value):
        return ""
    try:
        text = str(plain(value))
    except InputError as error:
        raise InputError(f"expected a text, got {column} = {reprlib.repr(value)}") from error
    if settings.markup == "text":
        text = without_html(text)
    return text if spec.clean is None else spec.clean(text)


def _class_name(answer: Any, column: str, names: Sequence[str] | None) -> str:
    """Name a label; the name is empty where there is none, which the Hub says with a number below 0."""
    try:
        name = "" if is_missing(answer) else label_text(answer)
    except InputError as error:
        raise InputError(f"{column}: {error}") from error
    if names is not None and re.fullmatch(r"-?\d+", name):
        number = Decimal(name)  # of any length
        if number >= len(names):
            raise InputError(
                f"expected a class from 0 to {len(names) - 1} as a label, got {column} = {name:.40}"
            )
        name = names[int(number)].strip() if number >= 0 else ""
    if len(name.splitlines()) > 1:  # most often a quote that is never closed
        raise InputError(
            f"expected a label of one line, got {column} = {name!r:.40}; check the file's quotes, or name "
            "another column with --label-column"
        )
    return name
