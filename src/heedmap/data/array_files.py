"""Read the arguments of `heedmap.from_arrays` from a folder of npz, safetensors, Parquet and JSON files."""

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedmap.data.parquet_rows import open_parquet
from heedmap.data.streams import check_archive
from heedmap.errors import InputError
from heedmap.files.naming import kind_of

RAGGED = ("attention", "values", "readouts")  # one array for all items, cut by lengths or offsets
SIZES = ("lengths", "offsets")
HEAD = ("weight", "bias")
OF_INSTANCES = ("mask", "labels", "predictions")
NAMES = ("items", "classes")
KNOWN = (*RAGGED, *SIZES, *HEAD, *OF_INSTANCES, *NAMES, "unit")
READERS = (".npz", ".safetensors", ".parquet", ".json")
CONVERT = "save the arrays themselves: numpy.savez('arrays.npz', attention=..., lengths=...)"


def read_arrays(folder: Path) -> dict[str, Any]:
    """Return the arguments of `heedmap.from_arrays` that stand in a folder's files, by their names.

    Ragged arrays are one array for the items of all instances, which `lengths` (B,) or `offsets` (B + 1,) cut;
    a row of a Parquet file is an instance. Arrays (B, T) are filled up, beyond `lengths` or where `mask` is 0.

    Raises:
        InputError: no folder, a file that cannot be read or is pickled, a name that is not known or stands in
            two files, or lengths that do not fit.
    """
    if not folder.is_dir():
        found = "a file" if folder.exists() else "nothing there"
        raise InputError(f"{folder}: expected a folder of arrays, got {found}")
    arrays: dict[str, Any] = {}
    place_of: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() not in READERS:
            continue
        for name, value in _read(path):
            if name not in KNOWN:
                raise InputError(
                    f"{path}: expected arrays named {', '.join(KNOWN)}, got {name!r}; rename it, or leave it "
                    "out"
                )
            if name in arrays:
                raise InputError(
                    f"{path}: {name} stands in {place_of[name].name} too; keep one of them"
                )
            arrays[name], place_of[name] = value, path
    if "attention" not in arrays:
        files = ", ".join(sorted(path.name for path in folder.iterdir())[:5]) or "no file"
        raise InputError(
            f"{folder}: expected the array attention in a file that ends in {', '.join(READERS)}, found "
            f"{files if not arrays else ', '.join(arrays)}; {CONVERT}"
        )
    return _cut(folder, arrays)


def _read(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the arrays of a file, by name."""
    readers = {
        ".npz": _of_npz,
        ".safetensors": _of_safetensors,
        ".parquet": _of_parquet,
        ".json": _of_json,
    }
    try:
        yield from readers[path.suffix.lower()](path).items()
    except InputError:
        raise
    except Exception as error:  # each library raises its own kinds on a damaged file
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        kind = path.suffix.removeprefix(".")
        raise InputError(f"{path}: not readable as {kind} ({reason})") from error


def _of_npz(path: Path) -> dict[str, Any]:
    if not zipfile.is_zipfile(path):
        raise InputError(f"{path}: not readable as npz (not what numpy.savez writes); {CONVERT}")
    arrays = {}
    with np.load(path, allow_pickle=False) as stored:
        check_archive(path, stored.zip)
        for name in stored.files:
            try:
                arrays[name] = stored[name]
            except ValueError as error:
                if "pickle" not in str(error):
                    raise
                raise InputError(
                    f"{path}: {name} is pickled, and heedmap loads no pickle, which may run any code; save "
                    "ragged arrays joined, numpy.concatenate(arrays), with their lengths"
                ) from error
    return arrays


def _of_safetensors(path: Path) -> dict[str, Any]:
    from safetensors.torch import load  # knows bfloat16, which NumPy does not

    return dict(load(path.read_bytes()))


def _of_parquet(path: Path) -> dict[str, Any]:
    return dict(open_parquet(path, path).read().to_pydict())


def _of_json(path: Path) -> dict[str, Any]:
    content = json.loads(path.read_text(encoding="utf-8"))
    if isinstance(content, list) and path.stem in NAMES:
        return {path.stem: content}
    if not isinstance(content, dict):
        raise InputError(
            f'{path}: expected an object with the names of items or classes by name, such as {{"classes": '
            f'["no", "yes"]}}, or a list in classes.json or items.json, got {kind_of(content)}'
        )
    return content


def _cut(folder: Path, arrays: dict[str, Any]) -> dict[str, Any]:
    """Return the arrays with the ragged ones cut into instances."""
    given_sizes = [name for name in SIZES if name in arrays]
    if len(given_sizes) == 2:
        raise InputError(f"{folder}: expected lengths or offsets, got both; leave one out")
    ragged = {name: arrays[name] for name in (*RAGGED, "items") if name in arrays}
    rest = {name: value for name, value in arrays.items() if name not in (*ragged, *SIZES)}
    rest = {name: value.tolist() if _is_words(value) else value for name, value in rest.items()}
    if not given_sizes:
        if _is_joined(ragged["attention"]):
            raise InputError(
                f"{folder}: attention: expected lengths (B,) or offsets (B + 1,) too, since it is one array of "
                f"{len(ragged['attention'])} weights; say how many items each instance has, or where each "
                "begins"
            )
        return {**ragged, **rest}
    name = given_sizes[0]
    ends = _ends(folder, name, np.asarray(arrays[name]))
    parts = {key: _parts(folder, key, ragged[key], ends, name) for key in ragged}
    return {**parts, **rest, "lengths": np.diff(ends)}


def _is_joined(attention: Any) -> bool:
    """Return whether these are weights one by one, and no weights by instance."""
    if isinstance(attention, list):
        return bool(attention) and isinstance(attention[0], int | float)
    return bool(attention.ndim == 1)


def _is_words(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "US"


def _ends(folder: Path, name: str, sizes: NDArray[Any]) -> NDArray[np.int64]:
    """Return where each instance begins, and where the last one ends."""
    is_whole = sizes.ndim == 1 and sizes.dtype.kind in "iu"
    if not is_whole or (name == "lengths" and (sizes < 0).any()):
        raise InputError(
            f"{folder}: {name}: expected whole numbers of 0 or more, one per instance, got {sizes.dtype} of "
            f"shape {sizes.shape}"
        )
    whole = sizes.astype(np.int64)
    if name == "lengths":
        return np.concatenate([[0], whole.cumsum()])
    if not len(whole) or whole[0] != 0 or (np.diff(whole) < 0).any():
        raise InputError(
            f"{folder}: offsets: expected B + 1 numbers that rise from 0, where each instance begins and where "
            "the last one ends"
        )
    return whole


def _parts(folder: Path, key: str, value: Any, ends: NDArray[np.int64], name: str) -> list[Any]:
    """Cut one array of all items by instances: (N, ...), or (K, N, ...) of rows of weights."""
    is_list = isinstance(value, list)
    if is_list and value and isinstance(value[0], list):  # a list per instance already
        return list(value)
    rows = not is_list and value.ndim == {"attention": 2, "values": 3, "readouts": 3}.get(key, 0)
    count = len(value) if is_list else value.shape[1 if rows else 0]
    if count != ends[-1] and not is_list and value.ndim > 1 and len(value) == len(ends) - 1:
        return list(value)  # (B, T, ...), which padding fills up
    if count != ends[-1]:
        raise InputError(
            f"{folder}: {key}: expected {ends[-1]} items in all, the sum of {name}, got {count}"
        )
    spans = zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)
    if rows:
        return [value[:, start:end] for start, end in spans]
    parts = [value[start:end] for start, end in spans]
    return [part.tolist() if _is_words(part) else part for part in parts]
