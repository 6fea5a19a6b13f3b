"""How a text is named: by its own id in the data, or else by where it stands there."""

import os
import re
from pathlib import Path

from heedmap.data.columns import Rows

_PLACE = re.compile(r"(?:.*, )?(?:line|row|index) ")


def places(rows: Rows) -> list[str]:
    """Return where each row stands: the line of its file, the row of its sheet, the index of its frame.

    Of several files, each is named by its path below the folder that holds them all.
    """
    parts = (rows.place_of(i).rpartition(", ") for i in range(len(rows)))
    files = {file for file, _, _ in parts}
    parts = (rows.place_of(i).rpartition(", ") for i in range(len(rows)))
    if len(files) <= 1:
        return [place for _, _, place in parts]
    home = os.path.commonpath([Path(file).parent for file in files])
    names = {file: Path(file).relative_to(home).as_posix() for file in files}
    return [", ".join(filter(None, (names[file], place))) for file, _, place in parts]


def is_place(key: str) -> bool:
    """Return whether a text has no id of its own, so that its key is a place (see `places`)."""
    return _PLACE.match(key) is not None


def text_name(key: str) -> str:
    """Name a text to a reader, by its key in the tables.

    >>> text_name("line 7"), text_name("604")
    ('line 7', 'id 604')
    """
    return key if is_place(key) else f"id {key}"
