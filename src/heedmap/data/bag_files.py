"""Files that hold one bag of vectors each: .h5 (as CLAM writes them), .npy and .safetensors."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedmap.data.item_vectors import StoredBag
from heedmap.data.streams import first_line, reading
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
        self.shape, coordinate_shape = self._shapes()
        self.located = coordinate_shape is not None
        if coordinate_shape is not None and coordinate_shape != (self.shape[0], 2):
            raise InputError(
                f"{path}: expected {COORDINATES} of the shape ({self.shape[0]}, 2), a place for each item, got "
                f"{coordinate_shape}"
            )

    def bag(self) -> StoredBag:
        """Return the bag that the file holds."""
        coordinates = self.coordinates if self.located else None
        return StoredBag(self.shape[0], self.vectors, self._hash(), str(self.path), coordinates)

    def vectors(self) -> NDArray[np.floating]:
        """Read the vectors."""
        return self._read(FEATURES)

    def coordinates(self) -> NDArray[np.float64]:
        """Read where the items lie, (T, 2)."""
        return self._read(COORDINATES).astype(np.float64)

    def _hash(self) -> bytes:
        with reading(self.path), self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()

    def _shapes(self) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
        names = self._names()
        name = _features_of(self.path, names)
        coordinates = self._shape(COORDINATES) if COORDINATES in names else None
        return self._shape(name), coordinates

    def _names(self) -> list[str]:
        """Return the names of the arrays in the file."""
        try:
            if self.path.suffix == ".npy":
                return [FEATURES]
            with self._opened() as file:
                return [name for name in file.keys() if _is_array(file, name)]  # noqa: SIM118 - a file
        except (OSError, ValueError, _safetensors_error()) as error:
            raise _unreadable(self.path, error) from error

    def _shape(self, name: str) -> tuple[int, ...]:
        try:
            if self.path.suffix == ".npy":
                array = np.load(self.path, mmap_mode="r", allow_pickle=False)
                _check_kind(self.path, array.dtype.kind)
                return tuple(array.shape)
            with self._opened() as file:
                if self.path.suffix == ".h5":
                    _check_kind(self.path, file[name].dtype.kind)
                    return tuple(file[name].shape)
                return tuple(file.get_slice(name).get_shape())
        except (OSError, ValueError, EOFError, _safetensors_error()) as error:
            raise _unreadable(self.path, error) from error

    def _read(self, name: str) -> NDArray[Any]:
        try:
            if self.path.suffix == ".npy":
                return np.asarray(np.load(self.path, mmap_mode="r", allow_pickle=False))
            with self._opened() as file:
                if name == FEATURES:
                    names = [key for key in file.keys() if _is_array(file, key)]  # noqa: SIM118
                    name = _features_of(self.path, names)
                if self.path.suffix == ".h5":
                    return np.asarray(file[name][()])
                return np.asarray(file.get_tensor(name).float())  # bfloat16 too
        except (OSError, ValueError, EOFError, _safetensors_error()) as error:
            raise _unreadable(self.path, error) from error

    def _opened(self) -> Any:
        if self.path.suffix == ".h5":
            import h5py

            return h5py.File(self.path, "r")
        from safetensors import safe_open

        return safe_open(self.path, framework="pt")


def _safetensors_error() -> type[Exception]:
    from safetensors import SafetensorError

    return SafetensorError


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


def _unreadable(path: Path, error: Exception) -> InputError:
    if isinstance(error, InputError):
        return error
    return InputError(f"{path}: cannot be read as {path.suffix} ({first_line(error)})")


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
