"""A row per group: a small histogram of many texts, or a dot per text where they are few."""

import json
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np
from numpy.typing import NDArray

from heedmap.report.charts import QUIET, colour, plot
from heedmap.report.densities import FEWEST, histogram

FULL = 0.86  # the part of a row that the tallest bar or stack takes
LEAST_STACK = 8  # dots in the tallest stack, of which a lower one shows as such
LABEL = 118  # pixels of a group's name


@dataclass(frozen=True)
class Group:
    """The values of one group, and the row of each value's text; drawn in the colour of its label."""

    label: str
    name: str
    values: NDArray[np.float64]
    text_rows: NDArray[np.int64]


def row_layers(
    groups: list[Group], labels: list[str], x: alt.X, low: float, high: float, bins: int, sign: str
) -> list[alt.Chart]:
    """Draw the groups from top to bottom on one axis, each with its mean; the bars of all share a scale."""
    bars: list[dict[str, Any]] = []
    dots: list[dict[str, Any]] = []
    means: list[dict[str, Any]] = []
    for place, group in enumerate(reversed(groups)):
        hint = {"series": group.name, "n": len(group.values)}
        means.append({**hint, "mean": float(group.values.mean()), "low": place, "high": place + 1})
        if len(group.values) < FEWEST:
            dots += [{**hint, **dot, "low": place} for dot in _stacked(group, low, high, bins)]
        else:
            bars += [
                {**hint, **bar, "low": place}
                for bar in histogram(group.values, low, high, bins, group.text_rows)
            ]
    tallest = max((bar["share"] for bar in bars), default=1.0)
    for bar in bars:
        bar["high"] = bar["low"] + FULL * bar["share"] / tallest
    deepest = max([LEAST_STACK, *(dot["place"] + 1 for dot in dots)])
    for dot in dots:
        dot["y"] = dot.pop("low") + FULL * (dot.pop("place") + 0.5) / deepest
    # A label with a comma stands in two lines: a phone is narrow.
    names = json.dumps([group.label.replace(", ", ",\n").split("\n") for group in reversed(groups)])
    axis = alt.Axis(
        values=[place + 0.5 for place in range(len(groups))],
        tickCount=len(groups),
        labelExpr=f"{names}[floor(datum.value)]",
        labelLimit=LABEL,
        grid=False,
        ticks=False,
        domain=False,
        title=None,
    )
    scale = alt.Scale(domain=[0, len(groups)], nice=False)
    y = alt.Y("low:Q", scale=scale, axis=axis)
    series = alt.Tooltip("series:N", title="texts")
    shades = _colour(groups, labels)
    base_lines = plot([{"y": place} for place in range(len(groups))])
    layers: list[alt.Chart] = [
        base_lines.mark_rule(color=QUIET, opacity=0.35).encode(
            y=alt.Y("y:Q", scale=scale, axis=axis)
        )
    ]
    if bars:
        layers.append(
            plot(bars)
            .mark_rect(fillOpacity=0.75)
            .encode(
                x=_at(x, "start"),
                x2="end:Q",
                y=y,
                y2="high:Q",
                color=shades,
                tooltip=[
                    series,
                    alt.Tooltip("start:Q", title=f"{sign} from"),
                    alt.Tooltip("end:Q", title="to"),
                    alt.Tooltip("share:Q", format=".1%"),
                ],
            )
        )
    if dots:
        layers.append(
            plot(dots)
            .mark_point(filled=True, size=26, opacity=1, fillOpacity=0.8)
            .encode(
                x=_at(x, "value"),
                y=alt.Y("y:Q", scale=scale, axis=axis),
                color=shades,
                tooltip=[series, alt.Tooltip("value:Q", title=sign)],
            )
        )
    layers.append(
        plot(means)
        .mark_rule(strokeWidth=2)
        .encode(x=_at(x, "mean"), y=y, y2="high:Q", color=shades, tooltip=[series, "mean:Q", "n:Q"])
    )
    return layers


def row_reading(groups: list[Group], what: str) -> str:
    """Say how to read the rows; `what` has a row of its own."""
    few = [len(group.values) < FEWEST for group in groups]
    dots = "a dot per text, stacked where the values are nearly equal"
    bars = "a histogram that sums to 100 %, all on one scale"
    if all(few):
        drawn = dots
    elif any(few):
        drawn = f"{bars}, or {dots}, of fewer than {FEWEST} texts"
    else:
        drawn = bars
    return f"A row per {what}: {drawn}; the vertical line is the mean"


def row_height(count: int) -> int:
    """Return the height of a chart with so many rows, in pixels."""
    return max(120, 52 * count)


def _at(x: alt.X, name: str) -> alt.X:
    """Return the same axis for another column."""
    return alt.X(f"{name}:Q", **{k: v for k, v in x._kwds.items() if k != "shorthand"})


def _colour(groups: list[Group], labels: list[str]) -> alt.Color:
    """Return the colours of the labels, for the names of the groups."""
    names = {group.label: group.name for group in groups}
    return colour([names.get(label, label) for label in labels])


def _stacked(group: Group, low: float, high: float, bins: int) -> list[dict[str, Any]]:
    """Return a dot per value, with its place in the stack of its bin, from the smallest."""
    values = np.clip(group.values, low, high)
    bin_of = np.minimum(((values - low) / (high - low) * bins).astype(int), bins - 1)
    heights = dict.fromkeys(bin_of.tolist(), 0)
    dots: list[dict[str, Any]] = []
    for i in np.argsort(group.values, kind="stable").tolist():
        place = heights[int(bin_of[i])]
        heights[int(bin_of[i])] += 1
        dots.append({"value": float(values[i]), "place": place, "rows": [int(group.text_rows[i])]})
    return dots
