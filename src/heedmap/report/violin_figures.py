"""Violins of shuffles and of the most different heat map, by sharpness of the attention."""

from typing import Any

import altair as alt
import numpy as np
from numpy.typing import NDArray

from heedmap.experiments.findings import AuditResult
from heedmap.experiments.questions.adversary import is_exact, is_searched
from heedmap.experiments.scales import scale_of
from heedmap.measures import LN2
from heedmap.report.agreement_figures import PAPER
from heedmap.report.charts import QUIET, Drawing, Figure, colour, plot, specification, vertical
from heedmap.report.densities import BIN_NAMES, FEWEST, Violin, violins
from heedmap.report.grouping import Division, division, of_words
from heedmap.report.wording import column, derived, tolerance
from heedmap.settings.models import TransformerSettings

NARROW = 0.008  # a narrower violin would be invisible and is drawn as a line
SWARM = 30  # columns of points that are set apart
QUARTILES = ("lower quartile", "median", "upper quartile")


def permutation(audit: AuditResult) -> list[Figure]:
    """Draw the median change of the prediction under shuffles, by sharpness of the attention."""
    shuffled = (
        "The rows of the layer on trial are shuffled over the text's positions"
        if isinstance(audit.settings.model, TransformerSettings)
        else "Each text's weights are shuffled over its words"
    )
    against = (
        "Wide shapes near 0 where the largest weight is high "
        f"speak against attention: it looked decisive and was not (as {PAPER}, experiment 2a)."
    )
    if derived(audit):
        shuffled += ", not the heat map that is made of them"
        against = f"Wide shapes near 0 mean that the layer's weights hardly matter (as {PAPER}, experiment 2a)."
    scale = scale_of(audit.tables["instances"], audit.classes)
    still = "TVD 0 means that the prediction did not move, 1 that it turned over"
    x = alt.X(
        "x:Q",
        title="median change of the prediction (TVD)",
        scale=alt.Scale(domain=[0, 1.18]),
        axis=alt.Axis(values=[0, 0.25, 0.5, 0.75, 1]),
    )
    if scale.unit is not None:
        still = scale.meaning
        x = alt.X("x:Q", title=f"median change of the output, in {scale.short}")
    return _of_table(
        audit,
        "permutation",
        "median_tvd",
        size=scale.size,
        key="permutation",
        title="What shuffling the weights does",
        axis=x,
        caption=f"{shuffled}; {still}. {against}",
        limit=None,
    )


def most_different(audit: AuditResult) -> list[Figure]:
    """Draw the largest JSD at the same prediction, by sharpness of the attention."""
    if "adversary" not in audit.tables:
        return []
    columns = audit.tables["adversary"].column_names
    exact = is_exact(columns, len(audit.classes))
    if exact:
        method_text = "an exact optimum, where the paper has a search"
    elif is_searched(columns):
        method_text = "found by a search on the model itself: at least this much is possible"
    else:
        method_text = "with more than two classes a lower bound: at least this much is possible"
    which = (
        "whose heat map is furthest from the model's"
        if derived(audit)
        else "furthest from the model's own"
    )
    return _of_table(
        audit,
        "adversary",
        "jsd",
        key="adversary",
        title="How different the heat map may be at the same prediction"
        + ("" if exact else " (at least)"),
        axis=alt.X(
            "x:Q",
            title="largest JSD" + ("" if exact else " (at least)"),
            scale=alt.Scale(domain=[0, 0.82]),
            axis=alt.Axis(values=[0, 0.2, 0.4, 0.6]),
        ),
        caption=(
            f"The weights {which} that move the prediction by at most "
            f"{tolerance(audit)}; {method_text}. Near ln 2 (dashed) the two heat maps have nothing "
            "in common; high values where the largest weight is high are the strongest case "
            f"(as {PAPER}, experiment 2b)."
        ),
        limit=LN2,
    )


def _of_table(
    audit: AuditResult, table: str, name: str, size: float = 1.0, **options: Any
) -> list[Figure]:
    values, n = of_words(audit, column(audit.tables, table, name) / size)
    sharp = column(audit.tables, "instances", "max_attention")
    figure = violin_figure(values, n, sharp, division(audit), **options)
    return [] if figure is None else [figure]


def violin_figure(
    values: NDArray[np.float64],
    n: str,
    sharp: NDArray[np.float64],
    divided: Division,
    *,
    key: str,
    title: str,
    axis: alt.X,
    caption: str,
    limit: float | None,
) -> Figure | None:
    """Draw violins of the values in four bins of the largest weight `sharp`; None if no value is finite.

    `n` states the number of texts; `limit` is the measure's maximum.
    """
    shapes = violins(values, sharp, divided.series, len(divided.labels))
    if not shapes:
        return None
    defined = np.isfinite(values)
    present = sorted({v.series for v in shapes})
    few_note = f"groups of fewer than {FEWEST} texts, or of all equal values, are drawn as points"
    return Figure(
        key=key,
        title=title,
        n=n,
        caption=f"{caption} All shapes are drawn equally wide; the white ticks are median and quartiles.",
        spec=specification(
            _violin_chart(shapes, present, divided.labels, axis, limit),
            4 * max(58, 24 * len(present) + 10),
        ),
        keys=[divided.key(i, values[defined & (divided.series == i)], mean=False) for i in present],
        notes=[*([few_note] if any(v.shape is None for v in shapes) else []), *divided.notes],
    )


def _violin_chart(
    violins: list[Violin], present: list[int], classes: list[str], axis: alt.X, limit: float | None
) -> Drawing:
    """Draw horizontal violins: a row of height 1 per bin, with a slot per class."""
    slot = 0.9 / len(present)
    shapes, points, ticks, labels, lines = [], [], [], [], []
    for v in violins:
        # The sharpest attention is on top; within a row the first class is.
        centre = v.bin + 0.5 - slot * (present.index(v.series) - (len(present) - 1) / 2)
        group = {"series": classes[v.series], "bin": BIN_NAMES[v.bin], "n": v.n, "y": centre}
        labels.append({**group, "text": f"n = {v.n:,}"})
        if v.shape is None:
            points += [{**group, **point} for point in _swarm(v, centre, slot)]
            continue
        if np.ptp(v.values) < NARROW:
            ends = {"low": centre - 0.46 * slot, "high": centre + 0.46 * slot}
            lines.append({**group, "x": v.quartiles[1], **ends, "rows": v.text_rows.tolist()})
            continue
        for x, quartile, half in zip(v.quartiles, QUARTILES, (0.16, 0.3, 0.16), strict=True):
            ends = {"low": centre - half * slot, "high": centre + half * slot}
            ticks.append({**group, "x": x, "what": quartile, **ends})
        half = 0.46 * slot * v.shape[1] / v.shape[1].max()
        outline: list[dict[str, Any]] = [
            {**group, "x": x, "low": centre - h, "high": centre + h}
            for x, h in zip(v.shape[0].tolist(), half.tolist(), strict=True)
        ]
        outline[0] |= {
            "rows": v.text_rows.tolist(),
            "xs": v.values.tolist(),
            "ys": [centre - 0.46 * slot, centre + 0.46 * slot],
        }
        shapes += outline
    # Axis values are the middles of the rows; the expression maps them to the bins' names.
    names = "[" + ",".join(f"'{name}'" for name in BIN_NAMES) + "]"
    y_axis = alt.Axis(
        values=[0.5, 1.5, 2.5, 3.5],
        labelExpr=f"{names}[floor(datum.value)]",
        grid=False,
        ticks=False,
        domain=False,
        title="largest attention weight",
    )
    y = alt.Y("low:Q", scale=alt.Scale(domain=[0, 4], nice=False), axis=y_axis)
    hint = [alt.Tooltip("series:N", title="predicted"), alt.Tooltip("bin:N"), "n:Q"]
    layers = [
        plot([{"y": float(i)} for i in range(5)])
        .mark_rule(color=QUIET, opacity=0.35)
        .encode(y=alt.Y("y:Q", scale=alt.Scale(domain=[0, 4], nice=False), axis=y_axis)),
        plot(shapes)
        .mark_area(fillOpacity=0.75)
        .encode(
            x=axis,
            y=y,
            y2="high:Q",
            detail=["bin:N", "series:N"],
            color=colour(classes),
            tooltip=hint,
        ),
        plot(lines)
        .mark_rule(strokeWidth=3)
        .encode(x=axis, y="low:Q", y2="high:Q", color=colour(classes), tooltip=[*hint, "x:Q"]),
        plot(points)
        .mark_point(filled=True, size=28, opacity=1, fillOpacity=0.8)
        .encode(x=axis, y="y:Q", color=colour(classes), tooltip=[*hint, "x:Q"]),
        plot(ticks)
        .mark_rule(color="white", strokeWidth=1.5)
        .encode(x=axis, y="low:Q", y2="high:Q", tooltip=[*hint, "what:N", "x:Q"]),
        plot(labels)
        .mark_text(align="right", fontSize=10)
        .encode(x=alt.value("width"), y="y:Q", text="text:N"),
    ]
    if limit is not None:
        layers.append(vertical(limit, "ln 2: nothing in common"))
    return alt.layer(*layers)


def _swarm(violin: Violin, centre: float, slot: float) -> list[dict[str, Any]]:
    """Return a point per text, set apart where values are nearly equal; one for all where they are equal."""
    values = violin.values
    if len(values) >= FEWEST:
        return [{"x": float(values[0]), "y": centre, "rows": violin.text_rows.tolist()}]
    bin_of = ((values - values.min()) / max(float(np.ptp(values)), 0.1) * SWARM).astype(int)
    deepest = int(np.bincount(bin_of).max())
    step = min(0.12, 0.8 / deepest) * slot
    heights = dict.fromkeys(bin_of.tolist(), 0)
    points = []
    for i in np.argsort(values, kind="stable").tolist():
        place = heights[int(bin_of[i])]
        heights[int(bin_of[i])] += 1
        side = (place + 1) // 2 * (1 if place % 2 else -1)  # 0, 1, −1, 2, −2 …
        points.append(
            {
                "x": float(values[i]),
                "y": centre + side * step,
                "rows": [int(violin.text_rows[i])],
            }
        )
    return points
