"""What an audit gives to take along: its facts, findings, maps and tables, with names instead of numbers.

Texts have the user's own ids, classes their names, and every column says what it means.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from itertools import chain
from typing import Any

import pyarrow as pa

from heedmap.experiments.bottom_line import bottom_line
from heedmap.experiments.columns import Column, Columns, type_of
from heedmap.experiments.finding_tables import CLASS_COLUMNS, COLUMNS, to_class_frame, to_frame
from heedmap.experiments.findings import AuditResult
from heedmap.experiments.registry import registered
from heedmap.report.anonymous import is_anonymous
from heedmap.report.card import facts
from heedmap.report.token_maps import PLACES, described_columns, described_table, token_maps

CLASS = "class"  # the range of a column with a class's number
PER_CLASS = "list per class"
OF_TEXTS = ("tokens", "token", "query")
HOLDS = {
    "findings": "One row per question: its number, interval, n, chance and level.",
    "by_class": "One row per question and predicted class.",
    "maps": "One row per text and token, and a column per map.",
}
"""What each table holds that is not one of the audit's own."""


def exported_tables(audit: AuditResult) -> dict[str, pa.Table]:
    """Return the tables by name; those of the audit itself begin with `tables/`."""
    tables = {
        "findings": findings_table(audit),
        "by_class": _from_frame(to_class_frame(audit.findings), CLASS_COLUMNS),
        "maps": _without_texts(audit, token_maps(audit)),
        **{f"tables/{name}": _named(audit, name, table) for name, table in audit.tables.items()},
    }
    return {
        "about": _about(audit, tables),
        **{name: tables[name] for name in HOLDS},
        "columns": _described(audit, tables),
        **tables,
    }


def findings_table(audit: AuditResult) -> pa.Table:
    """Return a row per question (see `to_frame`)."""
    return _from_frame(to_frame(audit.findings), COLUMNS)


def _from_frame(frame: Any, columns: Columns) -> pa.Table:
    table = pa.Table.from_pandas(frame, preserve_index=False)
    return described_table(
        (column, table[column.name].combine_chunks()) for column in columns.described
    )


def _named(audit: AuditResult, name: str, table: pa.Table) -> pa.Table:
    """Return a table of the audit with ids beside its rows, and names of classes for their numbers."""
    said = registered()[name].columns if name in registered() else Columns()
    columns = chain.from_iterable(
        _column(audit.classes, said.of(field.name) or Column(field.name, "", ""), field, table)
        for field in table.schema
        if (name, field.name) != ("instances", "key")
    )
    return _without_texts(audit, described_table(_with_ids(audit, table, columns)))


def _with_ids(
    audit: AuditResult, table: pa.Table, columns: Iterator[tuple[Column, pa.Array]]
) -> Iterator[tuple[Column, pa.Array]]:
    """Yield the columns, and first the id of each row's text."""
    keys = audit.tables["instances"]["key"].to_pylist()
    id_column = next(column for column in PLACES.described if column.name == "id")
    if table is audit.tables["instances"]:
        yield id_column, pa.array(keys, pa.string())
    elif "row" in table.column_names and "id" not in table.column_names:
        rows = table["row"].to_pylist()
        yield id_column, pa.array([None if row is None else keys[row] for row in rows], pa.string())
    yield from columns


def _column(
    classes: Sequence[str], said: Column, field: pa.Field, table: pa.Table
) -> Iterator[tuple[Column, pa.Array]]:
    """Yield a column with classes by their names; of a list per class, a column for each."""
    values, said = table[field.name].combine_chunks(), replace(said, name=field.name)
    if said.range == CLASS:
        names = [None if number is None else classes[number] for number in values.to_pylist()]
        yield replace(said, range="text"), pa.array(names, pa.string())
    elif said.range == "list of classes":
        lists = [
            None if numbers is None else [classes[number] for number in numbers]
            for numbers in values.to_pylist()
        ]
        yield said, pa.array(lists, pa.list_(pa.string()))
    elif said.range.startswith(PER_CLASS):
        lists, span = values.to_pylist(), said.range.removeprefix(PER_CLASS).lstrip(", ")
        span = "0 to 1" if span == "sums to 1" else span
        for number, name in enumerate(classes):
            numbers = [None if one_text is None else one_text[number] for one_text in lists]
            yield (
                Column(f"{field.name}: {name}", span, f"{said.meaning}, for this class"),
                pa.array(numbers, field.type.value_type),
            )
    else:
        yield said, values


def _without_texts(audit: AuditResult, table: pa.Table) -> pa.Table:
    """Return the table without the columns that hold texts, if they are to be left out."""
    names = [name for name in OF_TEXTS if name in table.column_names]
    return table.drop_columns(names) if is_anonymous(audit) else table


def _about(audit: AuditResult, tables: Mapping[str, pa.Table]) -> pa.Table:
    """Return the audit's facts, and what each table holds: a name and a value per row."""
    line = [] if audit.rates is None else _answer(audit)
    sizes = [
        (
            name,
            f"{table.num_rows:,} rows. {audit.nouns.reword(HOLDS.get(name) or _question(name))}".rstrip(),
        )
        for name, table in tables.items()
    ]
    rows = [*line, ("heedmap", version("heedmap")), *facts(audit), *sizes]
    names, values = zip(*rows, strict=True)
    return described_table(
        [
            (Column("name", "text", "the fact, or the table"), pa.array(names, pa.string())),
            (Column("value", "text", "what is said of it"), pa.array(values, pa.string())),
        ]
    )


def _answer(audit: AuditResult) -> list[tuple[str, str]]:
    assert audit.rates is not None
    line = bottom_line(audit, audit.rates)
    return [
        ("answer", line.answer),
        ("bottom line", line.sentence),
        *(("measured", sentence) for sentence in (*line.measured, *line.classes)),
        ("how sure", line.rates),
    ]


def _question(name: str) -> str:
    """Say what a row of an audit's own table is."""
    name = name.removeprefix("tables/")
    return registered()[name].columns.rows if name in registered() else ""


def _described(audit: AuditResult, tables: Mapping[str, pa.Table]) -> pa.Table:
    """Return a row per column of each table: its type, its range or unit, and its meaning."""
    rows = [
        (
            name,
            column.name,
            type_of(field.type),
            column.range if column.range == "text" else audit.nouns.reword(column.range),
            audit.nouns.reword(column.meaning, audit.classes),
        )
        for name, table in tables.items()
        for column, field in zip(described_columns(table), table.schema, strict=True)
    ]
    heads = {
        "table": "the table",
        "column": "the column",
        "type": "what its values are",
        "range": "range or unit",
        "meaning": "what it means",
    }
    parts = zip(*rows, strict=True) if rows else [()] * len(heads)
    return described_table(
        (Column(name, "text", meaning), pa.array(values, pa.string()))
        for (name, meaning), values in zip(heads.items(), parts, strict=True)
    )
