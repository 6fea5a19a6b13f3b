"""A figure as one Vega-Lite chart with its title, n, notes and legend, for files and notebooks.

The page has these as HTML around the chart instead: HTML wraps on a phone, follows the page's colours, and is
read aloud. Vega-Lite draws all of them here; only lines are broken beforehand, since it never wraps a text.
"""

import json
from typing import Any

from rich.console import Console
from rich.text import Text

from heedmap.report.charts import QUIET, TEXT, Figure, Key
from heedmap.terminal.output import printable

FONT = "Liberation Sans, Arial, Helvetica, sans-serif"  # vl-convert comes with the first
INK, SOFT = "#1c1d20", "#5c6068"
TITLE_SIZE, TEXT_SIZE = 11.5, 9.5
ADVANCE = 0.56  # of the font size per letter: the width of a digit; Latin text takes less, CJK counts double
LEGEND = 0.7  # of the width: a legend begins at the y axis, not at the edge, and labels of the axis need room
ENTRY = 30  # the mark of a legend's entry, and the space around its label
DASHES = {"solid": [1, 0], "dashed": [5, 3], "dotted": [2, 2]}
OF_THE_WHOLE = ("$schema", "datasets", "params")  # what a layer cannot have

CONFIG: dict[str, Any] = {
    "background": "white",
    "font": FONT,
    "view": {"stroke": None},
    "title": {
        "anchor": "start",
        "frame": "bounds",
        "color": INK,
        "fontSize": TITLE_SIZE,
        "subtitleColor": SOFT,
        "subtitleFontSize": TEXT_SIZE,
        "subtitlePadding": 3,
        "offset": 6,
    },
    "legend": {
        "orient": "top",
        "title": None,
        "labelColor": INK,
        "labelFontSize": TEXT_SIZE,
        "labelLimit": 0,
        "symbolSize": 110,
        "symbolOpacity": 1,
        "rowPadding": 2,
        "columnPadding": 12,
        "offset": 6,
    },
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


def labelled_chart(figure: Figure, width: float, bare: bool = False) -> dict[str, Any]:
    """Return a figure as a layered Vega-Lite specification; `bare` leaves out title, n and notes."""
    chart = {name: value for name, value in figure.spec.items() if name not in OF_THE_WHOLE}
    whole = {name: figure.spec[name] for name in OF_THE_WHOLE if name in figure.spec}
    height = chart.pop("height")
    chart.pop("width")
    if not bare:
        notes = [f"Note: {'; '.join(figure.notes)}."] if figure.notes else []
        whole["title"] = {
            "text": wrapped(figure.title, width, TITLE_SIZE),
            "subtitle": [line for text in (figure.n, *notes) for line in wrapped(text, width)],
        }
    return {
        **whole,
        "layer": [chart, *([_legend(figure.keys, LEGEND * width)] if figure.keys else [])],
        # The chart's own scales of these channels are others than the legend's.
        "resolve": {
            "scale": dict.fromkeys(("fill", "stroke", "shape", "strokeDash"), "independent")
        },
        "description": figure.caption,
        "width": width,
        "height": height,
    }


def wrapped(text: str, width: float, font_size: float = TEXT_SIZE) -> list[str]:
    """Break a text into lines of at most this width; a wider word is cut.

    >>> wrapped("how different may it be", 80)
    ['how different', 'may it be']
    """
    columns = max(1, int(width / (ADVANCE * font_size)))
    lines = Text(printable(text)).wrap(Console(), columns)
    return [line.plain.rstrip() for line in lines]


def _legend(keys: list[Key], width: float) -> dict[str, Any]:
    """Return an invisible layer with one point per entry, whose legend is the figure's.

    Its four scales have the same domain, so Vega-Lite merges their legends into one.
    """
    labels = [wrapped(key.label, width - ENTRY) for key in keys]
    longest = max(len(line) for label in labels for line in label) * ADVANCE * TEXT_SIZE
    colours = [INK if key.colour == TEXT else key.colour for key in keys]
    ranges = {
        "fill": ["transparent" if key.line else c for key, c in zip(keys, colours, strict=True)],
        "stroke": colours,
        "shape": [{"": "square", "hollow": "diamond"}.get(key.line, "stroke") for key in keys],
        "strokeDash": [DASHES.get(key.line, DASHES["solid"]) for key in keys],
    }
    legend = {
        "columns": max(1, int(width / (longest + ENTRY))),
        # An entry's label as a list of lines.
        "labelExpr": f"{json.dumps(labels)}[datum.value]",
    }
    entries = list(range(len(keys)))
    return {
        "data": {"values": [{"entry": entry} for entry in entries]},
        "mark": {"type": "point", "opacity": 0, "size": 0},
        "encoding": {
            "x": {"value": 0},
            "y": {"value": 0},
            **{
                channel: {
                    "field": "entry",
                    "type": "nominal",
                    "scale": {"domain": entries, "range": values},
                    "legend": legend,
                }
                for channel, values in ranges.items()
            },
        },
    }
