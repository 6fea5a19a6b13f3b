"""The hash of tables by their values, the same in memory and in a file."""

import hashlib
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc


def tables_hash(tables: Mapping[str, pa.Table]) -> str:
    """Return the SHA-256 of the names, types and values of tables.

    A Parquet file of the same values may have other bytes, such as those of a table read and written again.
    """
    digest = hashlib.sha256()
    for name in sorted(tables):
        for column in tables[name].column_names:
            digest.update(f"{name}\0{column}\0{tables[name].num_rows}\0".encode())
            for part in _parts(tables[name][column].combine_chunks()):
                digest.update(part)
    return digest.hexdigest()


def _parts(values: pa.Array) -> list[bytes]:
    """Return the type, which values are there, and the values; of lists and texts the lengths first."""
    present = values.is_valid().to_numpy(zero_copy_only=False).tobytes()
    if pa.types.is_list(values.type) or pa.types.is_large_list(values.type):
        # Not the whole type: a Parquet file gives the elements of lists a name of its own.
        lengths = pc.list_value_length(values).fill_null(0).cast(pa.int64())
        return [b"list", present, lengths.to_numpy().tobytes(), *_parts(values.flatten())]
    kind = str(values.type).encode()
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        texts = [text.encode() for text in values.drop_null().to_pylist()]
        lengths = pa.array([len(text) for text in texts], pa.int64())
        return [kind, present, lengths.to_numpy().tobytes(), *texts]
    if pa.types.is_null(values.type):
        return [kind, present]
    return [kind, present, values.drop_null().to_numpy(zero_copy_only=False).tobytes()]
