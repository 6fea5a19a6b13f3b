"""Run independent jobs, in worker processes or in this one, with the same numbers; each keeps a part.

FOLDER/JOB.parquet        the rows of one job; exists only when it is finished
FOLDER/JOB.safetensors    what was trained for them
FOLDER/JOB.checkpoints/   checkpoints of its trainings, until it is finished
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
from heedmap.terminal.progress import in_job, log_line, track
from heedmap.training.sweep import Work, one_thread, processes, sweep

CHECKPOINTS = ".checkpoints"
C = TypeVar("C")
R = TypeVar("R")


def run_jobs(
    jobs: Sequence[C],
    run: Work[C, R],
    after: Callable[[C, R], None],
    *,
    is_finished: Callable[[C], bool],
    workers: int | None = None,
) -> None:
    """Run each job; call `after(job, result)` in the order of the jobs, as soon as possible.

    Jobs are independent and save their own results; `run` reads what an earlier call has finished. So a
    stopped reproduction resumes, with any number of workers. A worker takes seconds to start: there is none
    where at most one job is unfinished.

    Args:
        jobs: all of them, finished by an earlier call or not; `str(job)` names one.
        run: computes a job.
        after: writes the result of all jobs so far; always called in this process.
        is_finished: whether a job only needs to be read.
        workers: how many processes; None for one per core. Every job has one thread, in this process too.

    Raises:
        InputError: of the first job that raises one, with its name; or see `sweep`.
    """
    wanted = min(processes(workers), sum(not is_finished(job) for job in jobs))
    if wanted > 1:
        sweep(jobs, run, wanted, after)
        return
    for done, job in enumerate(track(jobs), 1):
        after(job, _run_here(job, run))
        log_line(f"{job} ({done} of {len(jobs)})")


def _run_here(job: C, run: Work[C, R]) -> R:
    try:
        with in_job(str(job)), one_thread():
            return run(job)
    except InputError as error:
        raise InputError(f"{job}: {error}") from error


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
