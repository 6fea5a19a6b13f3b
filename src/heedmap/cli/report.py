"""`heedmap report`: findings and report of a run anew; and how every command shows an audit."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedmap.runs.folder import RunFolder
from heedmap.terminal.commands import Json, print_json
from heedmap.terminal.output import say, show

FAILING = {"no": ("no",), "in-part": ("in part", "no")}  # answers by what --fail-on names

if TYPE_CHECKING:
    from heedmap.experiments.rule import Answer
    from heedmap.runs.audited import Audit


def report_command(
    folder: Annotated[Path, typer.Argument(help="The run folder.")],
    without_texts: Annotated[
        bool,
        typer.Option(
            "--without-texts",
            help="Write report-without-texts.html too, which holds no token, text, query or id. [not written]",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Write findings and report again from the tables of a run, and print the whole card."""
    RunFolder(folder).require_begun()  # before the slow import
    from heedmap.runs.audit import rewrite

    show_audit(rewrite(folder, texts=not without_texts), folder, as_json, whole=True)
    if without_texts and not as_json:
        say(f"Report without texts: {RunFolder(folder).report_without_texts}")


def show_audit(
    audit: "Audit",
    folder: Path,
    as_json: bool,
    fail_on: str | None = None,
    whole: bool = False,
) -> None:
    """Print the head of the card, or the whole card, and the path of the report; or findings.json.

    Raises:
        typer.Exit: with 1, if the answer is as bad as `fail_on`, a key of FAILING, or worse.
    """
    from heedmap.runs.findings_file import findings_of

    run = RunFolder(folder)
    if as_json:
        print_json({"folder": str(folder), "report": str(run.report), **findings_of(audit)})
    else:
        if whole:
            audit.show()
        else:
            from heedmap.report.card import card_head

            show(card_head(audit))
        say(f"Report: {run.report}")
        if not whole:
            say(f"The whole card: heedmap report {folder}")
    answer = audit.bottom_line.answer
    if fails(answer, fail_on):
        say(f"heedmap: the answer is “{answer}”: --fail-on {fail_on}", error=True)
        raise typer.Exit(1)


def fails(answer: "Answer | None", fail_on: str | None) -> bool:
    """Return whether an answer is as bad as `fail_on`, a key of FAILING, or worse; cannot tell is neither."""
    return fail_on is not None and answer in FAILING[fail_on]
