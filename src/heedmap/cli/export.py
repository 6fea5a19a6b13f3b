"""`heedmap export RUN`: findings, maps and tables of an audited run as files for other programs."""

from pathlib import Path
from typing import Annotated

import typer

from heedmap.runs.export_place import place_of
from heedmap.runs.folder import RunFolder
from heedmap.terminal import options as opt
from heedmap.terminal.output import say
from heedmap.terminal.progress import working

OUT = (
    "A folder for a file per table; or a file, .csv, .jsonl or .parquet for the findings alone, .xlsx for "
    "everything. [RUN/export]"
)
FORMAT = "File format: csv, jsonl, xlsx (one workbook, a sheet per table) or parquet. [as --out ends, or csv]"


def export_command(
    folder: Annotated[Path, typer.Argument(help="Folder of an audited run.")],
    file_format: Annotated[
        str | None,
        typer.Option("--format", help=FORMAT, **opt.one_of("csv", "jsonl", "xlsx", "parquet")),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help=OUT)] = None,
    without_texts: Annotated[
        bool,
        typer.Option(
            "--without-texts", help="Leave out tokens, texts, queries and ids. [they are written]"
        ),
    ] = False,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Replace files of another content. [refuse]"),
    ] = False,
) -> None:
    """Write findings, maps and tables of a run to files, with the texts' own ids and the names of classes.

    about: bottom line, what was audited. findings: a row per question. by_class: a row per question and
    predicted class. maps: a row per text and token, a column per map. columns: what each column means.
    tables/NAME: each table of the audit.
    """
    place = place_of(out or folder / "export", file_format)  # wrong names: before the slow imports
    RunFolder(folder).require_begun()
    with working("reading the tables"):
        from heedmap.runs.audit import open_audit
        from heedmap.runs.table_export import export

        audit = open_audit(folder)
    with working("writing the files"):
        paths = export(
            audit, place.path, place.file_format, texts=not without_texts, overwrite=overwrite
        )
    for path in paths:
        say(f"Exported: {path}")
