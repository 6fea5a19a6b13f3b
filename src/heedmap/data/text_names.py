"""How a text is named: by its own id in the data, or else by where it stands there."""

import os
import re
import reprlib
from collections import Counter
from pathlib import Path

from heedmap.data.columns import Rows
from heedmap.data.labels import is_missing, kind_text, label_text
from heedmap.errors import InputError
from heedmap.terminal.output import quoted, some_of

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


def text_keys(
    rows: Rows, column: str | None, *, guessed: bool
) -> tuple[list[str] | None, list[str]]:
    """Name each row by its own id, and by its place where that is missing, or too where it names other rows.

    Returns:
        the names, and notes; no names where the column was `guessed` and has lists or objects.

    Raises:
        InputError: lists or objects in a column that was named.
    """
    if column is None:
        return places(rows), []
    try:
        ids = _ids(rows, column)
    except InputError as error:
        if not guessed:
            raise
        return None, [f"{error}; the column is not read, and texts are named by their place"]
    counts = Counter(ids)
    missing = counts.pop("", 0)
    duplicates = [name for name, count in counts.items() if count > 1]
    if not missing and not duplicates:
        return ids, []
    named = [
        (name, f"{name} ({place})" if name else place)
        for name, place in zip(ids, places(rows), strict=True)
    ]
    ambiguous = {"", *duplicates}
    # An id may be written as a place that another row is now named by.
    taken_places = {by_place for name, by_place in named if name in ambiguous}
    duplicates += [name for name in counts if name in taken_places and name not in ambiguous]
    ambiguous.update(duplicates)
    problems = [f"{missing} missing"] if missing else []
    if duplicates:
        examples = some_of([quoted(name) for name in duplicates], 3)
        problems.append(f"{len(duplicates)} of several rows ({examples})")
    note = f"ids in column {column}: {' and '.join(problems)}; these texts are named by their place in the data"
    return [by_place if name in ambiguous else name for name, by_place in named], [note]


def _ids(rows: Rows, column: str) -> list[str]:
    ids = []
    for i, value in enumerate(rows.values(column)):
        try:
            ids.append("" if is_missing(value) else label_text(value))
        except InputError as error:
            raise InputError(
                f"{rows.place_of(i)}, {column}: expected a text or a number as the id of a text, got "
                f"{kind_text(value)} ({reprlib.repr(value)})"
            ) from error
    return ids
