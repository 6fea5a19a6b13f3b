"""Write a file, but replace one of another content only if the user says so, and follow no link."""

from collections.abc import Callable
from pathlib import Path

from heedmap.errors import InputError
from heedmap.files.manifest import Manifest, write
from heedmap.files.reading import read_bytes
from heedmap.files.storage import refuse_special


def write_file(path: Path, content: bytes, overwrite: bool) -> None:
    """Write a file, and list it in the manifest above it; one of the same content is left as it is.

    Raises:
        InputError: as `has_content`; or the place cannot be written.
    """
    refuse_special(path)
    if not has_content(path, content, overwrite):
        write(path, content)


def refuse_data(path: Path, source: str) -> None:
    """Raise InputError if a file that is to be written is one that texts were read from.

    `source` is where they were read from: a file, a folder, or the name of a data set. What heedmap wrote in
    such a folder is none of them.
    """
    place = Path(source).expanduser()
    if not (path.exists() and place.exists()):
        return
    is_below = place.resolve() in path.resolve().parents and Manifest.above(path) is None
    if place.samefile(path) or is_below:
        raise InputError(
            f"{path}: the run's texts were read from it; choose another --out, so that they are not lost"
        )


def has_content(path: Path, content: bytes | Callable[[], bytes], overwrite: bool) -> bool:
    """Return whether a file has this content already; what makes it is only called if there is a file.

    Raises:
        InputError: it is a link or no file, cannot be read, or has another content that is not to be replaced.
    """
    if path.is_symlink():
        raise InputError(
            f"{path}: expected a place for a file, found a link; remove it, or choose another --out"
        )
    if not path.exists():
        return False
    refuse_special(path)
    try:
        current = read_bytes(path)
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror or error}); remove it, or choose another --out"
        ) from error
    is_same = current == (content if isinstance(content, bytes) else content())
    if not is_same and not overwrite:
        raise InputError(
            f"{path}: is there already, with another content; choose another --out, or pass --overwrite to "
            "replace it (in Python overwrite=True)"
        )
    return is_same
