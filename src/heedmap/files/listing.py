"""What a manifest says: each file by name, size and SHA-256."""

import hashlib
import json
import os
from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import ConfigDict, TypeAdapter

from heedmap.errors import InputError
from heedmap.files.reading import open_regular

BEGINNING = b'{\n "heedmap"'  # tells our manifest from those of other programs
SPECIAL = "a pipe, a socket or a device"


@dataclass(frozen=True)
class File:
    """A file's size in bytes and SHA-256."""

    __pydantic_config__ = ConfigDict(extra="forbid")
    size: int
    sha256: str

    @classmethod
    def of(cls, content: bytes) -> "File":
        """Return that of a content."""
        return cls(len(content), hashlib.sha256(content).hexdigest())

    @classmethod
    def at(cls, path: Path) -> "File | None":
        """Return that of a regular file; None if there is none.

        Raises:
            InputError: a link, a folder, a pipe or a device is in its place, or it cannot be read.
        """
        try:
            if path.is_symlink():
                raise taken(path, "a link")
            with open_regular(path) as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
                return cls(os.fstat(file.fileno()).st_size, digest)
        except FileNotFoundError:
            return None
        except OSError as error:
            if path.is_file():
                raise InputError(
                    f"{path}: cannot be read ({error.strerror or error}); make it readable, or choose another "
                    "folder"
                ) from error
            raise taken(path, "a folder" if path.is_dir() else SPECIAL) from error


@dataclass
class Listing:
    """The content of a manifest; names are relative to its folder, with slashes.

    `tables` is the identity of what the tables were computed from, `settings` that of the settings without the
    places of their data. `folders` are folders in this one with manifests of their own. `replaced`: what files
    were that are being replaced.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")
    heedmap: Literal[1] = 1
    tables: str = ""
    settings: str = ""
    folders: list[str] = field(default_factory=list)
    files: dict[str, File] = field(default_factory=dict)
    replaced: dict[str, File] = field(default_factory=dict)

    def versions(self, name: str) -> list[File]:
        """Return what a file may be: as it was written, or while it is being replaced."""
        return [files[name] for files in (self.files, self.replaced) if name in files]

    def settle(self, name: str) -> None:
        """Forget what a file was that has been replaced."""
        self.replaced.pop(name, None)

    def below(self, names: Collection[str]) -> list[str]:
        """Return the listed files of these names, and those in folders of these names."""
        return [
            file
            for file in self.files
            if any(file == name or file.startswith(f"{name}/") for name in names)
        ]

    def add(self, other: "Listing") -> None:
        """Add what another one lists; where both list a file, the other is right."""
        self.tables, self.settings = other.tables or self.tables, other.settings or self.settings
        self.folders = sorted({*self.folders, *other.folders})
        self.files |= other.files
        self.replaced |= other.replaced

    def without(self, other: "Listing") -> "Listing":
        """Return what this one lists and the other does not."""
        return Listing(
            tables="" if self.tables == other.tables else self.tables,
            settings="" if self.settings == other.settings else self.settings,
            folders=[name for name in self.folders if name not in other.folders],
            files=dict(self.files.items() - other.files.items()),
            replaced=dict(self.replaced.items() - other.replaced.items()),
        )

    @classmethod
    def from_json(cls, content: bytes) -> "Listing":
        """Read manifest.json.

        Raises:
            ValueError: it is damaged, or another program's.
        """
        listing = _LISTING.validate_json(content)
        if not content.startswith(BEGINNING):
            raise ValueError("another program's, or emptied")
        if not all(map(_is_inside, (*listing.files, *listing.replaced, *listing.folders))):
            raise ValueError("names outside the folder")
        return listing

    def to_json(self) -> str:
        """Return the text of manifest.json: the same files give the same."""
        values = {key: value for key, value in asdict(self).items() if value}
        values["files"] = dict(sorted(values.get("files", {}).items()))
        return json.dumps(values, indent=1) + "\n"


_LISTING = TypeAdapter(Listing)


def taken(path: Path, kind: str) -> InputError:
    """Return the error that something which heedmap did not write is in a file's place."""
    return InputError(
        f"{path}: expected a place for a file of heedmap's, found {kind} that it did not write; move it away, "
        "or choose another folder"
    )


def _is_inside(name: str) -> bool:
    path = Path(name)
    is_plain = name == path.as_posix() and bool(path.parts) and not path.is_absolute()
    return is_plain and ".." not in path.parts
