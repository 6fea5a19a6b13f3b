"""`heedmap figures RUN`: the figures of a run's report as files for a paper."""

from pathlib import Path
from typing import Annotated

import typer

from heedmap.errors import InputError


def figures_command(
    folder: Annotated[Path, typer.Argument(help="The run folder, audited.")],
    formats: Annotated[
        str, typer.Option("--format", help="Of pdf, svg, png; with commas between them.")
    ] = "pdf",
    only: Annotated[
        str | None,
        typer.Option("--only", help="Keys of --list, with commas between them. [every figure]"),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="A folder. [RUN/figures]")] = None,
    listed: Annotated[
        bool, typer.Option("--list", help="Name the figures, and write nothing.")
    ] = False,
) -> None:
    """Write each figure of a run's report as a file, a paper's column wide: title, legend and n drawn in."""
    from heedmap.auditing import open_audit

    audit = open_audit(folder)
    if listed:
        from heedmap.report.export import choose
        from heedmap.report.figures import figures

        chosen = choose(figures(audit), None if only is None else _parts(only))
        width = max(len(figure.key) for figure in chosen)
        for figure in chosen:
            typer.echo(f"{figure.key:{width}}  {figure.title} ({figure.n})")
        return
    from heedmap.report.export import export

    written = export(
        audit, out or folder / "figures", _parts(formats), None if only is None else _parts(only)
    )
    for path in written:
        typer.echo(f"Figure: {path}")


def _parts(text: str) -> list[str]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise InputError("expected a name, or names with commas between them, got none")
    return parts
