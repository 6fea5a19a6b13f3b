"""The folder of a reproduction whose cells are not runs of heedmap: settings, and a part per finished cell.

    OUT/manifest.json             what heedmap wrote here, with sizes and hashes
    OUT/settings.toml             everything that the rows depend on
    OUT/parts/CELL.parquet        the rows of one cell; exists only when it is finished
    OUT/parts/CELL.safetensors    what was trained for them
    OUT/parts/CELL.checkpoints/   checkpoints of its trainings, until it is finished
    OUT/result.*                  a function of all parts

An existing part is read, not computed again.
"""

import json
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import tomli_w

from heedmap.data.corpus import Corpus
from heedmap.errors import InputError
from heedmap.files import manifest
from heedmap.files.listing import Listing
from heedmap.files.manifest import MANIFEST, ChangedError, Manifest
from heedmap.files.reading import read_bytes, read_text
from heedmap.files.storage import leftovers, refuse_file, remove
from heedmap.papers.kit.render import FILES
from heedmap.runs.folder import RunFolder
from heedmap.runs.run_paths import Out, is_free, reserve_folder
from heedmap.settings.base import Settings
from heedmap.terminal.output import remark, some_of
from heedmap.training.jobs import CHECKPOINTS

SETTINGS, PARTS, ABOUT = "settings.toml", "parts", "data.json"
S = TypeVar("S", bound=Settings)
Row = dict[str, Any]


@contextmanager
def reserved(
    out: Out,
    settings: Settings,
    *,
    overwrite: bool = False,
    files: Sequence[str] = (),
    remedy: str = "choose another --out, or insist with --overwrite",
) -> Iterator[Path]:
    """Reserve the folder of a reproduction for writing, and remove what a killed one left.

    Args:
        out: the folder, or where to look for one (see `run_paths.reserve_folder`).
        settings: of the reproduction.
        overwrite: replace a reproduction with other settings; with these settings, restart unfinished cells.
        files: further files that it writes.
        remedy: what to do about a folder with other settings.

    Raises:
        InputError: the folder holds another reproduction (the differences are named), or something else;
            another process writes there.
    """
    # In the order of removal: the settings, which say whose the folder is, come last.
    names = (*FILES, *files, PARTS, SETTINGS)

    def is_ours(folder: Path) -> bool:
        try:
            return not read_settings(folder, type(settings)).difference(settings)
        except InputError:
            return False

    with reserve_folder(out, is_ours, names) as folder:
        _reserve(folder, settings, overwrite, names, remedy)
        yield folder
        Manifest(folder).settle()


def _reserve(
    folder: Path, settings: Settings, overwrite: bool, names: Sequence[str], remedy: str
) -> None:
    refuse_file(folder)
    path, files = folder / SETTINGS, Manifest(folder)
    if os.path.lexists(path):
        try:
            changed = read_settings(folder, type(settings)).difference(settings)
        except InputError:
            if not (overwrite and files.exists):
                raise
            changed = ["unreadable"]
        if changed and not overwrite:
            raise InputError(
                f"{folder}: holds a reproduction with other settings ({'; '.join(changed)}); {remedy}"
            )
        if not files.exists:
            raise InputError(
                f"{folder}: has no {MANIFEST} that lists what heedmap wrote there, as in older versions, so "
                "nothing is written or removed; delete the folder yourself, or choose another --out"
            )
        files.refuse_taken(names)
        if changed:
            _clear(folder, names)
    elif not is_free(folder, names):
        raise InputError(
            f"{folder}: holds files that are not a reproduction's; choose another --out"
        )
    files.start()
    if overwrite:
        parts = {name.split("/")[1] for name in files.load().below([PARTS])}
        files.remove(*(f"{PARTS}/{part}" for part in parts if part.endswith(CHECKPOINTS)))
    for old in leftovers(folder, names):
        remove(old)
    files.settle()
    text = tomli_w.dumps(settings.model_dump(exclude_none=True, mode="json"))
    if not path.exists() or read_text(path) != text:
        files.write(path, text)


def _clear(folder: Path, names: Sequence[str]) -> None:
    """Remove what the manifest lists, and the runs that were made for the reproduction; not the settings."""
    files = Manifest(folder)
    listing = files.load()
    for name in listing.folders:
        if (folder / name).is_dir() and not files.is_link(folder / name):
            RunFolder(folder / name).clear()
            files.prune([folder / name])
    listed = dict.fromkeys(name.split("/")[0] for name in listing.files)
    files.remove(*listed, keep=(SETTINGS,))
    if strangers := files.others([name for name in names if (folder / name).is_dir()]):
        remark(f"{folder}: left alone, for heedmap did not write them: {some_of(strangers)}")

    def forget(listing: Listing) -> None:
        listing.folders.clear()

    files.change(forget)


def run_folder(folder: Path, name: str) -> Path:
    """Return the folder of a run that is made for a reproduction, and list it: it is removed with it."""

    def add(listing: Listing) -> None:
        listing.folders = sorted({*listing.folders, name})

    files = Manifest(folder)
    if name not in files.load().folders:
        files.change(add)
    return folder / name


def read_settings(folder: Path, kind: type[S]) -> S:
    """Read the settings of the reproduction in a folder.

    Raises:
        InputError: none there, or not of this kind.
    """
    path = folder / SETTINGS
    try:
        files = Manifest(folder)
        content = files.read(path) if files.exists else read_bytes(path)
        return kind.of(**tomllib.loads(content.decode("utf-8")))
    except ChangedError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path}: cannot be read as the settings of this reproduction ({str(error).splitlines()[0]}); "
            "choose another --out"
        ) from error


def write_about(folder: Path, name: str, notes: Sequence[str]) -> None:
    """Write what the data are called in the result, and the notes on them."""
    manifest.write(folder / ABOUT, json.dumps({"name": name, "notes": notes}))


def read_about(folder: Path, kind: type[S]) -> tuple[S, str, list[str]] | None:
    """Read settings of this kind, and what `write_about` wrote; None if another paper's are there, or none."""
    if not (folder / ABOUT).exists():
        return None
    try:
        settings = read_settings(folder, kind)
        content = json.loads(manifest.read(folder / ABOUT))
        return settings, str(content["name"]), [str(note) for note in content["notes"]]
    except ChangedError:
        raise
    except (OSError, InputError, ValueError, KeyError, TypeError):
        return None


def check_single_texts(corpus: Corpus) -> None:
    """Check that a corpus is of single texts of words.

    Raises:
        InputError: it is of pairs, or of sentences.
    """
    if corpus.pairs or corpus.sentences:
        raise InputError(
            f"{corpus.settings.source}: expected single texts of words, got "
            f"{'pairs' if corpus.pairs else 'sentences'}"
        )


def left_out(corpus: Corpus) -> list[str]:
    """Return the note on what was left out of a corpus or cut, if anything was."""
    return left_out_of(corpus.left_out, "Left out or cut")


def left_out_of(counts: Mapping[str, int], words: str) -> list[str]:
    """Return the note on how much was left out by reason, if anything was."""
    reasons = "; ".join(f"{reason}: {count}" for reason, count in sorted(counts.items()))
    return [f"{words}: {reasons}."] if reasons else []


def sizes(corpus: Corpus) -> str:
    """Return the note on how many texts there are."""
    counts = ", ".join(f"{name} {len(split)}" for name, split in corpus.splits.items())
    return f"Texts of {corpus.name}: {counts}."
