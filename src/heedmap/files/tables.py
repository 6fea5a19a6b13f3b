"""Tables of results: Arrow columns, one row per instance, a list for numbers per token."""

import io
import mmap
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import BinaryIO
from weakref import WeakSet

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch
from jaxtyping import Bool, Int, Shaped
from numpy.typing import NDArray
from torch import Tensor

from heedmap.errors import InputError
from heedmap.files import manifest
from heedmap.files.memory import return_freed_memory

GROUP = 10_000  # rows of a large table that are in memory together
WIDE = 1 << 23  # numbers of a table that is held in memory, at most


def ragged(
    rows: Sequence[Int[Tensor, " _"]],
    values: Sequence[Shaped[Tensor, "_ _"]],
    masks: Sequence[Bool[Tensor, "_ _"]],
) -> pa.Array:
    """Return one list per instance, in the order of the rows, from padded batches."""
    order = torch.argsort(torch.cat(list(rows))).tolist()
    pieces = [
        v[i][m[i]].numpy(force=True)
        for v, m in zip(values, masks, strict=True)
        for i in range(len(v))
    ]
    return pa.array([pieces[i] for i in order])


def padded(
    columns: Sequence[pa.ChunkedArray], elements: int
) -> list[tuple[NDArray[np.int64], Tensor, Tensor]]:
    """Pad the lists of M columns to blocks (rows, values (B, M, T), mask (B, T)), sorted by length.

    A block's (B, M, T, T) array has at most about `elements` numbers. A missing list becomes zeros, a
    constant.
    """
    lists = [column.to_pylist() for column in columns]
    lengths = np.array([len(values) for values in lists[0]], dtype=np.int64)
    order = np.argsort(lengths, kind="stable")
    blocks = []
    start = 0
    while start < len(order):
        # Ascending lengths: the block's last row is its longest.
        end = start + 1
        while end < len(order) and (
            (end + 1 - start) * len(lists) * int(lengths[order[end]]) ** 2 <= elements
        ):
            end += 1
        rows = order[start:end]
        size = int(lengths[rows].max())
        values = np.zeros((len(rows), len(lists), size))
        for i, row in enumerate(rows):
            for m, column in enumerate(lists):
                if column[row] is not None:
                    values[i, m, : lengths[row]] = column[row]
        mask = np.arange(size) < lengths[rows][:, None]
        blocks.append((rows, torch.from_numpy(values), torch.from_numpy(mask)))
        start = end
    return blocks


def rows_of(content: pa.Table, rows: NDArray[np.int64]) -> pa.Table:
    """Take rows, in ascending order, group by group of a table that is not in memory."""
    groups, start = [], 0
    for batch in content.to_batches():
        end = start + batch.num_rows
        inside = rows[np.searchsorted(rows, start) : np.searchsorted(rows, end)] - start
        if len(inside):
            groups.append(batch.take(pa.array(inside)))
        start = end
    return pa.Table.from_batches(groups, content.schema)


def renumbered(content: pa.Table, column: str, added: int) -> pa.Table:
    """Add a number to those of a column, as where a part's rows are counted among all."""
    numbers = pc.add(content[column], added).cast(content[column].type)
    return content.set_column(content.column_names.index(column), column, numbers)


def table(columns: Mapping[str, object]) -> pa.Table:
    """Make a table from columns of numbers, tensors, lists or Arrow arrays."""
    arrays = {
        name: column
        if isinstance(column, pa.Array | pa.ChunkedArray)
        else pa.array(column.numpy(force=True) if isinstance(column, Tensor) else column)
        for name, column in columns.items()
    }
    return pa.table(arrays)


def parquet(content: pa.Table) -> bytes:
    """Return a table as the bytes of a Parquet file; the same table gives the same bytes."""
    buffer = io.BytesIO()
    pq.write_table(content, buffer, compression="zstd")
    return buffer.getvalue()


def row_groups(file: BinaryIO, parts: Iterator[pa.Table]) -> None:
    """Write a Parquet file of at least one part, all of one schema: each becomes a group of rows.

    One part is in memory at a time.
    """
    first = next(parts)
    with pq.ParquetWriter(file, first.schema, compression="zstd") as writer:
        for part in chain([first], parts):
            writer.write_table(part, row_group_size=max(1, part.num_rows))
            release_mapped()


def is_wide(rows: int, columns: int) -> bool:
    """Return whether a table is not to be held in memory: undefined values take as much as others there."""
    return rows * columns > WIDE


def holds_wide(content: bytes) -> bool:
    """Return whether the table in a Parquet file is wide; the file itself may be small."""
    try:
        described = pq.read_metadata(pa.BufferReader(content))
    except (pa.ArrowException, OSError):
        return False  # whoever reads it says so
    return is_wide(described.num_rows, described.num_columns)


def groups_of(rows: int) -> Iterator[tuple[int, int]]:
    """Yield where each group of a table's rows starts and ends."""
    for start in range(0, rows, GROUP):
        yield start, min(start + GROUP, rows)


_maps: WeakSet[mmap.mmap] = WeakSet()


def release_mapped() -> None:
    """Give back the memory of what was read of mapped tables, which is read again where it is needed.

    Systems that cannot be asked to do so take it back by themselves where memory is short.
    """
    if hasattr(mmap, "MADV_DONTNEED"):
        for mapped in _maps:
            mapped.madvise(mmap.MADV_DONTNEED)


def mapped(schema: pa.Schema, groups: Iterable[pa.RecordBatch]) -> pa.Table:
    """Write groups of rows into a temporary file that is mapped: the memory holds what is being read of it.

    The temporary file, in the system's folder for such files, has no name, and is gone with the table.
    """
    with tempfile.TemporaryFile() as file:
        with pa.ipc.new_file(file, schema) as writer:
            for group in groups:
                writer.write_batch(group)
        file.flush()
        mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        _maps.add(mapping)
        content = pa.ipc.open_file(pa.BufferReader(pa.py_buffer(mapping))).read_all()
    return_freed_memory()
    return content


def mapped_table(path: Path) -> pa.Table:
    """Read a Parquet file as a mapped table.

    Raises:
        InputError: it is damaged.
    """
    try:
        with path.open("rb") as source:
            file = pq.ParquetFile(source)
            return mapped(file.schema_arrow, file.iter_batches(batch_size=GROUP))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _damaged(path, error) from error


def write_table(path: Path, content: pa.Table) -> None:
    """Write a Parquet file, and list it (see `heedmap.files.manifest`)."""
    manifest.write(path, parquet(content))


def read_table(path: Path, content: bytes | None = None) -> pa.Table:
    """Read a Parquet file, or its `content` that was read already.

    Raises:
        InputError: it is damaged, or not as heedmap wrote it.
    """
    try:
        content = manifest.read(path) if content is None else content
        # Not by path, which Arrow may take for a URL, nor as a Python file: a thread of Arrow's that still
        # holds one when the interpreter ends aborts the process.
        return pq.read_table(pa.BufferReader(content))
    except manifest.ChangedError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> InputError:
    reason = (str(error).splitlines() or [""])[0]
    return InputError(
        f"{path}: damaged ({reason}); delete it and run the command that made it again"
    )
