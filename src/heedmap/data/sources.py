"""Read a source as rows by split: which columns are texts and labels, and what is left out."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from heedmap.data import readers as files
from heedmap.data.babi_rows import generated_babi
from heedmap.data.biographies import AGREEING, UNRELATED, biographies
from heedmap.data.class_folders import read_class_folders
from heedmap.data.clones import ABOUT, read_clone
from heedmap.data.columns import Rows, joined
from heedmap.data.eraser_rows import is_eraser, read_eraser
from heedmap.data.in_memory import PREFIX, InMemory
from heedmap.data.labelled_rows import (
    Columns,
    choose_columns,
    find_column,
    labelled_rows,
    tokenizer_of,
)
from heedmap.data.labels import check_labels
from heedmap.data.reviews import reviews
from heedmap.data.rows import ColumnSpec, Parts, Row
from heedmap.data.tokens import spaced
from heedmap.errors import InputError
from heedmap.files.naming import DATA, check_name, is_there
from heedmap.settings import DataSettings
from heedmap.terminal.output import some_of

STORIES = ("babi_qa1", "babi_qa2", "babi_qa3")
BIOGRAPHIES = {"biographies-gender": "gender", "biographies-occupation": "occupation"}
EMBEDDED = ("reviews", "reviews-stars", *BIOGRAPHIES, *STORIES)


def read_parts(
    settings: DataSettings,
    left_out: Counter[str],
    notes: list[str],
    read_as: dict[str, str],
    spec: ColumnSpec | None = None,
    given: InMemory | None = None,
) -> Parts:
    """Read the rows of a file, a folder, a Hub data set or an embedded corpus, by split, or those `given`.

    What is left out is counted in `left_out` by its reason; how files were read is added to `notes`, and
    to `read_as` which columns are read, by the names of their settings, where all tables have the same.

    Raises:
        InputError: no such source, or columns or values that are no texts and labels.
    """
    spec = spec or ColumnSpec()
    if given is not None:
        files.refuse_dialect(given.name, **files.dialect_of(settings))
        tables = _by_split(given.tables, settings, left_out)
        return _parts(tables, settings, left_out, notes, read_as, spec)
    if settings.source in EMBEDDED:
        return _embedded(settings)
    if settings.source.startswith(PREFIX) and not is_there(settings.source):
        raise InputError(
            f"{settings.source}: texts from memory, which are kept in the folder of their run alone (texts/), "
            "and are not there; give them to heedmap again"
        )
    path = Path(settings.source)
    as_file = files.kind_of(path, alone=True) is not None or path.is_absolute()
    if not is_there(settings.source) and not (as_file and settings.source.isprintable()):
        check_name(settings.source, DATA)
    if is_eraser(path):
        refuse_columns(settings, "a folder in ERASER's layout")
        files.refuse_dialect(path, **files.dialect_of(settings))
        parts = read_eraser(path, spec.tokenize or tokenizer_of(settings), left_out, settings.raw)
        check_labels(settings.source, [row.label for rows in parts.values() for row in rows])
        return parts
    is_split = path.is_dir() and bool(files.split_files(path))
    if (
        path.is_dir()
        and not is_split
        and (texts := read_class_folders(path, settings.encoding, left_out))
    ):
        refuse_columns(settings, "a folder of class folders")
        files.refuse_dialect(path, **{**files.dialect_of(settings), "encoding": None})
        return _parts(texts, settings, left_out, notes, {}, spec)
    tables = _read_tables(path, settings, left_out, notes, as_file)
    return _parts(tables, settings, left_out, notes, read_as, spec)


def _parts(
    read: dict[str, Rows],
    settings: DataSettings,
    left_out: Counter[str],
    notes: list[str],
    read_as: dict[str, str],
    spec: ColumnSpec,
) -> Parts:
    parts: Parts = {}
    chosen: dict[str, Columns] = {}
    if not settings.training and not _have_labels(read, settings, spec):
        notes.append(_without_labels(read, spec))
        spec = replace(spec, label=())
    if "train" in read:  # first, since another split may have no labels
        choose_columns(joined(read["train"], settings.text), settings, spec)
    for name, rows in read.items():
        asked = "train" in read and spec.label
        if asked and find_column(rows, settings.label, spec.label) is None:
            left_out[f"{name}: label missing"] += len(rows)
            where = f" in {rows.source}" if rows.source else ""
            notes.append(f"{name}: no label column{where}; {len(rows)} texts are left out")
            continue
        said = rows.notes_on(settings.text)
        columns, labelled = labelled_rows(rows, name, settings, left_out, said, spec)
        chosen[name] = columns
        notes += said if name == "all" else [f"{name}: {note}" for note in said]
        for part, row in labelled:
            parts.setdefault(part, []).append(row)
    if len({*chosen.values()}) == 1:
        read_as.update(next(iter(chosen.values())).named())
    else:
        tables = [f"{name}: {_named(columns)}" for name, columns in chosen.items()]
        notes.append(f"tables of different columns; read are {'; '.join(tables)}")
    check_labels(settings.source, [row.label for rows in parts.values() for row in rows])
    return parts


def _have_labels(read: Mapping[str, Rows], settings: DataSettings, spec: ColumnSpec) -> bool:
    """Whether a label column is named, or some table has one. A model can be audited without any."""
    return settings.label is not None or any(
        find_column(rows, None, spec.label) for rows in read.values()
    )


def _without_labels(read: Mapping[str, Rows], spec: ColumnSpec) -> str:
    columns = list(dict.fromkeys(name for rows in read.values() for name in rows.columns))
    return (
        f"no label column ({' / '.join(spec.label)}): whether the model predicts well cannot be told; the "
        f"columns are {some_of(columns, 20)}; if one has the labels, name it with --label-column"
    )


def _named(columns: Columns) -> str:
    return ", ".join(f"{name} {column}" for name, column in columns.named().items())


def _read_tables(
    path: Path, settings: DataSettings, left_out: Counter[str], notes: list[str], as_file: bool
) -> dict[str, Rows]:
    """Return the tables of a file, a folder, a clone or the Hub by split."""
    dialect = files.dialect_of(settings)
    read_file = partial(
        files.read_rows,
        separator=settings.separator,
        encoding=settings.encoding,
        quotes=settings.quotes,
        header=settings.header,
    )
    if path.is_dir():
        found, by_name = files.split_files(path), {}
        if not found and not (by_name := read_clone(path, read_file)):
            found = files.split_files(path, fasttext=True)
        if found:
            notes += _unread(path, [*found.values()])
            return {name: read_file(file) for name, file in found.items()}
        if not by_name:
            there = ", ".join(sorted(p.name for p in path.iterdir())[:8]) or "nothing"
            raise InputError(
                f"{path}: expected train.csv, train.jsonl or train.parquet (dev and test beside it if "
                f"there are any), or a folder of .txt files for each class, found {there}"
            )
    elif path.exists() or as_file:
        return {"all": read_file(path)}
    else:
        files.refuse_dialect(settings.source, **dialect)
        by_name = files.read_hub(settings.source)
    return _by_split(by_name, settings, left_out)


def _unread(folder: Path, read: Sequence[Path]) -> list[str]:
    """Note the tables in a folder of splits that are none of its splits."""
    names = [
        path.name
        for path in sorted(folder.iterdir())
        if files.kind_of(path) and path not in read and path.name not in ABOUT
    ]
    if not names:
        return []
    return [
        f"files that are not read: {some_of(names)}; read are {some_of([p.name for p in read])}"
    ]


def _by_split(
    by_name: Mapping[str, Rows], settings: DataSettings, left_out: Counter[str]
) -> dict[str, Rows]:
    """Return tables that are named as on the Hub by split; one that is `all` has none."""
    if by_name.keys() == {"all"}:
        return dict(by_name)
    read: dict[str, Rows] = {}
    for name, rows in by_name.items():
        split = files.SPLIT_NAMES.get(name)
        if split is None:
            left_out[f"{name}: not a train, dev or test split"] += len(rows)
        else:
            read[split] = rows
    if "train" not in read:
        raise InputError(f"{settings.source}: expected a train split, found none")
    return read


def refuse_columns(settings: DataSettings, what: str) -> None:
    """Raise InputError where columns are named of a source that has none."""
    for name in ("text", "label", "query", "id"):
        if (column := getattr(settings, name)) is not None:
            raise InputError(
                f"--{name}-column {column}: {what} has no columns to choose from; leave out"
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
    rows = [
        Row(
            f"{settings.source.split('-')[0]}-{i}",
            list(tokens),
            label,
            None if marks is None else np.array(marks, dtype=bool),
        )
        for i, (tokens, label, marks) in enumerate(_generated(settings.source))
    ]
    for row in rows:
        if settings.tokenizer == "sentences":
            _join_sentences(row)
        if settings.raw:
            row.tokens = spaced(row.tokens)
    return {"all": rows}


def _generated(name: str) -> Iterable[tuple[tuple[str, ...], str, tuple[bool, ...] | None]]:
    """Yield of each text of a generated corpus the tokens, the label, and which tokens decide it."""
    if name in BIOGRAPHIES:
        of = BIOGRAPHIES[name]
        for person in biographies(agreeing=UNRELATED if of == "gender" else AGREEING):
            # An occupation is decided by no words that could be marked.
            yield person.tokens, getattr(person, of), person.gendered if of == "gender" else None
        return
    for one in reviews(stars=name == "reviews-stars"):
        yield one.tokens, one.label, one.rationale


def _join_sentences(row: Row) -> None:
    """Make tokens of a row's sentences; one is in the rationale if a word of it is."""
    starts = [0, *(i + 1 for i, token in enumerate(row.tokens[:-1]) if token in ".!?")]
    spans = [*pairwise([*starts, len(row.tokens)])]
    if row.rationale is not None:
        row.rationale = np.array([row.rationale[a:b].any() for a, b in spans])
    row.tokens = [" ".join(row.tokens[a:b]) for a, b in spans]
