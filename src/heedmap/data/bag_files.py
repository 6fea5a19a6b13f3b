"""Files that hold one bag of vectors each: .h5 (as CLAM writes them), .npy and .safetensors."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedmap.data.item_vectors import StoredBag
from heedmap.data.streams import check_growth, first_line, reading
from heedmap.errors import InputError, check_installed
from heedmap.terminal.output import some_of

SUFFIXES = (".h5", ".npy", ".safetensors")
FEATURES, COORDINATES = "features", "coords"
CONVERT = (
    "python -c \"import numpy, sys, torch; [numpy.save(f[:-3] + '.npy', torch.load(f, weights_only=True)) "
    'for f in sys.argv[1:]]" *.pt'
)


class BagFile:
    """A file of one bag. It is opened whenever the bag is read, and closed again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        names = self._names()
        self.features = _features_of(path, names)
        self.shape = self._shape(self.features)
        self.located = COORDINATES in names
        # Features of another shape than (T, D) are refused with those of the other bags (`common_width`).
        is_bag = len(self.shape) == 2
        if is_bag and self.located and (shape := self._shape(COORDINATES)) != (self.shape[0], 2):
            raise InputError(
                f"{path}: expected {COORDINATES} of the shape ({self.shape[0]}, 2), a place for each item, got "
                f"{shape}"
            )

    def bag(self) -> StoredBag:
        """Return the bag that the file holds."""
        coordinates = self.coordinates if self.located else None
        return StoredBag(self.shape[0], self.vectors, self._hash(), str(self.path), coordinates)

    def vectors(self) -> NDArray[np.floating]:
        """Read the vectors."""
        return self._read(self.features)

    def coordinates(self) -> NDArray[np.float64]:
        """Read where the items lie, (T, 2)."""
        return self._read(COORDINATES).astype(np.float64)

    def _hash(self) -> bytes:
        with reading(self.path), self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()

    def _names(self) -> list[str]:
        """Return the names of the arrays in the file."""
        with self._opened() as file:
            if self.path.suffix == ".npy":
                return [FEATURES]
            return [name for name in file.keys() if _is_array(file, name)]  # noqa: SIM118 - a file

    def _shape(self, name: str) -> tuple[int, ...]:
        with self._opened() as file:
            if self.path.suffix == ".safetensors":
                return tuple(file.get_slice(name).get_shape())
            array = file if self.path.suffix == ".npy" else file[name]
            _check_kind(self.path, array.dtype.kind)
            check_growth(self.path, array.nbytes)
            return tuple(array.shape)

    def _read(self, name: str) -> NDArray[Any]:
        with self._opened() as file:
            if self.path.suffix == ".npy":
                return np.asarray(file)
            if self.path.suffix == ".h5":
                return np.asarray(file[name][()])
            return np.asarray(file.get_tensor(name).float())  # bfloat16 too

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        """Open the file, and say what is wrong where it cannot be read: a mapped array, or arrays by name."""
        from safetensors import SafetensorError, safe_open

        try:
            if self.path.suffix == ".npy":
                yield np.load(self.path, mmap_mode="r", allow_pickle=False)
            elif self.path.suffix == ".h5":
                import h5py

                with h5py.File(self.path, "r") as file:
                    yield file
            else:
                with safe_open(self.path, framework="pt") as file:
                    yield file
        except InputError:
            raise
        except (OSError, ValueError, EOFError, KeyError, SafetensorError) as error:
            kind = self.path.suffix
            raise InputError(
                f"{self.path}: cannot be read as {kind} ({first_line(error)})"
            ) from error


def _is_array(file: Any, name: str) -> bool:
    return hasattr(file, "get_slice") or hasattr(file[name], "shape")


def _features_of(path: Path, names: Sequence[str]) -> str:
    """Return the name of the array of vectors: `features`, or the only one beside the coordinates."""
    vector_names = [name for name in names if name != COORDINATES]
    if FEATURES in names or len(vector_names) == 1:
        return FEATURES if FEATURES in names else vector_names[0]
    raise InputError(
        f"{path}: expected an array {FEATURES} (and {COORDINATES} if places are known), got "
        f"{some_of(names) if names else 'no array'}"
    )


def _check_kind(path: Path, kind: str) -> None:
    if kind not in "fiu":
        raise InputError(f"{path}: expected an array of numbers, got one of another kind")


def bag_paths(folder: Path) -> dict[str, Path]:
    """Return the files of the bags in a folder, or in CLAM's `h5_files` within it, by their names.

    Raises:
        InputError: pickled files alone, or two files of a name.
    """
    paths = [path for home in (folder, folder / "h5_files") for path in _files(home, *SUFFIXES)]
    if not paths and (pickled := _files(folder, ".pt") + _files(folder / "pt_files", ".pt")):
        raise InputError(
            f"{pickled[0]}: a pickled file could run any code, and is not opened; convert it yourself, "
            f"if you trust it: {CONVERT}"
        )
    by_name: dict[str, Path] = {}
    for path in paths:
        if path.stem in by_name:
            raise InputError(
                f"{path}: expected one file for each bag, got {by_name[path.stem]} too; remove one"
            )
        by_name[path.stem] = path
    if any(path.suffix == ".h5" for path in paths):
        check_installed("h5py", "bags", f"{folder}: .h5")
    return by_name


def _files(folder: Path, *suffixes: str) -> list[Path]:
    if not folder.is_dir():
        return []
    with reading(folder):
        return sorted(p for p in folder.iterdir() if p.suffix in suffixes and p.is_file())
