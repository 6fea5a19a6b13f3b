"""How a text is named: by its own id in the data, or else by where it stands there."""

import re
from pathlib import Path

from heedmap.data.columns import Rows

_PLACE = re.compile(r"(?:.*, )?(?:line|row|index) ")


def places(rows: Rows) -> list[str]:
    """Return where each row stands: the line of its file, the row of its sheet, the index of its frame."""
    parts = [rows.where(i).rpartition(", ") for i in range(len(rows))]
    if len({file for file, _, _ in parts}) <= 1:
        return [place for _, _, place in parts]
    return [", ".join(filter(None, (Path(file).name, place))) for file, _, place in parts]


def is_place(key: str) -> bool:
    """Return whether a text has no id of its own, so that its key is a place (see `places`)."""
    return _PLACE.match(key) is not None


def text_name(key: str) -> str:
    """Name a text to a reader, by its key in the tables.

    >>> text_name("line 7"), text_name("604")
    ('line 7', 'id 604')
    """
    return key if is_place(key) else f"id {key}"
