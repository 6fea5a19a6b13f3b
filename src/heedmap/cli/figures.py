"""`heedmap figures RUN`: the figures of a run's report as files for a paper."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedmap.errors import InputError
from heedmap.terminal import options as opt
from heedmap.terminal.output import say

if TYPE_CHECKING:
    from heedmap.report.charts import Figure


def figures_command(
    folder: Annotated[Path, typer.Argument(help="An audited run, or a reproduction.")],
    formats: Annotated[
        str, typer.Option("--format", help="Of pdf, svg, png; with commas between them.")
    ] = "pdf",
    only: Annotated[
        str | None,
        typer.Option("--only", help="Keys of --list, with commas between them. [every figure]"),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="A folder. [RUN/figures]", parser=opt.folder)
    ] = None,
    width: Annotated[
        str, typer.Option("--width", help="Of column, page (84 and 178 mm), or millimetres.")
    ] = "column",
    bare: Annotated[
        bool,
        typer.Option(
            "--bare", help="Title, n and notes to NAME.txt, a caption, not in the picture."
        ),
    ] = False,
    listed: Annotated[
        bool, typer.Option("--list", help="Name the figures, and write nothing.")
    ] = False,
) -> None:
    """Write each figure of a run's report as a file, a paper's column wide: title, legend and n drawn in."""
    from heedmap.report.export import WIDTHS, choose, export

    figures, keys = _figures(folder), None if only is None else _parts(only)
    if listed:
        chosen_figures = choose(figures, keys)
        longest = max(len(figure.key) for figure in chosen_figures)
        for figure in chosen_figures:
            say(f"{figure.key:{longest}}  {figure.title} ({figure.n})")
        return
    try:
        wide = WIDTHS[width] if width in WIDTHS else float(width.removesuffix("mm"))
    except ValueError:
        raise InputError(
            f"--width: expected {', '.join(WIDTHS)} or millimetres, got {width!r}"
        ) from None
    written = export(
        figures, out or folder / "figures", _parts(formats), keys, width=wide, bare=bare
    )
    for path in written:
        say(f"{'Caption' if path.suffix == '.txt' else 'Figure'}: {path}")


def _figures(folder: Path) -> "list[Figure]":
    """Return the figures of a run, or of a reproduction of a paper."""
    from heedmap.papers.kit.registry import figures as paper_figures

    if (paper := paper_figures(folder)) is not None:
        return paper
    from heedmap.report.figures import figures
    from heedmap.runs.audit import open_audit

    return figures(open_audit(folder))


def _parts(text: str) -> list[str]:
    if not (parts := opt.names(text)):
        raise InputError("expected a name, or names with commas between them, got none")
    return parts
