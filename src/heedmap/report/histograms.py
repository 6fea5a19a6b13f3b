"""One histogram per predicted class, each summing to 100 %, or dots where there are few texts."""

from dataclasses import dataclass
from typing import Any, Literal

import altair as alt
import numpy as np
from altair.utils.schemapi import UndefinedType
from numpy.typing import NDArray

from heedmap.report.charts import Key, colour, plot, specification, vertical
from heedmap.report.densities import FEWEST, histogram
from heedmap.report.grouping import Division
from heedmap.report.small_multiples import Group, row_height, row_layers, row_reading

MOST_FILLED = 3  # groups with filled histograms; more would hide one another
HEIGHT = 190  # of filled histograms


@dataclass(frozen=True)
class Axis:
    """The axis of a histogram: bins from `low` to `high`, and a guide at a meaningful value."""

    title: str
    low: float
    high: float
    bins: int
    ticks: tuple[float, ...]
    guide: tuple[float, str]
    sign: str  # in tooltips


TAU = Axis("Kendall τ", -1, 1, 30, (-1, -0.5, 0, 0.5, 1), (0, "no relation"), "τ")


def by_class(
    values: NDArray[np.float64],
    division: Division,
    axis: Axis,
    text_rows: NDArray[np.int64] | None = None,
) -> tuple[dict[str, Any], list[Key], str]:
    """Return specification, legend and how to read it; values that are not finite are excluded.

    `text_rows` are the rows of the texts of the values; without it the values are in their order. Histograms of
    up to MOST_FILLED groups with enough texts are filled and share an area; others have rows of their own.
    """
    of_text = np.arange(len(values)) if text_rows is None else text_rows
    groups, keys = [], []
    for i, label in enumerate(division.labels):
        of_group = np.isfinite(values) & (division.series == i)
        if of_group.any():
            keys.append(division.key(i, values[of_group]))
            groups.append(Group(label, label, values[of_group], of_text[of_group]))
    guide = vertical(*axis.guide)
    if len(groups) <= MOST_FILLED and all(len(group.values) >= FEWEST for group in groups):
        chart = alt.layer(guide, *_filled(groups, division, axis))
        return specification(chart, HEIGHT), keys, _reading(len(groups), division.by_class)
    layers = row_layers(
        groups, division.labels, _x(axis, alt.Undefined), axis.low, axis.high, axis.bins, axis.sign
    )
    reading = row_reading(groups, "predicted class" if division.by_class else "kind")
    return specification(alt.layer(guide, *layers), row_height(len(groups))), keys, reading


def _reading(count: int, by_class: bool) -> str:
    lines = "lines are the means" if count > 1 else "line is the mean"
    if by_class:
        subject = "One histogram for each predicted class, each summing to 100 %"
    elif count > 1:
        subject = "Each histogram sums to 100 %"
    else:
        subject = "The histogram sums to 100 %"
    return f"{subject}; the vertical {lines}"


def _x(axis: Axis, binned: Literal["binned"] | UndefinedType) -> alt.X:
    return alt.X(
        "start:Q",
        title=axis.title,
        scale=alt.Scale(domain=[axis.low, axis.high], nice=False),
        axis=alt.Axis(values=list(axis.ticks)),
        bin=binned,
    )


def _y(division: Division) -> alt.Y:
    title = "share of the class" if division.by_class else "share of the texts"
    return alt.Y("share:Q", title=title, stack=None, axis=alt.Axis(format="%"))


def _hint(axis: Axis) -> list[alt.Tooltip]:
    return [
        alt.Tooltip("series:N", title="texts"),
        alt.Tooltip("start:Q", title=f"{axis.sign} from"),
        alt.Tooltip("end:Q", title="to"),
        alt.Tooltip("share:Q", format=".1%"),
    ]


def _filled(groups: list[Group], division: Division, axis: Axis) -> list[alt.Chart]:
    data = [
        {"series": group.label, **row}
        for group in groups
        for row in histogram(group.values, axis.low, axis.high, axis.bins, group.text_rows)
    ]
    means = [{"series": group.label, "mean": float(group.values.mean())} for group in groups]
    bars = (
        plot(data)
        .mark_bar(fillOpacity=0.6, binSpacing=0)
        .encode(
            x=_x(axis, "binned"),
            x2="end:Q",
            y=_y(division),
            color=colour(division.labels),
            tooltip=_hint(axis),
        )
    )
    lines = (
        plot(means)
        .mark_rule(strokeWidth=2)
        .encode(
            x="mean:Q",
            color=colour(division.labels),
            tooltip=[alt.Tooltip("series:N", title="texts"), "mean:Q"],
        )
    )
    return [bars, lines]
