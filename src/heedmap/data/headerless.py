"""Read train.csv and test.csv without a header, as Zhang et al. (2015) publish their data sets.

Each field is in quotes, one within is doubled, and the first is the number of the class, from 1. A reading that
is found by evidence (`csv_rows`) goes wrong here: a backslash before a doubled quote belongs to Yelp's texts.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from heedmap.data.columns import Rows, Tables
from heedmap.data.file_kinds import kind_of
from heedmap.data.readers import split_files
from heedmap.data.streams import open_bytes, open_text, reading
from heedmap.data.tokens import without_markup
from heedmap.errors import InputError


def read_headerless(path: Path, names: Sequence[str], classes: int) -> Tables | None:
    """Read a folder with both files (also .gz), or one file; None where it has another layout.

    Args:
        path: the folder or the file.
        names: of the columns, that of the class first.
        classes: their number, which tells a row from a header.

    Raises:
        InputError: no test file, a row of another number of fields, no CSV or not UTF-8 (with the line).
    """
    by_split = {"all": path} if path.is_file() else split_files(path) if path.is_dir() else {}
    if not by_split or not all(kind_of(file) == "csv" for file in by_split.values()):
        return None
    if not all(_begins_with_class(file, classes) for file in by_split.values()):
        return None
    if "train" in by_split and "test" not in by_split:
        raise InputError(
            f"{path}: expected train.csv and test.csv, got no test.csv; unpack the archive again, it has both"
        )
    return Tables({split: _rows(file, names) for split, file in by_split.items()})


def _begins_with_class(file: Path, classes: int) -> bool:
    with reading(file), open_bytes(file) as opened:
        start = opened.read(1 << 16).decode("utf-8-sig", errors="replace")
    first = re.match(r'"?(\d{1,2})"?,', start, re.ASCII)
    return first is not None and 1 <= int(first[1]) <= classes


def _rows(file: Path, names: Sequence[str]) -> Rows:
    """Read the rows of one file; an empty field is missing."""
    columns: dict[str, list[str | None]] = {name: [] for name in names}
    lines = []
    for line, fields in _records(file):
        if len(fields) != len(names):
            raise InputError(
                f"{file}, line {line}: expected {len(names)} fields ({', '.join(names)}), got {len(fields)}; "
                "is this another data set?"
            )
        lines.append(line)
        for values, field in zip(columns.values(), fields, strict=True):
            values.append(field or None)
    return Rows(
        list(names), len(lines), columns.__getitem__, place_of=lambda i: f"{file}, line {lines[i]}"
    )


def _records(file: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the line on which each row begins, and its fields."""
    line = 1
    try:
        with reading(file), open_text(file, "utf-8-sig", newline="") as opened:
            records = csv.reader(opened, strict=True)
            for fields in records:
                if fields:
                    yield line, fields
                line = records.line_num + 1
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(
            f"{file}, line {line}: expected CSV in UTF-8, each field in double quotes and each quote "
            f'within it doubled (\\"" or ""), got other text ({error}); mend it, or unpack the archive again'
        ) from error


def unescaped(text: str) -> str:
    r"""Return a text without tags, and with the line breaks and quotes that these files write with a backslash.

    >>> unescaped(r'A \"good\" film.\nOr not?<br />No.')
    'A "good" film.\nOr not? No.'
    """
    return without_markup(text.replace(r"\n", "\n").replace(r"\"", '"'))
