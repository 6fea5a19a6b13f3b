"""Run independent jobs, in worker processes or in this one, with the same numbers; each keeps a part.

FOLDER/JOB.parquet        the rows of one job; exists only when it is finished
FOLDER/JOB.safetensors    what was trained for them
FOLDER/JOB.checkpoints/   checkpoints of its trainings, until it is finished
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from heedmap.errors import InputError
from heedmap.files import manifest
from heedmap.files.tables import write_table
from heedmap.terminal.progress import in_job, log_line, track
from heedmap.training.remote import current_executor, run_on
from heedmap.training.shards import (
    Shard,
    current_shard,
    end_part,
    require_finished,
    run_apart,
)
from heedmap.training.sweep import Work, one_thread, processes, sweep

CHECKPOINTS = ".checkpoints"
C = TypeVar("C")
R = TypeVar("R")


def run_jobs(
    jobs: Sequence[C],
    run: Work[C, R],
    after: Callable[[C, R], None],
    *,
    folder: Path,
    is_finished: Callable[[C], bool],
    workers: int | None = None,
    more: bool = False,
    here: bool = False,
) -> None:
    """Run each job; call `after(job, result)` in the order of the jobs, as soon as possible.

    Jobs are independent and save their own results; `run` reads what an earlier call has finished. So a
    stopped reproduction resumes, with any number of workers. A worker takes seconds to start: there is none
    where at most one job is unfinished.

    Args:
        jobs: all of them, finished by an earlier call or not; `str(job)` names one.
        run: computes a job.
        after: writes the result of all jobs so far; always called in this process.
        folder: where all jobs save their results.
        is_finished: whether a job only needs to be read.
        workers: how many processes; None for one per core. An executor takes their place, if there is one
            (`training.remote`). Every job has one thread, in this process too.
        here: whether the jobs are brief and run in this process, wherever others run.
        more: whether further jobs need these, so that a shard goes on with them once all of these are finished.

    Raises:
        InputError: of the first job that raises one, with its name; or see `sweep`.
        ShardEnd: this command is a shard (`training.shards`) whose part of the jobs is finished.
    """
    if not here and (shard := current_shard()) is not None:
        _run_part(shard, jobs, run, is_finished, workers)
        end_part(shard, jobs, is_finished, more)
    if not here:
        require_finished(jobs, is_finished)
    if not here and (executor := current_executor()) is not None:
        run_on(executor, jobs, run, after, folder=folder, is_finished=is_finished)
        return
    wanted = min(1 if here else processes(workers), sum(not is_finished(job) for job in jobs))
    if wanted > 1:
        sweep(jobs, run, wanted, after)
        return
    for done, job in enumerate(track(jobs), 1):
        after(job, _run_here(job, run))
        log_line(f"{job} ({done} of {len(jobs)})")


def _run_part(
    shard: Shard,
    jobs: Sequence[C],
    run: Work[C, R],
    is_finished: Callable[[C], bool],
    workers: int | None,
) -> None:
    unfinished = [job for job in shard.part(jobs) if not is_finished(job)]
    work = partial(run_apart, run=run, folder=shard.folder)
    shard.setup.close()
    if (wanted := min(processes(workers), len(unfinished))) > 1:
        sweep(unfinished, work, wanted)
    else:
        for done, job in enumerate(track(unfinished), 1):
            _run_here(job, work)
            log_line(f"{job} ({done} of {len(unfinished)})")


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
