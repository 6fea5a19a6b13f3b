"""Diabetes and Anemia of Jain & Wallace (2019), from the reader's own export of MIMIC-III.

A row is an admission: its discharge summaries as tokens, a question about its diagnoses as the label.
The limits of length are the catalog's.
"""

import csv
import re
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Literal, get_args

from heedmap.data.readers import SPLITS
from heedmap.data.rows import Parts, Row
from heedmap.data.streams import open_text
from heedmap.data.tokens import clinical_words
from heedmap.errors import InputError

Task = Literal["diabetes", "anemia"]
# Splits of the paper's proportions and seeds. The rows are in another order than in its notebooks, so
# a split has other admissions.
TEST_SHARE, TEST_SEED = 0.20, 12939
DEV_SHARE, DEV_SEED = 0.15, 13448

_SOURCE = "MIMIC-III 1.4 (physionet.org/content/mimiciii), whose export needs PhysioNet credentials"
_DATE = re.compile(r"\d{4}-\d\d-\d\d")


def read(folder: Path, task: Task) -> tuple[Parts, dict[str, int]]:
    """Read the admissions by split, and count what is left out and why; a row's key is its HADM_ID.

    `anemia`: "1" is acute (285.1 and no 285.2x), "0" chronic (the other way round); the rest is left out.
    `diabetes`: "1" where there is a code 250.00, else "0". Its split is the one of the files
    `train_50_hadm_ids.csv`, `dev_…` and `test_…` (Mullenbach et al., 2018) where the folder has them. Else
    all admissions are split here, as for anemia: stratified, a fifth for testing, 15 % of the rest dev.

    Args:
        folder: holds NOTEEVENTS.csv and DIAGNOSES_ICD.csv (each also with .gz).
        task: which of the two.

    Raises:
        InputError: a table, a column or a list missing or broken, or too few admissions to split.
    """
    if task not in get_args(Task):
        raise InputError(f"{task!r}: no such task; expected {' or '.join(get_args(Task))}")
    folder = Path(folder)
    left_out: Counter[str] = Counter()
    # First, since a missing list is found at once.
    lists = _lists(folder) if task == "diabetes" else None
    codes = _codes(folder, left_out)
    labels = _labels(codes, task, left_out)
    listed = {key for keys in (lists or {}).values() for key in keys}
    if lists is not None:
        labels = {key: label for key, label in labels.items() if key in listed}
    texts, unlabelled = _discharge_summaries(folder, labels, left_out)
    if lists is None:
        left_out["no diagnosis code"] = len(unlabelled - codes.keys())
    else:
        left_out["no diagnosis code"] = len(listed - codes.keys())
        left_out["in none of the lists of admissions"] = len((codes.keys() | unlabelled) - listed)
    left_out["no discharge summary"] = len(labels.keys() - texts.keys())
    # Shorter ids first: the order of their numbers, whatever the order of the tables.
    keys = sorted(texts, key=lambda key: (len(key), key))
    rows = {key: Row(key, clinical_words(texts.pop(key)), labels[key]) for key in keys}
    empty = [key for key, row in rows.items() if not row.tokens]
    left_out["empty discharge summary"] = len(empty)
    for key in empty:
        del rows[key]
    if not rows:
        raise InputError(f"{folder}: no admission for {task} is left ({_counts(left_out)})")
    if lists is None:
        if task == "diabetes":
            left_out["split drawn here: no train_50_hadm_ids.csv (kept)"] = len(rows)
        lists = _drawn(rows, folder)
    splits = {split: [rows[key] for key in lists[split] if key in rows] for split in SPLITS}
    return splits, {reason: count for reason, count in left_out.items() if count}


def _counts(left_out: Counter[str]) -> str:
    return (
        "; ".join(f"{reason}: {count}" for reason, count in left_out.items() if count)
        or "the tables are empty"
    )


def _lists(folder: Path) -> dict[str, list[str]] | None:
    """Read the admissions of each split, one per line of its file; None without any such file."""
    paths = {split: folder / f"{split}_50_hadm_ids.csv" for split in SPLITS}
    missing = [path.name for path in paths.values() if not path.is_file()]
    if len(missing) == len(SPLITS):
        return None
    if missing:
        raise InputError(
            f"{folder}: no {', '.join(missing)}; expected the lists of all three splits or none of them"
        )
    split_of: dict[str, str] = {}
    for split, path in paths.items():
        lines = path.read_text(encoding="utf-8-sig", errors="replace").splitlines()
        for number, line in enumerate(lines, 1):
            key = line.strip()
            if key and not key.isdecimal():
                raise InputError(
                    f"{path}, line {number}: expected an admission's HADM_ID, got {key!r:.40}"
                )
            if key in split_of:
                raise InputError(
                    f"{path}, line {number}: admission {key} stands in the {split_of[key]} split already; "
                    "expected each once"
                )
            if key:
                split_of[key] = split
    return {split: [key for key in split_of if split_of[key] == split] for split in SPLITS}


def _codes(folder: Path, left_out: Counter[str]) -> dict[str, set[str]]:
    """Read the ICD-9 codes of every admission, with their dots."""
    codes: dict[str, set[str]] = {}
    for field, code in _fields(folder, "DIAGNOSES_ICD", ("HADM_ID", "ICD9_CODE")):
        key = _key(field)
        if key and code.strip():
            codes.setdefault(key, set()).add(dotted(code))
        else:
            left_out["diagnosis row without an admission or a code"] += 1
    return codes


def dotted(code: str) -> str:
    """Put the dot into an ICD-9 diagnosis code, which MIMIC-III leaves out: `2851` is 285.1.

    It comes after the third character, in a code of external causes (E) after the fourth.
    """
    code = code.strip().upper().replace(".", "")
    head = 4 if code.startswith("E") else 3
    return f"{code[:head]}.{code[head:]}" if len(code) > head else code


def _key(field: str) -> str:
    # A column of whole numbers with gaps in it is often exported as 100001.0.
    return field.strip().removesuffix(".0")


def _labels(codes: dict[str, set[str]], task: Task, left_out: Counter[str]) -> dict[str, str]:
    if task == "diabetes":
        return {
            key: str(int(_any(admission_codes, "250.00"))) for key, admission_codes in codes.items()
        }
    labels = {}
    for key, admission_codes in codes.items():
        # The released code looks for these anywhere in a code; no ICD-9 code has them but at its start.
        acute, chronic = _any(admission_codes, "285.1"), _any(admission_codes, "285.2")
        if acute == chronic:
            left_out["both 285.1 and 285.2" if acute else "neither 285.1 nor 285.2"] += 1
        else:
            labels[key] = str(int(acute))
    return labels


def _any(codes: Iterable[str], start: str) -> bool:
    return any(code.startswith(start) for code in codes)


def _discharge_summaries(
    folder: Path, admissions: Collection[str], left_out: Counter[str]
) -> tuple[dict[str, str], set[str]]:
    """Read the discharge summary of each wanted admission, and find which other admissions have one.

    Reports come first, then addenda, each by date; of one date, in the order of the table.
    """
    notes: dict[str, list[tuple[int, str, int, str]]] = {}
    unlabelled: set[str] = set()
    columns = ("HADM_ID", "CHARTDATE", "CATEGORY", "DESCRIPTION", "TEXT")
    for field, charted, category, described, text in _fields(folder, "NOTEEVENTS", columns):
        if category.strip().lower() != "discharge summary":
            continue
        key, kind = _key(field), described.strip().lower()
        if not key:
            left_out["discharge summary without an admission"] += 1
        elif key not in admissions:
            unlabelled.add(key)
        elif kind not in ("report", "addendum"):
            left_out["discharge summary that is neither Report nor Addendum"] += 1
        elif not (date := _DATE.match(charted.strip())):
            raise InputError(
                f"{folder}: the table NOTEEVENTS has CHARTDATE {charted!r:.40} for admission {key}; "
                "expected a date like 2151-08-04, by which notes are ordered"
            )
        else:
            admission_notes = notes.setdefault(key, [])
            admission_notes.append(
                (int(kind == "addendum"), date.group(), len(admission_notes), text)
            )
    texts = {
        key: "\n".join(text for *_, text in sorted(admission_notes))
        for key, admission_notes in notes.items()
    }
    return texts, unlabelled


def _drawn(rows: dict[str, Row], folder: Path) -> dict[str, list[str]]:
    from sklearn.model_selection import train_test_split

    def part(keys: list[str], share: float, seed: int) -> tuple[list[str], list[str]]:
        labels = [rows[key].label for key in keys]
        _, sample = train_test_split(keys, test_size=share, random_state=seed, stratify=labels)
        in_sample = set(sample)
        return [key for key in keys if key in in_sample], [
            key for key in keys if key not in in_sample
        ]

    try:
        test, rest = part(list(rows), TEST_SHARE, TEST_SEED)
        dev, train = part(rest, DEV_SHARE, DEV_SEED)
    except ValueError as error:
        counts = Counter(row.label for row in rows.values())
        raise InputError(
            f"{folder}: expected enough admissions of class 0 and class 1 for three splits, got "
            f"{counts['0']} and {counts['1']}; give the whole tables"
        ) from error
    return {"train": train, "dev": dev, "test": test}


def _fields(folder: Path, table: str, columns: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the fields of two or more columns of a table as they are written, one row at a time.

    NOTEEVENTS alone is 4 GB. Python's `csv` reads it, since pandas cuts rows that are too long and fills those
    that are too short, silently. The file is `TABLE.csv` or `TABLE.csv.gz`; upper and lower case are one in
    its name and its columns'.

    Raises:
        InputError: no such table, two files for it, a column missing, or a broken file (with the line).
    """
    path = _file(folder, table)
    line = 1
    try:
        with open_text(path, "utf-8-sig", newline="") as file:
            rows = csv.reader(file, strict=True)
            header = [name.strip() for name in next(rows, [])]
            choose = itemgetter(*_places(path, table, header, columns))
            for row in rows:
                line = rows.line_num
                if row and len(row) != len(header):
                    raise InputError(
                        f"{path}, line {line}: expected {len(header)} fields as in the header, got "
                        f"{len(row)}; export the table {table} again, with texts in quotes"
                    )
                if row:
                    yield choose(row)
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        raise InputError(
            f"{path}: not readable as CSV in UTF-8 after line {line} ({error}); "
            f"expected the table {table} of {_SOURCE}"
        ) from error


def _places(path: Path, table: str, header: list[str], columns: Sequence[str]) -> list[int]:
    names = [name.upper() for name in header]
    if missing := [name for name in columns if name not in names]:
        raise InputError(
            f"{path}: no column {', '.join(missing)}; found {', '.join(header)[:200] or 'none'}; "
            f"expected the table {table} of {_SOURCE}"
        )
    return [names.index(name) for name in columns]


def _file(folder: Path, table: str) -> Path:
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; expected one with {table}.csv of {_SOURCE}")
    file_names = (f"{table}.csv".lower(), f"{table}.csv.gz".lower())
    files = sorted(path for path in folder.iterdir() if path.name.lower() in file_names)
    if not files:
        raise InputError(
            f"{folder}: no {table}.csv or {table}.csv.gz; expected the table {table} of {_SOURCE}"
        )
    if len(files) > 1:
        raise InputError(
            f"{folder}: both {files[0].name} and {files[1].name} could be {table}; keep one"
        )
    return files[0]
