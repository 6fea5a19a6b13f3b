"""Divide the jobs of a command among several calls of it, the shards, that share a folder.

    with in_shard(Shard(2, 4, folder)):     # the second of four parts
        reproduce(..., out=folder)          # raises `ShardEnd` instead of writing the result

Beside the folder NAME stands .NAME.jobs with the locks of the shards:

    setup.lock   held by a shard but while it runs its jobs: what all need is made once
    JOB.lock     held by who runs a job

One that has been killed is given again and goes on. The call that writes the result (`merging`) runs no job.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from heedmap.errors import InputError
from heedmap.files.lock_file import lock_file
from heedmap.files.locking import sharing
from heedmap.files.manifest import listed_apart
from heedmap.terminal.progress import doing

C = TypeVar("C")
R = TypeVar("R")
LONGEST_NAME = 60  # characters of a job's name in that of its lock
MOST_NAMED = 20  # jobs that an error names


class ShardEnd(Exception):
    """The jobs of a shard are finished."""


class MissingJobs(InputError):
    """Jobs are not finished whose results are to be gathered."""


@dataclass
class Shard:
    """The `number`-th of `count` parts of the jobs for a folder. `ends` says what it has done."""

    number: int
    count: int
    folder: Path
    ends: list[str] = field(default_factory=list)
    setup: ExitStack = field(default_factory=ExitStack)

    def __str__(self) -> str:
        return f"shard {self.number}/{self.count}"

    def part(self, jobs: Sequence[C]) -> list[C]:
        """Return its part of the jobs: every `count`-th, so that long ones of a kind are spread."""
        return [*jobs[self.number - 1 :: self.count]]

    def lock(self) -> None:
        """Let no other shard set up what all need until `setup` is closed."""
        self.setup.close()  # a shard that ended before its jobs were known still holds it
        lock = jobs_folder(self.folder) / "setup.lock"
        self.setup.enter_context(
            lock_file(lock, lambda holder: doing(f"waiting for another shard, on {holder}"))
        )


_shard: ContextVar[Shard | None] = ContextVar("shard", default=None)
_merges: ContextVar[bool] = ContextVar("merges", default=False)


def current_shard() -> Shard | None:
    """Return the shard that this command is, if it is one."""
    return _shard.get()


@contextmanager
def in_shard(shard: Shard) -> Iterator[None]:
    """Run only a shard's part of the jobs in the block.

    Raises:
        ShardEnd: always, unless there were no jobs in the block.
    """
    token = _shard.set(shard)
    try:
        with sharing(), shard.setup:
            shard.lock()
            yield
            end_shard()
    finally:
        _shard.reset(token)


@contextmanager
def merging() -> Iterator[None]:
    """Run no jobs in the block: an unfinished one is an error."""
    token = _merges.set(True)
    try:
        yield
    finally:
        _merges.reset(token)


def is_divided() -> bool:
    """Return whether this command is a shard or gathers what shards have made."""
    return _shard.get() is not None or _merges.get()


def require_finished(jobs: Sequence[C], is_finished: Callable[[C], bool]) -> None:
    """Check that no job is missing where a command gathers what shards have made.

    Raises:
        MissingJobs: some are, with their names.
    """
    if not _merges.get():
        return
    missing = [job for job in jobs if not is_finished(job)]
    if missing:
        names = "; ".join(map(str, missing[:MOST_NAMED]))
        rest = f"; and {len(missing) - MOST_NAMED} more" if len(missing) > MOST_NAMED else ""
        raise MissingJobs(
            f"{len(missing)} of {len(jobs)} jobs are not finished: {names}{rest}; run their shards again"
        )


def end_shard(text: str = "") -> None:
    """End the command if it is a shard: its part of the jobs is done.

    Raises:
        ShardEnd: it is one that has run jobs, or `text` says that there is nothing to run.
    """
    if (shard := _shard.get()) is None:
        return
    if ends := [*shard.ends, *([text] if text else [])]:
        raise ShardEnd(f"{shard}: {'; '.join(ends)}")


def end_part(
    shard: Shard, jobs: Sequence[C], is_finished: Callable[[C], bool], more: bool = False
) -> None:
    """Note what a shard has done; return if all jobs are finished that the next ones need.

    Raises:
        ShardEnd: some are not, or there are no next ones.
    """
    unfinished = sum(not is_finished(job) for job in jobs)
    part_size = len(shard.part(jobs))
    text = f"its {part_size} of {len(jobs)} jobs {_verb(part_size)} finished"
    if unfinished:
        text += f", {unfinished} of other shards {_verb(unfinished)} not"
    if more and unfinished:
        text += "; when they are, give the command of each shard again: further jobs need them"
    shard.ends.append(text)
    if unfinished or not more:
        end_shard()
    shard.lock()


def _verb(count: int) -> str:
    return "is" if count == 1 else "are"


@contextmanager
def independent() -> Iterator[None]:
    """Where a shard ends within the block, go on after it: other jobs do not need the block's."""
    try:
        yield
    except ShardEnd:
        shard = _shard.get()
        assert shard is not None
        shard.lock()


def file_name(job: object) -> str:
    """Return a name for the files of a job: its own, and a hash of all that it holds."""
    words = re.sub(r"[^a-z0-9]+", "-", str(job).lower())[:LONGEST_NAME].strip("-")
    return f"{words}-{hashlib.sha256(repr(job).encode()).hexdigest()[:8]}"


def jobs_folder(folder: Path) -> Path:
    """Return the folder beside `folder` for what its jobs need while they run."""
    whole = folder.absolute()
    return whole.with_name(f".{whole.name}.jobs")


@contextmanager
def only_run(job: object, folder: Path) -> Iterator[None]:
    """Hold a job's lock, after waiting for a process that runs it."""
    lock = jobs_folder(folder) / f"{file_name(job)}.lock"
    with lock_file(lock, lambda holder: doing(f"waiting for {holder}, which runs it")):
        yield


def run_apart(job: C, *, run: Callable[[C], R], folder: Path) -> R:
    """Run a job beside others that run elsewhere, for the same folder; one that already runs is waited for."""
    with only_run(job, folder), listed_apart(file_name(job)), sharing(False):
        return run(job)
