"""Tables as the bytes of CSV, JSON Lines, Parquet and Excel files; the same tables give the same bytes.

Numbers that are not finite are empty in all of them but Parquet, which keeps them.
"""

import csv
import io
import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from heedmap.files.storage import encoded
from heedmap.files.tables import parquet
from heedmap.terminal.output import csv_cell

# What JSON may hold but a reader of lines, or a terminal, would take for more than text.
_UNSAFE = re.compile(r"[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_SHORT = {pa.float16(): np.float16, pa.float32(): np.float32}


def csv_file(table: pa.Table) -> bytes:
    """Return a table as CSV in UTF-8; a text that a spreadsheet would take for a formula gets an apostrophe.

    Lists are written as JSON, control characters as escapes.
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([csv_cell(name) for name in table.column_names])
    columns = [list(map(_csv_text, json_values(column))) for column in table.columns]
    writer.writerows(zip(*columns, strict=True))
    return encoded(file.getvalue())


def jsonl_file(table: pa.Table) -> bytes:
    """Return a table as lines of JSON objects in UTF-8, one per row."""
    names, columns = table.column_names, [json_values(column) for column in table.columns]
    rows = zip(*columns, strict=True)
    return "".join(f"{json_text(dict(zip(names, row, strict=True)))}\n" for row in rows).encode()


def parquet_file(table: pa.Table) -> bytes:
    """Return a table as Parquet: the same bytes whether it was just made or read from a file."""
    # Made lists name their items otherwise than read ones: what is read back is what is written.
    return parquet(pq.read_table(pa.BufferReader(parquet(table))))


ENCODERS: dict[str, Callable[[pa.Table], bytes]] = {
    "csv": csv_file,
    "jsonl": jsonl_file,
    "parquet": parquet_file,
}
"""Of the formats with a file per table."""


def json_values(column: pa.ChunkedArray) -> list[Any]:
    """Return a column's values as JSON has them: None where a number is undefined.

    A short float becomes the shortest number that rounds to it: 0.1, not 0.10000000149011612.

    >>> json_values(pa.chunked_array([pa.array([0.1, float("nan"), None], pa.float32())]))
    [0.1, None, None]
    """
    leaf = column.type
    while pa.types.is_list(leaf) or pa.types.is_large_list(leaf):
        leaf = leaf.value_type
    values: list[Any] = column.to_pylist()
    if not pa.types.is_floating(leaf):
        return values
    short = _SHORT.get(leaf)

    def finite(value: Any) -> Any:
        if isinstance(value, list):
            return [finite(item) for item in value]
        if value is None or not math.isfinite(value):
            return None
        return float(value) if short is None else float(str(short(value)))

    return [finite(value) for value in values]


def json_text(value: Any) -> str:
    r"""Return a value as one line of JSON that no reader of lines breaks, and no terminal obeys.

    >>> json_text(["é", "\u2028"])
    '["é", "\\u2028"]'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=str)
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _csv_text(value: Any) -> str:
    if isinstance(value, str):
        return csv_cell(value)
    return "" if value is None else json_text(value)


def table_files(tables: Mapping[str, pa.Table], file_format: str) -> dict[str, Callable[[], bytes]]:
    """Return the files of one table each by their names, and what makes their bytes."""
    encode = ENCODERS[file_format]

    def file_of(table: pa.Table) -> Callable[[], bytes]:
        return lambda: encode(table)

    return {f"{name}.{file_format}": file_of(table) for name, table in tables.items()}
