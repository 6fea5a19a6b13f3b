"""Rows as they come from a file or a Hub data set: all columns, before texts and labels are chosen."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from heedmap.errors import InputError

MOST_COLUMNS = 10_000


@dataclass(frozen=True)
class Rows:
    """Rows by column. `values(name)` are those of one column, one per row, None where missing.

    `class_names` of a column say what its numbers mean (a `ClassLabel` of the Hub). `where(i)` names row i in
    errors, with its file; `read_as` says how a file was read where that was found out, `notes` what a user
    should look at: a guessed encoding, what was not read.
    """

    columns: list[str]
    count: int
    values: Callable[[str], list[Any]]
    class_names: Mapping[str, list[str]] = field(default_factory=dict)
    where: Callable[[int], str] = "row {}".format
    read_as: str = ""
    notes: Sequence[str] = ()

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[dict[str, Any]]:
        columns = [self.values(name) for name in self.columns]
        for values in zip(*columns, strict=True):
            yield dict(zip(self.columns, values, strict=True))


def joined(rows: Rows, wanted: str | None) -> Rows:
    """Return rows with one column more if it is wanted: "a,b" joins columns a and b, an empty line between.

    What is missing or empty is left out; a row in which all are has None.
    """
    names = (wanted or "").split(",")
    if len(names) == 1 or wanted in rows.columns or not set(names) <= set(rows.columns):
        return rows

    def values(name: str) -> list[Any]:
        if name != wanted:
            return rows.values(name)
        columns = [rows.values(each) for each in names]
        return [
            "\n\n".join(str(part) for part in parts if isinstance(part, str) and part.strip())
            or None
            for parts in zip(*columns, strict=True)
        ]

    return replace(rows, columns=[*rows.columns, ",".join(names)], values=values)


def check_names(path: str | Path, names: Sequence[str]) -> None:
    """Refuse too many columns, and two of one name, of which one would be lost.

    Raises:
        InputError: with the names that are there twice.
    """
    if len(names) > MOST_COLUMNS:
        raise InputError(
            f"{path}: expected up to {MOST_COLUMNS} columns, got {len(names)}; keep those with the text "
            "and the label"
        )
    if twice := sorted(name for name, count in Counter(names).items() if count > 1):
        raise InputError(
            f"{path}: expected different columns, got {', '.join(twice[:8])} twice; rename one"
        )
