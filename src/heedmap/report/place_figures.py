"""Heat maps over the places of items: the patches of a slide as a raster, for some bags."""

from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np
from numpy.typing import NDArray

from heedmap.data.text_names import text_name
from heedmap.experiments.findings import AuditResult
from heedmap.report.charts import PALETTE, QUIET, Figure, Key, plot, specification
from heedmap.report.examples import choose_examples
from heedmap.report.wording import derived, shortened

MOST = 6  # bags
CELLS = 40  # of a raster's longer side; several items share a cell where there are more places
GAP = 0.08  # between two rasters, of the side of one
LABEL = 0.1  # of the side: the room of a bag's name
OVER = 0.7  # opacity of the largest number of a map that lies over a picture
SIDE = 225  # pixels, with which cells are about square in the page's column
MAPS = {"attention": ("instances", "attention"), "leave-one-out": ("leave_one_out", "importance")}


def place_figures(audit: AuditResult) -> list[Figure]:
    """Draw the map on trial, and leave-one-out beside it, where the tables know where items lie."""
    instances = audit.tables["instances"]
    if "x" not in instances.column_names:
        return []
    examples = choose_examples(audit.tables, audit.classes, derived(audit))
    known = instances["x"].is_valid().to_pylist()
    # The examples of the page come first, then the bags in their order.
    order = dict.fromkeys([*(e.row for e in examples), *range(instances.num_rows)])
    chosen_rows = [row for row in order if known[row]][:MOST]
    maps = {
        name: audit.tables[table][column]
        for name, (table, column) in MAPS.items()
        if table in audit.tables and column in audit.tables[table].column_names
    }
    cells: list[dict[str, Any]] = []
    pictures: list[dict[str, Any]] = []
    labels: list[dict[str, Any]] = []
    top = 0.0
    for row in chosen_rows:
        xy = np.array([instances[axis][row].as_py() for axis in "xy"]).T
        key = shortened(text_name(str(instances["key"][row].as_py())))
        bottom = 0.0
        predicted = audit.classes[instances["predicted"][row].as_py()]
        for number, (name, column) in enumerate(maps.items()):
            left = number * (1 + GAP)
            labels.append(
                {"x": left, "y": top + 0.6 * LABEL, "text": f"{key}: {predicted}, {name}"}
            )
            weights = column[row].as_py()
            if weights is None or any(w is None for w in weights):
                continue
            text_row = instances["row"][row].as_py()
            if "picture" in instances.column_names:
                right, down = extent(xy)
                pictures.append(
                    {
                        "url": instances["picture"][row].as_py(),
                        "x": left,
                        "x2": left + right,
                        "y": top + LABEL,
                        "y2": top + LABEL + down,
                    }
                )
            for cell in raster(xy, np.array(weights)):
                bottom = max(bottom, cell["y2"])
                cells.append(
                    {
                        "x": left + cell["x"],
                        "x2": left + cell["x2"],
                        "y": top + LABEL + cell["y"],
                        "y2": top + LABEL + cell["y2"],
                        "strength": cell["strength"],
                        "weight": cell["weight"],
                        "map": name,
                        "rows": [text_row],
                    }
                )
        top += LABEL + bottom + GAP
    if not cells:
        return []
    return [_figure(cells, pictures, labels, list(maps), len(chosen_rows), top)]


def raster(places: NDArray[np.float64], weights: NDArray[np.float64]) -> list[dict[str, float]]:
    """Return the cells of a raster in a square of side 1, y downwards, with the largest weight in each.

    `places` is (T, 2). A cell is as wide as the least distance between two different places along an axis, the
    grid on which slides are cut into patches; where the longer side would have more than CELLS, it is as wide
    as CELLS make it. `strength` is the weight by the largest one.
    """
    low = places.min(0)
    extent = places - low
    steps = [np.diff(np.unique(extent[:, axis])) for axis in (0, 1)]
    step = min((float(s[s > 1e-9].min()) for s in steps if (s > 1e-9).any()), default=1.0)
    step = max(step, float(extent.max()) / (CELLS - 1))
    numbers = np.floor(extent / step + 1e-6).astype(int)
    size = 1 / (numbers.max() + 1)
    largest: dict[tuple[int, int], float] = {}
    for (x, y), weight in zip(numbers.tolist(), weights.tolist(), strict=True):
        largest[x, y] = max(weight, largest.get((x, y), 0.0))
    top = max(largest.values())
    return [
        {
            "x": x * size, "x2": (x + 1) * size, "y": y * size, "y2": (y + 1) * size,
            "weight": weight, "strength": weight / top if top > 0 else 0.0,
        }
        for (x, y), weight in largest.items()
    ]  # fmt: skip


def extent(places: NDArray[np.float64]) -> tuple[float, float]:
    """Return the width and height of the raster of places with whole numbers, in a square of side 1."""
    columns, rows = places.max(0) - places.min(0) + 1
    longer = max(columns, rows)
    return float(columns / longer), float(rows / longer)


def _figure(
    cells: list[dict[str, Any]],
    pictures: list[dict[str, Any]],
    labels: list[dict[str, Any]],
    names: Sequence[str],
    count: int,
    height: float,
) -> Figure:
    width = len(names) * (1 + GAP) - GAP
    colours = list(PALETTE[: len(names)])
    # What lies under a map of a picture is seen through it.
    opacity = alt.Scale(domain=[0, 1], range=[0, OVER]) if pictures else None
    x = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[0, width], nice=False))
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[height, 0], nice=False))
    shades = plot(cells).mark_rect(stroke=QUIET, strokeWidth=0.2).encode(
        x=x, x2="x2:Q", y=y, y2="y2:Q",
        color=alt.Color("map:N", scale=alt.Scale(domain=list(names), range=colours), legend=None),
        fillOpacity=alt.FillOpacity("strength:Q", scale=opacity),
        tooltip=["map:N", "weight:Q"],
    )  # fmt: skip
    words = plot(labels).mark_text(align="left", baseline="middle", fontSize=11)
    below = [
        plot(pictures).mark_image(aspect=False)
        .encode(x=x, x2="x2:Q", y=y, y2="y2:Q", url="url:N")
    ] if pictures else []  # fmt: skip
    drawing = alt.layer(*below, shades, words.encode(x=x, y=y, text="text:N"))
    caption = (
        "Each cell is a place of the slide's grid, where its items lie; full colour is the largest number of a "
        "map. Where a bag has more places than cells, a cell shows the largest of its items. Empty is where no "
        "item lies. The bags are those that the page shows first."
    )
    title = "The map over the places of the items"
    if pictures:
        title = "The map over the picture"
        caption = (
            "Each text as the model sees it, with the map over its words: the largest number of a map has the "
            "strongest colour, and 0 none. The texts are those that the page shows first."
        )
    keys = [Key(name, colour) for name, colour in zip(names, colours, strict=True)]
    return Figure(
        "places", title, f"{count} texts", caption,
        specification(drawing, round(SIDE * height)), keys,
    )  # fmt: skip
