"""`heedmap report`: findings and report of a run anew; and how every command shows an audit."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedmap.terminal.commands import Json, print_json
from heedmap.terminal.output import say

FAILING = {"no": ("no",), "in-part": ("in part", "no")}  # answers by what --fail-on names

if TYPE_CHECKING:
    from heedmap.experiments.rule import Answer
    from heedmap.runs.audited import Audit


def report_command(
    folder: Annotated[Path, typer.Argument(help="The run folder.")], as_json: Json = False
) -> None:
    """Write findings and report anew from a run's tables, and print the card."""
    from heedmap.runs.audit import rewrite

    show_audit(rewrite(folder), folder, as_json)


def show_audit(audit: "Audit", folder: Path, as_json: bool, fail_on: str | None = None) -> None:
    """Print the card and where the report is; or, as JSON, what findings.json holds.

    Raises:
        typer.Exit: with 1, if the answer is as bad as `fail_on`, a key of FAILING, or worse.
    """
    from heedmap.runs.conclusions import read_findings
    from heedmap.runs.folder import RunFolder

    run = RunFolder(folder)
    if as_json:
        print_json({"folder": str(folder), "report": str(run.report), **(read_findings(run) or {})})
    else:
        audit.show()
        say(f"Report: {run.report}")
    answer = audit.bottom_line.answer
    if fails(answer, fail_on):
        say(f"heedmap: the answer is “{answer}”: --fail-on {fail_on}", error=True)
        raise typer.Exit(1)


def fails(answer: "Answer", fail_on: str | None) -> bool:
    """Whether an answer is as bad as `fail_on`, a key of FAILING, or worse; what cannot be told is neither."""
    return fail_on is not None and answer in FAILING[fail_on]
