"""Run the cells of a paper's grid, in worker processes or in this one, with the same numbers."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from heedmap.errors import InputError
from heedmap.training.fit import Report
from heedmap.training.sweep import Tell, Work, one_thread, processes, sweep

C = TypeVar("C")
R = TypeVar("R")


def run_cells(
    cells: Sequence[C],
    run: Work[C, R],
    after: Callable[[C, R], None],
    *,
    is_finished: Callable[[C], bool],
    workers: int | None = None,
    report: Report = lambda done, total, text: None,
) -> None:
    """Run each cell; call `after(cell, result)` in the order of the cells, as soon as possible.

    Cells are independent and save their own results; `run` reads what an earlier call has finished. So a
    stopped reproduction resumes, with any number of workers. A worker takes seconds to start: there is none
    where at most one cell is unfinished.

    Args:
        cells: all of them, finished by an earlier call or not; `str(cell)` names one.
        run: computes a cell; its second argument takes a text on its progress (see `sweep`).
        after: writes the result of all cells so far; always called in this process.
        is_finished: whether a cell only needs to be read.
        workers: how many processes; None for one per core. Every cell has one thread, in this process too.
        report: called with cells done, cells in all and a text.

    Raises:
        InputError: of the first cell that raises one, with its name; or see `sweep`.
    """
    wanted = min(processes(workers), sum(not is_finished(cell) for cell in cells))
    if wanted > 1:
        sweep(cells, run, wanted, report, after)
        return
    for done, cell in enumerate(cells):
        after(cell, _run_here(cell, run, partial(report, done, len(cells))))
    report(len(cells), len(cells), "done")


def _run_here(cell: C, run: Work[C, R], tell: Tell) -> R:
    tell(str(cell))
    try:
        with one_thread():
            return run(cell, lambda text: tell(f"{cell}: {text}"))
    except InputError as error:
        raise InputError(f"{cell}: {error}") from error
