"""Read tables: a CSV, JSONL, Parquet or Excel file, plain or gzipped, or a data set of the Hub.

A file is read into memory by its own path: the `datasets` library would take the path for a pattern, report it
to a server and keep a copy on disk. That library only reads from the Hub.
"""

import logging
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from heedmap.data.columns import Rows, as_python
from heedmap.data.conll_rows import read_conll
from heedmap.data.csv_rows import read_csv
from heedmap.data.dialect import SEEN
from heedmap.data.excel_rows import read_excel
from heedmap.data.fasttext_rows import is_fasttext
from heedmap.data.file_kinds import KNOWN, kind_of, missing, suffix_of
from heedmap.data.json_rows import read_json
from heedmap.data.labels import shortest
from heedmap.data.parquet_rows import read_parquet
from heedmap.data.streams import first_line, open_bytes, reading
from heedmap.errors import InputError, check_installed
from heedmap.settings.data import DataSettings

if TYPE_CHECKING:
    from datasets import Dataset

_READERS = {"json": read_json, "parquet": read_parquet, "conll": read_conll}
_OTHER_SHEETS = (".xls", ".xlsm", ".xlsb", ".ods")
_BINARY = {
    b"PK\x03\x04": "an Excel file or another archive; name an Excel file .xlsx, unpack another",
    b"\xd0\xcf\x11\xe0": "an old Excel file, or one with a password; save it as .xlsx without one",
    b"\x1f\x8b": "a gzipped file; add .gz to its name",
    b"PAR1": "a Parquet file; name it .parquet",
    b"%PDF-": "a PDF; save its texts and labels as a table",
    b"\x89PNG": "a picture; save its texts and labels as a table",
    b"\xff\xd8\xff": "a picture; save its texts and labels as a table",
}
"""How files begin that are no text, and what they are."""


def read_rows(
    path: Path,
    separator: str | None = None,
    encoding: str | None = None,
    quotes: str | None = None,
    header: str | None = None,
) -> Rows:
    """Read the rows of one file; of a CSV file, how it is written is found where it is not given.

    A .txt file is read as CSV if it is a table. A CSV or Excel file of which `header` is "none" has no names of
    columns in its first row.

    Raises:
        InputError: no such file, unknown kind, empty, not UTF-8, or broken (with the line); how a CSV file is
            written given for another kind of file.
    """
    with reading(path):
        if path.exists() and not path.is_file():
            remedy = "name a file in it" if path.is_dir() else "save what it gives and name that"
            kind_of_place = "a folder" if path.is_dir() else "a device or a pipe"
            raise InputError(f"{path}: expected a file, got {kind_of_place}; {remedy}")
        if not path.is_file():
            raise missing(path)
        kind, suffix, size = kind_of(path, alone=True), suffix_of(path), path.stat().st_size
    if kind is None:
        remedy = "; save it as .xlsx" if suffix in _OTHER_SHEETS else ""
        raise InputError(f"{path}: unknown kind of file; expected one of {KNOWN}{remedy}")
    content = "words with labels" if kind == "conll" else "rows with a text and a label"
    if size == 0:
        raise InputError(f"{path}: the file is empty; expected {content}")
    if kind in ("csv", "json", "conll"):
        _check_text(path)
    if kind == "csv":
        rows = read_csv(
            path,
            separator,
            encoding,
            quotes,
            header,
            usual="\t" if suffix == ".tsv" else ",",
            sure=suffix != ".txt",
        )
    else:
        if kind == "conll" and encoding is not None:
            raise InputError(
                f"--encoding {encoding}: {path} is a CoNLL file, which is read as UTF-8; save it so, and leave "
                "the option out"
            )
        refuse_dialect(path, separator=separator, encoding=encoding, quotes=quotes)
        if kind == "excel":
            rows = read_excel(path, header)
        else:
            refuse_dialect(path, header=header)
            rows = _READERS[kind](path)
    if len(rows) == 0:
        raise InputError(f"{path}: no rows; expected {content}")
    return rows


def _check_text(path: Path) -> None:
    with reading(path), open_bytes(path) as file:
        start = file.read(8)
    for magic, kind in _BINARY.items():
        if start.startswith(magic):
            raise InputError(f"{path}: expected a text file, got {kind}")


def dialect_of(settings: DataSettings) -> dict[str, str | None]:
    """Return how a user says that a file is written, by option."""
    return {name: getattr(settings, name) for name in ("separator", "encoding", "quotes", "header")}


def refuse_dialect(source: str | Path, **options: str | None) -> None:
    """Raise InputError where it is said how a CSV file is written, of what is none."""
    for option, value in options.items():
        if value is not None:
            raise InputError(f"--{option} {value}: {source} is no CSV file; leave it out")


def refuse_columns(settings: DataSettings, source: str) -> None:
    """Raise InputError where columns are named of a source that has none."""
    for name in ("text", "label", "query", "id"):
        if (column := getattr(settings, name)) is not None:
            raise InputError(
                f"--{name}-column {column}: {source} has no columns to choose from; leave it out"
            )


def read_hub(name: str) -> dict[str, Rows]:
    """Read the splits of a data set on the Hub, through the cache of the `datasets` library.

    Raises:
        InputError: it cannot be loaded, with the first line of the reason; it names files elsewhere; the
            `datasets` library is not installed.
    """
    check_installed("datasets", "hub", f"{name}: no such file or folder; a data set of the Hub")
    import datasets

    for library in (
        "datasets",
        "huggingface_hub",
    ):  # the error below says what they log before they raise
        logging.getLogger(library).setLevel(logging.CRITICAL)
    datasets.disable_progress_bars()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            builder = datasets.load_dataset_builder(name)
            _check_hosted(name, builder.config.data_files or {})
            builder.download_and_prepare()
            splits = builder.as_dataset(in_memory=True)
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"{name}: no such file or folder, and not to be had from the Hugging Face Hub "
            f"({first_line(error)}); check the path, or the name and the network"
        ) from error
    return {split: rows_of(part, f"{name}, {split}") for split, part in splits.items()}


def rows_of(part: "Dataset", name: str) -> Rows:
    """Return the rows of a `datasets.Dataset`, whose name is for errors."""
    names = {
        column: list(of_list.names)
        for column, feature in part.features.items()
        # The labels of words are a list of such a feature.
        if type(of_list := getattr(feature, "feature", feature)).__name__ == "ClassLabel"
    }

    def values(column: str) -> list[Any]:
        with as_python(name, column):
            kind = getattr(part.features[column], "dtype", None)
            return shortest(part[column][:], kind)

    return Rows(
        list(part.column_names),
        len(part),
        values,
        names,
        lambda i: f"{name}, row {i}",
    )


def _check_hosted(name: str, data_files: Mapping[str, Iterable[object]]) -> None:
    """Refuse a data set that names files of this machine, or of a third one, as its own."""
    for path in (str(path) for paths in data_files.values() for path in paths):
        if not path.startswith("hf://datasets/"):
            raise InputError(
                f"{name}: expected a data set of files on the Hub, got one that names {path}"
            )


def _is_fasttext(path: Path) -> bool:
    if suffix_of(path) != ".txt" or not path.is_file():
        return False
    with reading(path), open_bytes(path) as file:
        return is_fasttext(file.read(SEEN))


SPLITS = ("train", "dev", "test")
SPLIT_NAMES: dict[str, Literal["train", "dev", "test"]] = {
    "train": "train",
    "training": "train",
    "dev": "dev",
    "valid": "dev",
    "validation": "dev",
    "val": "dev",
    "test": "test",
}


def one_per_split(folder: Path, names: Iterable[tuple[Path, str]]) -> dict[str, Path]:
    """Return the path of each split, of paths with the names that may be a split's; others are left out.

    Raises:
        InputError: two paths for one split.
    """
    by_split: dict[str, Path] = {}
    for path, name in names:
        split = SPLIT_NAMES.get(name.lower())
        if split is None:
            continue
        if split in by_split:
            raise InputError(
                f"{folder}: both {by_split[split].name} and {path.name} could be its {split} split; keep one"
            )
        by_split[split] = path
    return by_split


def split_files(folder: Path, *, fasttext: bool = False) -> dict[str, Path]:
    """Find the train, dev and test files of a folder by their names; none without a training file.

    Where `fasttext` is true, .txt files with lines of fastText are among them; other text is no table.

    Raises:
        InputError: two files for one split.
    """
    tables = (
        path
        for path in sorted(folder.iterdir())
        if kind_of(path) is not None or (fasttext and _is_fasttext(path))
    )
    by_split = one_per_split(folder, ((path, _stem(path)) for path in tables))
    return by_split if "train" in by_split else {}


def _stem(path: Path) -> str:
    name = path.name.lower().removesuffix(".gz")
    return name[: -len(Path(name).suffix)]
