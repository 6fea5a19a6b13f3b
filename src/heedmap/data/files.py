"""Rows of a CSV, JSONL or Parquet file, plain or gzipped, read by the `datasets` library.

Its errors name neither line nor remedy, so what is wrong with a file is found here, line by line.
"""

import codecs
import csv
import gzip
import json
import logging
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Literal, cast

from heedmap.errors import InputError

KINDS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".parquet": "parquet",
}
_KNOWN = ", ".join(KINDS) + " (each also with .gz)"


def kind_of(path: Path) -> str | None:
    """`csv`, `json` or `parquet` by the file's name, None for any other."""
    return KINDS.get(_suffix(path))


def _suffix(path: Path) -> str:
    name = path.name.lower()
    return Path(name.removesuffix(".gz")).suffix


def read_rows(path: Path) -> "Any":
    """The rows of one file as a `datasets.Dataset`.

    Raises:
        InputError: no such file, unknown kind, empty, not UTF-8, or broken (with the line).
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file; give a {_KNOWN} file, a folder or a Hub name")
    kind = kind_of(path)
    if kind is None:
        raise InputError(f"{path}: unknown kind of file; expected one of {_KNOWN}")
    if path.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty; expected rows with a text and a label")
    if kind != "parquet":
        _check_utf8(path)
    options: dict[str, Any] = {}
    if kind == "csv":
        # Only an empty field is missing: a text that says "null" or "NA" is a text.
        options = {"keep_default_na": False, "na_values": [""]}
        if _suffix(path) == ".tsv":
            options["sep"] = "\t"
        _check_header(path, options.get("sep", ","))
    try:
        rows = _load(kind, {"data_files": str(path), "split": "train", **options})
    except InputError:
        raise
    except Exception as error:  # whatever the readers below raise, the user gets one line
        raise InputError(_diagnosis(path, kind, error)) from error
    if len(rows) == 0:
        raise InputError(f"{path}: no rows; expected rows with a text and a label")
    return rows


def read_hub(name: str) -> "Any":
    """A `datasets.DatasetDict` by its name on the Hub, or by the path of a local clone of one.

    Raises:
        InputError: it cannot be loaded, with the first line of the reason.
    """
    try:
        return _load(name, {})
    except Exception as error:
        raise InputError(
            f"{name}: no such file or folder, and not to be had from the Hugging Face Hub "
            f"({_first_line(error)}); check the path, or the name and the network"
        ) from error


def _load(kind: str, options: dict[str, Any]) -> "Any":
    import datasets

    for library in ("datasets", "huggingface_hub"):  # what they log before they raise is said below
        logging.getLogger(library).setLevel(logging.CRITICAL)
    datasets.disable_progress_bars()
    # A folder of our own, gone afterwards: the library's cache would keep a copy of every user's file.
    with tempfile.TemporaryDirectory() as scratch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return datasets.load_dataset(kind, cache_dir=scratch, keep_in_memory=True, **options)


def _open(path: Path) -> IO[bytes]:
    return cast(
        "IO[bytes]", gzip.open(path) if path.name.lower().endswith(".gz") else path.open("rb")
    )


def _check_utf8(path: Path) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")()
    line = 1
    try:
        with _open(path) as file:
            while block := file.read(1 << 20):
                try:
                    decoder.decode(block)
                except UnicodeDecodeError as error:
                    line += block[: max(error.start, 0)].count(b"\n")
                    raise InputError(
                        f"{path}, line {line}: not UTF-8; save the file as UTF-8 and try again"
                    ) from error
                line += block.count(b"\n")
    except (OSError, EOFError) as error:
        raise InputError(f"{path}: cannot be read ({_first_line(error)})") from error


def _check_header(path: Path, separator: str) -> None:
    """Two columns of one name are refused: the reader would rename the second without a word."""
    lines = (text for _, text in _lines(path))
    names = [name.strip() for name in next(csv.reader(lines, delimiter=separator), [])]
    if twice := sorted({name for name in names if name and names.count(name) > 1}):
        raise InputError(
            f"{path}: expected different columns, got {', '.join(twice)} twice; rename one"
        )


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    with _open(path) as file:
        for number, line in enumerate(file, 1):
            yield number, line.decode("utf-8", errors="replace")


def _diagnosis(path: Path, kind: str, error: Exception) -> str:
    if kind == "json" and _suffix(path) != ".json":
        for number, line in _lines(path):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except json.JSONDecodeError as broken:
                return (
                    f"{path}, line {number}: broken JSON ({broken.msg}); expected one object a line"
                )
            if not isinstance(row, dict):
                return f"{path}, line {number}: expected a JSON object, got {type(row).__name__}"
    if "corresponds to no data" in str(error):
        return f"{path}: no rows; expected rows with a text and a label"
    cause = error.__cause__ or error.__context__ or error
    return f"{path}: not readable as {kind.upper()} ({_first_line(cause)})"


def _first_line(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__


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


def split_files(folder: Path) -> dict[str, Path]:
    """The train, dev and test files of a folder, by their names; none where there is no training file.

    Raises:
        InputError: two files for one split.
    """
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if kind_of(path) is None:
            continue
        stem = path.name.lower().removesuffix(".gz")
        split = SPLIT_NAMES.get(stem[: -len(Path(stem).suffix)])
        if split is None:
            continue
        if split in found:
            raise InputError(
                f"{folder}: both {found[split].name} and {path.name} could be its {split} split; "
                "keep one"
            )
        found[split] = path
    return found if "train" in found else {}
