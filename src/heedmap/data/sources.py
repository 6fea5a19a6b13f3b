"""Read a source as rows by split: which columns are texts and labels, and what is left out."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from itertools import chain
from pathlib import Path

from heedmap.data import readers as files
from heedmap.data.asked_words import asked_rows, in_sentences
from heedmap.data.bag_folder import is_bags, open_bags
from heedmap.data.chosen_columns import Columns, choose_columns, find_column, with_text
from heedmap.data.class_folders import read_class_folders
from heedmap.data.clones import ABOUT, read_clone
from heedmap.data.columns import Rows, Tables
from heedmap.data.embedded import EMBEDDED, EMBEDDED_BAGS, embedded_texts
from heedmap.data.eraser_rows import is_eraser, read_eraser
from heedmap.data.file_kinds import is_file_name, kind_of
from heedmap.data.in_memory import PREFIX, InMemory
from heedmap.data.labelled_rows import labelled_rows
from heedmap.data.labels import check_labels
from heedmap.data.pictures import holds_pictures
from heedmap.data.rows import (
    AMOUNT_COLUMNS,
    ColumnSpec,
    LabelledTexts,
    Parts,
    Row,
    column,
    gathered,
)
from heedmap.data.tokens import tokenizer_of
from heedmap.errors import InputError
from heedmap.files.naming import DATA, check_name, is_there
from heedmap.settings.data import DataSettings
from heedmap.terminal.output import some_of


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
        return embedded_texts(settings)
    if settings.source.startswith(PREFIX) and not is_there(settings.source):
        raise InputError(
            f"{settings.source}: texts from memory, which are kept in the folder of their run alone (texts/), "
            "and are not there; give them to heedmap again"
        )
    path = Path(settings.source)
    if is_bags(path):
        return _bags(path, settings)
    return _texts_at(path, settings, spec)


def _texts_at(path: Path, settings: DataSettings, spec: ColumnSpec) -> LabelledTexts:
    """Read the labelled texts of a file, a folder or a Hub data set."""
    source = settings.source
    if not is_there(source) and not (is_file_name(source) and source.isprintable()):
        check_name(source, DATA)
    if is_eraser(path):
        files.refuse_columns(settings, "a folder in ERASER's layout")
        files.refuse_dialect(path, **files.dialect_of(settings))
        texts = read_eraser(path, spec.tokenize or tokenizer_of(settings), settings.raw)
        _check_labels(settings, texts.parts)
        return texts
    if path.is_dir() and not files.split_files(path):
        tables = read_class_folders(path, settings.encoding)
        if tables is not None:
            files.refuse_columns(settings, "a folder of class folders")
            files.refuse_dialect(path, **{**files.dialect_of(settings), "encoding": None})
            # The columns are ours: a run need not remember their names.
            return replace(labelled_texts(tables, settings, spec), columns={})
    return labelled_texts(_read_tables(path, settings), settings, spec)


def _bags(path: Path, settings: DataSettings) -> LabelledTexts:
    """Read bags of vectors: each is a text whose tokens are the names of its items."""
    if settings.raw:
        raise InputError(f"{path}: bags of vectors; a transformer reads texts")
    for name in ("text", "query"):
        if (column := getattr(settings, name)) is not None:
            raise InputError(
                f"--{name}-column {column}: bags of vectors have no such column; name that of their "
                "ids with --id-column"
            )
    dialect = files.dialect_of(settings)
    bags = open_bags(path, lambda file: files.read_rows(file, **dialect))
    labels = settings.model_copy(update={"id": None})
    texts = labelled_texts(bags.tables, labels, bags.spec(settings.id))
    return bags.with_names(texts, settings.source)


def labelled_texts(tables: Tables, settings: DataSettings, spec: ColumnSpec) -> LabelledTexts:
    """Choose the columns of each table, and read its rows as labelled texts."""
    by_split, left_out, notes = tables.by_split, Counter(tables.left_out), [*tables.notes]
    if settings.asks is not None:
        return _asked_texts(tables, settings)
    parts: dict[str, Sequence[Row]] = {}
    columns: dict[str, Columns] = {}
    if not settings.labels_read:
        spec = replace(spec, label=())
    elif settings.amounts:
        spec = replace(spec, label=AMOUNT_COLUMNS)
    if (
        settings.labels_read
        and not settings.training
        and not _have_labels(by_split, settings, spec)
    ):
        notes.append(_without_labels(by_split, spec))
        spec = replace(spec, label=())
    if "train" in by_split:  # first, since another split may have no labels
        choose_columns(with_text(by_split["train"], settings, spec), settings, spec)
    for name, rows in by_split.items():
        needs_label = "train" in by_split and spec.label
        if needs_label and find_column(rows, settings.label, spec.label) is None:
            left_out[f"{name}: label missing"] += len(rows)
            file = f" in {Path(rows.source).name}" if rows.source else ""
            notes.append(f"{name}: no label column{file}; {len(rows)} texts are left out")
            continue
        table = labelled_rows(rows, name, settings, spec)
        columns[name] = table.columns
        left_out.update(table.left_out)
        table_notes = [*rows.notes_on(settings.text), *table.notes]
        notes += table_notes if name == "all" else [f"{name}: {note}" for note in table_notes]
        _add(parts, table.parts)
    column_names: dict[str, str] = {}
    if len({*columns.values()}) == 1:
        column_names = next(iter(columns.values())).named()
    else:
        by_table = [f"{name}: {_named(names)}" for name, names in columns.items()]
        notes.append(f"tables of different columns; read are {'; '.join(by_table)}")
    _check_labels(settings, parts)
    return LabelledTexts(parts, left_out, notes, column_names)


def _asked_texts(tables: Tables, settings: DataSettings) -> LabelledTexts:
    """Read the rows of each table as texts that each ask about a word."""
    parts: dict[str, Sequence[Row]] = {}
    left_out, notes = Counter(tables.left_out), [*tables.notes]
    for name, words in tables.by_split.items():
        rows = in_sentences(words, settings)
        table = asked_rows(rows, name, settings)
        left_out.update(table.left_out)
        notes += [*rows.notes_on(settings.text), *table.notes]
        _add(parts, table.parts)
    return LabelledTexts(parts, left_out, notes)


def _add(parts: dict[str, Sequence[Row]], further: Parts) -> None:
    """Put the rows of a table behind those of the same splits in earlier tables."""
    for name, rows in further.items():
        parts[name] = gathered(chain(parts[name], rows)) if name in parts else rows


def _check_labels(settings: DataSettings, parts: Parts) -> None:
    if settings.amounts:  # as many as there are rows
        return
    check_labels(
        settings.source, [label for rows in parts.values() for label in column(rows, "label")]
    )


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
            if holds_pictures(path):
                raise InputError(
                    f"{path}: expected texts or bags, got pictures, which a classifier of pictures reads: give "
                    "it as --model (ViT, DeiT or DINOv2)"
                )
            if {"dataset_dict.json", "state.json"} & {p.name for p in path.iterdir()}:
                raise InputError(
                    f"{path}: expected tables, got what save_to_disk wrote; load it in Python: "
                    "heedmap.load(datasets.load_from_disk(...)), or save its splits as Parquet (to_parquet)"
                )
            names = ", ".join(sorted(p.name for p in path.iterdir())[:8]) or "nothing"
            raise InputError(
                f"{path}: expected train.csv, train.jsonl or train.parquet (dev and test beside it if "
                f"there are any), or a folder of .txt files for each class, found {names}"
            )
    elif path.exists() or is_file_name(settings.source):
        return Tables({"all": read_file(path)})
    else:
        files.refuse_dialect(settings.source, **dialect)
        by_name = _of_hub(settings.source)
    return _by_split(by_name, settings)


def _of_hub(source: str) -> dict[str, Rows]:
    """Read a data set of the Hub; where there is none, an embedded corpus of a like name may be meant."""
    try:
        return files.read_hub(source)
    except InputError as error:
        if guess := get_close_matches(source, EMBEDDED, 1, 0.8):
            raise InputError(f"{error}; did you mean the embedded {guess[0]}?") from error
        raise


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


def is_of_bags(source: str) -> bool:
    """Return whether a source holds bags of vectors."""
    return source in EMBEDDED_BAGS or (source not in EMBEDDED and is_bags(Path(source)))
