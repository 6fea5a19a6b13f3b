"""Read pictures from their files, and folders of pictures: one folder per class.

    leaves/healthy/1.png   leaves/ill/7.jpg                     without splits
    leaves/train/ill/7.jpg   leaves/test/healthy/1.png   ...    with them

A picture's class is the name of its folder, its key its path in the folder: `test/healthy/1.png`.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heedmap.data.item_vectors import ItemVectors, StoredBag
from heedmap.data.readers import one_per_split
from heedmap.data.rows import LabelledTexts, Row
from heedmap.data.thumbnails import pillow
from heedmap.errors import InputError
from heedmap.nouns import PICTURES

SUFFIXES = (".png", ".jpg", ".jpeg")


@dataclass(frozen=True)
class Grid:
    """How a picture is cut into patches: `rows` × `columns` of them, each a vector of `width` numbers.

    `cut` makes the vectors (rows × columns, width) of a picture (height, width, 3) of bytes, row by row; `grey`
    (width,) is the vector of a patch that shows nothing. `shown` makes a picture of vectors again, as the model
    sees it. `content` says what the vectors depend on beside the picture's file.
    """

    rows: int
    columns: int
    width: int
    cut: Callable[[NDArray[np.uint8]], NDArray[np.float32]]
    shown: Callable[[NDArray[np.float32]], NDArray[np.uint8]]
    grey: NDArray[np.float32]
    content: str

    @property
    def count(self) -> int:
        """Return the number of patches of a picture."""
        return self.rows * self.columns

    def signs(self) -> list[str]:
        """Return where each patch lies, as the names of patches say it: r0c3 is in the first row."""
        return [f"r{row}c{column}" for row in range(self.rows) for column in range(self.columns)]

    def coordinates(self) -> NDArray[np.float64]:
        """Return column and row of each patch, (rows × columns, 2)."""
        places = [(column, row) for row in range(self.rows) for column in range(self.columns)]
        return np.array(places, dtype=np.float64)


def read_picture(path: Path) -> NDArray[np.uint8]:
    """Return the colours of a picture, (height, width, 3), the way up that its file says.

    Raises:
        InputError: Pillow is not installed, or the file is no picture.
    """
    Image = pillow()
    from PIL import ImageOps

    try:
        with Image.open(path) as picture:
            colours = ImageOps.exif_transpose(picture).convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        said = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"{path}: expected a picture, PNG or JPEG; it cannot be read ({said:.100}); take it out, or save "
            "it again"
        ) from error
    return np.asarray(colours, dtype=np.uint8)


def stored_picture(path: Path, grid: Grid) -> StoredBag:
    """Return a picture as a bag of patches, which is read when it is asked for."""
    read = partial(_patches, path, grid)
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
    digest.update(grid.content.encode())
    return StoredBag(
        grid.count, read, digest.digest(), str(path), grid.coordinates, lambda: grid.shown(read())
    )


def _patches(path: Path, grid: Grid) -> NDArray[np.float32]:
    try:
        return grid.cut(read_picture(path))
    except InputError as error:
        said = str(error)
        raise InputError(said if said.startswith(str(path)) else f"{path}: {said}") from error


def read_picture_folders(folder: Path, grid: Grid) -> LabelledTexts:
    """Read pictures as texts whose tokens name their patches, by split (`all` where there are none).

    Files that are no pictures are counted. The pictures themselves are read when they are asked for.

    Raises:
        InputError: no such folder, or one without folders of pictures; two folders for one split.
    """
    if not folder.is_dir():
        raise InputError(
            f"{folder}: expected a folder of pictures, in a folder for each class (CLASS/FILE.png): the model "
            "reads pictures"
        )
    left_out: Counter[str] = Counter()
    pictures: dict[str, StoredBag] = {}
    labels: dict[str, list[tuple[str, str]]] = {}
    for split, home in _split_folders(folder).items():
        prefix = "" if split == "all" else f"{split}: "
        labels[split] = []
        for label, files in _classes(home).items():
            for file in files:
                if file.suffix.lower() not in SUFFIXES:
                    left_out[f"{prefix}not a .png or .jpg file"] += 1
                    continue
                key = _key(file, folder)
                pictures[key] = stored_picture(file, grid)
                labels[split].append((key, label))
    if not pictures:
        raise InputError(
            f"{folder}: expected a folder of pictures for each class (CLASS/FILE.png, or test/CLASS/FILE.png), "
            "got none"
        )
    store, signs = ItemVectors(pictures, grid.width, in_memory=False), grid.signs()
    parts = {
        split: [Row(key, store.names(key, signs), label) for key, label in of_split]
        for split, of_split in labels.items()
    }
    return LabelledTexts(parts, left_out, vectors=store, nouns=PICTURES)


def holds_pictures(folder: Path) -> bool:
    """Return whether a folder holds pictures, by themselves or in the folders of classes or of splits."""
    return any(
        file.suffix.lower() in SUFFIXES
        for pattern in ("*", "*/*", "*/*/*")
        for file in folder.glob(pattern)
    )


def _key(file: Path, folder: Path) -> str:
    key = file.relative_to(folder).as_posix()
    try:
        key.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{str(file)!a}: expected names of folders and files in UTF-8, got others; rename them"
        ) from error
    return key


def _split_folders(folder: Path) -> Mapping[str, Path]:
    """Return the folder of each split, or the folder itself where it has none."""
    by_split = one_per_split(
        folder, ((path, path.name) for path in _visible(folder) if path.is_dir() and _classes(path))
    )
    return by_split or {"all": folder}


def _classes(folder: Path) -> dict[str, list[Path]]:
    """Return the files of each folder that has pictures."""
    by_name = {
        path.name: [file for file in _visible(path) if file.is_file()]
        for path in _visible(folder)
        if path.is_dir()
    }
    return {
        name: files
        for name, files in by_name.items()
        if any(file.suffix.lower() in SUFFIXES for file in files)
    }


def _visible(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
