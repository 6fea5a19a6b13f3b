"""The rows of a paper's data set: its label rule, its filter, and its released code's own samples."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from heedmap.data import treebank
from heedmap.data.labels import ordered
from heedmap.data.named import Named, Parts, named
from heedmap.data.rows import Row
from heedmap.data.sources import read_parts, refuse_columns
from heedmap.data.splitting import complete
from heedmap.errors import InputError
from heedmap.settings import DataSettings


def read_named(settings: DataSettings, left_out: Counter[str]) -> Parts:
    """The rows of a paper's data set by split, after its label rule and its filter; the rest is counted.

    Raises:
        InputError: the source is not there or has another layout; says what the data set needs.
    """
    data = named(settings)
    try:
        if data.read is not None:
            refuse_columns(settings, data.title)
            folder = Path(settings.source)
            if not folder.is_dir():
                raise InputError(f"{folder}: {'a file' if folder.exists() else 'no such folder'}")
            parts, gone = data.read(folder)
            left_out.update(gone)
        elif data.trees and data.reading.tokenize and treebank.is_treebank(Path(settings.source)):
            refuse_columns(settings, "the treebank")
            parts, gone = treebank.read(Path(settings.source), data.reading.tokenize)
            left_out.update(gone)
        else:
            parts = read_parts(settings, left_out, data.reading)
    except InputError as error:
        raise InputError(f"{error} ({data.title} needs {data.needs})") from error
    if data.labels:
        parts = {name: _labelled(name, rows, data, left_out) for name, rows in parts.items()}
    if settings.rules == "code" and settings.training:
        parts = complete(parts, settings)  # their limits and samples are those of a split
    parts = {name: _filtered(name, rows, data, settings, left_out) for name, rows in parts.items()}
    if settings.rules == "code" and "test" in parts:
        parts["test"] = _of_code(parts["test"], data, left_out)
    return parts


def answers(settings: DataSettings, train: Sequence[Row]) -> list[str]:
    """The classes in the paper's order; empty where they are simply the labels of the training texts."""
    data = named(settings)
    if data.word_answers and settings.rules == "code":
        return sorted({w for row in train for w in (*row.tokens, *(row.query or ()), row.label)})
    if any(row.candidates for row in train):
        # An entity that is never the right answer in training is still a possible one.
        return ordered(name for row in train for name in (row.label, *(row.candidates or ())))
    return list(data.classes)


def _of_code(rows: list[Row], data: Named, left_out: Counter[str]) -> list[Row]:
    kept = rows
    if data.code_share is not None:
        rng = np.random.default_rng(1378)  # their number; the order of their rows is not known
        drawn = rng.permutation(len(rows))[: round(data.code_share * len(rows))]
        kept = [rows[i] for i in np.sort(drawn)]
    if data.code_most is not None:
        kept = sorted(rows, key=lambda row: len(row.tokens))[: data.code_most]
    if len(kept) < len(rows):
        left_out["test: not drawn into the code's sample"] += len(rows) - len(kept)
    return kept


def _labelled(part: str, rows: list[Row], data: Named, left_out: Counter[str]) -> list[Row]:
    kept = []
    for row in rows:
        if row.label not in data.labels:
            left_out[f"{part}: label {row.label} is not one of {data.title}'s"] += 1
            continue
        row.label = data.labels[row.label]
        kept.append(row)
    return kept


def _filtered(
    part: str, rows: list[Row], data: Named, settings: DataSettings, left_out: Counter[str]
) -> list[Row]:
    sizes = [len(row.tokens) for row in rows if row.tokens]
    low, high = data.longer_than, data.shorter_than
    if settings.rules == "code" and data.task == "text" and sizes:
        # Without a limit theirs is the split's own shortest or longest text, which is then left out too.
        low = min(sizes) if low is None else low
        high = max(sizes) if high is None else high
    kept = []
    for row in rows:
        size = len(row.tokens)
        if row.tokens and low is not None and size <= low:
            left_out[f"{part}: not more than {low} tokens"] += 1
        elif row.tokens and high is not None and size >= high:
            left_out[f"{part}: not fewer than {high} tokens"] += 1
        else:
            kept.append(row)
    return kept
