"""`heedmap card RUN`: the head of a run's verdict card as a file for slides and papers."""

from pathlib import Path
from typing import Annotated

import typer

from heedmap.runs.folder import RunFolder
from heedmap.terminal import options as opt
from heedmap.terminal.output import say
from heedmap.terminal.progress import working

FORMAT = (
    "File format: svg, png (twice as fine), md (Markdown) or tex (LaTeX, without packages). [as --out ends, or "
    "svg]"
)


def card_command(
    folder: Annotated[Path, typer.Argument(help="Folder of an audited run.")],
    file_format: Annotated[
        str | None, typer.Option("--format", help=FORMAT, **opt.one_of("svg", "png", "md", "tex"))
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="The file. [RUN/card.FORMAT]", parser=opt.file)
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a file of another content. [refuse]")
    ] = False,
) -> None:
    """Write the head of the card to a file: the bottom line, what it rests on, how often the rule errs, and
    heedmap's version.
    """
    RunFolder(folder).require_begun()  # before the slow imports
    with working("drawing the card"):
        from heedmap.files.overwriting import refuse_data, write_file
        from heedmap.report.card_files import card_file, format_of
        from heedmap.runs.audit import open_audit

        path = out or folder / f"card.{file_format or 'svg'}"
        file_format = format_of(path, file_format)
        audit = open_audit(folder)
        refuse_data(path, audit.settings.data.source)
        write_file(path, card_file(audit, file_format), overwrite)
    say(f"Card: {path}")
