"""What every figure is made of: its words, its legend, and a Vega-Lite specification.

Titles, captions and legends are HTML, not part of the chart: they wrap on a phone, and follow the
page's colours. Charts take their colours for text and lines from the page when they are drawn.
"""

from dataclasses import dataclass, field
from typing import Any

import altair as alt

# Readable on white and on black; the first two differ for every common kind of colour blindness.
PALETTE = (
    "#3b7dd8", "#e0752d", "#2a9d6f", "#b65fcf", "#c29b1f",
    "#d6456b", "#3fa7b5", "#8f6f50", "#7d84b2", "#7fa33a",
)  # fmt: skip
QUIET = "#8a8f98"  # guides: limits and the like
TEXT = "currentColor"  # in a legend; a rule or point of a chart has the text's colour where it has no other

Drawing = alt.Chart | alt.LayerChart | alt.FacetChart  # what alt.layer may return


@dataclass(frozen=True)
class Key:
    """One entry of a legend; `line` is solid, dashed or dotted, or else it is a filled swatch."""

    label: str
    colour: str
    line: str = ""


@dataclass(frozen=True)
class Figure:
    """A figure of the report: `n` says how many instances are in it, `caption` how to read it."""

    key: str
    title: str
    n: str
    caption: str
    spec: dict[str, Any]
    keys: list[Key] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def rows(values: list[dict[str, Any]]) -> alt.InlineData:
    """Data of a chart, numbers rounded: a figure needs four digits, and the page stays small."""
    return alt.InlineData(
        values=[
            {k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()}
            for row in values
        ]
    )


def colour(domain: list[str]) -> alt.Color:
    """The palette for some series, without a legend of its own."""
    return alt.Color(
        "series:N",
        scale=alt.Scale(
            domain=domain, range=[PALETTE[i % len(PALETTE)] for i in range(len(domain))]
        ),
        legend=None,
    )


def specification(chart: Drawing, height: int) -> dict[str, Any]:
    """The chart as wide as its place on the page."""
    spec: dict[str, Any] = chart.properties(width="container", height=height).to_dict()
    # The page gives all charts one configuration.
    spec.pop("config", None)
    return spec


def vertical(at: float, title: str) -> alt.Chart:
    """A thin dashed line across the figure."""
    guide = alt.Chart(rows([{"at": at, "what": title}]))
    rule: alt.Chart = guide.mark_rule(strokeDash=[3, 3], color=QUIET)
    return rule.encode(x="at:Q", tooltip="what:N")
