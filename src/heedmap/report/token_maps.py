"""All maps of all texts as one table: a row per text and token, and a column per map that the tables hold."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain

import pyarrow as pa

from heedmap.errors import InputError
from heedmap.experiments.columns import Column, Columns
from heedmap.experiments.findings import AuditResult
from heedmap.experiments.pooling import TEXT
from heedmap.experiments.registry import registered
from heedmap.report.pair_tokens import patch_places

PER_TOKEN = "list per token"  # how the range of such a column begins
PLACES = Columns(
    "One row per text and token.",
    {
        "id": ("text", "the text's own id in the data, or its line, row or index there"),
        "row": ("number, from 0", "the text among those audited, or the window of a long one"),
        TEXT: ("number, from 0", "the whole text; only where long texts are read in windows"),
        "position": ("number, from 0", "the token's place in the text, or in its window"),
        "token": (
            "text",
            "the word, sentence, or patch of a picture (`r0c3`), that the maps are of",
        ),
    },
)
_OF_THEIR_TABLE = ("importance", "attention")  # these say nothing without the name of their table


def token_maps(audit: AuditResult) -> pa.Table:
    """Return a row per text and token, with its number by each map; null where a text has no such map.

    A map has the name of its column, or of its table where that says more. Texts without a token have no row.
    The tokens of a picture are the rows and columns of its patches.

    Raises:
        InputError: a table says that it has a number per token, and has another number of them.
    """
    instances = audit.tables["instances"]
    tokens = instances["tokens"].to_pylist()
    if "picture" in instances.column_names:
        is_picture = instances["picture"].is_valid().to_pylist()
        tokens = [
            patch_places(names) if is_so else names
            for names, is_so in zip(tokens, is_picture, strict=True)
        ]
    sizes = [len(text_tokens) for text_tokens in tokens]
    rows = range(len(sizes))
    places: dict[str, Iterable[object]] = {
        "id": _repeated(instances["key"].to_pylist(), sizes),
        "row": _repeated(rows, sizes),
        "position": chain.from_iterable(map(range, sizes)),
        "token": chain.from_iterable(tokens),
    }
    if TEXT in instances.column_names:
        places[TEXT] = _repeated(instances[TEXT].to_pylist(), sizes)
    kinds = {"id": pa.string(), "token": pa.string()}
    named = [
        (column, pa.array(list(places[column.name]), kinds.get(column.name, pa.int64())))
        for column in PLACES.described
        if column.name in places
    ]
    return described_table([*named, *_maps(audit, sizes)])


def described_table(columns: Iterable[tuple[Column, pa.Array]]) -> pa.Table:
    """Return a table whose fields say in their metadata what they mean (see `described_columns`)."""
    columns = list(columns)
    fields = [
        pa.field(
            column.name, values.type, metadata={"range": column.range, "meaning": column.meaning}
        )
        for column, values in columns
    ]
    return pa.table([values for _, values in columns], schema=pa.schema(fields))


def described_columns(table: pa.Table) -> Iterator[Column]:
    """Yield what each column of such a table means; empty where nothing is said."""
    for field in table.schema:
        said = field.metadata or {}
        span, meaning = (said.get(part, b"").decode() for part in (b"range", b"meaning"))
        yield Column(field.name, span, meaning)


def _maps(audit: AuditResult, sizes: list[int]) -> Iterator[tuple[Column, pa.Array]]:
    """Yield each column of numbers per token, one number per row, by a name of its own."""
    sources = [
        (name, replace(column, name=field.name))
        for name, experiment in registered().items()
        if name in audit.tables and experiment.per_text
        for field in audit.tables[name].schema
        if (column := experiment.columns.of(field.name)) is not None and _is_map(column, field.type)
    ]
    names = [_name(table, column.name) for table, column in sources]
    times = Counter([*names, *(column.name for column in PLACES.described)])
    for (table, column), name in zip(sources, names, strict=True):
        unique = name if times[name] == 1 else f"{table}_{column.name}"
        values = _flat(table, column.name, audit.tables[table][column.name], sizes)
        yield (
            replace(column, name=unique, range=column.range.removeprefix(PER_TOKEN).lstrip(", ")),
            values,
        )


def _is_map(column: Column, kind: pa.DataType) -> bool:
    """Return whether a column has one number, or mark, per token of its text."""
    if not column.range.startswith(PER_TOKEN) or not pa.types.is_list(kind):
        return False
    leaf = kind.value_type
    return bool(
        pa.types.is_floating(leaf) or pa.types.is_integer(leaf) or pa.types.is_boolean(leaf)
    )


def _name(table: str, column: str) -> str:
    return table if column in _OF_THEIR_TABLE and table != "instances" else column


def _flat(table: str, name: str, lists: pa.ChunkedArray, sizes: list[int]) -> pa.Array:
    """Return the lists' numbers below one another, null for each token of a text that has none."""
    values: list[object] = []
    for row, (numbers, size) in enumerate(zip(lists.to_pylist(), sizes, strict=True)):
        if numbers is not None and len(numbers) != size:
            raise InputError(
                f"table {table}, column {name}, row {row}: expected a number for each of {size} tokens, got "
                f"{len(numbers)}; audit the run again"
            )
        values += [None] * size if numbers is None else numbers
    return pa.array(values, lists.type.value_type)


def _repeated(values: Iterable[object], sizes: list[int]) -> Iterator[object]:
    for value, size in zip(values, sizes, strict=True):
        yield from [value] * size
