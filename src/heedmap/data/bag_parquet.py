"""A Parquet file that holds the items of all bags, one in a row."""

import atexit
import hashlib
import shutil
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedmap.data.item_vectors import StoredBag
from heedmap.data.parquet_rows import open_parquet
from heedmap.data.streams import first_line
from heedmap.errors import InputError
from heedmap.terminal.output import some_of

BAG_COLUMNS = ("slide_id", "bag_id", "bag")


class ParquetBags:
    """A Parquet file with a row per item: its bag, its vector, and perhaps its coordinates (x, y).

    The vectors are copied once, some rows at a time, into a temporary file that is read by mapping it and goes
    with the process: bags cannot be read one by one where a Parquet file's groups of rows are large.
    """

    def __init__(self, path: Path) -> None:
        import pyarrow as pa

        self.path = path
        try:
            file = open_parquet(path, path)
            schema = file.schema_arrow
            self.bag_column = next((name for name in BAG_COLUMNS if name in schema.names), None)
            vectors = next((f.name for f in schema if is_vector(f.type)), None)
            if self.bag_column is None or vectors is None:
                raise InputError(
                    f"{path}: expected a row per item with the columns {' / '.join(BAG_COLUMNS)} and "
                    f"features (lists of numbers), got {some_of(schema.names)}"
                )
            names = file.read([self.bag_column]).column(0).to_pylist()
            self.places = None
            if {"x", "y"} <= set(schema.names):
                table = file.read(["x", "y"])
                columns = [table.column(name).to_numpy() for name in ("x", "y")]
                self.places = np.stack(columns, axis=1).astype(np.float64)
            self.rows: dict[str, list[int]] = {}
            for row, name in enumerate(names):
                if name is None:
                    raise InputError(f"{path}, row {row + 1}: expected the name of a bag, got none")
                self.rows.setdefault(str(name).strip(), []).append(row)
            self.width = 0
            self.copy = _temporary_file()
            with self.copy.open("wb") as copy:
                for batch in file.iter_batches(8192, columns=[vectors]):
                    copy.write(self._numbers(batch.column(0)).tobytes())
        except (OSError, pa.ArrowException) as error:
            raise InputError(f"{path}: cannot be read as Parquet ({first_line(error)})") from error
        if not names:
            raise InputError(f"{path}: no rows; expected a row per item")

    def _numbers(self, lists: Any) -> NDArray[np.float32]:
        flat = lists.flatten().to_numpy(zero_copy_only=False).astype(np.float32)
        lengths = np.asarray(lists.value_lengths().fill_null(0))
        self.width = self.width or int(lengths[0])
        if (lengths != self.width).any() or not self.width:
            raise InputError(
                f"{self.path}: expected a vector of {self.width} numbers in each row, got one of "
                f"{int(lengths[lengths != self.width][0]) if self.width else 0}"
            )
        return np.asarray(flat)

    def bags(self) -> dict[str, StoredBag]:
        """Return the bags by their names, in the order in which they begin."""
        return {name: self._bag(name, np.array(rows)) for name, rows in self.rows.items()}

    def _bag(self, name: str, rows: NDArray[np.int64]) -> StoredBag:
        read = partial(_mapped, self.copy, self.width, rows)
        digest = hashlib.sha256(read().tobytes())
        places = None
        if self.places is not None:
            places = partial(np.asarray, self.places[rows])
            digest.update(self.places[rows].tobytes())
        return StoredBag(len(rows), read, digest.digest(), f"{self.path}, bag {name}", places)


def _temporary_file() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="heedmap-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder / "vectors"


def _mapped(file: Path, width: int, rows: NDArray[np.int64]) -> NDArray[np.float32]:
    return np.asarray(np.memmap(file, np.float32, "r").reshape(-1, width)[rows])


def is_vector(kind: Any) -> bool:
    """Return whether a column's type is that of lists of numbers."""
    import pyarrow.types as kinds

    is_list = kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind)
    return bool(
        is_list and (kinds.is_floating(kind.value_type) or kinds.is_integer(kind.value_type))
    )
