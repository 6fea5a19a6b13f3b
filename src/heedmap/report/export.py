"""Export each figure as a file for a paper: PDF, SVG or PNG, a column or a page wide, on white."""

import re
from collections.abc import Sequence
from pathlib import Path

from heedmap.errors import InputError
from heedmap.files.manifest import MANIFEST, Manifest, write
from heedmap.files.storage import refuse_file
from heedmap.report.charts import Figure
from heedmap.report.drawing import draw_with
from heedmap.report.labelled_charts import CONFIG, labelled_chart

WIDTHS = {"column": 84.0, "page": 178.0}  # millimetres
NARROWEST, BROADEST = 50.0, 400.0
UNIT = 0.75  # points in print per unit of the drawing: letters of 10 have 7.5, whatever the width
MARGIN = 6
DPI = 400  # of a PNG
FORMATS = ("pdf", "svg", "png")


def export(
    figures: Sequence[Figure],
    folder: str | Path,
    formats: Sequence[str] = ("pdf",),
    only: Sequence[str] | None = None,
    *,
    width: float = WIDTHS["column"],
    bare: bool = False,
) -> list[Path]:
    """Write figures as files, named by their keys; return the paths.

    Args:
        figures: the figures of a report: `heedmap.report.figures.figures(audit)`.
        folder: the output folder; figures that heedmap wrote there are replaced.
        formats: any of "pdf" (fonts embedded), "svg" and "png" (400 dots per inch).
        only: the keys of the figures to write; None for all.
        width: in millimetres; letters keep their size.
        bare: leave title, n and notes out of the picture; they and the caption go to KEY.txt beside it.

    Raises:
        InputError: an unknown format or key, a width that is not from 50 to 400 mm, no figures, the folder
            cannot be written, or it holds other files of these names.
    """
    for name in formats:
        if name not in FORMATS:
            raise InputError(f"format {name!r}: expected {', '.join(FORMATS)}")
    if not formats:
        raise InputError(f"no format: expected {', '.join(FORMATS)}")
    if not NARROWEST <= width <= BROADEST:
        raise InputError(
            f"width: expected {NARROWEST:g} to {BROADEST:g} mm, got {width:g}; a column has "
            f"{WIDTHS['column']:g}, a page {WIDTHS['page']:g}"
        )
    refuse_file(Path(folder))
    selected = choose(figures, only)
    endings = [*formats, "txt"] if bare else formats
    names = [f"{figure.key}.{ending}" for figure in selected for ending in endings]
    _refuse_taken(Path(folder), names)
    # Draw all before writing any, so that a figure that cannot be drawn leaves no folder half filled.
    files: list[tuple[Path, bytes | str]] = []
    pictures = [
        {name: render(figure, name, width, bare) for name in dict.fromkeys(formats)}
        for figure in selected
    ]
    for figure, by_format in zip(selected, pictures, strict=True):
        files += [
            (Path(folder) / f"{figure.key}.{name}", content) for name, content in by_format.items()
        ]
        files += [(Path(folder) / f"{figure.key}.txt", caption(figure))] if bare else []
    if Manifest.above(files[0][0]) is None:
        Manifest(Path(folder)).start()
    for path, content in files:
        write(path, content)
    return [path for path, _ in files]


def _refuse_taken(folder: Path, names: Sequence[str]) -> None:
    """Raise InputError if other files than heedmap's have these names."""
    manifest = Manifest.above(folder / MANIFEST) or Manifest(folder)
    relative = folder.absolute().relative_to(manifest.root.absolute())
    folders = [path.as_posix() for path in (relative, *relative.parents) if path.parts]
    manifest.refuse_taken([*folders, *((relative / name).as_posix() for name in names)])


def choose(figures: Sequence[Figure], only: Sequence[str] | None) -> list[Figure]:
    """Return the figures with these keys, in the report's order.

    Raises:
        InputError: an unknown key, or no figures.
    """
    available = [figure.key for figure in figures]
    if not available:
        raise InputError("the run's tables fill no figure: there is nothing to draw")
    for key in only or ():
        if key not in available:
            raise InputError(f"no figure {key!r} in this run; there are {', '.join(available)}")
    if only is not None and not only:
        raise InputError(f"no figure chosen; there are {', '.join(available)}")
    return [figure for figure in figures if only is None or figure.key in only]


def render(
    figure: Figure, file_format: str, width: float = WIDTHS["column"], bare: bool = False
) -> bytes:
    """Return a figure as the content of a file in one of FORMATS (see `export`).

    The same figure gives the same bytes, except as PDF, whose fonts vl-convert lists in random order.
    """
    units = round(width / 25.4 * 72 / UNIT, 2)
    spec = {
        **labelled_chart(figure, units - 2 * MARGIN, bare),
        "width": units,
        "padding": MARGIN,
        "autosize": {"type": "fit-x", "contains": "padding"},
    }
    svg: str = draw_with("vegalite_to_svg", spec, config=CONFIG)
    if file_format == "svg":
        return svg.encode("utf-8")
    if file_format == "png":
        content: bytes = draw_with("svg_to_png", svg, scale=UNIT, ppi=DPI)
        return content
    # vl-convert takes no scale for a PDF, so the drawing itself gets its size in points.
    points = re.sub(
        r'(width|height)="([\d.]+)"',
        lambda size: f'{size[1]}="{float(size[2]) * UNIT:g}"',
        svg,
        count=2,
    )
    content = draw_with("svg_to_pdf", points)
    return content


def caption(figure: Figure) -> str:
    """Return title, n, caption and notes as one paragraph: the caption below the picture in a paper."""
    title = figure.title if figure.title.endswith(("?", "!", ".")) else f"{figure.title}."
    notes = f" Note: {'; '.join(figure.notes)}." if figure.notes else ""
    return f"{title} {figure.n}. {figure.caption}{notes}\n"
