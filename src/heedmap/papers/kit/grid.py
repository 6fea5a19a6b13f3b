"""The cells of a paper's grid, one after another."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

C = TypeVar("C")
R = TypeVar("R")
Report = Callable[[float, float, str], None]
"""Called with what is done, what there is to do in all, and a text."""


def run_cells(
    cells: Sequence[C], run: Callable[[C, Report], R], report: Report
) -> Iterator[tuple[C, R]]:
    """Run each cell; gives it with what came of it as soon as it is done.

    A cell depends on no other, and keeps what it made: `run` reads what an earlier call has finished. So a
    reproduction that was stopped resumes at the cell it was stopped in, in whatever order cells are run.

    Args:
        cells: to be run, or finished by an earlier call.
        run: of one cell; its own progress counts as a part of the cell's.
        report: called with cells done, cells in all and a text.
    """
    for at, cell in enumerate(cells):
        yield cell, run(cell, _of_cell(report, at, len(cells)))
    report(len(cells), len(cells), "done")


def _of_cell(report: Report, at: int, total: int) -> Report:
    return lambda step, steps, text: report(at + step / max(steps, 1), total, text)
