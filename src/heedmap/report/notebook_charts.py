"""The report's figures as Altair charts, with the title, legend and notes that the page has around them."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import altair as alt

from heedmap.errors import MissingError
from heedmap.experiments.findings import AuditResult
from heedmap.report.charts import TEXT, Figure, Key
from heedmap.report.export import CONFIG
from heedmap.report.figures import figures
from heedmap.report.svg_text import INK, SOFT, lines
from heedmap.terminal.html import html_table

WIDTH, SIZE, LINE = 460, 11, 15  # of a chart; of its text, and from line to line
MARK = 18  # a legend's mark
OF_THE_WHOLE = ("$schema", "datasets", "params")  # what a part of a chart cannot have
DASHES = {"solid": [], "dashed": [6, 4], "dotted": [2, 3]}


class Chart(alt.VConcatChart):
    """A figure with its title, legend and notes.

    Shown as a picture, because Altair's default fetches its scripts over the network; another renderer that was
    enabled (`altair.renderers.enable`) is used.
    """

    def _repr_mimebundle_(self, *args: Any, **kwargs: Any) -> Any:
        if alt.renderers.active != "default":
            return super()._repr_mimebundle_(*args, **kwargs)
        with alt.renderers.enable("svg"):
            return super()._repr_mimebundle_(*args, **kwargs)


class Figures(Mapping[str, Chart]):
    """The figures of an audit by name, in the report's order; made when first asked for."""

    def __init__(self, audit: AuditResult) -> None:
        self._audit = audit

    @cached_property
    def _made(self) -> dict[str, Figure]:
        return {figure.key: figure for figure in figures(self._audit)}

    def __getitem__(self, name: str) -> Chart:
        if name not in self._made:
            raise MissingError(f"no figure {name!r}; there are {', '.join(self._made) or 'none'}")
        return chart(self._made[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)

    def __repr__(self) -> str:
        shown = [f"  {name}: {figure.title} ({figure.n})" for name, figure in self._made.items()]
        return "\n".join(["Figures", *shown])

    def _repr_html_(self) -> str:
        rows = [(name, figure.title, figure.n) for name, figure in self._made.items()]
        return html_table(rows, ["name", "figure", "n"], "Figures")

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)


def chart(figure: Figure) -> Chart:
    """Return a figure as an Altair chart."""
    own = {**figure.spec, "width": WIDTH}
    whole: dict[str, Any] = {name: own.pop(name) for name in OF_THE_WHOLE if name in own}
    parts = [own]
    if figure.keys:
        parts.insert(0, _legend(figure.keys))
    if figure.notes:
        parts.append(_text(f"Note: {'; '.join(figure.notes)}."))
    title = {
        "text": lines(figure.title, WIDTH, 13, bold=True),
        "subtitle": lines(figure.n, WIDTH, SIZE),
        "anchor": "start",
        "subtitleColor": SOFT,
    }
    config = {**CONFIG, "concat": {"spacing": 8}}
    made: Chart = Chart.from_dict(
        {**whole, "vconcat": parts, "title": title, "description": figure.caption, "config": config}
    )
    return made


def _legend(keys: list[Key]) -> dict[str, Any]:
    layers, at = [], 0
    for key in keys:
        colour = INK if key.colour == TEXT else key.colour
        label = lines(key.label, WIDTH - MARK, SIZE)
        middle = at + LINE / 2
        if key.line in DASHES:
            mark = {"type": "rule", "strokeWidth": 2.5, "strokeDash": DASHES[key.line]}
            place: dict[str, Any] = {"x": {"value": 0}, "x2": {"value": MARK}}
        else:
            shape = "diamond" if key.line == "hollow" else "square"
            mark = {"type": "point", "shape": shape, "filled": key.line != "hollow", "size": 90}
            place = {"x": {"value": MARK / 2}}
        layers += [
            _layer({**mark, "color": colour}, {**place, "y": {"value": middle}}),
            _written(label, MARK + 6, at),
        ]
        at += LINE * len(label)
    return _block(layers, at)


def _text(text: str) -> dict[str, Any]:
    label = lines(text, WIDTH, SIZE)
    return _block([_written(label, 0, 0)], LINE * len(label))


def _written(label: list[str], x: float, y: float) -> dict[str, Any]:
    mark = {
        "type": "text", "text": label, "align": "left", "baseline": "top", "lineHeight": LINE,
        "fontSize": SIZE, "color": INK,
    }  # fmt: skip
    return _layer(mark, {"x": {"value": x}, "y": {"value": y + 2}})


def _layer(mark: dict[str, Any], encoding: dict[str, Any]) -> dict[str, Any]:
    return {"data": {"values": [{}]}, "mark": mark, "encoding": encoding}


def _block(layers: list[dict[str, Any]], height: float) -> dict[str, Any]:
    return {"width": WIDTH, "height": height, "layer": layers}
