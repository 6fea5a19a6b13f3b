"""Open Parquet files within the limit of what they may grow to, and read their rows."""

import io
import json
from itertools import product
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from heedmap.data.columns import Rows, as_python, check_count, shared_values
from heedmap.data.streams import check_growth, first_line, open_bytes, reading
from heedmap.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


def read_parquet(path: Path) -> Rows:
    """Read a Parquet file, with the names of classes that a Hub data set keeps in it.

    Raises:
        InputError: damaged, a text that is not UTF-8, too many columns, or unpacked beyond the limit.
    """
    import pyarrow as pa

    try:
        with reading(path), open_bytes(path) as content:
            packed = path.name.lower().endswith(".gz")
            file = open_parquet(path, io.BytesIO(content.read()) if packed else content)
            table = pa.Table.from_batches(file.iter_batches(), schema=file.schema_arrow)
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


def open_parquet(path: Path, source: Path | IO[bytes]) -> "pq.ParquetFile":
    """Open a Parquet file, whose content is `source`.

    Raises:
        InputError: its values take more than a file may grow to, or it has too many columns.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    file = pq.ParquetFile(source)
    check_count(path, file.schema_arrow.names)
    leaves = [file.schema.column(i) for i in range(len(file.schema))]
    size = 0
    for part in map(file.metadata.row_group, range(file.num_row_groups)):
        counts = (max(8, leaf.length) * part.column(i).num_values for i, leaf in enumerate(leaves))
        size += part.total_byte_size + sum(counts)
    check_growth(path, size)
    # As the file does, a dictionary keeps equal texts once: 3 kB may hold 7 GB.
    names = [
        x.path for x in leaves if x.physical_type == "BYTE_ARRAY" and x.converted_type != "DECIMAL"
    ]
    texts = pq.ParquetFile(source, read_dictionary=names, arrow_extensions_enabled=False)
    # Group by group: Arrow cannot join the dictionaries of two where they are within other values.
    for group, name in product(range(file.num_row_groups), names):
        for batch in texts.iter_batches(row_groups=[group], columns=[name]):
            values = batch.column(0)
            while pa.types.is_nested(values.type):
                values = values.field(0) if pa.types.is_struct(values.type) else values.values
            lengths = pc.binary_length(values.dictionary).take(values.indices)
            size += pc.sum(lengths).as_py() or 0
            check_growth(path, size)
    return file


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
