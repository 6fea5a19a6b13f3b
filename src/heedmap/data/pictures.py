"""Read pictures from their files, and folders of pictures: one folder per class.

    leaves/healthy/1.png   leaves/ill/7.jpg                     without splits
    leaves/train/ill/7.jpg   leaves/test/healthy/1.png   ...    with them

A picture's class is the name of its folder, its key its path in the folder: `test/healthy/1.png`.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heedmap.data.class_folders import checked_name, class_files, split_folders
from heedmap.data.encoded_pictures import changes_of, colours_of
from heedmap.data.item_vectors import ItemVectors, StoredBag
from heedmap.data.readers import SPLIT_NAMES
from heedmap.data.rows import LabelledTexts, Row
from heedmap.data.streams import check_growth
from heedmap.data.thumbnails import pillow
from heedmap.errors import InputError
from heedmap.nouns import PICTURES

SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp")
DEEPEST = 6  # folders in one another in which pictures are looked for


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
    try:
        with Image.open(path) as picture:
            check_growth(path, 3 * picture.width * picture.height)
            return colours_of(picture)
    except InputError:
        raise
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        said = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"{path}: expected a picture, PNG or JPEG; it cannot be read ({said:.100}); take it out, or save "
            "it again"
        ) from error


def file_changes(path: Path) -> list[str]:
    """Say what of a picture is not read as it is; nothing if it cannot be read, which is said when it is."""
    Image = pillow()
    unreadable = (OSError, ValueError, SyntaxError, Image.DecompressionBombError)
    with suppress(*unreadable), Image.open(path) as picture:
        return changes_of(picture)
    return []


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
    left_out, changes = Counter[str](), Counter[str]()
    pictures: dict[str, StoredBag] = {}
    labels: dict[str, list[tuple[str, str]]] = {}
    homes = split_folders(folder, _pictures) or {"all": folder}
    for split, home in homes.items():
        prefix = "" if split == "all" else f"{split}: "
        labels[split] = []
        for label, files in class_files(home, _pictures).items():
            own_pictures = _pictures(files)
            if other_files := len(files) - len(own_pictures):
                left_out[f"{prefix}not the file of a picture"] += other_files
            for file in own_pictures:
                key = checked_name(file, file.relative_to(folder).as_posix())
                pictures[key] = stored_picture(file, grid)
                changes.update(file_changes(file))
                labels[split].append((key, label))
    if not pictures:
        raise InputError(
            f"{folder}: expected a folder of pictures for each class (CLASS/FILE.png, or test/CLASS/FILE.png), "
            f"got {_places(folder)}"
        )
    notes = [f"{count} of {len(pictures)} pictures have {said}" for said, count in changes.items()]
    store, signs = ItemVectors(pictures, grid.width, in_memory=False), grid.signs()
    parts = {
        split: [Row(key, store.names(key, signs), label) for key, label in of_split]
        for split, of_split in labels.items()
    }
    return LabelledTexts(parts, left_out, notes, vectors=store, nouns=PICTURES)


def unlabelled_pictures(folder: Path) -> tuple[dict[str, Path], int]:
    """Return all pictures in a folder by their paths below it, and how many other files there are.

    Raises:
        InputError: no such folder, or no picture in it.
    """
    if not folder.is_dir():
        raise InputError(
            f"{folder}: expected a folder of pictures, because the model reads pictures; one alone is "
            f"explained by its name: `heedmap explain MODEL {folder.name}`"
        )
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    pictures = _pictures(files)
    if not pictures:
        raise InputError(f"{folder}: expected pictures in the folder ({SUFFIXES[0]} ...), got none")
    by_name = {checked_name(file, file.relative_to(folder).as_posix()): file for file in pictures}
    return by_name, len(files) - len(pictures)


def holds_pictures(folder: Path) -> bool:
    """Return whether a folder holds pictures, by themselves or in the folders of classes or of splits."""
    return _first_picture(folder, 3) is not None


def _first_picture(folder: Path, deepest: int) -> Path | None:
    """Return the first picture in a folder, one that lies least deep; None where there is none."""
    for depth in range(1, deepest + 1):
        if pictures := _pictures(sorted(folder.glob("/".join("*" * depth)))):
            return pictures[0]
    return None


def _places(folder: Path) -> str:
    """Say where pictures lie that are in no folder of a class."""
    picture = _first_picture(folder, DEEPEST)
    if picture is None:
        return "none"
    inner = picture.relative_to(folder).parent
    count = len(_pictures([*picture.parent.iterdir()]))
    if inner == Path() or inner.name in SPLIT_NAMES:
        place = "the folder itself" if inner == Path() else inner
        in_python = (
            "; in Python, datasets.load_dataset('imagefolder', data_dir=...) reads metadata.csv"
        )
        return (
            f"{count} pictures in {place}, such as {picture.name}: put those of each class into a folder that "
            f"is named by it{in_python * any(picture.parent.glob('metadata.*'))}"
        )
    return (
        f"{count} pictures in {inner}, such as {picture.name}, which is too deep: give the folder whose "
        "folders are the classes"
    )


def _pictures(files: Sequence[Path]) -> list[Path]:
    return [file for file in files if file.suffix.lower() in SUFFIXES]
