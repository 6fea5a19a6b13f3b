"""Read the rows of a Parquet file."""

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedmap.data.columns import Rows, as_python, check_count, shared_values
from heedmap.data.streams import first_line, grown, limit_of, open_bytes, reading
from heedmap.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

BATCH = 1000
"""Rows unpacked at a time: a file that repeats one long text can unpack to a thousand times its size."""


def read_parquet(path: Path) -> Rows:
    """Read a Parquet file, with the names of classes that a Hub data set keeps in it.

    Raises:
        InputError: damaged, a text that is not UTF-8, too many columns, or unpacked beyond the limit.
    """
    import pyarrow as pa

    try:
        with reading(path):
            table = _table(path)
        table.validate(full=True)
        names = _class_names(table.schema)
    except InputError:
        raise
    except Exception as error:  # pyarrow raises many kinds on a damaged file
        reason = first_line(error)
        if isinstance(error, pa.ArrowInvalid) and "UTF8" in reason:
            reason = "a text that is not UTF-8"
        raise InputError(f"{path}: not readable as PARQUET ({reason})") from error

    def values(name: str) -> list[Any]:
        with as_python(path, name):
            return shared_values(table[name])

    return Rows(
        table.column_names,
        len(table),
        values,
        names,
        lambda i: f"{path}, row {i + 1}",
    )


def _table(path: Path) -> "pa.Table":
    import pyarrow as pa
    import pyarrow.parquet as pq

    with open_bytes(path) as opened:
        packed = path.name.lower().endswith(".gz")
        file = pq.ParquetFile(io.BytesIO(opened.read()) if packed else opened)
        schema, metadata = file.schema_arrow, file.metadata
        check_count(path, schema.names)
        limit = limit_of(path)
        groups = range(metadata.num_row_groups)
        if sum(metadata.row_group(i).total_byte_size for i in groups) > limit:
            raise grown(path)
        batches, size = [], 0
        for batch in file.iter_batches(batch_size=BATCH):
            batches.append(batch)
            size += batch.nbytes
            if size > limit:
                raise grown(path)
        return pa.Table.from_batches(batches, schema=schema)


def _class_names(schema: "pa.Schema") -> dict[str, list[str]]:
    """Return the classes' names by column, from what the `datasets` library writes into a file."""
    metadata = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
    features = ((metadata.get("info") or {}).get("features") or {}).items()
    # The labels of words are a list of such a feature.
    by_name = {
        name: feature.get("feature", feature)
        for name, feature in features
        if isinstance(feature, dict)
    }
    return {
        name: [str(label) for label in feature["names"]]
        for name, feature in by_name.items()
        if isinstance(feature, dict) and feature.get("_type") == "ClassLabel"
    }
