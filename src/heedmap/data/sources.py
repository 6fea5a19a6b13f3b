"""From a source to rows by split: which columns are read, and what is left out."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from heedmap.data import files
from heedmap.data.babi_rows import generated_babi
from heedmap.data.labels import label_text
from heedmap.data.reviews import reviews
from heedmap.data.rows import Reading, Row
from heedmap.data.tokens import TOKENIZERS, pieces
from heedmap.errors import InputError
from heedmap.naming import DATA, check_name, is_there
from heedmap.settings import DataSettings

STORIES = ("babi_qa1", "babi_qa2", "babi_qa3")
EMBEDDED = ("reviews", "reviews-stars", *STORIES)


def read_parts(
    settings: DataSettings, left_out: Counter[str], reading: Reading | None = None
) -> dict[str, list[Row]]:
    """The rows of a file, a folder, a Hub data set or an embedded corpus, by split; `all` where it has none.

    What is left out on the way is counted in `left_out` by its reason.

    Raises:
        InputError: no such source, or columns or values that are no texts and labels.
    """
    reading = reading or Reading()
    if settings.source in EMBEDDED:
        return _embedded(settings)
    path = Path(settings.source)
    named = files.kind_of(path) is not None or path.is_absolute()
    if not is_there(settings.source) and not (named and settings.source.isprintable()):
        check_name(settings.source, DATA)
    if path.is_dir() and (found := files.split_files(path)):
        read = {name: files.read_rows(file) for name, file in found.items()}
    elif path.is_dir() and not any(files.kind_of(file) for file in path.glob("*/*")):
        there = ", ".join(sorted(p.name for p in path.iterdir())[:8]) or "nothing"
        raise InputError(
            f"{path}: expected train.csv, train.jsonl or train.parquet (dev and test beside it if there "
            f"are any), found {there}"
        )
    elif not path.is_dir() and (path.exists() or files.kind_of(path) or path.is_absolute()):
        read = {"all": files.read_rows(path)}
    else:
        read = {}
        for name, rows in files.read_hub(settings.source).items():
            split = files.SPLIT_NAMES.get(name)
            if split is None:
                left_out[f"{name}: not a train, dev or test split"] += len(rows)
            else:
                read[split] = rows
        if "train" not in read:
            raise InputError(f"{settings.source}: expected a train split, found none")
    parts: dict[str, list[Row]] = {}
    for name, rows in read.items():
        columns = list(rows.column_names)
        split_column = _find(columns, None, ("split", "exp_split")) if name == "all" else None
        for part, row in _rows(rows, name, split_column, settings, left_out, reading):
            parts.setdefault(part, []).append(row)
    return parts


def refuse_columns(settings: DataSettings, what: str) -> None:
    """Raises InputError where columns are named of a source that has none."""
    for name in ("text", "label", "query"):
        if (column := getattr(settings, name)) is not None:
            raise InputError(
                f"--{name}-column {column}: {what} has no columns to choose from; leave out"
            )


def _embedded(settings: DataSettings) -> dict[str, list[Row]]:
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
    told = reviews(stars=settings.source == "reviews-stars")
    return {
        "all": [
            Row(
                f"reviews-{i}",
                pieces(" ".join(r.tokens), "spaces") if settings.raw else list(r.tokens),
                r.label,
                np.array(r.rationale, dtype=bool),
            )
            for i, r in enumerate(told)
        ]
    }


def _rows(
    rows: Any,
    part: str,
    split_column: str | None,
    settings: DataSettings,
    left_out: Counter[str],
    reading: Reading,
) -> Iterable[tuple[str, Row]]:
    columns = list(rows.column_names)
    text = _find(columns, settings.text, reading.text)
    label = _find(columns, settings.label, reading.label)
    query = _find(columns, settings.query, reading.query)
    for what, found, option, guesses in (
        ("text", text, "--text-column", reading.text),
        ("label", label, "--label-column", reading.label),
        ("query", query, "--query-column", reading.query),
    ):
        if found is None and (what != "query" or settings.query or reading.query):
            wanted = getattr(settings, what) or " / ".join(guesses)
            raise InputError(
                f"{settings.source}: no {what} column ({wanted}); the columns are "
                f"{', '.join(columns)}; name it with {option}"
            )
    if query is not None and query == text:
        raise InputError(
            f"{settings.source}: {text} is read as the text and as the query; name two columns with "
            "--text-column and --query-column"
        )
    names = getattr(rows.features[label], "names", None)  # a ClassLabel of the Hub
    tokenize = reading.tokenize or _tokenize(settings)
    keys = rows["id"][:] if "id" in columns else range(len(rows))
    parts = rows[split_column][:] if split_column else [part] * len(rows)
    asked = rows[query][:] if query else [None] * len(rows)
    for key, value, answer, said, question in zip(
        keys, rows[text][:], rows[label][:], parts, asked, strict=True
    ):
        where = files.SPLIT_NAMES.get(str(said).lower(), said)
        if where not in (*files.SPLITS, "all"):
            left_out[f"split column says {where!r}"] += 1
        elif isinstance(value, list | dict) or isinstance(answer, list | dict):
            raise InputError(
                f"{settings.source}, row {key}: expected a text and a label, got "
                f"{text} = {value!r:.40}, {label} = {answer!r:.40}"
            )
        elif pd.isna(answer) or (names and answer < 0):
            left_out["label missing" if where == "all" else f"{where}: label missing"] += 1
        else:
            tokens = tokenize("" if value is None else str(value))
            name = names[answer] if names else label_text(answer)
            given = None if query is None else tokenize("" if question is None else str(question))
            if not tokens or given == []:
                left_out[f"empty {query if tokens else text}"] += 1
            else:
                yield where, Row(str(key), tokens, name, query=given)


def _tokenize(settings: DataSettings) -> Callable[[str], list[str]]:
    if settings.raw:
        return lambda text: pieces(text, settings.tokenizer)
    return TOKENIZERS[settings.tokenizer]


def _find(columns: list[str], wanted: str | None, guesses: Sequence[str]) -> str | None:
    if wanted is not None:
        return wanted if wanted in columns else None
    by_name = {column.strip().lower(): column for column in reversed(columns)}
    return next((by_name[guess] for guess in guesses if guess in by_name), None)
