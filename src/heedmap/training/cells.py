"""Run independent cells, in worker processes or in this one, with the same numbers; each keeps a part.

FOLDER/CELL.parquet        the rows of one cell; exists only when it is finished
FOLDER/CELL.safetensors    what was trained for them
FOLDER/CELL.checkpoints/   checkpoints of its trainings, until it is finished
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from heedmap.errors import InputError
from heedmap.files import manifest
from heedmap.files.tables import write_table
from heedmap.terminal.progress import in_cell, log_line, track
from heedmap.training.sweep import Job, one_thread, processes, sweep

CHECKPOINTS = ".checkpoints"
C = TypeVar("C")
R = TypeVar("R")


def run_cells(
    cells: Sequence[C],
    run: Job[C, R],
    after: Callable[[C, R], None],
    *,
    is_finished: Callable[[C], bool],
    workers: int | None = None,
) -> None:
    """Run each cell; call `after(cell, result)` in the order of the cells, as soon as possible.

    Cells are independent and save their own results; `run` reads what an earlier call has finished. So a
    stopped reproduction resumes, with any number of workers. A worker takes seconds to start: there is none
    where at most one cell is unfinished.

    Args:
        cells: all of them, finished by an earlier call or not; `str(cell)` names one.
        run: computes a cell.
        after: writes the result of all cells so far; always called in this process.
        is_finished: whether a cell only needs to be read.
        workers: how many processes; None for one per core. Every cell has one thread, in this process too.

    Raises:
        InputError: of the first cell that raises one, with its name; or see `sweep`.
    """
    wanted = min(processes(workers), sum(not is_finished(cell) for cell in cells))
    if wanted > 1:
        sweep(cells, run, wanted, after)
        return
    for done, cell in enumerate(track(cells), 1):
        after(cell, _run_here(cell, run))
        log_line(f"{cell} ({done} of {len(cells)})")


def _run_here(cell: C, run: Job[C, R]) -> R:
    try:
        with in_cell(str(cell)), one_thread():
            return run(cell)
    except InputError as error:
        raise InputError(f"{cell}: {error}") from error


def checkpoints_of(path: Path) -> Path:
    """Return the folder for a part's checkpoints, to be removed when the part is finished."""
    return path.with_suffix(CHECKPOINTS)


def save_part(path: Path, rows: pa.Table, modules: Mapping[str, nn.Module]) -> None:
    """Write the weights first and the table last, which marks the part as finished."""
    tensors: dict[str, Tensor] = {
        f"{name}.{key}": value.detach().cpu().contiguous()
        for name, module in modules.items()
        for key, value in module.state_dict().items()
    }
    manifest.write(path.with_suffix(".safetensors"), save_tensors(tensors))
    write_table(path, rows)
