"""`heedmap debate`: every question of every paper on a user's own texts."""

from pathlib import Path
from typing import Annotated, Any

import typer

from heedmap.data.file_kinds import refuse_missing
from heedmap.errors import InputError
from heedmap.settings.base import OptionSubset
from heedmap.settings.data import DataSettings
from heedmap.terminal import options as opt
from heedmap.terminal.output import say

BUDGETS = ("quick", "paper")


@opt.with_options(OptionSubset(DataSettings, "classes", "tokenizer"))
def debate_command(
    *,
    data: opt.Data = None,
    given: opt.Given,
    budget: Annotated[
        Any,
        typer.Option(
            help="Size of the trainings: quick for minutes, or paper for that of `heedmap reproduce`: hours.",
            **opt.one_of(*BUDGETS),
        ),
    ] = "quick",
    parts: Annotated[
        str | None,
        typer.Option(
            help="Parts to run, separated by commas: audit, retrain, jain-wallace, serrano-smith, "
            "vashishth, wiegreffe-pinter, pruthi, snell, drozdyuk. [all that apply]"
        ),
    ] = None,
    forbidden: Annotated[
        str | None,
        typer.Option(
            help="Impermissible words: he,she,..., or a file of them. [the most telling of each class]"
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Where everything goes. [runs/debate-DATA]", parser=opt.folder),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Number of processes, each of one thread. [one per core]")
    ] = None,
) -> None:
    """Ask every question of every paper of your own texts: what each claims, and whether it survives here.

    What it will take is said first, part by part. A command that was stopped goes on when it is given again.
    """
    if data is None:
        raise InputError("expected --data: a file, a folder, a Hub name, or reviews")
    refuse_missing(data)
    from heedmap.debates.debate import debate

    finished = debate(
        data,
        budget=budget,
        parts=opt.names(parts or ""),
        forbidden=forbidden,
        out=out,
        workers=workers,
        **given.values,
    )
    finished.show()
    say(f"Result: {finished.folder / 'result.html'} (also .md, .csv, .tex)")
    if finished.stopped:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in finished.stopped.items())
        raise InputError(f"{reasons}; the other parts are finished, run the same command again")
