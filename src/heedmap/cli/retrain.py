"""`heedmap retrain`: train further models on a run's texts and compare them with the run's."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from heedmap.errors import InputError
from heedmap.experiments import summaries
from heedmap.settings import RetrainSettings
from heedmap.terminal import options as opt
from heedmap.terminal.output import say
from heedmap.terminal.progress import progress

if TYPE_CHECKING:
    from heedmap.runs.run import Run


class RetrainCommand(TyperCommand):
    """The command, whose help ends with its questions."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write a line per question."""
        with formatter.section("Questions"):
            formatter.write_dl(list(summaries(retraining=True).items()))


@opt.with_options(RetrainSettings)
def retrain_command(
    *,
    names: Annotated[
        list[str] | None, typer.Argument(help="The questions, below. [all that apply]")
    ] = None,
    run: Annotated[
        Path | None, typer.Option("--run", help="The folder of a run that heedmap trained.")
    ] = None,
    given: opt.Given,
    workers: Annotated[
        int | None, typer.Option(help="How many processes, each of one thread. [one per core]")
    ] = None,
) -> None:
    """Train further models on a run's texts and compare: other seeds, uniform attention, adversaries, ...

    What it will take is said first. A command that was stopped goes on when it is given again.
    """
    if run is None:
        raise InputError(
            "expected --run: the folder of a run, from `heedmap train` or `heedmap audit`"
        )
    from heedmap.runs.open import open_run

    retrain_run(open_run(run), names or (), workers=workers, **given.of(RetrainSettings))


def retrain_run(run: "Run", names: Any = (), **options: Any) -> None:
    """Train and compare with a progress bar, and print the card."""
    from heedmap.runs.retrain import retrain

    with progress() as bar:
        task = bar.add_task("reading", total=None)
        result = retrain(
            run,
            names,
            forecast=lambda text: say(f"This will take {text}.", error=True),
            announce=lambda name: bar.update(task, description=f"audit, {name.replace('_', ' ')}"),
            report=lambda done, total, text: bar.update(
                task, completed=done, total=total, description=f"training, {text}"
            ),
            **options,
        )
    result.show()
    if run.folder is not None:
        say(f"Report: {run.folder / 'report.html'}")
