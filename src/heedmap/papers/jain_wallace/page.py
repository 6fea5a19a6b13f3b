"""A reproduction as one HTML file: figures, tables, and the way to every model's own report."""

from collections.abc import Sequence
from importlib.resources import files

from markupsafe import Markup

from heedmap.data.named import NAMED
from heedmap.papers.jain_wallace.figures import figures
from heedmap.papers.jain_wallace.measures import Cell
from heedmap.papers.jain_wallace.results import Result
from heedmap.papers.jain_wallace.telling import TITLE, notes, sections
from heedmap.report.page import environment
from heedmap.report.scripts import DRAW, bundle, policy, safe_json


def page(results: Sequence[Result]) -> str:
    """The whole page; the same results give the same bytes."""
    return (
        environment()
        .get_template("grid.html")
        .render(
            title=TITLE,
            style=Markup(files("heedmap.report").joinpath("style.css").read_text("utf-8")),
            policy=policy(bundle(), DRAW),
            bundle=bundle(),
            draw=Markup(DRAW),
            notes=notes(results),
            sections=sections(results),
            figures=[(figure, safe_json(figure.spec)) for figure in figures(results)],
            models=[(NAMED[one.dataset].title, _reports(one)) for one in results],
        )
    )


def _reports(result: Result) -> list[tuple[str, str]]:
    """Name and place of each finished model's report."""
    cells: dict[Cell, None] = dict.fromkeys(one.cell for one in result.numbers)
    return [
        (
            f"{cell.encoder} {cell.score}, seed {cell.seed}",
            f"{cell.dataset}/{cell.encoder}-{cell.score}-{cell.seed}/report.html",
        )
        for cell in cells
    ]
