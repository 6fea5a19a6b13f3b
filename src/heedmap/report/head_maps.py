"""Layer × head maps side by side, drawn as one chart so that they scale with the page.

Vega-Lite's own facets take no width from their container: on a phone the right map is cut off, and on a wide
page both stay small. They also cannot set the mean over heads apart.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np
from numpy.typing import NDArray

from heedmap.experiments.rounding import number
from heedmap.report.charts import PALETTE, QUIET, Drawing, plot, specification

MORE, LESS, MARK = PALETTE[0], PALETTE[1], PALETTE[4]
GAP = 0.9  # columns between the last head and the mean over heads
MARGIN = 2.4  # columns for the layers' numbers
TITLE, FOOT = 1.5, 2.4  # rows above a map, and below it for the axis of heads
ROW = 13  # pixels

Cells = Mapping[tuple[int, int | None], float]


@dataclass(frozen=True)
class Panel:
    """One map: a value per (layer, head); head None is the mean over heads."""

    title: str
    cells: Cells
    marked: tuple[int, int | None] | None = None


def chart(panels: list[Panel], top: float, across: int, name: str) -> dict[str, Any]:
    """Return the maps as a Vega-Lite specification; the opacity of a cell is |value| / top.

    Blue above 0 and orange below, on the page's background: the same scale in light and dark mode, and
    readable with any colour blindness.
    """
    layers = 1 + max(layer for panel in panels for layer, _ in panel.cells)
    heads = 1 + max((h for panel in panels for _, h in panel.cells if h is not None), default=-1)
    width = MARGIN + heads + GAP + 1 + 0.5
    height = TITLE + layers + FOOT
    cells, marks, titles, ticks, sides, ups = [], [], [], [], [], []
    for i, panel in enumerate(panels):
        x0, y0 = (i % across) * width + MARGIN, (i // across) * height + TITLE
        titles.append({"x": x0, "y": y0 - 0.7, "map": panel.title})
        for (layer, head), value in panel.cells.items():
            x1 = x0 + _place(head, heads)
            box = {"x": x1, "x2": x1 + 1, "y": y0 + layer, "y2": y0 + layer + 1}
            if panel.marked == (layer, head):
                marks.append(box)
            if np.isfinite(value):
                cells.append(
                    {
                        **box,
                        "map": panel.title,
                        "layer": layer,
                        "head": "mean over heads" if head is None else str(head),
                        "value": number(value),
                        "colour": MORE if value >= 0 else LESS,
                        "strength": min(abs(value) / top, 1.0) if top > 0 else 0.0,
                    }
                )
        tick_heads: list[int | None] = [*_numbers(heads)]
        if any(head is None for _, head in panel.cells):
            tick_heads.append(None)
        ticks += [
            {
                "x": x0 + _place(head, heads) + 0.5,
                "y": y0 + layers + 0.7,
                "text": "mean" if head is None else str(head),
            }
            for head in tick_heads
        ]
        if i + across >= len(panels):  # the lowest map of its column
            ticks.append({"x": x0 + heads / 2, "y": y0 + layers + 1.6, "text": "head"})
        if i % across == 0:
            ups.append({"x": x0 - 1.9, "y": y0 + layers / 2, "text": "layer"})
        sides += [
            {"x": x0 - 0.35, "y": y0 + layer + 0.5, "text": str(layer)}
            for layer in _numbers(layers)
        ]
    down = -(-len(panels) // across)
    x = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[0, across * width], nice=False))
    # The first layer is at the top, as is usual in the literature.
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[down * height, 0], nice=False))
    boxes = (
        plot(cells)
        .mark_rect(stroke=QUIET, strokeWidth=0.4, strokeOpacity=0.5)
        .encode(
            x=x,
            x2="x2:Q",
            y=y,
            y2="y2:Q",
            color=alt.Color("colour:N", scale=None),
            fillOpacity=alt.FillOpacity("strength:Q", scale=None),
            tooltip=["map:N", "layer:N", "head:N", alt.Tooltip("value:N", title=name)],
        )
    )
    chart_layers: list[alt.Chart] = [boxes]
    if marks:
        outline = plot(marks).mark_rect(
            fillOpacity=0, stroke=MARK, strokeWidth=2.5, strokeOpacity=1
        )
        chart_layers.append(outline.encode(x=x, x2="x2:Q", y=y, y2="y2:Q"))
    named = plot(titles).mark_text(align="left", baseline="middle", fontSize=12)
    chart_layers.append(named.encode(x=x, y=y, text="map:N"))
    for labels in (
        plot(ticks).mark_text(baseline="middle", fontSize=10),
        plot(sides).mark_text(align="right", baseline="middle", fontSize=10),
        plot(ups).mark_text(angle=270, baseline="middle", fontSize=10),
    ):
        chart_layers.append(labels.encode(x=x, y=y, text="text:N"))
    whole: Drawing = alt.layer(*chart_layers)
    return specification(whole, round(down * height * ROW))


def means(
    layer: NDArray[np.float64], head: NDArray[np.float64], values: NDArray[np.float64]
) -> dict[tuple[int, int | None], float]:
    """Return the mean of the finite values per (layer, head); NaN as head stands for the mean over heads.

    >>> means(np.array([0, 0, 1]), np.array([0, 0, np.nan]), np.array([1.0, 2.0, 5.0]))
    {(0, 0): 1.5, (1, None): 5.0}
    """
    cells: dict[tuple[int, int | None], float] = {}
    keys = np.stack([layer, np.where(np.isfinite(head), head, -1)], axis=1)
    positions, which = np.unique(keys, axis=0, return_inverse=True)
    which = which.ravel()
    defined = np.isfinite(values)
    sums = np.bincount(which[defined], values[defined], minlength=len(positions))
    counts = np.bincount(which[defined], minlength=len(positions))
    for (layer_number, head_number), total, count in zip(
        positions.tolist(), sums.tolist(), counts.tolist(), strict=True
    ):
        cells[int(layer_number), None if head_number < 0 else int(head_number)] = (
            total / count if count else float("nan")
        )
    return cells


def _place(head: int | None, heads: int) -> float:
    return float(head) if head is not None else heads + GAP


def _numbers(count: int) -> list[int]:
    """Return the labelled numbers: all up to 8, every second up to 16, else every fourth."""
    step = 1 if count <= 8 else 2 if count <= 16 else 4
    return list(range(0, count, step))
