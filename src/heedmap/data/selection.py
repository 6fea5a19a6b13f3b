"""Read a data set of the catalog: its labels as classes, and the texts that its selection asks for."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from heedmap.data import treebank
from heedmap.data.catalog import DatasetSpec, Selection, spec_of
from heedmap.data.embedded import EMBEDDED
from heedmap.data.in_memory import InMemory
from heedmap.data.labels import ordered
from heedmap.data.readers import dialect_of, refuse_columns
from heedmap.data.rows import LabelledTexts, PackedRows, Parts, Row, gathered
from heedmap.data.sources import labelled_texts, read_texts
from heedmap.data.splits import fill_splits
from heedmap.errors import InputError
from heedmap.settings.data import DataSettings


def read_labelled(settings: DataSettings, in_memory: InMemory | None = None) -> LabelledTexts:
    """Read the labelled texts of any source: by the rules of a data set where the settings name one.

    Raises:
        InputError: as `read_dataset` and `read_texts`.
    """
    if settings.dataset is not None and settings.source not in EMBEDDED:
        return read_dataset(settings, in_memory)
    return read_texts(settings, in_memory=in_memory)


def read_dataset(settings: DataSettings, in_memory: InMemory | None = None) -> LabelledTexts:
    """Read the texts of a data set by split, with its classes as labels.

    Raises:
        InputError: the source is not there or has another layout; says what the data set needs.
    """
    spec = spec_of(settings)
    selection = spec.selection(settings)
    try:
        texts = _read(spec, settings, in_memory)
    except InputError as error:
        raise InputError(f"{error} ({spec.title} needs {spec.needs})") from error
    parts, left_out = texts.parts, Counter(texts.left_out)
    if spec.labels:
        _check_count(parts, spec, settings.source)
        parts, counts = _labelled(parts, spec)
        left_out.update(counts)
    if settings.training and (selection.of_splits or spec.shares):
        parts = fill_splits(parts, settings, **spec.shares)
    parts, counts = _filtered(parts, selection)
    left_out.update(counts)
    if "test" in parts:
        sample = _test_sample(parts["test"], selection)
        if rest := len(parts["test"]) - len(sample):
            left_out["test: not drawn into the code's sample"] += rest
        parts = {**parts, "test": sample}
    return replace(texts, parts=parts, left_out=left_out)


def _read(spec: DatasetSpec, settings: DataSettings, in_memory: InMemory | None) -> LabelledTexts:
    folder, tokenize = Path(settings.source), spec.columns.tokenize
    if tokenize is not None and settings.tokenizer == "sentences":
        raise InputError(
            "--tokenizer sentences: expected texts that may be split into sentences, got a data set with words "
            "of its own; leave out --tokenizer or --dataset"
        )
    if spec.read_folder is not None:
        refuse_columns(settings, spec.title)
        if in_memory is not None or not folder.is_dir():
            problem = "a file" if in_memory is None and folder.exists() else "no such folder"
            raise InputError(f"{folder}: {problem}")
        return LabelledTexts(*spec.read_folder(folder))
    if in_memory is None and spec.trees and tokenize and treebank.is_treebank(folder):
        refuse_columns(settings, "the treebank")
        return LabelledTexts(*treebank.read(folder, tokenize))
    is_said = any(value is not None for value in dialect_of(settings).values())
    if in_memory is None and spec.read_published is not None and not is_said:
        tables = spec.read_published(folder, settings.seed)
        if tables is not None:
            return labelled_texts(tables, settings, spec.columns)
    return read_texts(settings, spec.columns, in_memory)


def classes_of(settings: DataSettings, train: Sequence[Row]) -> list[str]:
    """Return the data set's classes in its order; none where they are the labels of the training texts."""
    spec = spec_of(settings)
    if spec.selection(settings).every_word:
        return sorted({w for row in train for w in (*row.tokens, *(row.query or ()), row.label)})
    if any(row.candidates for row in train):
        # An entity that is never the right answer in training is still a possible one.
        return ordered(name for row in train for name in (row.label, *(row.candidates or ())))
    return list(spec.classes)


def _test_sample(rows: Sequence[Row], selection: Selection) -> Sequence[Row]:
    if selection.test_shortest is not None:
        return sorted(rows, key=lambda row: len(row.tokens))[: selection.test_shortest]
    if selection.test_share is not None:
        rng = np.random.default_rng(1378)  # the code's number; the order of its rows is not known
        sample = rng.permutation(len(rows))[: round(selection.test_share * len(rows))]
        return gathered(rows[i] for i in np.sort(sample).tolist())
    return rows


def _check_count(parts: Parts, spec: DatasetSpec, source: str) -> None:
    """Refuse labels that are counted from 0 where those of the data set are from 1: each would mean another."""
    labels = {row.label for rows in parts.values() for row in rows}
    last = str(len(spec.classes))
    if {"0", last} & labels == {"0"} and {"0", last} & spec.labels.keys() == {last}:
        raise InputError(
            f"{source}: expected labels from 1 to {last}, got some from 0 on; add 1 to each of them"
        )


def _labelled(parts: Parts, spec: DatasetSpec) -> tuple[Parts, Counter[str]]:
    """Name the classes as the data set does; leave out and count rows of other labels."""
    left_out = Counter(
        f"{part}: label {row.label} is not one of {spec.title}'s"
        for part, rows in parts.items()
        for row in rows
        if row.label not in spec.labels
    )
    labelled = {
        part: gathered(
            replace(row, label=spec.labels[row.label]) for row in rows if row.label in spec.labels
        )
        for part, rows in parts.items()
    }
    return labelled, left_out


def _filtered(parts: Parts, selection: Selection) -> tuple[Parts, Counter[str]]:
    """Leave out and count the texts of each split that are too short or too long for the selection."""
    left_out: Counter[str] = Counter()
    filtered: dict[str, PackedRows] = {}
    for part, rows in parts.items():
        sizes = [len(row.tokens) for row in rows if row.tokens]
        low, high = selection.longer_than, selection.shorter_than
        if selection.without_extremes and sizes:
            low = min(sizes) if low is None else low
            high = max(sizes) if high is None else high
        filtered[part] = PackedRows()
        for row in rows:
            size = len(row.tokens)
            if size and low is not None and size <= low:
                left_out[f"{part}: not more than {low} tokens"] += 1
            elif size and high is not None and size >= high:
                left_out[f"{part}: not fewer than {high} tokens"] += 1
            else:
                filtered[part].append(row)
    return {part: gathered(rows) for part, rows in filtered.items()}, left_out
