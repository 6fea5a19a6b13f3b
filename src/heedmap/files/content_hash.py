"""The hash of tables by their values, the same in memory and in a file."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from heedmap.files.tables import release_mapped

SLICE = 1 << 16  # texts that are encoded together


def tables_hash(tables: Mapping[str, pa.Table]) -> str:
    """Return the SHA-256 of the names, types and values of tables.

    A Parquet file of the same values may have other bytes, such as those of a table read and written again.
    Values are read in parts, since a large table is not in memory.
    """
    digest = hashlib.sha256()
    for name in sorted(tables):
        for column in tables[name].column_names:
            digest.update(f"{name}\0{column}\0{tables[name].num_rows}\0".encode())
            values = tables[name][column]
            for part in _parts(values.type, values.chunks):
                digest.update(part)
                release_mapped()
    return digest.hexdigest()


def _parts(kind: pa.DataType, chunks: Sequence[pa.Array]) -> Iterator[bytes]:
    """Yield the type, which values are there, and the values; of lists and texts the lengths first."""
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    # Not the whole type: a Parquet file gives the elements of lists a name of its own.
    yield b"list" if is_list else str(kind).encode()
    for chunk in chunks:
        yield chunk.is_valid().to_numpy(zero_copy_only=False).tobytes()
    if is_list:
        for chunk in chunks:
            yield pc.list_value_length(chunk).fill_null(0).cast(pa.int64()).to_numpy().tobytes()
        yield from _parts(kind.value_type, [chunk.flatten() for chunk in chunks])
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        for values in _sliced(chunks):
            yield pc.binary_length(values).cast(pa.int64()).to_numpy().tobytes()
        for values in _sliced(chunks):
            yield "".join(values.to_pylist()).encode()
    elif not pa.types.is_null(kind):
        for chunk in chunks:
            yield chunk.drop_null().to_numpy(zero_copy_only=False).tobytes()


def _sliced(chunks: Sequence[pa.Array]) -> Iterator[pa.Array]:
    for chunk in chunks:
        for start in range(0, len(chunk), SLICE):
            yield chunk.slice(start, SLICE).drop_null()
