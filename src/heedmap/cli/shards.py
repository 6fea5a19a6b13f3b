"""Where the jobs of a command run: `--shard` with `heedmap merge`, and `--engine`."""

import inspect
import os
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from heedmap.errors import InputError
from heedmap.terminal.output import say

SHARD = inspect.Parameter(
    "shard",
    inspect.Parameter.KEYWORD_ONLY,
    default=None,
    annotation=Annotated[
        str | None,
        typer.Option(
            "--shard",
            metavar="I/N",
            help="Run the I-th of N parts of the jobs and no more; `heedmap merge` writes the result.",
        ),
    ],
)
ENGINE = inspect.Parameter(
    "engine",
    inspect.Parameter.KEYWORD_ONLY,
    default=None,
    annotation=Annotated[
        str | None,
        typer.Option(
            "--engine",
            help="Run the jobs on a cluster: dask://HOST:PORT, slurm, or ray://HOST:PORT.",
        ),
    ],
)


def with_engines(
    command: Callable[..., None],
    *places: str,
    added: Sequence[inspect.Parameter] = (SHARD, ENGINE),
) -> Callable[..., None]:
    """Add `--shard` and `--engine`, or one of them, to a command; the first of `places` given is its folder."""
    places = places or ("out",)

    def run(*, shard: str | None = None, engine: str | None = None, **values: Any) -> None:
        folders = (values[place] for place in places if values.get(place) is not None)
        folder = next(folders, None)
        if engine is not None:
            _run_on(engine, shard, values, command)
            return
        if shard is not None:
            _run_shard(shard, folder, values, command, places[0])
        elif folder is None:
            command(**values)
        else:
            from heedmap.training.merging import gathered

            with gathered(Path(folder)):
                command(**values)

    signature = inspect.signature(command)
    run.__doc__, run.__name__ = command.__doc__, command.__name__
    run.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*signature.parameters.values(), *added]
    )
    run.__annotations__ = {
        **command.__annotations__,
        **{parameter.name: parameter.annotation for parameter in added},
    }
    return run


def merge_command(
    context: typer.Context,
    folder: Annotated[
        Path, typer.Argument(help="The folder that all shards were given: --out, or --run.")
    ],
) -> None:
    """Write the result of a command that ran in shards, once none of its jobs is missing.

    The command is the one of the shards, given again in the folder where it was given: it finds every job
    finished. What is missing is named.
    """
    from heedmap.training.merging import kept_command
    from heedmap.training.shards import jobs_folder, merging

    command = kept_command(folder)
    if command.folder != str(folder.absolute()):
        raise InputError(
            f"{folder}: expected the folder where the shards worked, {command.folder}; move it back there with "
            f"{jobs_folder(folder).name} beside it"
        )
    try:
        os.chdir(command.directory)
    except OSError as error:
        raise InputError(
            f"{command.directory}: expected the folder that the shards were run in ({error.strerror}); merge "
            "on a machine that has it"
        ) from error
    whole = context.find_root().command
    with merging():
        whole.main(command.arguments, prog_name="heedmap", standalone_mode=False)


def _run_on(
    name: str, shard: str | None, values: dict[str, Any], command: Callable[..., None]
) -> None:
    if shard is not None:
        raise InputError("--shard: expected without --engine, which divides the jobs itself")
    if values.get("workers") is not None:
        raise InputError("--workers: expected without --engine, whose workers are its own")
    from heedmap.training.engines import engine
    from heedmap.training.remote import on_executor

    with engine(name) as executor, on_executor(executor):
        command(**values)


def _run_shard(
    text: str, folder: Any, values: dict[str, Any], command: Callable[..., None], place: str
) -> None:
    number, count = _parsed(text)
    if folder is None:
        raise InputError(
            f"--shard {text}: expected --{place} too, the folder that all shards work for"
        )
    if values.get("overwrite"):
        raise InputError(
            f"--shard {text}: expected no --overwrite, which would remove what other shards make; delete the "
            "folder first"
        )
    from heedmap.training.merging import keep_command
    from heedmap.training.shards import Shard, ShardEnd, in_shard, jobs_folder

    out = Path(folder)
    try:
        with in_shard(Shard(number, count, out)):
            command(**values)
        end = None
    except ShardEnd as shard_end:
        end = shard_end
    except InputError:
        with suppress(OSError):
            jobs_folder(out).rmdir()  # only if it is empty
        raise
    # Not before: the command of a shard that was refused is not the one to merge.
    keep_command(out, _without_shard(sys.argv[1:]))
    if end is None:
        say(f"shard {text}: there were no jobs to divide, so that this shard wrote the result.")
    else:
        say(f"{end}. When all shards are finished, `heedmap merge {out}` writes the result.")


def _parsed(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
    number, count = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= number <= count:
        raise InputError(
            f"--shard: expected I/N, the I-th of N parts, with I from 1 to N, such as 2/4; got {text!r}"
        )
    return number, count


def _without_shard(arguments: list[str]) -> list[str]:
    kept: list[str] = []
    skips = False
    for argument in arguments:
        if skips:
            skips = False
        elif argument == "--shard":
            skips = True
        elif not argument.startswith("--shard="):
            kept.append(argument)
    return kept
