"""The engines of `--engine`: Dask, SLURM and Ray, each of which is an extra of heedmap."""

import logging
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from heedmap.errors import InputError, check_installed
from heedmap.training.remote import Executor, Future

OPTIONS = Path("engines.toml")
SLURM = "slurm"
LOGS = "slurm-logs"
RAY_TRIES = 3
HELP = "dask://HOST:PORT, slurm, or ray://HOST:PORT"


@contextmanager
def engine(name: str) -> Iterator[Executor]:
    """Give the executor of an engine, connected within the block.

    Args:
        name: dask://HOST:PORT of a scheduler, ray://HOST:PORT of a head node's client server, or slurm, with
            the options of submitit's `AutoExecutor` in the table [slurm] of `engines.toml`.

    Raises:
        InputError: an unknown engine, one that is not installed or does not answer, or a wrong option.
    """
    kind, _, address = name.partition("://")
    if kind == "dask" and address:
        check_installed("distributed", "dask", "--engine dask")
        import distributed

        connect: Any = distributed.Client
        try:
            client = connect(f"tcp://{address}", set_as_default=False)
        except (OSError, ValueError) as error:
            raise _no_answer(name, error) from error
        with client:
            yield _Dask(client)
    elif kind == "ray" and address:
        check_installed("ray", "ray", "--engine ray")
        import ray

        logging.getLogger("ray").setLevel(logging.WARNING)
        _connect_to_ray(name)
        try:
            yield _Ray()
        finally:
            ray.shutdown()
    elif name == SLURM:
        check_installed("submitit", "slurm", "--engine slurm")
        yield _slurm()
    else:
        raise InputError(f"--engine: expected {HELP}, got {name!r}")


def _connect_to_ray(name: str) -> None:
    """Connect, also where Ray fails to start its server for this client, as at times after another was killed.

    Raises:
        InputError: no answer.
    """
    import ray

    for tries_left in reversed(range(RAY_TRIES)):
        try:
            ray.init(name, log_to_driver=False)
            return
        except (OSError, ValueError, RuntimeError) as error:
            if not tries_left or not isinstance(error, ConnectionAbortedError):
                raise _no_answer(name, error) from error


def _no_answer(name: str, error: Exception) -> InputError:
    # Of a traceback that a server sends, the last line is its error.
    reason = (str(error).strip().splitlines() or [type(error).__name__])[-1]
    return InputError(f"--engine {name}: no answer ({reason}); start it, or check host and port")


def _slurm() -> Executor:
    from submitit import AutoExecutor

    options = _options()
    cluster, folder = options.pop("cluster", None), options.pop("folder", LOGS)
    try:
        executor = AutoExecutor(folder=folder, cluster=cluster)
        executor.update_parameters(**options)
    except (TypeError, ValueError, NameError, RuntimeError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"{OPTIONS}: [{SLURM}]: expected options of submitit's AutoExecutor ({reason})"
        ) from error
    result: Executor = executor
    return result


def _options() -> dict[str, Any]:
    """Read the table [slurm] of engines.toml in the current folder; nothing where there is no such file."""
    try:
        tables = tomllib.loads(OPTIONS.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise InputError(f"{OPTIONS}: cannot be read as TOML ({error})") from error
    options = tables.get(SLURM, {})
    if not isinstance(options, dict):
        raise InputError(f"{OPTIONS}: expected a table [{SLURM}], got {options!r}")
    return options


class _Dask:
    """Submits calls to Dask, which keeps no result of an equal call."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def submit(self, function: Any, /, *arguments: Any) -> Future:
        """Start a call; a job whose worker dies is submitted again by us, not by Dask."""
        future: Future = self._client.submit(function, *arguments, pure=False, retries=0)
        return future


class _Ray:
    """Submits calls as Ray tasks."""

    def submit(self, function: Any, /, *arguments: Any) -> Future:
        """Start a task of one core."""
        import ray

        task = ray.remote(num_cpus=1, max_retries=0)(function)
        return _RayFuture(task.remote(*arguments))


class _RayFuture:
    """A task of Ray."""

    def __init__(self, reference: Any) -> None:
        self._reference = reference

    def result(self) -> Any:
        """Wait for the task."""
        import ray

        return ray.get(self._reference)

    def cancel(self) -> None:
        """Cancel the task if it has not begun."""
        import ray

        ray.cancel(self._reference)
