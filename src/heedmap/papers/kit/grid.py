"""The cells of a paper's grid: in worker processes, or one after another in this one, with the same numbers."""

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
    """Run each cell; call `after` with it and what came of it, in the order of the cells, as soon as can be.

    A cell depends on no other, and keeps what it made: `run` reads what an earlier call has finished. So a
    reproduction that was stopped resumes in the cells it was stopped in, whatever runs them. A worker takes
    seconds to start: there is none for a single cell to make, nor where all are finished.

    Args:
        cells: to be run, or finished by an earlier call; `str(cell)` names one.
        run: of one cell, and a function that takes a text on how far it is (see `sweep`).
        after: writes what is made of all cells so far; always called in this process.
        is_finished: whether a cell needs no more than to be read.
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
