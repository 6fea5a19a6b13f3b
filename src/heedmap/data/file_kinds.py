"""The kinds of files that hold texts, by their names, without slow imports: a wrong path is refused at once."""

from pathlib import Path

from heedmap.errors import InputError
from heedmap.files.naming import is_there

KINDS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".parquet": "parquet",
    ".xlsx": "excel",
    ".conll": "conll",
    ".iob": "conll",
    ".bio": "conll",
}
KNOWN = ", ".join(KINDS) + " (each also with .gz)"


def kind_of(path: Path, *, alone: bool = False) -> str | None:
    """Return `csv`, `json`, `parquet`, `excel` or `conll` by the file's name, None for any other.

    A .txt file, which may be a table, is `csv` where it is named `alone`: in a folder it is a text.
    """
    suffix = suffix_of(path)
    return "csv" if alone and suffix == ".txt" else KINDS.get(suffix)


def suffix_of(path: Path) -> str:
    """Return the ending of a file's name in lower case, without .gz.

    >>> suffix_of(Path("texts.CSV.gz"))
    '.csv'
    """
    return Path(path.name.lower().removesuffix(".gz")).suffix


def is_file_name(source: str) -> bool:
    """Return whether a source can only be a file or a folder, by its name."""
    path = Path(source)
    return kind_of(path, alone=True) is not None or path.is_absolute()


def refuse_missing(source: str) -> None:
    """Raise InputError if a source can only be a file, by its name, and there is none."""
    if is_file_name(source) and source.isprintable() and not is_there(source):
        raise missing(Path(source))


def missing(path: Path) -> InputError:
    """Return the error that there is no file of a name."""
    return InputError(f"{path}: no such file; give a {KNOWN} file, a folder or a Hub name")
