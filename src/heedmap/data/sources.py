"""Read a source as rows by split: which columns are texts and labels, and what is left out."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from heedmap.data import readers as files
from heedmap.data.babi_rows import generated_babi
from heedmap.data.biographies import AGREEING, UNRELATED, biographies
from heedmap.data.class_folders import read_class_folders
from heedmap.data.clones import ABOUT, read_clone
from heedmap.data.columns import Rows, Tables
from heedmap.data.eraser_rows import is_eraser, read_eraser
from heedmap.data.file_kinds import is_file_name, kind_of
from heedmap.data.in_memory import PREFIX, InMemory
from heedmap.data.labelled_rows import (
    Columns,
    choose_columns,
    find_column,
    labelled_rows,
    tokenizer_of,
    with_text,
)
from heedmap.data.labels import check_labels
from heedmap.data.reviews import reviews
from heedmap.data.rows import ColumnSpec, LabelledTexts, Parts, Row
from heedmap.data.tokens import spaced
from heedmap.errors import InputError
from heedmap.files.naming import DATA, check_name, is_there
from heedmap.settings import DataSettings
from heedmap.terminal.output import some_of

STORIES = ("babi_qa1", "babi_qa2", "babi_qa3")
BIOGRAPHIES = {"biographies-gender": "gender", "biographies-occupation": "occupation"}
EMBEDDED = ("reviews", "reviews-stars", *BIOGRAPHIES, *STORIES)


def read_texts(
    settings: DataSettings, spec: ColumnSpec | None = None, in_memory: InMemory | None = None
) -> LabelledTexts:
    """Read the labelled texts of a file, a folder, a Hub data set, an embedded corpus, or memory, by split.

    Raises:
        InputError: no such source, or columns or values that are no texts and labels.
    """
    spec = spec or ColumnSpec()
    if in_memory is not None:
        files.refuse_dialect(in_memory.name, **files.dialect_of(settings))
        return labelled_texts(_by_split(in_memory.tables, settings), settings, spec)
    if settings.source in EMBEDDED:
        return LabelledTexts(_embedded(settings))
    if settings.source.startswith(PREFIX) and not is_there(settings.source):
        raise InputError(
            f"{settings.source}: texts from memory, which are kept in the folder of their run alone (texts/), "
            "and are not there; give them to heedmap again"
        )
    path = Path(settings.source)
    source = settings.source
    if not is_there(source) and not (is_file_name(source) and source.isprintable()):
        check_name(source, DATA)
    if is_eraser(path):
        refuse_columns(settings, "a folder in ERASER's layout")
        files.refuse_dialect(path, **files.dialect_of(settings))
        texts = read_eraser(path, spec.tokenize or tokenizer_of(settings), settings.raw)
        _check_labels(settings, texts.parts)
        return texts
    if path.is_dir() and not files.split_files(path):
        tables = read_class_folders(path, settings.encoding)
        if tables is not None:
            refuse_columns(settings, "a folder of class folders")
            files.refuse_dialect(path, **{**files.dialect_of(settings), "encoding": None})
            # The columns are ours: a run need not remember their names.
            return replace(labelled_texts(tables, settings, spec), columns={})
    return labelled_texts(_read_tables(path, settings), settings, spec)


def labelled_texts(tables: Tables, settings: DataSettings, spec: ColumnSpec) -> LabelledTexts:
    """Choose the columns of each table, and read its rows as labelled texts."""
    by_split, left_out, notes = tables.by_split, Counter(tables.left_out), [*tables.notes]
    parts: Parts = {}
    columns: dict[str, Columns] = {}
    if not settings.labels_read:
        spec = replace(spec, label=())
    elif not settings.training and not _have_labels(by_split, settings, spec):
        notes.append(_without_labels(by_split, spec))
        spec = replace(spec, label=())
    if "train" in by_split:  # first, since another split may have no labels
        choose_columns(with_text(by_split["train"], settings, spec), settings, spec)
    for name, rows in by_split.items():
        needs_label = "train" in by_split and spec.label
        if needs_label and find_column(rows, settings.label, spec.label) is None:
            left_out[f"{name}: label missing"] += len(rows)
            file = f" in {rows.source}" if rows.source else ""
            notes.append(f"{name}: no label column{file}; {len(rows)} texts are left out")
            continue
        table = labelled_rows(rows, name, settings, spec)
        columns[name] = table.columns
        left_out.update(table.left_out)
        table_notes = [*rows.notes_on(settings.text), *table.notes]
        notes += table_notes if name == "all" else [f"{name}: {note}" for note in table_notes]
        for part, row in table.rows:
            parts.setdefault(part, []).append(row)
    column_names: dict[str, str] = {}
    if len({*columns.values()}) == 1:
        column_names = next(iter(columns.values())).named()
    else:
        by_table = [f"{name}: {_named(names)}" for name, names in columns.items()]
        notes.append(f"tables of different columns; read are {'; '.join(by_table)}")
    _check_labels(settings, parts)
    return LabelledTexts(parts, left_out, notes, column_names)


def _check_labels(settings: DataSettings, parts: Parts) -> None:
    check_labels(settings.source, [row.label for rows in parts.values() for row in rows])


def _have_labels(tables: Mapping[str, Rows], settings: DataSettings, spec: ColumnSpec) -> bool:
    """Return whether a label column is named, or some table has one. A model can be audited without any."""
    return settings.label is not None or any(
        find_column(rows, None, spec.label) for rows in tables.values()
    )


def _without_labels(tables: Mapping[str, Rows], spec: ColumnSpec) -> str:
    columns = list(dict.fromkeys(name for rows in tables.values() for name in rows.columns))
    return (
        f"no label column ({' / '.join(spec.label)}): whether the model predicts well cannot be told; the "
        f"columns are {some_of(columns, 20)}; if one has the labels, name it with --label-column"
    )


def _named(columns: Columns) -> str:
    return ", ".join(f"{name} {column}" for name, column in columns.named().items())


def _read_tables(path: Path, settings: DataSettings) -> Tables:
    """Return the tables of a file, a folder, a clone or the Hub by split."""
    dialect = files.dialect_of(settings)

    def read_file(file: Path) -> Rows:
        return files.read_rows(file, **dialect)

    if path.is_dir():
        by_name: Mapping[str, Rows] = {}
        by_split = files.split_files(path)
        if not by_split and not (by_name := read_clone(path, read_file)):
            by_split = files.split_files(path, fasttext=True)
        if by_split:
            notes = _unread(path, [*by_split.values()])
            return Tables({name: read_file(file) for name, file in by_split.items()}, notes=notes)
        if not by_name:
            names = ", ".join(sorted(p.name for p in path.iterdir())[:8]) or "nothing"
            raise InputError(
                f"{path}: expected train.csv, train.jsonl or train.parquet (dev and test beside it if "
                f"there are any), or a folder of .txt files for each class, found {names}"
            )
    elif path.exists() or is_file_name(settings.source):
        return Tables({"all": read_file(path)})
    else:
        files.refuse_dialect(settings.source, **dialect)
        by_name = files.read_hub(settings.source)
    return _by_split(by_name, settings)


def _unread(folder: Path, tables: Sequence[Path]) -> list[str]:
    """Note the tables in a folder of splits that are none of its splits."""
    names = [
        path.name
        for path in sorted(folder.iterdir())
        if kind_of(path) and path not in tables and path.name not in ABOUT
    ]
    if not names:
        return []
    split_names = some_of([path.name for path in tables])
    return [f"files that are not read: {some_of(names)}; read are {split_names}"]


def _by_split(by_name: Mapping[str, Rows], settings: DataSettings) -> Tables:
    """Return tables that are named as on the Hub by split; one that is `all` has none."""
    if by_name.keys() == {"all"}:
        return Tables(by_name)
    by_split: dict[str, Rows] = {}
    left_out: Counter[str] = Counter()
    for name, rows in by_name.items():
        split = files.SPLIT_NAMES.get(name)
        if split is None:
            left_out[f"{name}: not a train, dev or test split"] += len(rows)
        else:
            by_split[split] = rows
    if "train" not in by_split:
        raise InputError(f"{settings.source}: expected a train split, found none")
    return Tables(by_split, left_out)


def refuse_columns(settings: DataSettings, source: str) -> None:
    """Raise InputError where columns are named of a source that has none."""
    for name in ("text", "label", "query", "id"):
        if (column := getattr(settings, name)) is not None:
            raise InputError(
                f"--{name}-column {column}: {source} has no columns to choose from; leave out"
            )


def _embedded(settings: DataSettings) -> Parts:
    refuse_columns(settings, f"the embedded corpus {settings.source}")
    files.refuse_dialect(settings.source, **files.dialect_of(settings))
    if settings.dataset not in (None, settings.source):
        raise InputError(
            f"--dataset {settings.dataset}: {settings.source} is an embedded corpus; give the folder or file "
            "of the data set as --data, or leave out"
        )
    if settings.source.startswith("babi"):
        if settings.raw:
            raise InputError(
                f"{settings.source}: questions about stories; a transformer reads single texts"
            )
        return generated_babi(int(settings.source[-1]), settings.seed)
    # The texts are always the same ones; the seed only draws the split.
    prefix = settings.source.split("-")[0]
    return {
        "all": [
            _embedded_row(f"{prefix}-{i}", *text, settings)
            for i, text in enumerate(_generated(settings.source))
        ]
    }


def _generated(name: str) -> Iterable[tuple[tuple[str, ...], str, tuple[bool, ...] | None]]:
    """Yield of each text of a generated corpus the tokens, the label, and which tokens decide it."""
    if name in BIOGRAPHIES:
        label = BIOGRAPHIES[name]
        agreeing = UNRELATED if label == "gender" else AGREEING
        for person in biographies(agreeing=agreeing):
            # An occupation is decided by no words that could be marked.
            marks = person.gendered if label == "gender" else None
            yield person.tokens, getattr(person, label), marks
        return
    for review in reviews(stars=name == "reviews-stars"):
        yield review.tokens, review.label, review.rationale


def _embedded_row(
    key: str,
    words: Sequence[str],
    label: str,
    marks: Sequence[bool] | None,
    settings: DataSettings,
) -> Row:
    """Make the row of a text; a sentence is in the rationale if a word of it is."""
    tokens = list(words)
    rationale = None if marks is None else np.array(marks, dtype=bool)
    if settings.tokenizer == "sentences":
        starts = [0, *(i + 1 for i, token in enumerate(tokens[:-1]) if token in ".!?")]
        spans = [*pairwise([*starts, len(tokens)])]
        tokens = [" ".join(tokens[start:end]) for start, end in spans]
        if rationale is not None:
            rationale = np.array([rationale[start:end].any() for start, end in spans])
    return Row(key, spaced(tokens) if settings.raw else tokens, label, rationale)
