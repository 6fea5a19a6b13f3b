"""An audit without its texts, for a page and files that may be forwarded where the texts may not."""

import re
from dataclasses import replace
from typing import TypeVar

import pyarrow as pa

from heedmap.experiments.findings import AuditResult
from heedmap.experiments.notes import note_texts
from heedmap.experiments.registry import registered
from heedmap.experiments.repeats import text_numbers

LEFT_OUT = "texts_left_out"  # a fact about such an audit
TEXTS = ("tokens", "query")
PICTURE = "picture"  # the column of an instance's own picture
# What a word says for each class, in full precision, is nearly a name of it for whoever has the model.
TELLING = ("relevance",)
_QUOTED = re.compile(
    r"(?<![\w=])(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")(?!\w)"
)  # as `repr` writes a text
_PLACE = re.compile(r"(line|row|index) \d+")  # names no file, and no id of the user's
_Result = TypeVar("_Result", bound=AuditResult)


def is_anonymous(audit: AuditResult) -> bool:
    """Return whether the texts were left out of an audit."""
    return bool(audit.about.get(LEFT_OUT))


def without_texts(audit: _Result) -> _Result:
    """Return an audit in which no token, text, picture, query or id of the user's is left.

    A token is named by its text's number and its place there, so that equal texts are still counted once;
    whether two texts share a word is not told. A text keeps its line or row in the data, not its own id. Names
    of classes, columns and files stay. Of other packages' tables the columns of text are left out. The table
    of what each word says for each class is left out as a whole. What notes quote of the data is left out too.
    """
    numbers = text_numbers(audit.tables["instances"]).tolist()
    tables = {
        name: _anonymous(name, table, numbers if name == "instances" else None)
        for name, table in audit.tables.items()
        if name not in TELLING
    }
    notes = [_QUOTED.sub("‘…’", note) for note in note_texts(audit.about)]
    about = {**audit.about, **({"notes": notes} if notes else {}), LEFT_OUT: True}
    return replace(audit, tables=tables, about=about)


def _anonymous(name: str, table: pa.Table, numbers: list[int] | None) -> pa.Table:
    is_ours = name in registered() and registered()[name].run.__module__.startswith("heedmap.")
    if is_ours and PICTURE in table.column_names:
        table = table.drop_columns([PICTURE])
    for place, field in enumerate(table.schema):
        if not _holds_text(field.type):
            continue
        values = table[field.name].to_pylist()
        if field.name in TEXTS and is_ours:
            texts = numbers or [0] * len(values)
            values = [
                None if tokens is None else [f"{text}.{i}" for i in range(len(tokens))]
                for text, tokens in zip(texts, values, strict=True)
            ]
        elif field.name == "key" and numbers is not None:
            values = [
                key if _PLACE.fullmatch(str(key)) else f"text {row}"
                for row, key in enumerate(values)
            ]
        elif is_ours:
            continue  # names of ours, such as a view
        else:
            values = [None] * len(values)
        table = table.set_column(place, field, pa.array(values, field.type))
    return table


def _holds_text(kind: pa.DataType) -> bool:
    """Return whether a column holds texts, in lists or by itself: all but numbers, marks and lists of them."""
    while pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind = kind.value_type
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    return not (is_number or pa.types.is_boolean(kind) or pa.types.is_null(kind))
