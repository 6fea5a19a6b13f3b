"""The tables of a MIMIC-III export, row by row: NOTEEVENTS alone is 4 GB.

Read by Python's `csv`, since pandas cuts rows that are too long and fills those that are too short, silently.
"""

import csv
import zlib
from collections.abc import Iterator, Sequence
from operator import itemgetter
from pathlib import Path

from heedmap.data.streams import open_text
from heedmap.errors import InputError

SOURCE = "MIMIC-III 1.4 (physionet.org/content/mimiciii), whose export needs PhysioNet credentials"


def fields(folder: Path, table: str, columns: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The fields of two columns or more, a row of the table at a time, as they are written.

    The file is `TABLE.csv` or `TABLE.csv.gz`; upper and lower case are one in its name and its columns'.

    Raises:
        InputError: no such table, two files for it, a column missing, or a broken file (with the line).
    """
    path = _file(folder, table)
    line = 1
    try:
        with open_text(path, "utf-8-sig", newline="") as file:
            rows = csv.reader(file, strict=True)
            header = [name.strip() for name in next(rows, [])]
            chosen = itemgetter(*_places(path, table, header, columns))
            for row in rows:
                line = rows.line_num
                if row and len(row) != len(header):
                    raise InputError(
                        f"{path}, line {line}: expected {len(header)} fields as in the header, got "
                        f"{len(row)}; export the table {table} again, with texts in quotes"
                    )
                if row:
                    yield chosen(row)
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        raise InputError(
            f"{path}: not readable as CSV in UTF-8 after line {line} ({error}); "
            f"expected the table {table} of {SOURCE}"
        ) from error


def _places(path: Path, table: str, header: list[str], columns: Sequence[str]) -> list[int]:
    names = [name.upper() for name in header]
    if missing := [name for name in columns if name not in names]:
        raise InputError(
            f"{path}: no column {', '.join(missing)}; found {', '.join(header)[:200] or 'none'}; "
            f"expected the table {table} of {SOURCE}"
        )
    return [names.index(name) for name in columns]


def _file(folder: Path, table: str) -> Path:
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; expected one with {table}.csv of {SOURCE}")
    wanted = (f"{table}.csv".lower(), f"{table}.csv.gz".lower())
    found = sorted(path for path in folder.iterdir() if path.name.lower() in wanted)
    if not found:
        raise InputError(
            f"{folder}: no {table}.csv or {table}.csv.gz; expected the table {table} of {SOURCE}"
        )
    if len(found) > 1:
        raise InputError(
            f"{folder}: both {found[0].name} and {found[1].name} could be {table}; keep one"
        )
    return found[0]
