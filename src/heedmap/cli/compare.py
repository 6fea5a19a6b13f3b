"""`heedmap compare RUN RUN...`: audited runs side by side."""

from pathlib import Path
from typing import Annotated

import typer

from heedmap.files.naming import page_path
from heedmap.runs.folder import RunFolder
from heedmap.terminal import options as opt
from heedmap.terminal.commands import Json, print_json
from heedmap.terminal.output import say
from heedmap.terminal.progress import working

PAGE = Path("compare.html")


def compare_command(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="RUN...",
            help="Folders of two audited runs or more; that of a reproduction or a debate stands for all "
            "audited runs in it.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="File of the page. [compare.html; none with --json]", parser=opt.file
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a file of another content. [refuse]")
    ] = False,
    as_json: Json = False,
) -> None:
    """Put audited runs side by side: settings that differ, answers, numbers and maps of the same texts.

    Where two runs have the same texts, intervals of differences are paired. Runs that differ in the seed alone
    are one row.
    """
    path = page_path(out or PAGE)  # wrong names are refused before the slow import
    for run in map(RunFolder, folders or []):
        if not run.is_reproduction():
            run.require_begun()
    with working("comparing the runs"):
        from heedmap.comparisons.compare import compare

        comparison = compare(folders or [])
        if out is not None or not as_json:
            comparison.save(path, overwrite=overwrite)
    if as_json:
        print_json(comparison.to_json())
        return
    comparison.show()
    say(f"Page: {path}")
