"""Choose and lock a run's folder: the one that the user named, or a free one with a default name."""

from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from glob import escape
from itertools import count
from pathlib import Path

from heedmap.errors import InputError
from heedmap.files.locking import BusyError, writing
from heedmap.files.manifest import MANIFEST, Manifest
from heedmap.files.storage import leftovers


@dataclass(frozen=True)
class DefaultPlace:
    """The default where the user named no folder: `path`, or path-2, path-3, ... if that is taken."""

    path: Path


Out = str | Path | DefaultPlace


@contextmanager
def reserve_folder(
    out: Out, holds_this_run: Callable[[Path], bool], run_files: Collection[str]
) -> Iterator[Path]:
    """Lock the folder of a run: the named one, else one that already holds this run, else the first free one.

    Args:
        out: the folder that the user named, or the default.
        holds_this_run: tells whether a folder holds this run.
        run_files: names of the files and folders that a run writes; a killed run's partial ones do not count.

    Raises:
        InputError: another process writes in the folder, or it cannot be made.
    """
    with ExitStack() as stack:
        if isinstance(out, DefaultPlace):
            yield _choose(out.path, holds_this_run, run_files, stack)
        else:
            path = Path(out).expanduser()
            stack.enter_context(writing(path))
            yield path


def is_free(folder: Path, run_files: Collection[str]) -> bool:
    """Return whether a folder is missing or empty, but for a manifest and what a killed process left."""
    if not folder.is_dir():
        return not folder.exists()
    manifest = Manifest(folder)
    ours = {*leftovers(folder, {*run_files, MANIFEST})}
    if manifest.exists:
        with suppress(InputError):
            manifest.load()
            ours.add(manifest.path)
    return {*folder.iterdir()} <= ours


def _choose(
    path: Path, holds_this_run: Callable[[Path], bool], run_files: Collection[str], stack: ExitStack
) -> Path:
    for folder in filter(holds_this_run, _existing(path)):
        stack.enter_context(writing(folder))
        return folder
    for number in count(1):
        folder = _numbered(path, number)
        # Asked before the lock, which makes a missing folder, and again under it: it may be taken meanwhile.
        if is_free(folder, run_files):
            with ExitStack() as attempt:
                try:
                    attempt.enter_context(writing(folder))
                except BusyError:
                    continue  # another run has just started there
                if is_free(folder, run_files):
                    stack.push(attempt.pop_all())
                    return folder
    raise AssertionError("there is always a next number")


def _existing(path: Path) -> list[Path]:
    ends = (p.name[len(path.name) + 1 :] for p in path.parent.glob(f"{escape(path.name)}-*"))
    return [
        path,
        *(_numbered(path, number) for number in sorted(int(e) for e in ends if e.isdigit())),
    ]


def _numbered(path: Path, number: int) -> Path:
    return path if number == 1 else path.with_name(f"{path.name}-{number}")
