"""The papers: each folder of `heedmap.papers` is the paper of that name.

papers/some_paper/__init__.py   which paper it is
papers/some_paper/command.py    `command`, its options; quick to import, so that `--help` is
papers/some_paper/paper.py      `PAPER`, a `Paper`, and its experiments
papers/some_paper/debate.py     `PARTS`, if it asks its questions of any texts (see `kit.debate_part`)
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
# Every reproduction has this file and no run does: without it, no paper, slow to import, is asked.
RESULT = "result.md"


@dataclass(frozen=True)
class Paper(Generic[F]):
    """A paper that can be reproduced; its result is a function of F.

    `read` reads F from a folder, None where there is no reproduction of this paper; `result` compares it with
    the published numbers: tables, claims and figures.
    """

    read: Callable[[Path], F | None]
    result: Callable[[F], "Result"]


def names() -> list[str]:
    """Return the names of all papers, as `heedmap reproduce` takes them."""
    modules = (module.name for module in iter_modules(papers.__path__) if module.ispkg)
    return sorted(name.replace("_", "-") for name in modules if name != KIT)


def command(name: str) -> Callable[..., None]:
    """Return the function whose parameters are the options of `heedmap reproduce NAME`."""
    function: Callable[..., None] = _module(name, "command").command
    return function


def paper(name: str) -> Paper[Any]:
    """Return a paper by its name."""
    registered: Paper[Any] = _module(name, "paper").PAPER
    return registered


def figures(folder: Path) -> "list[Figure] | None":
    """Return the figures of the reproduction in a folder, None where there is none.

    Raises:
        InputError: the reproduction is damaged.
    """
    for known_paper in map(paper, names() if (folder / RESULT).exists() else ()):
        if (reproduction := known_paper.read(folder)) is not None:
            return known_paper.result(reproduction).figures
    return None


def _module(name: str, part: str) -> Any:
    return import_module(f"{papers.__name__}.{name.replace('-', '_')}.{part}")
