"""Export each figure as a file for a paper: PDF, SVG or PNG, a column or a page wide, on white."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from heedmap.errors import InputError
from heedmap.files.manifest import MANIFEST, Manifest, write
from heedmap.files.storage import refuse_file
from heedmap.report.charts import QUIET, Figure
from heedmap.report.drawing import draw_with
from heedmap.report.svg_text import FONT, INK, above, below, clean

WIDTHS = {"column": 84.0, "page": 178.0}  # millimetres
NARROWEST, BROADEST = 50.0, 400.0
UNIT = 0.75  # points in print per unit of the drawing: letters of 10 have 7.5, whatever the width
MARGIN = 6
DPI = 400  # of a PNG

CONFIG: dict[str, Any] = {
    "background": "white",
    "font": FONT,
    "view": {"stroke": None},
    "axis": {
        "labelColor": INK,
        "titleColor": INK,
        "titleFontWeight": "normal",
        "gridColor": "#e2e2de",
        "domainColor": QUIET,
        "tickColor": QUIET,
        "labelFontSize": 10,
        "titleFontSize": 10.5,
        "tickCount": 5,
        "labelFlush": False,
    },
    "text": {"color": INK},
    "rule": {"color": INK},
    "point": {"color": INK},
    "aria": False,
}


def export(
    made: Sequence[Figure],
    folder: str | Path,
    formats: Sequence[str] = ("pdf",),
    only: Sequence[str] | None = None,
    *,
    width: float = WIDTHS["column"],
    bare: bool = False,
) -> list[Path]:
    """Write figures as files, named by their keys; returns the paths.

    Args:
        made: a report's figures: `heedmap.report.figures.figures(audit)`.
        folder: the output folder; figures that heedmap wrote there are replaced.
        formats: any of "pdf" (fonts embedded), "svg" and "png" (400 dots per inch).
        only: keys of the wanted figures; None for all.
        width: in millimetres; the letters keep their size.
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
    chosen = choose(made, only)
    endings = [*formats, "txt"] if bare else formats
    names = [f"{figure.key}.{ending}" for figure in chosen for ending in endings]
    _refuse_taken(Path(folder), names)
    # Draw all before writing any.
    files: list[tuple[Path, bytes | str]] = []
    pictures = [
        {name: render(figure, name, width, bare) for name in dict.fromkeys(formats)}
        for figure in chosen
    ]
    for figure, by_format in zip(chosen, pictures, strict=True):
        place = Path(folder) / figure.key
        files += [
            (place.with_name(f"{figure.key}.{name}"), content)
            for name, content in by_format.items()
        ]
        files += [(place.with_name(f"{figure.key}.txt"), caption(figure))] if bare else []
    if Manifest.above(files[0][0]) is None:
        Manifest(Path(folder)).start()
    for path, content in files:
        write(path, content)
    return [path for path, _ in files]


def _refuse_taken(folder: Path, names: Sequence[str]) -> None:
    """Raise InputError if other files than heedmap's have these names."""
    manifest = Manifest.above(folder / MANIFEST) or Manifest(folder)
    place = folder.absolute().relative_to(manifest.root.absolute())
    above = [path.as_posix() for path in (place, *place.parents) if path.parts]
    manifest.refuse_taken([*above, *((place / name).as_posix() for name in names)])


def choose(made: Sequence[Figure], only: Sequence[str] | None) -> list[Figure]:
    """Return the figures with these keys, in the report's order.

    Raises:
        InputError: an unknown key, or no figures.
    """
    available = [figure.key for figure in made]
    if not available:
        raise InputError("the run's tables fill no figure: there is nothing to draw")
    for key in only or ():
        if key not in available:
            raise InputError(f"no figure {key!r} in this run; there are {', '.join(available)}")
    if only is not None and not only:
        raise InputError(f"no figure chosen; there are {', '.join(available)}")
    return [figure for figure in made if only is None or figure.key in only]


def render(figure: Figure, form: str, width: float = WIDTHS["column"], bare: bool = False) -> bytes:
    """Return a figure as the content of a file in one of FORMATS (see `export`)."""
    return FORMATS[form](draw(figure, width, bare))


def caption(figure: Figure) -> str:
    """Return title, n, caption and notes as a paragraph: what a paper says below the picture."""
    title = figure.title if figure.title.endswith(("?", "!", ".")) else f"{figure.title}."
    notes = f" Note: {'; '.join(figure.notes)}." if figure.notes else ""
    return f"{title} {figure.n}. {figure.caption}{notes}\n"


def draw(figure: Figure, width: float = WIDTHS["column"], bare: bool = False) -> str:
    """Return a figure as SVG: title, n and legend above the chart, notes below it; bare, the legend alone."""
    whole = round(width / 25.4 * 72 / UNIT, 2)
    inner = whole - 2 * MARGIN
    chart = _chart(figure.spec, inner)
    shown = replace(figure, title="", n="", notes=[]) if bare else figure
    head, foot = above(shown, inner), below(shown, inner)
    size = ElementTree.fromstring(chart)
    wide, high = float(size.attrib["width"]), float(size.attrib["height"])
    total = round(2 * MARGIN + head.height + high + foot.height, 2)
    placed = f'<svg x="0" y="{head.height:g}"' + chart.removeprefix("<svg")
    # Scale a chart that is still wider than the column.
    shrink = f' transform="scale({inner / wide:.4f})"' if wide > inner else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole:g}" height="{total:g}" '
        f'viewBox="0 0 {whole:g} {total:g}"><desc>{clean(figure.caption)}</desc>'
        f'<rect width="{whole:g}" height="{total:g}" fill="white"/>'
        f'<g transform="translate({MARGIN},{MARGIN})">{head.svg}<g{shrink}>{placed}</g>'
        f'<g transform="translate(0,{head.height + high:g})">{foot.svg}</g></g></svg>\n'
    )


def _chart(spec: dict[str, Any], width: float) -> str:
    fitted = {
        **spec,
        "width": width,
        "padding": 0,
        "autosize": {"type": "fit-x", "contains": "padding"},
    }
    svg: str = draw_with("vegalite_to_svg", fitted, config=CONFIG)
    return svg


def _pdf(svg: str) -> bytes:
    sized = re.sub(
        r'width="([\d.]+)" height="([\d.]+)"',
        lambda match: f'width="{float(match[1]) * UNIT:g}" height="{float(match[2]) * UNIT:g}"',
        svg,
        count=1,
    )
    content: bytes = draw_with("svg_to_pdf", sized)
    # There is no date in it, but a page's resources (fonts, shapes) are listed in random order.
    return re.sub(
        rb"(?:\n *\/[a-z]+\d+ \d+ 0 R)+",
        lambda match: b"\n" + b"\n".join(sorted(match[0][1:].split(b"\n"))),
        content,
    )


def _png(svg: str) -> bytes:
    content: bytes = draw_with("svg_to_png", svg, scale=UNIT, ppi=DPI)
    return content


FORMATS: dict[str, Callable[[str], bytes]] = {
    "pdf": _pdf,
    "svg": lambda svg: svg.encode("utf-8"),
    "png": _png,
}
