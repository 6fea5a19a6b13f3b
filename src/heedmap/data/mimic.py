"""Diabetes and Anemia of Jain & Wallace (2019), from the reader's own export of MIMIC-III.

A row is an admission: its discharge summaries as tokens, a question about its diagnoses as the label.
Length limits (6 < n < 4000 for Diabetes, n < 4000 for Anemia) are the caller's.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Literal, get_args

from heedmap.data import mimic_tables
from heedmap.data.cleaning import cleaner_mimic
from heedmap.data.rows import Row
from heedmap.errors import InputError

Task = Literal["diabetes", "anemia"]
SPLITS = ("train", "dev", "test")
# Splits of the paper's proportions and seeds. The rows stand in another order than in its notebooks, so
# the admissions in a split are others.
TEST_SHARE, TEST_SEED = 0.20, 12939
DEV_SHARE, DEV_SEED = 0.15, 13448

_DATE = re.compile(r"\d{4}-\d\d-\d\d")


def read(folder: Path, task: Task) -> tuple[dict[str, list[Row]], dict[str, int]]:
    """The admissions by split, and what was left out and why; a row's key is its HADM_ID.

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
    # First of all, since it takes no time to find a list missing.
    lists = _lists(folder) if task == "diabetes" else None
    codes = _codes(folder, left_out)
    labels = _labels(codes, task, left_out)
    listed = {key for keys in (lists or {}).values() for key in keys}
    if lists is not None:
        labels = {key: label for key, label in labels.items() if key in listed}
    texts, others = _discharge_summaries(folder, labels, left_out)
    if lists is None:
        left_out["no diagnosis code"] = len(others - codes.keys())
    else:
        left_out["no diagnosis code"] = len(listed - codes.keys())
        left_out["in none of the lists of admissions"] = len((codes.keys() | others) - listed)
    left_out["no discharge summary"] = len(labels.keys() - texts.keys())
    # Shorter ids first: the order of their numbers, whatever the order of the tables.
    keys = sorted(texts, key=lambda key: (len(key), key))
    rows = {key: Row(key, cleaner_mimic(texts.pop(key)), labels[key]) for key in keys}
    empty = [key for key, row in rows.items() if not row.tokens]
    left_out["empty discharge summary"] = len(empty)
    for key in empty:
        del rows[key]
    if not rows:
        raise InputError(f"{folder}: no admission for {task} is left ({_said(left_out)})")
    if lists is None:
        if task == "diabetes":
            left_out["split drawn here: no train_50_hadm_ids.csv (kept)"] = len(rows)
        lists = _drawn(rows, folder)
    splits = {split: [rows[key] for key in lists[split] if key in rows] for split in SPLITS}
    return splits, {reason: count for reason, count in left_out.items() if count}


def _said(left_out: Counter[str]) -> str:
    return "; ".join(f"{why}: {n}" for why, n in left_out.items() if n) or "the tables are empty"


def _lists(folder: Path) -> dict[str, list[str]] | None:
    """The admissions of each split as its file lists them, one a line; None without any such file."""
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
    """The ICD-9 codes of every admission, with their dots."""
    codes: dict[str, set[str]] = {}
    for given, code in mimic_tables.fields(folder, "DIAGNOSES_ICD", ("HADM_ID", "ICD9_CODE")):
        key = _key(given)
        if key and code.strip():
            codes.setdefault(key, set()).add(dotted(code))
        else:
            left_out["diagnosis row without an admission or a code"] += 1
    return codes


def dotted(code: str) -> str:
    """An ICD-9 diagnosis code with its dot, which MIMIC-III leaves out: `2851` is 285.1.

    It stands after the third character, in a code of external causes (E) after the fourth.
    """
    code = code.strip().upper().replace(".", "")
    head = 4 if code.startswith("E") else 3
    return f"{code[:head]}.{code[head:]}" if len(code) > head else code


def _key(given: str) -> str:
    # A column of whole numbers with gaps in it is often exported as 100001.0.
    return given.strip().removesuffix(".0")


def _labels(codes: dict[str, set[str]], task: Task, left_out: Counter[str]) -> dict[str, str]:
    if task == "diabetes":
        return {key: str(int(_any(there, "250.00"))) for key, there in codes.items()}
    labels = {}
    for key, there in codes.items():
        # The released code looks for these anywhere in a code; no ICD-9 code has them but at its start.
        acute, chronic = _any(there, "285.1"), _any(there, "285.2")
        if acute == chronic:
            left_out["both 285.1 and 285.2" if acute else "neither 285.1 nor 285.2"] += 1
        else:
            labels[key] = str(int(acute))
    return labels


def _any(codes: Iterable[str], start: str) -> bool:
    return any(code.startswith(start) for code in codes)


def _discharge_summaries(
    folder: Path, wanted: Collection[str], left_out: Counter[str]
) -> tuple[dict[str, str], set[str]]:
    """The discharge summary of each wanted admission, and which other admissions have one.

    Reports come first, then addenda, either by date; of one date, as they stand in the table.
    """
    notes: dict[str, list[tuple[int, str, int, str]]] = {}
    others: set[str] = set()
    columns = ("HADM_ID", "CHARTDATE", "CATEGORY", "DESCRIPTION", "TEXT")
    for given, charted, category, described, text in mimic_tables.fields(
        folder, "NOTEEVENTS", columns
    ):
        if category.strip().lower() != "discharge summary":
            continue
        key, kind = _key(given), described.strip().lower()
        if not key:
            left_out["discharge summary without an admission"] += 1
        elif key not in wanted:
            others.add(key)
        elif kind not in ("report", "addendum"):
            left_out["discharge summary that is neither Report nor Addendum"] += 1
        elif not (date := _DATE.match(charted.strip())):
            raise InputError(
                f"{folder}: the table NOTEEVENTS has CHARTDATE {charted!r:.40} for admission {key}; "
                "expected a date like 2151-08-04, by which notes are ordered"
            )
        else:
            here = notes.setdefault(key, [])
            here.append((int(kind == "addendum"), date.group(), len(here), text))
    texts = {key: "\n".join(text for *_, text in sorted(here)) for key, here in notes.items()}
    return texts, others


def _drawn(rows: dict[str, Row], folder: Path) -> dict[str, list[str]]:
    from sklearn.model_selection import train_test_split

    def part(keys: list[str], share: float, seed: int) -> tuple[list[str], list[str]]:
        labels = [rows[key].label for key in keys]
        _, drawn = train_test_split(keys, test_size=share, random_state=seed, stratify=labels)
        chosen = set(drawn)
        return [key for key in keys if key in chosen], [key for key in keys if key not in chosen]

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
