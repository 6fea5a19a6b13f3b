"""Read a source as rows by split: which columns are texts and labels, and what is left out."""

import re
import reprlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from heedmap.data import readers as files
from heedmap.data.babi_rows import generated_babi
from heedmap.data.biographies import AGREEING, UNRELATED, biographies
from heedmap.data.class_folders import read_class_folders
from heedmap.data.clones import read_clone
from heedmap.data.columns import Rows, joined
from heedmap.data.eraser_rows import is_eraser, read_eraser
from heedmap.data.in_memory import PREFIX, InMemory
from heedmap.data.labels import check_labels, label_text, trimmed
from heedmap.data.rationale_columns import marking
from heedmap.data.reviews import reviews
from heedmap.data.rows import ColumnSpec, Parts, Row
from heedmap.data.tokens import TOKENIZERS, pieces, shared, spaced
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
    spec: ColumnSpec | None = None,
    given: InMemory | None = None,
) -> Parts:
    """Read the rows of a file, a folder, a Hub data set or an embedded corpus, by split, or those `given`.

    What is left out is counted in `left_out` by its reason; how files were read is added to `notes`.

    Raises:
        InputError: no such source, or columns or values that are no texts and labels.
    """
    spec = spec or ColumnSpec()
    if given is not None:
        files.refuse_dialect(given.name, settings.separator, settings.encoding)
        tables = _by_split(given.tables, settings, left_out)
        return _parts(tables, settings, left_out, notes, spec)
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
        files.refuse_dialect(path, settings.separator, settings.encoding)
        parts = read_eraser(path, spec.tokenize or tokenizer_of(settings), left_out, settings.raw)
        check_labels(settings.source, [row.label for rows in parts.values() for row in rows])
        return parts
    tables = _read_tables(path, settings, left_out, as_file)
    return _parts(tables, settings, left_out, notes, spec)


def _parts(
    read: dict[str, Rows],
    settings: DataSettings,
    left_out: Counter[str],
    notes: list[str],
    spec: ColumnSpec,
) -> Parts:
    parts: Parts = {}
    for name, rows in read.items():
        notes += rows.notes if name == "all" else [f"{name}: {note}" for note in rows.notes]
        for part, row in _rows(rows, name, settings, left_out, spec):
            parts.setdefault(part, []).append(row)
    check_labels(settings.source, [row.label for rows in parts.values() for row in rows])
    return parts


def _read_tables(
    path: Path, settings: DataSettings, left_out: Counter[str], as_file: bool
) -> dict[str, Rows]:
    """Return the tables of a file, a folder, a clone or the Hub by split."""
    separator, encoding = settings.separator, settings.encoding
    read_file = partial(files.read_rows, separator=separator, encoding=encoding)
    if path.is_dir():
        if found := files.split_files(path):
            return {name: read_file(file) for name, file in found.items()}
        if texts := read_class_folders(path, encoding, left_out):
            refuse_columns(settings, "a folder of class folders")
            files.refuse_dialect(path, separator)
            return texts
        if not (by_name := read_clone(path, read_file)):
            there = ", ".join(sorted(p.name for p in path.iterdir())[:8]) or "nothing"
            raise InputError(
                f"{path}: expected train.csv, train.jsonl or train.parquet (dev and test beside it if "
                f"there are any), or a folder of .txt files for each class, found {there}"
            )
    elif path.exists() or as_file:
        return {"all": read_file(path)}
    else:
        files.refuse_dialect(settings.source, separator, encoding)
        by_name = files.read_hub(settings.source)
    return _by_split(by_name, settings, left_out)


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
    for name in ("text", "label", "query"):
        if (column := getattr(settings, name)) is not None:
            raise InputError(
                f"--{name}-column {column}: {what} has no columns to choose from; leave out"
            )


def _embedded(settings: DataSettings) -> Parts:
    refuse_columns(settings, f"the embedded corpus {settings.source}")
    files.refuse_dialect(settings.source, settings.separator, settings.encoding)
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


def _rows(
    rows: Rows, part: str, settings: DataSettings, left_out: Counter[str], spec: ColumnSpec
) -> Iterable[tuple[str, Row]]:
    rows = joined(rows, settings.text)
    columns = rows.columns
    text = _find(columns, settings.text, spec.text)
    label = _find(columns, settings.label, spec.label)
    query = _find(columns, settings.query, spec.query)
    read_as = f" ({rows.read_as})" if len(columns) == 1 and rows.read_as else ""
    missing = []
    for what, found, guesses in (
        ("text", text, spec.text), ("label", label, spec.label), ("query", query, spec.query),
    ):  # fmt: skip
        if found is None and (what != "query" or settings.query or spec.query):
            wanted = getattr(settings, what) or " / ".join(guesses)
            absent = [
                name for name in wanted.split(",") if name not in columns
            ]  # of several to join
            missing.append((f"no {what} column ({', '.join(absent) or wanted})", what))
    if missing:
        raise InputError(
            f"{settings.source}: {' and '.join(said for said, _ in missing)}; the columns are "
            f"{some_of(columns, 20)}{read_as}; name {'it' if len(missing) == 1 else 'them'} with "
            f"{' and '.join(f'--{what}-column' for _, what in missing)} "
            f"(in Python {', '.join(f'{what}=' for _, what in missing)})"
        )
    for what, other in (("query", query), ("label", label)):
        if text is not None and other in (text, *text.split(",")):
            raise InputError(
                f"{settings.source}: {other} is read as the text and as the {what}; name two columns with "
                f"--text-column and --{what}-column"
            )
    assert text is not None
    assert label is not None
    names = rows.class_names.get(label)
    tokenize = spec.tokenize or tokenizer_of(settings)
    split_column = _find(columns, None, ("split", "exp_split")) if part == "all" else None
    keys = rows.values("id") if "id" in columns else range(len(rows))
    splits = rows.values(split_column) if split_column else [part] * len(rows)
    queries = rows.values(query) if query else [None] * len(rows)
    answers = rows.values(label)
    left_out.update(trimmed(answers, part))
    marks = marking(rows, text, label, tokenize, left_out)
    for number, (key, value, answer, split_name, question) in enumerate(
        zip(keys, rows.values(text), answers, splits, queries, strict=True)
    ):
        split = files.SPLIT_NAMES.get(str(split_name).lower(), split_name)
        if split not in (*files.SPLITS, "all"):
            left_out[f"split column says {split!r}"] += 1
            continue
        try:
            if any(isinstance(each, list | dict | bytes) for each in (value, answer, question)):
                raise InputError(
                    f"expected a text and a label, got {text} = {reprlib.repr(value)}, "
                    f"{label} = {reprlib.repr(answer)}"
                )
            if not (name := _class_name(answer, label, names)):
                left_out["label missing" if split == "all" else f"{split}: label missing"] += 1
                continue
            written = "" if pd.isna(value) else str(value)
            tokens = tokenize(written)
            given = None if query is None else tokenize("" if pd.isna(question) else str(question))
            if not tokens or given == []:
                left_out[" ".join(["empty", *(query if tokens and query else text).split()])] += 1
                continue
            # Raw tokens joined are the text: it need not be kept twice.
            kept = None if settings.raw else written
            row = Row(str(key), tokens, name, query=given, written=kept)
            marks(row, number, split)
        except InputError as error:
            raise InputError(f"{rows.where(number)}: {error}") from error
        yield split, row


def _class_name(answer: Any, column: str, names: Sequence[str] | None) -> str:
    """Name a label; the name is empty where there is none, which the Hub says with a number below 0."""
    name = "" if pd.isna(answer) else label_text(answer)
    if names is not None and re.fullmatch(r"-?\d+", name):
        if int(name) >= len(names):
            raise InputError(
                f"expected a class from 0 to {len(names) - 1} as a label, got {column} = {name}"
            )
        name = names[int(name)].strip() if int(name) >= 0 else ""
    if len(name.splitlines()) > 1:  # most often a quote that is never closed
        raise InputError(
            f"expected a label of one line, got {column} = {name!r:.40}; check the file's quotes, or name "
            "another column with --label-column"
        )
    return name


def tokenizer_of(settings: DataSettings) -> Callable[[str], list[str]]:
    """Return what makes tokens of a text, where no data set has a way of its own."""
    if settings.raw:
        return shared(lambda text: pieces(text, settings.tokenizer))
    return shared(TOKENIZERS[settings.tokenizer])


def _find(columns: list[str], wanted: str | None, guesses: Sequence[str]) -> str | None:
    if wanted is not None:
        return wanted if wanted in columns else None
    by_name = {column.strip().lower(): column for column in reversed(columns)}
    return next((by_name[guess] for guess in guesses if guess in by_name), None)
