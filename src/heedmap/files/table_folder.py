"""A run's tables in its folder, each checked to belong to one model and one audit.

The run's manifest lists the files with their hashes, and the identity (`identity.py`) of what they were
computed from. A file that is not listed, or has another hash, counts as missing.
"""

from collections.abc import Iterator
from copy import copy
from pathlib import Path

import pyarrow as pa

from heedmap.files.listing import File, Listing
from heedmap.files.manifest import Manifest
from heedmap.files.reading import read_bytes
from heedmap.files.tables import (
    groups_of,
    holds_wide,
    is_wide,
    mapped_table,
    parquet,
    read_table,
    row_groups,
)

LARGE = 1 << 22  # bytes of a file


class TableFolder:
    """The files that an audit of this identity has written so far.

    `root` is `tables/` of a run, `folder` where the files stand: there, or in a folder of it (see `part`).
    """

    def __init__(self, folder: Path, identity: str) -> None:
        self.root = self.folder = folder
        self.identity = identity
        self.manifest = Manifest(folder.parent)
        self._files: dict[str, str] = {}
        self.refresh()

    def refresh(self) -> None:
        """Look again which files are listed, where other processes write too."""
        tables = listed(self.root)
        self._files.clear()
        if tables is not None and tables[0] == self.identity:
            self._files |= tables[1]

    def part(self, name: str) -> "TableFolder":
        """Return a folder in this one, for tables of some of the texts; one manifest lists both's files."""
        part = copy(self)
        part.folder = self.folder / name
        return part

    def get(self, name: str) -> bytes | None:
        """Read a file; None if it is missing or not the one that was written."""
        try:
            content = read_bytes(self.folder / name)
        except OSError:
            return None
        return content if self._hash_of(name) == File.of(content).sha256 else None

    def put(self, name: str, content: bytes) -> None:
        """List a file in the manifest and write it."""
        self.claim()
        self.manifest.write(self.folder / name, content)
        self._files[self._listed_name(name)] = File.of(content).sha256

    def table(self, name: str) -> pa.Table | None:
        """Read a table; None if it is missing. Of a large one the values are read when they are asked for.

        Raises:
            InputError: the file is not a table.
        """
        path = self.folder / f"{name}.parquet"
        if self._is_large(path):
            file = File.at(path)
            is_ours = file is not None and self._hash_of(path.name) == file.sha256
            return mapped_table(path) if is_ours else None
        content = self.get(path.name)
        if content is None:
            return None
        return mapped_table(path) if holds_wide(content) else read_table(path, content)

    def keep(self, name: str, content: pa.Table) -> None:
        """Write a table, a wide one in groups of rows; the same table gives the same bytes."""
        if is_wide(content.num_rows, content.num_columns):
            groups = groups_of(content.num_rows)
            self.keep_parts(name, (content.slice(start, end - start) for start, end in groups))
        else:
            self.put(f"{name}.parquet", parquet(content))

    def keep_parts(self, name: str, parts: Iterator[pa.Table]) -> None:
        """Write a table part by part, each a group of rows; the same parts give the same bytes."""
        self.claim()
        path = self.folder / f"{name}.parquet"
        written = self.manifest.write_stream(path, lambda file: row_groups(file, parts))
        self._files[self._listed_name(path.name)] = written.sha256

    def holds(self, file: str) -> bool:
        """Return whether a file is listed and exists."""
        return self._hash_of(file) is not None and (self.folder / file).is_file()

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with its files."""
        listed_name = self._listed_name(name)
        self.manifest.remove(f"{self.root.name}/{listed_name}")
        for file in [f for f in self._files if f == listed_name or f.startswith(f"{listed_name}/")]:
            del self._files[file]

    def claim(self) -> None:
        """Say in the manifest that the tables are of this identity."""

        def take(listing: Listing) -> None:
            listing.tables = self.identity

        if self.manifest.load().tables != self.identity:
            self.manifest.change(take)

    def _listed_name(self, name: str) -> str:
        return (self.folder / name).relative_to(self.root).as_posix()

    def _hash_of(self, name: str) -> str | None:
        return self._files.get(self._listed_name(name))

    @staticmethod
    def _is_large(path: Path) -> bool:
        try:
            return path.stat().st_size > LARGE
        except OSError:
            return False


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
