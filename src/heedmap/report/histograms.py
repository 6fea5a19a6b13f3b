"""One histogram per predicted class, each summing to 100 %."""

from dataclasses import dataclass
from typing import Literal

import altair as alt
import numpy as np
from altair.utils.schemapi import UndefinedType
from numpy.typing import NDArray

from heedmap.report.charts import Drawing, Key, colour, rows, vertical
from heedmap.report.densities import histogram
from heedmap.report.grouping import Division

MOST_FILLED = 3  # classes with filled histograms; more would hide one another


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
    values: NDArray[np.float64], division: Division, axis: Axis
) -> tuple[Drawing, list[Key], str]:
    """Return chart, legend and how to read it; values that are not finite are excluded."""
    defined = np.isfinite(values)
    data, means, keys = [], [], []
    for i, label in enumerate(division.labels):
        group = values[defined & (division.series == i)]
        if len(group):
            keys.append(division.key(i, group))
            data += [
                {"series": label, **row} for row in histogram(group, axis.low, axis.high, axis.bins)
            ]
            means.append({"series": label, "mean": float(group.mean())})
    filled = len(keys) <= MOST_FILLED
    layers: list[alt.Chart] = [vertical(*axis.guide)]
    layers += _filled(data, means, division, axis) if filled else [_outlined(data, division, axis)]
    subject = (
        "One histogram for each predicted class, each" if division.by_class else "The histogram"
    )
    sums = "summing to 100 %" if division.by_class else "sums to 100 %"
    line = "lines are the means" if len(means) > 1 else "line is the mean"
    caption = f"{subject} {sums}" + (f"; the vertical {line}" if filled else "")
    return alt.layer(*layers), keys, caption


def _x(axis: Axis, binned: Literal["binned"] | UndefinedType) -> alt.X:
    return alt.X(
        "start:Q",
        title=axis.title,
        scale=alt.Scale(domain=[axis.low, axis.high], nice=False),
        axis=alt.Axis(values=list(axis.ticks), format="~g"),  # else .25 reads 0.3
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


def _filled(
    data: list[dict[str, object]], means: list[dict[str, object]], division: Division, axis: Axis
) -> list[alt.Chart]:
    bars = (
        alt.Chart(rows(data))
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
        alt.Chart(rows(means))
        .mark_rule(strokeWidth=2)
        .encode(
            x="mean:Q",
            color=colour(division.labels),
            tooltip=[alt.Tooltip("series:N", title="texts"), "mean:Q"],
        )
    )
    return [bars, lines]


def _outlined(data: list[dict[str, object]], division: Division, axis: Axis) -> alt.Chart:
    # A step ends where the next begins, so the last bin needs an end point.
    ends = [{**row, "start": row["end"]} for row in data if row["end"] == axis.high]
    steps = alt.Chart(rows([*data, *ends])).mark_line(interpolate="step-after", strokeWidth=1.5)
    outline: alt.Chart = steps.encode(
        x=_x(axis, alt.Undefined),
        y=_y(division),
        color=colour(division.labels),
        tooltip=_hint(axis),
    )
    return outline
