"""Read a source as rows by split: which columns are texts and labels, and what is left out."""

import re
import reprlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from heedmap.data import readers as files
from heedmap.data.babi_rows import generated_babi
from heedmap.data.biographies import AGREEING, UNRELATED, biographies
from heedmap.data.clones import read_clone
from heedmap.data.columns import Rows, joined
from heedmap.data.eraser_rows import is_eraser, read_eraser
from heedmap.data.labels import check_labels, label_text, trimmed
from heedmap.data.rationale_columns import marking
from heedmap.data.reviews import reviews
from heedmap.data.rows import ColumnSpec, Parts, Row
from heedmap.data.tokens import TOKENIZERS, pieces, spaced
from heedmap.errors import InputError
from heedmap.files.naming import DATA, check_name, is_there
from heedmap.settings import DataSettings

STORIES = ("babi_qa1", "babi_qa2", "babi_qa3")
BIOGRAPHIES = {"biographies-gender": "gender", "biographies-occupation": "occupation"}
EMBEDDED = ("reviews", "reviews-stars", *BIOGRAPHIES, *STORIES)


def read_parts(
    settings: DataSettings, left_out: Counter[str], spec: ColumnSpec | None = None
) -> Parts:
    """Read the rows of a file, a folder, a Hub data set or an embedded corpus, by split.

    What is left out is counted in `left_out` by its reason.

    Raises:
        InputError: no such source, or columns or values that are no texts and labels.
    """
    spec = spec or ColumnSpec()
    if settings.source in EMBEDDED:
        return _embedded(settings)
    path = Path(settings.source)
    as_file = files.kind_of(path) is not None or path.is_absolute()
    if not is_there(settings.source) and not (as_file and settings.source.isprintable()):
        check_name(settings.source, DATA)
    if is_eraser(path):
        refuse_columns(settings, "a folder in ERASER's layout")
        parts = read_eraser(path, spec.tokenize or _tokenizer(settings), left_out, settings.raw)
        check_labels(settings.source, [row.label for rows in parts.values() for row in rows])
        return parts
    read = _read_tables(path, settings, left_out, as_file)
    parts = {}
    for name, rows in read.items():
        for part, row in _rows(rows, name, settings, left_out, spec):
            parts.setdefault(part, []).append(row)
    check_labels(settings.source, [row.label for rows in parts.values() for row in rows])
    return parts


def _read_tables(
    path: Path, settings: DataSettings, left_out: Counter[str], as_file: bool
) -> dict[str, Rows]:
    """Return the tables of a file, a folder, a clone or the Hub by split."""
    if path.is_dir() and (found := files.split_files(path)):
        return {name: files.read_rows(file) for name, file in found.items()}
    if not path.is_dir() and (path.exists() or as_file):
        return {"all": files.read_rows(path)}
    read: dict[str, Rows] = {}
    by_name = read_clone(path) if path.is_dir() else files.read_hub(settings.source)
    if not by_name:
        there = ", ".join(sorted(p.name for p in path.iterdir())[:8]) or "nothing"
        raise InputError(
            f"{path}: expected train.csv, train.jsonl or train.parquet (dev and test beside it if "
            f"there are any), found {there}"
        )
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
    for what, found, option, guesses in (
        ("text", text, "--text-column", spec.text),
        ("label", label, "--label-column", spec.label),
        ("query", query, "--query-column", spec.query),
    ):
        if found is None and (what != "query" or settings.query or spec.query):
            wanted = getattr(settings, what) or " / ".join(guesses)
            missing = [
                name for name in wanted.split(",") if name not in columns
            ]  # of several to join
            wanted = ", ".join(missing) or wanted
            raise InputError(
                f"{settings.source}: no {what} column ({wanted}); the columns are "
                f"{_some(columns)}; name it with {option}"
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
    tokenize = spec.tokenize or _tokenizer(settings)
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
        where = f"{settings.source}, row {key}"
        if split not in (*files.SPLITS, "all"):
            left_out[f"split column says {split!r}"] += 1
        elif any(isinstance(each, list | dict | bytes) for each in (value, answer, question)):
            raise InputError(
                f"{where}: expected a text and a label, got "
                f"{text} = {reprlib.repr(value)}, {label} = {reprlib.repr(answer)}"
            )
        elif not (name := "" if pd.isna(answer) else _class_name(answer, names, where)):
            left_out["label missing" if split == "all" else f"{split}: label missing"] += 1
        elif len(name.splitlines()) > 1:  # most often a quote that is never closed
            raise InputError(
                f"{where}: expected a label of one line, got {label} = "
                f"{name!r:.40}; check the file's quotes, or name another column with --label-column"
            )
        else:
            written = "" if pd.isna(value) else str(value)
            tokens = tokenize(written)
            given = None if query is None else tokenize("" if pd.isna(question) else str(question))
            if not tokens or given == []:
                left_out[" ".join(["empty", *(query if tokens and query else text).split()])] += 1
            else:
                # Raw tokens joined are the text: it need not be kept twice.
                kept = None if settings.raw else written
                row = Row(str(key), tokens, name, query=given, written=kept)
                marks(row, number, where, split)
                yield split, row


def _class_name(answer: Any, names: Sequence[str] | None, where: str) -> str:
    """Name a label; the name is empty where there is none, which the Hub says with a number below 0."""
    text = "" if pd.isna(answer) else label_text(answer)
    if names is None or not re.fullmatch(r"-?\d+", text):
        return text
    number = int(text)
    if number >= len(names):
        raise InputError(
            f"{where}: expected a class from 0 to {len(names) - 1} as a label, got {text}"
        )
    return names[number].strip() if number >= 0 else ""


def _some(columns: Sequence[str]) -> str:
    more = f" and {len(columns) - 20} more" if len(columns) > 20 else ""
    return ", ".join(columns[:20]) + more


def _tokenizer(settings: DataSettings) -> Callable[[str], list[str]]:
    if settings.raw:
        return lambda text: pieces(text, settings.tokenizer)
    return TOKENIZERS[settings.tokenizer]


def _find(columns: list[str], wanted: str | None, guesses: Sequence[str]) -> str | None:
    if wanted is not None:
        return wanted if wanted in columns else None
    by_name = {column.strip().lower(): column for column in reversed(columns)}
    return next((by_name[guess] for guess in guesses if guess in by_name), None)
