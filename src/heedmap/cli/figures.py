"""`heedmap figures RUN`: the figures of a run's report as files for a paper."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedmap.errors import InputError
from heedmap.runs.folder import RunFolder
from heedmap.terminal import options as opt
from heedmap.terminal.output import say

if TYPE_CHECKING:
    from heedmap.report.charts import Figure


def figures_command(
    folder: Annotated[Path, typer.Argument(help="Folder of an audited run or of a reproduction.")],
    formats: Annotated[
        str, typer.Option("--format", help="File formats, separated by commas: pdf, svg, png.")
    ] = "pdf",
    only: Annotated[
        str | None,
        typer.Option(
            "--only", help="Figures to write, separated by commas, by their names in --list. [all]"
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder of the files. [RUN/figures]", parser=opt.folder),
    ] = None,
    width: Annotated[
        str,
        typer.Option(
            "--width",
            help="Width of a figure: column (84 mm), page (178 mm), or a number of millimetres.",
        ),
    ] = "column",
    bare: Annotated[
        bool,
        typer.Option(
            "--bare",
            help="Write title, n and notes into NAME.txt, as a caption, instead of the figure.",
        ),
    ] = False,
    listed: Annotated[
        bool, typer.Option("--list", help="List the names of the figures, and write nothing.")
    ] = False,
) -> None:
    """Write each figure of a run's report as a file for a paper, with its title, its legend and n."""
    run = RunFolder(folder)
    if not run.is_reproduction():
        run.require_begun()  # before the slow imports
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
    """Return the figures of a run, of a sweep, or of a reproduction of a paper."""
    from heedmap.papers.kit.registry import figures as paper_figures
    from heedmap.sweeps.sweep import read_sweep

    if (sweep := read_sweep(folder)) is not None:
        return sweep.figures
    if (paper := paper_figures(folder)) is not None:
        return paper
    from heedmap.report.figures import figures
    from heedmap.runs.audit import open_audit

    return figures(open_audit(folder))


def _parts(text: str) -> list[str]:
    if not (parts := opt.names(text)):
        raise InputError("expected a name, or names with commas between them, got none")
    return parts
