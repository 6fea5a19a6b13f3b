"""`heedmap report`: findings and report of a run anew; and how every command shows an audit."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedmap.terminal.commands import Json, print_json
from heedmap.terminal.output import say

if TYPE_CHECKING:
    from heedmap.runs.audit import Audit


def report_command(
    folder: Annotated[Path, typer.Argument(help="The run folder.")], as_json: Json = False
) -> None:
    """Write findings and report anew from a run's tables, and print the card."""
    from heedmap.runs.audit import rewrite

    show_audit(rewrite(folder), folder, as_json)


def show_audit(audit: "Audit", folder: Path, as_json: bool) -> None:
    """Print the card and where the report is; or, as JSON, what findings.json holds."""
    from heedmap.runs.folder import RunFolder

    run = RunFolder(folder)
    if as_json:
        print_json({"folder": str(folder), "report": str(run.report), **(run.findings() or {})})
        return
    audit.show()
    say(f"Report: {run.report}")
