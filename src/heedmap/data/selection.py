"""Read a data set of the catalog: its labels as classes, and the texts that its selection asks for."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from heedmap.data import treebank
from heedmap.data.catalog import DatasetSpec, Selection, spec_of
from heedmap.data.in_memory import InMemory
from heedmap.data.labels import ordered
from heedmap.data.rows import Parts, Row, complete
from heedmap.data.sources import read_parts, refuse_columns
from heedmap.errors import InputError
from heedmap.settings import DataSettings


def read_dataset(
    settings: DataSettings,
    left_out: Counter[str],
    notes: list[str],
    read_as: dict[str, str],
    given: InMemory | None = None,
) -> Parts:
    """Read the rows of a data set by split, with its classes as labels; count what is left out.

    How files were read is added to `notes`, which columns to `read_as`.

    Raises:
        InputError: the source is not there or has another layout; says what the data set needs.
    """
    spec = spec_of(settings)
    selection = spec.selection(settings)
    try:
        parts = _read(spec, settings, left_out, notes, read_as, given)
    except InputError as error:
        raise InputError(f"{error} ({spec.title} needs {spec.needs})") from error
    if spec.labels:
        parts = {name: _labelled(name, rows, spec, left_out) for name, rows in parts.items()}
    if selection.of_splits and settings.training:
        parts = complete(parts, settings)
    parts = {name: _filtered(name, rows, selection, left_out) for name, rows in parts.items()}
    if "test" in parts:
        parts["test"] = _test_sample(parts["test"], selection, left_out)
    return parts


def _read(
    spec: DatasetSpec,
    settings: DataSettings,
    left_out: Counter[str],
    notes: list[str],
    read_as: dict[str, str],
    given: InMemory | None,
) -> Parts:
    folder, tokenize = Path(settings.source), spec.columns.tokenize
    if spec.read is not None:
        refuse_columns(settings, spec.title)
        if given is not None or not folder.is_dir():
            what = "a file" if given is None and folder.exists() else "no such folder"
            raise InputError(f"{folder}: {what}")
        parts, counts = spec.read(folder)
    elif given is None and spec.trees and tokenize and treebank.is_treebank(folder):
        refuse_columns(settings, "the treebank")
        parts, counts = treebank.read(folder, tokenize)
    else:
        return read_parts(settings, left_out, notes, read_as, spec.columns, given)
    left_out.update(counts)
    return parts


def classes_of(settings: DataSettings, train: Sequence[Row]) -> list[str]:
    """Return the data set's classes in its order; none where they are the labels of the training texts."""
    spec = spec_of(settings)
    if spec.selection(settings).every_word:
        return sorted({w for row in train for w in (*row.tokens, *(row.query or ()), row.label)})
    if any(row.candidates for row in train):
        # An entity that is never the right answer in training is still a possible one.
        return ordered(name for row in train for name in (row.label, *(row.candidates or ())))
    return list(spec.classes)


def _test_sample(rows: list[Row], selection: Selection, left_out: Counter[str]) -> list[Row]:
    found = rows
    if selection.test_share is not None:
        rng = np.random.default_rng(1378)  # the code's number; the order of its rows is not known
        drawn = rng.permutation(len(rows))[: round(selection.test_share * len(rows))]
        found = [rows[i] for i in np.sort(drawn)]
    if selection.test_shortest is not None:
        found = sorted(rows, key=lambda row: len(row.tokens))[: selection.test_shortest]
    if len(found) < len(rows):
        left_out["test: not drawn into the code's sample"] += len(rows) - len(found)
    return found


def _labelled(part: str, rows: list[Row], spec: DatasetSpec, left_out: Counter[str]) -> list[Row]:
    found = []
    for row in rows:
        if row.label not in spec.labels:
            left_out[f"{part}: label {row.label} is not one of {spec.title}'s"] += 1
            continue
        row.label = spec.labels[row.label]
        found.append(row)
    return found


def _filtered(
    part: str, rows: list[Row], selection: Selection, left_out: Counter[str]
) -> list[Row]:
    sizes = [len(row.tokens) for row in rows if row.tokens]
    low, high = selection.longer_than, selection.shorter_than
    if selection.without_extremes and sizes:
        low = min(sizes) if low is None else low
        high = max(sizes) if high is None else high
    found = []
    for row in rows:
        size = len(row.tokens)
        if size and low is not None and size <= low:
            left_out[f"{part}: not more than {low} tokens"] += 1
        elif size and high is not None and size >= high:
            left_out[f"{part}: not fewer than {high} tokens"] += 1
        else:
            found.append(row)
    return found
