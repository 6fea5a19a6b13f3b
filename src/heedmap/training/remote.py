"""Run jobs on an executor: an object with `submit()` that returns something with `result()`.

    with on_executor(Client("tcp://head:8786")):
        reproduce(corpus, out=...)

Workers and this process share the folder of the jobs. Beside it stands .NAME.jobs, with the work that all jobs
share, a lock per running job, and how far it is. A job whose worker was lost is submitted again; one that still
runs for a driver that was killed is waited for, since it holds its lock.
"""

import hashlib
import inspect
import json
import pickle
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial, wraps
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Protocol, TypeVar, runtime_checkable

from heedmap.errors import InputError, KindError
from heedmap.files.manifest import MANIFEST, Manifest
from heedmap.files.storage import remove, write_atomically
from heedmap.terminal.displays import Display
from heedmap.terminal.progress import at, log_line, shown_by
from heedmap.training.merging import fold
from heedmap.training.shards import file_name, jobs_folder, only_run, run_apart
from heedmap.training.sweep import Work, one_thread

C = TypeVar("C")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])

PROGRESS = ".progress"  # the ending of the file in which a job tells how far it is
TELL_EVERY = 1.0  # seconds between what a job tells of its progress
LOOK_EVERY = 0.5  # seconds between looks at what jobs tell
TIMES_LOST = 3  # submissions of a job whose worker is lost each time


@runtime_checkable
class Future(Protocol):
    """What an executor returns for a submitted call."""

    def result(self) -> Any:
        """Wait for the call and return its result."""


@runtime_checkable
class Executor(Protocol):
    """What runs calls elsewhere: of `concurrent.futures`, of Dask, of submitit, or any other of this kind."""

    def submit(self, function: Any, /, *arguments: Any) -> Future:
        """Start a call."""


_executor: ContextVar[Executor | None] = ContextVar("executor", default=None)


def current_executor() -> Executor | None:
    """Return the executor that runs the jobs of this command, if it is not this machine's processes."""
    return _executor.get()


@contextmanager
def on_executor(executor: Executor | None) -> Iterator[None]:
    """Run the jobs in the block on an executor; None for processes of this machine.

    Raises:
        KindError: it is no executor.
    """
    if executor is not None and not isinstance(executor, Executor):
        raise KindError(
            "executor: expected an object with submit(function, *arguments), such as Dask's Client or a "
            f"ProcessPoolExecutor; got {type(executor).__name__}"
        )
    token = _executor.set(executor)
    try:
        yield
    finally:
        _executor.reset(token)


def takes_executor(function: F) -> F:
    """Add `executor` to a function with jobs: where they run instead of in `workers` processes."""

    @wraps(function)
    def run(*arguments: Any, executor: Executor | None = None, **options: Any) -> Any:
        if executor is None:
            return function(*arguments, **options)
        with on_executor(executor):
            return function(*arguments, **options)

    signature = inspect.signature(function)
    added = inspect.Parameter(
        "executor", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Executor | None
    )
    parameters = [*signature.parameters.values()]
    index = next(
        (i for i, p in enumerate(parameters) if p.kind == inspect.Parameter.VAR_KEYWORD),
        len(parameters),
    )
    run.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*parameters[:index], added, *parameters[index:]]
    )
    return run  # type: ignore[return-value]


def run_on(
    executor: Executor,
    jobs: Sequence[C],
    run: Work[C, R],
    after: Callable[[C, R], None],
    *,
    folder: Path,
    is_finished: Callable[[C], bool],
) -> None:
    """Run the jobs that are not finished on an executor; see `heedmap.training.jobs.run_jobs`.

    Raises:
        InputError: the first that a job raises, with its name; or its worker was lost several times.
        OSError: as a job raises it.
        RuntimeError: any other error of a job, its traceback in a note.
    """
    place = jobs_folder(folder)
    content = pickle.dumps(partial(run_apart, run=run, folder=folder.absolute()))
    digest = hashlib.sha256(content).hexdigest()
    work = place / f"{digest[:16]}.pickle"
    write_atomically(work, content)
    submitted = {
        index: _submit(executor, work, digest, job)
        for index, job in enumerate(jobs)
        if not is_finished(job)
    }
    waiting, names = dict(submitted), {file_name(job): str(job) for job in jobs}
    try:
        for index, job in enumerate(jobs):
            if index not in submitted:
                # A worker of a driver that was killed may have written the result and not yet ended.
                with one_thread(), only_run(job, folder):
                    result = run(job)
                after(job, result)
                continue
            outcome: Any = None
            for _ in range(TIMES_LOST):
                outcome = _awaited(waiting[index], names, place, len(jobs) - len(waiting))
                if not isinstance(outcome, _Lost):
                    break
                waiting[index] = _submit(executor, work, digest, job)
            del waiting[index]
            result = _checked(outcome, job)
            log_line(f"{job} ({len(jobs) - len(waiting)} of {len(jobs)})")
            after(job, result)
    finally:
        for future in waiting.values():
            with suppress(Exception):
                getattr(future, "cancel", lambda: None)()
    at(1, 1)
    above = Manifest.above(folder / MANIFEST)
    if above is not None:
        fold(above.root)
    remove(place)


def _submit(executor: Executor, work: Path, digest: str, job: object) -> Future:
    try:
        return executor.submit(run_remotely, str(work), digest, job)
    except Exception as error:  # of any kind, by the executor
        reason = (str(error).splitlines() or [""])[0]
        raise InputError(
            f"{job}: the executor takes no job ({type(error).__name__}: {reason}); finished jobs are kept, "
            "start it again and run the same command again to resume"
        ) from error


class _Lost(Exception):
    """An executor has no result of a job."""


def _awaited(future: Future, names: Mapping[str, str], place: Path, done: int) -> Any:
    """Return what `run_remotely` has returned, and show meanwhile how far the jobs are.

    `names` are those of the jobs by those of their files. Jobs that do not run have no file of progress.
    """
    box: SimpleQueue[Any] = SimpleQueue()

    def wait() -> None:
        try:
            box.put(future.result())
        except BaseException as error:  # of any kind, by the executor
            box.put(_Lost(f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"))

    Thread(target=wait, daemon=True).start()
    while True:
        try:
            return box.get(timeout=LOOK_EVERY)
        except Empty:
            told = {path.stem: _told(path) for path in place.glob(f"*{PROGRESS}")}
            running = [
                (share, f"{job}: {text}" if text else job)
                for name, job in names.items()
                for share, text in [told.get(name, (None, ""))]
                if share is not None
            ]
            at(
                done + sum(share for share, _ in running),
                len(names),
                "; ".join(text for _, text in running),
            )


def _told(path: Path) -> tuple[float | None, str]:
    try:
        share, text = json.loads(path.read_text(encoding="utf-8"))
        return float(share), str(text)
    except (OSError, ValueError, TypeError):
        return None, ""


def _checked(outcome: Any, job: object) -> Any:
    """Return the result of a job, after the warnings that it gave, or raise its error."""
    if isinstance(outcome, _Lost):
        raise InputError(
            f"{job}: its worker was lost {TIMES_LOST} times ({outcome}); finished jobs are kept, run the same "
            "command again to resume"
        )
    kind, content, said = outcome
    for category, text in said:
        warnings.warn_explicit(f"{job}: {text}", category, "<heedmap>", 1)
    if kind == "input error":
        raise InputError(f"{job}: {content}")
    if kind == "system error":
        raise OSError(*content)
    if kind == "error":
        error = RuntimeError(f"{job}: {content[0]}")
        error.add_note(content[1])
        raise error
    return content


def run_remotely(
    work: str, digest: str, job: Any
) -> tuple[str, Any, list[tuple[type[Warning], str]]]:
    """Run a job in a worker; return its result or its error, and its warnings.

    `digest` is the SHA-256 of the file of the work, as the driver wrote it: no other file is unpickled.
    """
    path = Path(work)
    progress = path.parent / f"{file_name(job)}{PROGRESS}"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        kind, content = _run(path, digest, job, progress)
    with suppress(OSError):
        progress.unlink(missing_ok=True)
    return kind, content, [(one.category, str(one.message)) for one in caught]


def _run(path: Path, digest: str, job: Any, progress: Path) -> tuple[str, Any]:
    try:
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != digest:
            raise InputError(
                f"{path}: not as the driver wrote it; run the command again, one driver at a time"
            )
        run = pickle.loads(content)  # noqa: S301 - the driver's own, by its hash
        with one_thread(), shown_by(_ToFile(progress)):
            return "result", run(job)
    except InputError as error:
        return "input error", str(error)
    except Exception as error:
        if isinstance(error, OSError) and error.strerror:
            return "system error", (error.errno, error.strerror, error.filename)
        message = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
        return "error", (message, traceback.format_exc())


class _ToFile(Display):
    """Writes a job's progress beside its lock, where the driver reads it."""

    def __init__(self, path: Path) -> None:
        self._path, self._told = path, 0.0

    def move(self, done: float, text: str, seconds_left: float | None) -> None:
        """Write it now and then."""
        if time.monotonic() - self._told >= TELL_EVERY:
            self._told = time.monotonic()
            with suppress(InputError):
                write_atomically(self._path, json.dumps([done, text]))
