"""Where a run goes: the folder that the user named, or one beside the others of its name; held for writing."""

from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from glob import escape
from itertools import count
from pathlib import Path

from heedmap.files.locking import BusyError, writing
from heedmap.files.storage import leftovers


@dataclass(frozen=True)
class DefaultPlace:
    """Where the user named no folder: `path`; path-2, path-3, ... where other runs stand before."""

    path: Path


Out = str | Path | DefaultPlace


@contextmanager
def reserve_folder(out: Out, mine: Callable[[Path], bool], own: Collection[str]) -> Iterator[Path]:
    """The folder of a run, held: the one that was named; else the one that is `mine`, or the first free one.

    Args:
        out: what the user named, or did not.
        mine: whether this very run stands in a folder.
        own: names of the files and folders that a run writes; what a killed one left of them is nothing.

    Raises:
        InputError: another process writes in it, or it cannot be made.
    """
    with ExitStack() as stack:
        if isinstance(out, DefaultPlace):
            yield _chosen(out.path, mine, own, stack)
        else:
            stack.enter_context(writing(Path(out)))
            yield Path(out)


def is_free(folder: Path, own: Collection[str]) -> bool:
    """Whether nothing stands there, but for what a killed process left."""
    if not folder.is_dir():
        return not folder.exists()
    return set(folder.iterdir()) <= set(leftovers(folder, own))


def _chosen(
    path: Path, mine: Callable[[Path], bool], own: Collection[str], stack: ExitStack
) -> Path:
    for folder in filter(mine, _standing(path)):
        stack.enter_context(writing(folder))
        return folder
    for number in count(1):
        folder = _numbered(path, number)
        if is_free(folder, own):
            with ExitStack() as attempt:
                try:
                    attempt.enter_context(writing(folder))
                except BusyError:
                    continue  # another run is just beginning there
                if is_free(folder, own):
                    stack.push(attempt.pop_all())
                    return folder
    raise AssertionError("there is always a next number")


def _standing(path: Path) -> list[Path]:
    ends = (p.name[len(path.name) + 1 :] for p in path.parent.glob(f"{escape(path.name)}-*"))
    return [
        path,
        *(_numbered(path, number) for number in sorted(int(e) for e in ends if e.isdigit())),
    ]


def _numbered(path: Path, number: int) -> Path:
    return path if number == 1 else path.with_name(f"{path.name}-{number}")
