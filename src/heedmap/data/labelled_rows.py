"""Read the rows of a table as labelled texts, by split; what is left out is counted."""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from heedmap.data.chosen_columns import (
    Columns,
    choose_columns,
    find_column,
    notes_on_text,
    with_text,
)
from heedmap.data.columns import Rows
from heedmap.data.labels import check_single, is_missing, label_text, trimmed
from heedmap.data.rationale_columns import NOT_FOUND, SENTIMENT, marked_words, rationale_of
from heedmap.data.readers import SPLIT_NAMES, SPLITS
from heedmap.data.rows import ColumnSpec, PackedRows, Parts, Row, gathered
from heedmap.data.text_names import places, text_keys
from heedmap.data.text_values import text_values, written_text
from heedmap.data.tokens import tokenizer_of
from heedmap.errors import InputError
from heedmap.settings.data import DataSettings


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
    table, left_out = _accepted(with_text(table, settings, spec), part)
    columns = choose_columns(table, settings, spec)
    class_names = table.class_names.get(columns.label or "")
    tokenize = spec.tokenize or tokenizer_of(settings)
    split_column = find_column(table, None, ("split", "exp_split")) if part == "all" else None
    split_names = table.values(split_column) if split_column else [part] * len(table)
    answers = [None] * len(table) if columns.label is None else table.values(columns.label)
    left_out.update(trimmed(answers, part))
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
        [*notes_on_text(table, columns, settings, spec), *key_notes, *text_notes, *query_notes],
    )


def _accepted(table: Rows, part: str) -> tuple[Rows, Counter[str]]:
    """Return the rows that annotators of Prodigy accepted, with counts of the others; else all rows."""
    answers = (table.peek or table.values)("answer") if "answer" in table.columns else []
    if "accept" not in answers or any(x not in ("accept", "reject", "ignore") for x in answers):
        return table, Counter()
    prefix = "" if part == "all" else f"{part}: "
    rejections = Counter(f"{prefix}answer {answer}" for answer in answers if answer != "accept")
    answers = table.values("answer")
    return table.take([i for i, answer in enumerate(answers) if answer == "accept"]), rejections


def _class_name(answer: Any, column: str, names: Sequence[str] | None) -> str:
    """Name a label; the name is empty where there is none, which the Hub says with a number below 0."""
    if isinstance(answer, list) and len(answer) < 2:  # as annotation tools write one label
        answer = answer[0] if answer else None
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
