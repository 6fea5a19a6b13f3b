"""The `heedmap` command: every command reads its options and calls the library.

Slow imports are inside the functions, so that `heedmap --help` answers at once.
"""

import os
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from heedmap import __version__
from heedmap.cli.audit import AuditCommand, audit_command
from heedmap.cli.calibrate import calibrate_command
from heedmap.cli.check import check_command, support_command
from heedmap.cli.eraser import eraser_command
from heedmap.cli.explain import explain_command
from heedmap.cli.figures import figures_command
from heedmap.cli.picture import picture_command
from heedmap.cli.reproduce import app as reproduce_app
from heedmap.cli.retrain import RetrainCommand, retrain_command
from heedmap.cli.train import train_command
from heedmap.errors import InputError
from heedmap.files.locking import whole_command
from heedmap.terminal.output import WIDE, cell, lenient, say, show

app = typer.Typer(
    help="Should you heed the heat map? Puts a model's attention weights on trial.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(reproduce_app, name="reproduce")

INTERRUPTED = 130

app.command("audit", cls=AuditCommand)(audit_command)
app.command("train")(train_command)
app.command("retrain", cls=RetrainCommand)(retrain_command)


@app.command("report")
def report_command(folder: Annotated[Path, typer.Argument(help="The run folder.")]) -> None:
    """Write findings and report anew from a run's tables, and print the card."""
    from heedmap.runs.audit import rewrite

    rewrite(folder).show()
    say(f"Report: {folder / 'report.html'}")


@app.command("list")
def list_command(
    root: Annotated[Path, typer.Argument(help="Where to look.")] = Path("runs"),
) -> None:
    """List the run folders."""
    from rich.table import Table

    from heedmap.runs.listing import describe, list_runs

    folders = list_runs(root)
    if not folders:
        say(f"No runs under {root}/. `heedmap audit --data reviews` makes one.")
        return
    table = Table(box=None, pad_edge=False)
    for column in ("run", "data", "model", "seed", "state"):
        table.add_column(column, overflow="fold")  # keep whole paths, to be copied
    for folder in folders:
        table.add_row(*map(cell, describe(folder)))
    show(table, width=WIDE)


app.command("calibrate")(calibrate_command)
app.command("check")(check_command)
app.command("support")(support_command)
app.command("explain")(explain_command)
app.command("picture")(picture_command)
app.command("figures")(figures_command)
app.command("eraser")(eraser_command)


def main() -> None:
    """Run a command; bad input is one line and exit code 2, Ctrl-C is 130."""
    warnings.showwarning = lambda message, *_: say(f"heedmap: note: {message}", error=True)
    with lenient():
        _run()


def _run() -> None:
    try:
        with whole_command():
            status = app(prog_name="heedmap", standalone_mode=False)
        if status == INTERRUPTED:  # typer returns a status for Ctrl-C
            raise KeyboardInterrupt
    except InputError as error:
        _stop(str(error), 2)
    except KeyboardInterrupt:
        _interrupted()
    except Exception as error:
        if _was_interrupted(error):
            _interrupted()
        if type(error).__module__.startswith(("click", "typer")):
            _usage(error)
        if os.environ.get("HEEDMAP_TRACEBACK"):
            raise
        if isinstance(error, OSError) and error.strerror:  # disk full, no permission, invalid name
            place = f"{error.filename}: " if error.filename else ""
            _stop(f"{place}{error.strerror}; choose another place, or mend this one", 2)
        first = (str(error).splitlines() or [""])[0]
        _stop(
            f"internal error ({type(error).__name__}: {first}); "
            "HEEDMAP_TRACEBACK=1 shows where; please report it", 1,
        )  # fmt: skip


def _interrupted() -> None:
    _stop("interrupted; run the same command again to resume", INTERRUPTED)


def _was_interrupted(error: BaseException | None) -> bool:
    """Whether an error was caused by Ctrl-C: some libraries wrap one during their import."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Abort":
            return True
        error = error.__cause__ or error.__context__
    return False


def _usage(error: Any) -> None:
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(error.format_message())
        sys.exit(0)
    context = getattr(error, "ctx", None)  # none for an unknown command
    command = context.command_path if context else "heedmap"
    _stop(f"{error.format_message().rstrip('.')}; see `{command} --help`", 2)


def _stop(text: str, code: int) -> None:
    say(f"heedmap: {text}", error=True)
    sys.exit(code)


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        typer.echo(f"heedmap {__version__}")
        raise typer.Exit
