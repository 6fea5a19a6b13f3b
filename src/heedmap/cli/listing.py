"""`heedmap list`: the runs under a folder with their verdicts, calibrations and reproductions."""

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedmap.terminal.commands import Json, print_json
from heedmap.terminal.output import printable, say

if TYPE_CHECKING:
    from heedmap.runs.listing import Entry

DEFAULT = Path("runs")
HEAD = ("date", "accuracy", "verdict", "run", "what")


def list_command(
    root: Annotated[Path, typer.Argument(help="Folder to search.")] = DEFAULT,
    as_json: Json = False,
) -> None:
    """List runs with date, accuracy, answer and folder, and calibrations and reproductions.

    Of a single run's folder, list its variants too: the models that `heedmap retrain` trained there.
    """
    from heedmap.errors import InputError
    from heedmap.runs.listing import describe, list_runs

    if not root.exists() and root != DEFAULT:
        raise InputError(f"{root}: no such folder; give one in which there are runs")
    entries = [describe(folder) for folder in list_runs(root)]
    if as_json:
        print_json(
            [
                {**vars(entry), "folder": str(entry.folder), "changed": str(entry.changed)}
                for entry in entries
            ]
        )
        return
    if not entries:
        say(f"No runs under {root}/. `heedmap audit --data reviews` makes one.")
        return
    rows = [HEAD, *map(_row, entries)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEAD) - 1)]
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for *cells, description in rows:
        line = "  ".join(f"{cell:{width}}" for cell, width in zip(cells, widths, strict=True))
        # A path stays whole, to be copied; what comes after it may be cut.
        say(f"{line}  {description}"[: columns and max(columns, len(line.rstrip()))].rstrip())
    if len(entries) == 1 and entries[0].variants:
        say(
            "Variants that `heedmap retrain` trained, for `heedmap audit --run RUN --variant NAME`:"
        )
        for name in entries[0].variants:
            say(f"  {name}")


def _row(entry: "Entry") -> tuple[str, ...]:
    accuracy = "" if entry.accuracy is None else f"{entry.accuracy:.3f}"
    seed = "" if entry.seed is None else f"seed {entry.seed}"
    description = ", ".join(filter(None, (entry.model, entry.data, seed, entry.why)))
    verdict = entry.answer or entry.state
    return (str(entry.changed), accuracy, verdict, printable(entry.folder), printable(description))
