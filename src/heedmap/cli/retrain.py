"""`heedmap retrain`: train further models on a run's texts and compare them with the run's."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedmap.cli.report import show_audit
from heedmap.errors import InputError
from heedmap.experiments import summaries
from heedmap.runs.folder import RunFolder
from heedmap.settings.retraining import RetrainSettings
from heedmap.terminal import options as opt
from heedmap.terminal.commands import Command, Json
from heedmap.terminal.progress import working

if TYPE_CHECKING:
    from heedmap.runs.run import Run


class RetrainCommand(Command):
    """The command, whose help ends with its questions."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write a line per question."""
        super().format_epilog(ctx, formatter)
        with formatter.section("Questions"):
            formatter.write_dl(list(summaries(retraining=True).items()))


@opt.with_options(RetrainSettings)
def retrain_command(
    *,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="The questions, below; the run may stand before them. [all that apply]"
        ),
    ] = None,
    run: Annotated[
        Path | None, typer.Option("--run", help="The folder of a run that heedmap trained.")
    ] = None,
    given: opt.Given,
    workers: Annotated[
        int | None, typer.Option(help="Number of processes, each of one thread. [one per core]")
    ] = None,
    as_json: Json = False,
) -> None:
    """Train further models on a run's texts and compare: other seeds, uniform attention, adversaries, ...

    What it will take is said first. A command that was stopped goes on when it is given again.
    """
    questions = summaries(retraining=True)  # whose name may be that of a folder, too
    if run is None and names and names[0] not in questions and Path(names[0]).is_dir():
        run, names = Path(names[0]), names[1:]
    if run is None:
        raise InputError(
            "expected --run: the folder of a run, from `heedmap train` or `heedmap audit`"
        )
    RunFolder(run).require_begun()  # before the slow import
    with working("opening the run"):
        from heedmap.runs.open import open_run

        opened = open_run(run)
    options = given.of(RetrainSettings)
    retrain_run(opened, names or (), as_json=as_json, workers=workers, **options)


def retrain_run(
    run: "Run", names: Any = (), *, as_json: bool, fail_on: str | None = None, **options: Any
) -> None:
    """Train further models, compare them, and print the whole card."""
    from heedmap.runs.retrain import retrain

    result = retrain(run, names, **options)
    assert run.folder is not None
    # The questions that were just asked are for comparison, so the head alone would not show them.
    show_audit(result, run.folder, as_json, fail_on, whole=True)
