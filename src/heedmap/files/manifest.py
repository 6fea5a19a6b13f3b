"""What heedmap wrote in a folder: its manifest.json lists each file by name, size and SHA-256.

Only listed files are replaced or removed, and they are read only if they are unchanged. A file is listed before
it is written, and what it replaces stays listed until then: wherever a process is killed, the folder holds no
file of ours that is not listed. A listed file that somebody changed is never lost: it is renamed.

Jobs that other processes run at the same time, on other machines too, do not change a manifest.json that they
share: each lists its files in a manifest.JOB.json beside it (`listed_apart`), which `fold` adds to it later.

The functions of this module find the manifest in the folders above a file. Where there is none, as in a
temporary folder, they write, read and remove without one.
"""

import hashlib
import os
import stat
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from copy import deepcopy
from itertools import count
from pathlib import Path
from typing import BinaryIO

from heedmap.errors import InputError
from heedmap.files.listing import BEGINNING, SPECIAL, File, Listing, taken
from heedmap.files.locking import is_sole_writer
from heedmap.files.reading import open_regular, read_bytes
from heedmap.files.storage import (
    encoded,
    folder_written_whole,
    partial_of,
    replacing,
    write_atomically,
)
from heedmap.files.storage import remove as remove_unlisted

MANIFEST = "manifest.json"
_OF_JOB = "manifest.{}.json"
DEPTH = 5  # folders between a file and its manifest, at most
CHANGED = ".changed"  # ending of a file that is not as heedmap wrote it, and is in the way

_apart: ContextVar[str | None] = ContextVar("apart", default=None)


@contextmanager
def listed_apart(job: str) -> Iterator[None]:
    """List what is written in the block apart, for a job: not in folders whose sole writer this process is."""
    token = _apart.set(job)
    try:
        yield
    finally:
        _apart.reset(token)


class ChangedError(InputError):
    """A file is not as heedmap wrote it."""


class Manifest:
    """The manifest of one folder, which need not have one yet."""

    def __init__(self, root: Path) -> None:
        self.root, self.path = root, root / MANIFEST

    @classmethod
    def above(cls, path: Path) -> "Manifest | None":
        """Return the manifest of the nearest folder above a file that has one."""
        for folder in path.absolute().parents[:DEPTH]:
            with suppress(OSError), open_regular(folder / MANIFEST) as file:
                if file.read(len(BEGINNING)) == BEGINNING:
                    return cls(folder)
        return None

    @property
    def exists(self) -> bool:
        """Return whether the folder has a manifest, readable or not."""
        return os.path.lexists(self.path)

    def load(self) -> Listing:
        """Read the manifest with those of jobs; an empty one where there is none.

        Raises:
            InputError: one is damaged, or another program's.
        """
        # Jobs' first: `fold` removes them after it has written the manifest.
        of_jobs = [self._read(path) for path in self.of_jobs()]
        listing = self._read(self.path)
        for of_job in of_jobs:
            listing.add(of_job)
        return listing

    def of_jobs(self) -> list[Path]:
        """Return the paths of the manifests that jobs have beside this one."""
        return sorted(self.root.glob(_OF_JOB.format("*")))

    def _read(self, path: Path) -> Listing:
        try:
            return Listing.from_json(read_bytes(path))
        except FileNotFoundError:
            return Listing()
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(
                f"{path}: expected the list of the files that heedmap wrote here, cannot read it as that; "
                "choose another folder, or delete this one yourself if it is heedmap's"
            ) from error

    def start(self) -> None:
        """Make the manifest if there is none."""
        if self.exists:
            self.load()
        else:
            with replacing(self.path) as file:
                file.write(self._read(self.path).to_json().encode())

    def change(self, change: Callable[[Listing], None]) -> None:
        """Change the manifest; one process at a time does. Within `listed_apart`, change the job's."""
        job = _apart.get()
        if job is not None and not is_sole_writer(self.root):
            self._change_apart(self.root / _OF_JOB.format(job), change)
            return
        with replacing(self.path) as file:
            listing = self.load()
            change(listing)
            file.write(listing.to_json().encode())

    def _change_apart(self, path: Path, change: Callable[[Listing], None]) -> None:
        others = self._read(self.path)
        for other in self.of_jobs():
            if other != path:
                others.add(self._read(other))
        listing = deepcopy(others)
        listing.add(self._read(path))
        change(listing)
        write_atomically(path, listing.without(others).to_json())

    def fold(self, is_running: Callable[[str], bool] = lambda job: False) -> None:
        """Add the manifests of jobs to this one and remove them, but those of jobs that are running."""
        paths = [path for path in self.of_jobs() if not is_running(path.name.split(".", 1)[1][:-5])]
        if not paths:
            return
        with replacing(self.path) as file:
            listing = self._read(self.path)
            for path in paths:
                listing.add(self._read(path))
            file.write(listing.to_json().encode())
        for path in paths:
            path.unlink()

    def write(self, path: Path, content: bytes | str) -> None:
        """List a file and write it.

        Raises:
            InputError: something that heedmap did not write is in its place, or it cannot be written.
        """
        data, name = encoded(content), self._name(path)
        if self.claim({name: File.of(data)}):
            write_atomically(self.root / name, data)
            self.change(lambda listing: listing.settle(name))
        else:
            write_atomically(self.root / name, data)

    def write_stream(self, path: Path, write: Callable[[BinaryIO], None]) -> File:
        """List a file and write it, where the whole of it would be too large for the memory.

        `write` writes into the open file that it is given. Returns the file's size and hash.

        Raises:
            InputError: as `write`.
        """
        name = self._name(path)
        with replacing(path) as file:
            write(file)
            file.flush()
            written = File.at(partial_of(path))
            assert written is not None
            is_replaced = self.claim({name: written})
        if is_replaced:
            self.change(lambda listing: listing.settle(name))
        return written

    def claim(self, files: dict[str, File]) -> bool:
        """List files that are about to be written, and return whether any replaces another version.

        A file that was changed since it was listed is renamed.

        Raises:
            InputError: something that heedmap did not write is in a file's place, or a link above it.
        """

        replaced: list[str] = []

        def add(listing: Listing) -> None:
            for name, file in files.items():
                path = self.root / name
                if (link := self._link_above(path)) is not None:
                    raise taken(link, "a link")
                current, versions = File.at(path), listing.versions(name)
                listing.replaced.pop(name, None)
                if current not in (None, file):
                    if current in versions:
                        listing.replaced[name] = current
                        replaced.append(name)
                    elif versions:
                        _set_aside(path)
                    else:
                        raise taken(path, "a file")
                listing.files[name] = file

        self.change(add)
        return bool(replaced)

    def read(self, path: Path) -> bytes:
        """Read a file that is as heedmap wrote it.

        Raises:
            ChangedError: it is another one, or not listed.
            OSError: it is missing, or cannot be read.
        """
        content = read_bytes(path)
        self._check(path, File.of(content))
        return content

    def check(self, path: Path) -> None:
        """Check a file without keeping its content in memory; raises as `read`."""
        with open_regular(path) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            self._check(path, File(os.fstat(file.fileno()).st_size, digest))

    def _check(self, path: Path, file: File) -> None:
        listing, name = self.load(), self._name(path)
        if file not in listing.versions(name):
            raise ChangedError(
                f"{path}: not as heedmap wrote it, by the size and hash in {self.path}; bring it back, or "
                "delete it and run the same command again"
            )

    def remove(self, *names: str, keep: Collection[str] = ()) -> None:
        """Remove the listed files of these names, and those in folders of these names, in this order.

        Changed ones are renamed. Folders that are empty then are removed too.
        """
        listing = self.load()
        kept_files = {*listing.below(keep)}
        removed = [
            file for name in names for file in listing.below([name]) if file not in kept_files
        ]
        for name in removed:
            path = self.root / name
            if self.is_link(path):
                continue
            remove_unlisted(partial_of(path))
            try:
                current = File.at(path)
            except InputError:
                continue  # something else is in its place by now
            if current in listing.versions(name):
                path.unlink()
            elif current is not None:
                _set_aside(path)
        self.prune([self.root / name for name in (*removed, *names)])

        def drop(listing: Listing) -> None:
            for name in removed:
                listing.files.pop(name, None)
                listing.replaced.pop(name, None)

        if removed:
            self.change(drop)

    def prune(self, paths: Iterable[Path]) -> None:
        """Remove folders, and those above them in this one, if they are empty."""
        for path in paths:
            for folder in (path, *path.parents):
                if folder == self.root or folder.is_symlink():
                    break
                with suppress(OSError):
                    folder.rmdir()  # only an empty one

    def settle(self) -> None:
        """Take files off the list that are not there, and remove what killed processes left of the others.

        A file that was to be replaced, and was not, is listed as what it is. Nothing is done while there are
        manifests of jobs, which may be writing.
        """
        if self.of_jobs():
            return
        listing = self.load()
        for name in listing.files:
            path = self.root / name
            if self._link_above(path) is None:
                remove_unlisted(partial_of(path))
        gone = [name for name in listing.files if not os.path.lexists(self.root / name)]

        def drop(listing: Listing) -> None:
            for name, file in listing.replaced.items():
                if not self.is_link(self.root / name) and File.at(self.root / name) == file:
                    listing.files[name] = file
            for name in gone:
                listing.files.pop(name, None)
            listing.replaced.clear()

        if gone or listing.replaced:
            self.change(drop)
        self.prune([self.root / name for name in gone])

    def refuse_taken(self, names: Collection[str], whole: Collection[str] = ()) -> None:
        """Raise InputError if something that heedmap did not write is where it would write.

        Args:
            names: of files and folders. Users may have their own files in folders.
            whole: folders in which they may not.
        """
        listed = self.load().files
        for name in names:
            path = self.root / name
            try:
                mode = path.lstat().st_mode
            except FileNotFoundError:
                continue
            if stat.S_ISDIR(mode):
                files = [p for p in path.rglob("*") if not p.is_dir()] if name in whole else []
                foreign = [p for p in files if self._name(p) not in listed]
                if foreign:
                    raise taken(foreign[0], "a file")
            elif stat.S_ISLNK(mode):
                raise taken(path, "a link")
            elif not stat.S_ISREG(mode):
                raise taken(path, SPECIAL)
            elif name not in listed:
                raise taken(path, "a file")

    def others(self, names: Collection[str]) -> list[str]:
        """Return the files in folders of these names that are not listed."""
        listed = self.load().files
        files = (p for name in names for p in sorted((self.root / name).rglob("*")))
        return [self._name(p) for p in files if not p.is_dir() and self._name(p) not in listed]

    def is_link(self, path: Path) -> bool:
        """Return whether a file or a folder in this one is a link, or below one."""
        return path.is_symlink() or self._link_above(path) is not None

    def _name(self, path: Path) -> str:
        return path.absolute().relative_to(self.root.absolute()).as_posix()

    def _link_above(self, path: Path) -> Path | None:
        """Return the link between the folder and a file in it, if there is one."""
        between = [self.root / above for above in Path(self._name(path)).parents]
        return next((folder for folder in between[:-1] if folder.is_symlink()), None)


def write(path: Path, content: bytes | str) -> None:
    """Write a file and list it in the manifest above it (see `Manifest.write`)."""
    if (manifest := Manifest.above(path)) is None:
        write_atomically(path, content)
    else:
        manifest.write(path, content)


def read(path: Path) -> bytes:
    """Read a file that is as the manifest above it says (see `Manifest.read`)."""
    manifest = Manifest.above(path)
    return read_bytes(path) if manifest is None else manifest.read(path)


def check(path: Path) -> None:
    """Check that a file is as the manifest above it says (see `Manifest.check`)."""
    if (manifest := Manifest.above(path)) is not None:
        manifest.check(path)
    else:
        open_regular(path).close()


def listed_in(folder: Path, pattern: str) -> list[Path]:
    """Return the files in a folder that the manifest above it lists, or all where there is none, by name."""
    manifest = Manifest.above(folder)
    if manifest is None:
        return sorted(folder.glob(pattern))
    names = manifest.load().below([folder.absolute().relative_to(manifest.root).as_posix()])
    paths = (folder / Path(name).name for name in sorted(names))
    return [path for path in paths if path.match(pattern)]


def remove(path: Path) -> None:
    """Remove a file, or what is listed in a folder, by the manifest above it."""
    if (manifest := Manifest.above(path)) is None:
        remove_unlisted(path)
    else:
        manifest.remove(path.absolute().relative_to(manifest.root).as_posix())


@contextmanager
def folder_written(path: Path) -> Iterator[Path]:
    """Yield a temporary folder that becomes `path` (see `folder_written_whole`), with its files listed."""
    with folder_written_whole(path) as partial:
        yield partial
        if (manifest := Manifest.above(path)) is not None:
            place = path.absolute().relative_to(manifest.root)
            files = {
                (place / file.relative_to(partial)).as_posix(): File.of(read_bytes(file))
                for file in sorted(partial.rglob("*"))
                if file.is_file()
            }
            manifest.claim(files)


def _set_aside(path: Path) -> None:
    """Rename a file that is not as heedmap wrote it, and say so."""
    names = (f"{path.name}{CHANGED}{'' if i == 1 else f'-{i}'}" for i in count(1))
    target = next(
        path.with_name(name) for name in names if not os.path.lexists(path.with_name(name))
    )
    path.rename(target)
    # Without a line of the caller's source: it is about the file, not the code.
    said = f"{path}: not as heedmap wrote it; kept as {target.name}"
    warnings.warn_explicit(said, UserWarning, "<heedmap>", 1)
