"""Which papers there are: the folders of `heedmap.papers`, each a paper of that name.

papers/some_paper/__init__.py   which paper it is
papers/some_paper/command.py    `command`, its options; quick to import, so that `--help` is
papers/some_paper/paper.py      `PAPER`, a `Paper`, and its experiments
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from heedmap import papers

if TYPE_CHECKING:
    from heedmap.papers.kit.result import Result
    from heedmap.report.charts import Figure

F = TypeVar("F")
KIT = "kit"
# Every reproduction has one, and no run: the papers, which are slow to import, need not be asked.
RESULT = "result.md"


@dataclass(frozen=True)
class Paper(Generic[F]):
    """A paper that can be run again; F is all that its result is a function of.

    `read` gives what a reproduction found from its folder, None where none of this paper stands; `result` sets
    it beside the published numbers: tables, claims and figures.
    """

    read: Callable[[Path], F | None]
    result: Callable[[F], "Result"]


def names() -> list[str]:
    """Of all papers, as `heedmap reproduce` calls them."""
    found = (module.name for module in iter_modules(papers.__path__) if module.ispkg)
    return sorted(name.replace("_", "-") for name in found if name != KIT)


def command(name: str) -> Callable[..., None]:
    """The function whose parameters are the options of `heedmap reproduce NAME`."""
    found: Callable[..., None] = _module(name, "command").command
    return found


def paper(name: str) -> Paper[Any]:
    """A paper by its name."""
    found: Paper[Any] = _module(name, "paper").PAPER
    return found


def figures(folder: Path) -> "list[Figure] | None":
    """The figures of the reproduction that stands in a folder, None where there is none.

    Raises:
        InputError: what stands there is damaged.
    """
    for one in map(paper, names() if (folder / RESULT).exists() else ()):
        if (found := one.read(folder)) is not None:
            return one.result(found).figures
    return None


def _module(name: str, part: str) -> Any:
    return import_module(f"{papers.__name__}.{name.replace('-', '_')}.{part}")
