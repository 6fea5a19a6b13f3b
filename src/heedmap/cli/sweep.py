"""`heedmap sweep`: train and audit every run of a grid or a list."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedmap.terminal import options as opt
from heedmap.terminal.displays import span
from heedmap.terminal.output import say
from heedmap.terminal.progress import working

if TYPE_CHECKING:
    from heedmap.sweeps.plan import Plan


def sweep_command(
    plan: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="The sweep as TOML: data, encoders, scores, normalisers, views, seeds.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="Where everything goes. [runs/FILE]", parser=opt.folder)
    ] = None,
    overwrite: opt.Overwrite = False,
    workers: Annotated[
        int | None, typer.Option(help="Number of processes, each of one thread. [one per core]")
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Forecast time and memory, and train and write nothing."),
    ] = False,
) -> None:
    """Train and audit every run of a grid or a list, and put all on one page.

    The folder is one that `heedmap compare` and `heedmap figures` read. A sweep that was stopped goes on when
    it is given again.
    """
    from heedmap.papers.kit.render import terminal
    from heedmap.sweeps.plan import read_plan
    from heedmap.terminal.output import show

    runs = read_plan(plan)
    if dry_run:
        _say_forecast(runs, workers)
        return
    from heedmap.sweeps.sweep import sweep

    finished = sweep(
        runs, out=out or Path("runs") / plan.stem, overwrite=overwrite, workers=workers
    )
    show(*terminal(finished.result), width=160)
    say(f"Result: {finished.folder / 'result.html'} (also .md, .csv, .tex)")


def _say_forecast(plan: "Plan", workers: int | None) -> None:
    with working("measuring"):
        from heedmap.report.wording import plural
        from heedmap.sweeps.forecast import forecast

        expected = forecast(plan, workers)
    for name, seconds in expected.seconds.items():
        say(f"{name}: about {span(seconds)}")
    memory = "" if expected.memory is None else f", and {expected.memory:.1f} GB in each"
    runs = plural(len(expected.seconds), "run")
    processes = "1 process" if expected.workers == 1 else f"{expected.workers} processes"
    say(f"{runs}: about {span(expected.total)} in {processes}{memory}.")
