"""Where an export goes, without slow imports: a wrong name is refused at once."""

from mimetypes import guess_type
from pathlib import Path
from typing import NamedTuple

from heedmap.errors import InputError

FORMATS = ("csv", "jsonl", "xlsx", "parquet")


class Place(NamedTuple):
    """Where an export goes: a folder, or one file, and its format."""

    path: Path
    file_format: str
    is_file: bool


def place_of(out: str | Path, file_format: str | None = None) -> Place:
    """Return where an export goes: a name that ends in one of FORMATS is a file's.

    Raises:
        InputError: an unknown format, another one than the file's name says, or a name of another kind.
    """
    path = Path(out).expanduser()
    suffix = path.suffix.lower().removeprefix(".")
    if file_format not in (None, *FORMATS):
        raise InputError(f"format {file_format!r}: expected {', '.join(FORMATS)}")
    is_file = suffix in FORMATS and not path.is_dir()
    if is_file and file_format not in (None, suffix):
        raise InputError(
            f"{path}: expected a folder, or a name that ends in .{file_format}, which is the format asked for; "
            "rename it, or leave the format out"
        )
    if not is_file and not path.is_dir() and guess_type(path.name)[0] is not None:
        endings = ", ".join(f".{name}" for name in FORMATS)
        raise InputError(
            f"{path}: expected a folder, or a name that ends in {endings}, got that of another kind of file; "
            "rename it"
        )
    return Place(path, suffix if is_file else file_format or "csv", is_file)
