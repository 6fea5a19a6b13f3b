"""A run's tables in its folder, each checked to belong to one model and one audit.

The run's manifest lists the files with their hashes, and the identity (`identity.py`) of what they were
computed from. A file that is not listed, or has another hash, counts as missing.
"""

import json
from pathlib import Path

import pyarrow as pa

from heedmap.errors import InputError
from heedmap.files.manifest import File, Listing, Manifest
from heedmap.files.reading import read_bytes
from heedmap.files.tables import parquet, read_table

OLDER = "manifest.json"  # in `tables/` of older versions, with hashes alone


class TableFolder:
    """The files that an audit of this identity has written so far; `folder` is `tables/` of a run."""

    def __init__(self, folder: Path, identity: str) -> None:
        self.folder, self.identity = folder, identity
        self.manifest = Manifest(folder.parent)
        tables = listed(folder)
        self._files = {} if tables is None or tables[0] != identity else tables[1]

    def get(self, name: str) -> bytes | None:
        """Read a file; None if it is missing or not the one that was written."""
        try:
            content = read_bytes(self.folder / name)
        except OSError:
            return None
        return content if self._files.get(name) == File.of(content).sha256 else None

    def put(self, name: str, content: bytes) -> None:
        """List a file in the manifest and write it."""

        def take(listing: Listing) -> None:
            listing.tables = self.identity

        if self.manifest.load().tables != self.identity:
            self.manifest.change(take)
        self.manifest.write(self.folder / name, content)
        self._files[name] = File.of(content).sha256

    def table(self, name: str) -> pa.Table | None:
        """Read a table; None if it is missing.

        Raises:
            InputError: the file is not a table.
        """
        content = self.get(f"{name}.parquet")
        if content is None:
            return None
        return read_table(self.folder / f"{name}.parquet", content)

    def keep(self, name: str, content: pa.Table) -> None:
        """Write a table; the same table gives the same bytes."""
        self.put(f"{name}.parquet", parquet(content))

    def holds(self, file: str) -> bool:
        """Whether a file is listed and exists."""
        return file in self._files and (self.folder / file).is_file()


def listed(folder: Path) -> tuple[str, dict[str, str]] | None:
    """Return the identity of what tables were computed from, and their hashes; None if it is not known.

    Raises:
        InputError: the run's manifest is damaged.
    """
    listing = Manifest(folder.parent).load()
    if not listing.tables:
        return _older(folder)
    names = listing.below([folder.name])
    return listing.tables, {name.split("/", 1)[1]: listing.files[name].sha256 for name in names}


def _older(folder: Path) -> tuple[str, dict[str, str]] | None:
    """Read the list of the tables of an older version."""
    try:
        about = json.loads(read_bytes(folder / OLDER))
        return str(about["identity"]), {str(k): str(v) for k, v in about["files"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def clear(folder: Path) -> None:
    """Remove only what an audit is known to have written, the list of an older version first.

    Raises:
        InputError: it cannot be removed.
    """
    manifest = Manifest(folder.parent)

    def forget(listing: Listing) -> None:
        listing.tables = ""

    manifest.change(forget)
    manifest.remove(folder.name)


def older_files(folder: Path) -> tuple[str, dict[str, File]]:
    """Return identity and files of the tables of an older version, by their names in a manifest of the run."""
    if (older := _older(folder)) is None:
        return "", {}
    identity, hashes = older
    names = [name for name, sha256 in hashes.items() if _hash(folder / name) == sha256]
    files = {f"{folder.name}/{name}": File.at(folder / name) for name in (*names, OLDER)}
    return identity, {name: file for name, file in files.items() if file is not None}


def _hash(path: Path) -> str | None:
    try:
        file = File.at(path)
    except InputError:
        return None
    return None if file is None else file.sha256
