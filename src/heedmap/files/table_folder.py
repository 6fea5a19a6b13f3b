"""A run's tables in its folder, each checked to belong to one model and one audit.

The run's manifest lists the files with their hashes, and the identity (`identity.py`) of what they were
computed from. A file that is not listed, or has another hash, counts as missing.
"""

from pathlib import Path

import pyarrow as pa

from heedmap.files.manifest import File, Listing, Manifest
from heedmap.files.reading import read_bytes
from heedmap.files.tables import parquet, read_table


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
        """Return whether a file is listed and exists."""
        return file in self._files and (self.folder / file).is_file()


def listed(folder: Path) -> tuple[str, dict[str, str]] | None:
    """Return the identity of what tables were computed from, and their hashes; None if it is not known.

    Raises:
        InputError: the run's manifest is damaged.
    """
    listing = Manifest(folder.parent).load()
    if not listing.tables:
        return None
    names = listing.below([folder.name])
    return listing.tables, {name.split("/", 1)[1]: listing.files[name].sha256 for name in names}


def clear(folder: Path) -> None:
    """Remove what an audit has written.

    Raises:
        InputError: it cannot be removed.
    """
    manifest = Manifest(folder.parent)

    def forget(listing: Listing) -> None:
        listing.tables = ""

    manifest.change(forget)
    manifest.remove(folder.name)
