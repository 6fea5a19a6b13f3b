"""Pictures from memory: PIL images or arrays of colours, in a list, or in a column beside their labels.

They stand as text (`heedmap.data.encoded_pictures`) in the tables of `heedmap.data.in_memory`, so that a run
keeps them as it keeps texts.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedmap.data.chosen_columns import find_column
from heedmap.data.columns import Rows
from heedmap.data.encoded_pictures import EXPECTED, changes_of, colours_of, decoded, described
from heedmap.data.item_vectors import ItemVectors, StoredBag
from heedmap.data.labels import is_missing, label_text
from heedmap.data.pictures import Grid
from heedmap.data.rows import LABEL_COLUMNS, PICTURE_COLUMNS, LabelledTexts, Row
from heedmap.errors import InputError
from heedmap.nouns import PICTURES
from heedmap.terminal.output import some_of

NO_PATHS = "paths of files are not taken here: give the folder of the files"


def labelled_pictures(
    tables: Mapping[str, Rows], name: str, label: str | None, grid: Grid
) -> LabelledTexts:
    """Return the pictures of some tables as texts whose tokens name their patches.

    Args:
        tables: by split.
        name: of the tables, for errors.
        label: the column of the labels, where it is named.
        grid: how a picture is cut into patches.

    Raises:
        InputError: no column of pictures, or something else in it.
    """
    left_out, changes = Counter[str](), Counter[str]()
    bags: dict[str, StoredBag] = {}
    labels: dict[str, list[tuple[str, str]]] = {}
    for split, rows in tables.items():
        column = find_column(rows, None, PICTURE_COLUMNS)
        if column is None:
            raise InputError(
                f"{name}: expected a folder of pictures, or pictures in memory: a list of PIL images or of "
                f"arrays (height, width, 3) of bytes, or such a column ({' / '.join(PICTURE_COLUMNS)}), got "
                f"{some_of(rows.columns)}: the model reads pictures; {NO_PATHS}"
            )
        label_column = find_column(rows, label, LABEL_COLUMNS)
        if label is not None and label_column is None:
            raise InputError(
                f"{name}: no label column ({label}); the columns are {some_of(rows.columns)}"
            )
        answers = rows.values(label_column) if label_column else [""] * len(rows)
        labels[split] = []
        for number, (written, answer) in enumerate(zip(rows.values(column), answers, strict=True)):
            if is_missing(written):
                left_out["no picture"] += 1
                continue
            if label_column and is_missing(answer):
                left_out["label missing" if split == "all" else f"{split}: label missing"] += 1
                continue
            key = str(number) if split == "all" else f"{split}/{number}"
            bags[key] = _stored(written, rows.place_of(number), grid)
            changes.update(changes_of(decoded(written)))
            labels[split].append((key, label_text(answer)))
    store, signs = ItemVectors(bags, grid.width, in_memory=False), grid.signs()
    parts = {
        split: [Row(key, store.names(key, signs), answer) for key, answer in of_split]
        for split, of_split in labels.items()
    }
    notes = [f"{count} of {len(bags)} pictures have {said}" for said, count in changes.items()]
    return LabelledTexts(parts, left_out, notes, vectors=store, nouns=PICTURES)


def _stored(written: Any, place: str, grid: Grid) -> StoredBag:
    try:
        colours = colours_of(decoded(written))
    except (ValueError, TypeError, OSError) as error:
        hint = f"; {NO_PATHS}" if isinstance(written, str) else ""
        raise InputError(
            f"{place}: expected a picture, {EXPECTED}, got {described(written)}{hint}"
        ) from error
    return _bag(colours, lambda: colours_of(decoded(written)), place, grid)


def held_picture(colours: NDArray[np.uint8], place: str, grid: Grid) -> StoredBag:
    """Return a picture (height, width, 3) that is in memory as a bag of patches."""
    return _bag(colours, partial(np.asarray, colours), place, grid)


def _bag(
    colours: NDArray[np.uint8],
    read_colours: Callable[[], NDArray[np.uint8]],
    place: str,
    grid: Grid,
) -> StoredBag:
    digest = hashlib.sha256(f"{colours.shape} ".encode() + colours.tobytes())
    digest.update(grid.content.encode())

    def read() -> NDArray[np.float32]:
        return grid.cut(read_colours())

    return StoredBag(
        grid.count, read, digest.digest(), place, grid.coordinates, lambda: grid.shown(read())
    )
