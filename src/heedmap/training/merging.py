"""Gather what the shards of a command have made, so that the folder is as one process leaves it.

Beside the folder NAME, .NAME.jobs/command.json keeps what to run again to write the result.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from heedmap.errors import InputError
from heedmap.files.lock_file import is_held, lock_file
from heedmap.files.manifest import MANIFEST, Manifest
from heedmap.files.storage import remove, write_atomically
from heedmap.terminal.progress import doing
from heedmap.training.shards import jobs_folder

COMMAND = "command.json"


class ShardCommand(NamedTuple):
    """The arguments of a command without its --shard, where it was given, and the folder that it worked for."""

    arguments: list[str]
    directory: str
    folder: str


def keep_command(folder: Path, arguments: Sequence[str]) -> None:
    """Keep the command of a shard, for the merge."""
    content = ShardCommand([*arguments], str(Path.cwd()), str(folder.absolute()))._asdict()
    write_atomically(jobs_folder(folder) / COMMAND, json.dumps(content, indent=1))


def kept_command(folder: Path) -> ShardCommand:
    """Return the command whose shards have worked for a folder.

    Raises:
        InputError: there were none, or it is damaged.
    """
    path = jobs_folder(folder) / COMMAND
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        arguments = [str(argument) for argument in content["arguments"]]
        return ShardCommand(arguments, str(content["directory"]), str(content["folder"]))
    except FileNotFoundError:
        raise InputError(
            f"{folder}: expected a folder that shards have worked for, {_without_command(folder)}"
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: damaged; run a shard again, which writes it") from error


def _without_command(folder: Path) -> str:
    """Say what a folder is of which no shard has ended."""
    jobs, remedy = jobs_folder(folder), "run a command with --shard 1/N to N/N first"
    if jobs.is_dir():
        return f"found that none has ended yet ({jobs}); wait for them, or run those again that were stopped"
    if not folder.exists():
        return f"found none of this name; {remedy}"
    if not folder.is_dir():
        return f"got a file; {remedy}"
    return f"found none of their files ({jobs}); {remedy}, or it is merged already"


@contextmanager
def gathered(folder: Path) -> Iterator[None]:
    """Write the result of shards in the block; then nothing is left of them.

    No shard sets up meanwhile. The manifests of jobs become part of the folders' own. Where there were no
    shards nothing else happens.
    """
    if not jobs_folder(folder).is_dir():
        yield
        return
    with lock_file(
        jobs_folder(folder) / "setup.lock",
        lambda holder: doing(f"waiting for a shard, on {holder}"),
    ):
        fold(folder, lambda job: is_held(jobs_folder(folder) / f"{job}.lock"))
        yield
        fold(folder)  # the command has found all of them finished
    remove(jobs_folder(folder))


def fold(folder: Path, is_running: Callable[[str], bool] = lambda job: False) -> None:
    """Add the manifests of jobs to those of the folders in which they stand."""
    for path in sorted(folder.rglob(MANIFEST)):
        Manifest(path.parent).fold(is_running)
