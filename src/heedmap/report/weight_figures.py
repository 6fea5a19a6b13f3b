"""Figures of other weights for the same text: shuffles, and the most different heat map."""

import altair as alt
import numpy as np
from numpy.typing import NDArray

from heedmap.auditing import Audit
from heedmap.measures import LN2
from heedmap.report.agreement_figures import PAPER
from heedmap.report.charts import (
    PALETTE,
    QUIET,
    Figure,
    Key,
    colour,
    rows,
    specification,
    vertical,
)
from heedmap.report.densities import (
    BIN_NAMES,
    FEWEST,
    Violin,
    histogram,
    quartiles,
    violins,
)
from heedmap.report.words import column


def permutation(audit: Audit) -> list[Figure]:
    """Median change of the prediction under shuffles, by sharpness of the attention."""
    figure = _violin_figure(
        audit,
        "permutation",
        "median_tvd",
        key="permutation",
        title="What shuffling the weights does",
        axis=alt.X(
            "x:Q",
            title="median change of the prediction (TVD)",
            scale=alt.Scale(domain=[0, 1.18]),
            axis=alt.Axis(values=[0, 0.25, 0.5, 0.75, 1], format=".2~f"),
        ),
        caption=(
            "Each text's weights are shuffled over its words; TVD 0 means that the prediction did not "
            "move, 1 that it turned over. Wide shapes near 0 where the largest weight is high speak against "
            f"attention: it looked decisive and was not (as {PAPER}, experiment 2a)."
        ),
        limit=None,
    )
    return [] if figure is None else [figure]


def most_different(audit: Audit) -> list[Figure]:
    """Largest JSD at the same prediction, by sharpness of the attention."""
    exact = len(audit.classes) == 2
    how = (
        "an exact optimum, where the paper has a search"
        if exact
        else "with more than two classes a lower bound: at least this much is possible"
    )
    figure = _violin_figure(
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
            f"The weights furthest from the model's own that move the prediction by at most "
            f"{audit.settings.audit.epsilon if audit.settings.audit else 0.01:g} (TVD); {how}. Near ln 2 "
            "(dashed) the two heat maps have nothing in common; high values where the largest weight is high "
            f"are the strongest case (as {PAPER}, experiment 2b)."
        ),
        limit=LN2,
    )
    return [] if figure is None else [figure]


def exact_and_search(audit: Audit) -> list[Figure]:
    """Histogram of the largest JSD: ours and what the paper's search finds."""
    used = column(audit.tables, "instances", "n_tokens") >= 2
    exact = len(audit.classes) == 2
    ours = "exact optimum" if exact else "best found (at least)"
    series = [(ours, "jsd"), ("the paper's search", "search_jsd")]
    names = [name for name, _ in series]
    data, keys, means = [], [], []
    for i, (label, name) in enumerate(series):
        values = column(audit.tables, "adversary", name)[used]
        values = values[np.isfinite(values)]
        if not len(values):
            return []
        keys.append(Key(f"{label} (n = {len(values)})", PALETTE[i]))
        data += [{"series": label, **row} for row in histogram(values, 0, 0.7, 35)]
        means.append({"series": label, "mean": float(values.mean())})
    bars = (
        alt.Chart(rows(data))
        .mark_bar(opacity=0.6, binSpacing=0)
        .encode(
            x=alt.X(
                "start:Q",
                bin="binned",
                title="largest JSD",
                scale=alt.Scale(domain=[0, 0.7], nice=False),
                axis=alt.Axis(values=[0, 0.2, 0.4, 0.6]),
            ),
            x2="end:Q",
            y=alt.Y("share:Q", title="share of the texts", stack=None, axis=alt.Axis(format="%")),
            color=colour(names),
            tooltip=[
                "series:N",
                alt.Tooltip("start:Q", title="JSD from"),
                alt.Tooltip("end:Q", title="to"),
                alt.Tooltip("share:Q", format=".1%"),
            ],
        )
    )
    mean = alt.Chart(rows(means)).mark_rule(strokeWidth=2)
    lines = mean.encode(x="mean:Q", color=colour(names), tooltip=["series:N", "mean:Q"])
    found = column(audit.tables, "adversary", "search_found")[used]
    missed = int((found == 0).sum())
    return [
        Figure(
            key="exact-search",
            title="The optimum and the paper's search",
            n=f"n = {int(used.sum())} texts of two or more words",
            caption=(
                "The largest JSD at the same prediction as computed here, and as found by the gradient "
                f"search of {PAPER}, which gives a lower bound. The vertical lines are the means."
                + (f" It found nothing in {missed} texts, counted as 0." if missed else "")
            ),
            spec=specification(alt.layer(bars, lines, vertical(LN2, "ln 2")), 190),
            keys=keys,
        )
    ]


def curve(audit: Audit) -> list[Figure]:
    """Largest JSD as the prediction may move further."""
    if "adversary" not in audit.tables or audit.settings.audit is None:
        return []
    used = column(audit.tables, "instances", "n_tokens") >= 2
    steps = audit.settings.audit.curve
    if not used.any() or not steps:
        return []
    table = audit.tables["adversary"]
    lower = np.array(table["curve_lower"].to_pylist(), dtype=float)[used]
    upper = np.array(table["curve_upper"].to_pylist(), dtype=float)[used]
    exact = len(audit.classes) == 2
    data = [
        {"epsilon": e, "lower": lo, "upper": up, "low": q[0], "high": q[1]}
        for e, lo, up, q in zip(
            steps,
            lower.mean(0).tolist(),
            upper.mean(0).tolist(),
            quartiles(list(lower.T)),
            strict=True,
        )
    ]
    base = alt.Chart(rows(data)).encode(
        x=alt.X(
            "epsilon:Q",
            title="the prediction may move by (TVD)",
            scale=alt.Scale(type="symlog", constant=0.001, nice=False),
            axis=alt.Axis(values=list(steps), format="~g", labelOverlap=True),
        ),
        tooltip=["epsilon:Q", "lower:Q", "upper:Q", "low:Q", "high:Q"],
    )
    scale = alt.Scale(domain=[0, 0.72], nice=False)
    band = base.mark_area(opacity=0.2, color=PALETTE[0]).encode(
        y=alt.Y("low:Q", title="largest JSD", scale=scale), y2="high:Q"
    )
    line = base.mark_line(point={"color": PALETTE[0]}, color=PALETTE[0], strokeWidth=2).encode(
        y=alt.Y("lower:Q", scale=scale)
    )
    keys = [
        Key("mean" if exact else "mean, at least", PALETTE[0], "solid"),
        Key("middle half of the texts", PALETTE[0] + "55"),
    ]
    layers: list[alt.Chart] = [band, line]
    if not exact:
        layers.append(
            base.mark_line(point={"color": PALETTE[1]}, color=PALETTE[1], strokeDash=[7, 4]).encode(
                y=alt.Y("upper:Q", scale=scale)
            )
        )
        keys.append(Key("mean, at most", PALETTE[1], "dashed"))
    top = alt.Chart(rows([{"at": LN2, "what": "ln 2: nothing in common"}]))
    layers.append(top.mark_rule(strokeDash=[3, 3], color=QUIET).encode(y="at:Q", tooltip="what:N"))
    return [
        Figure(
            key="curve",
            title="The freedom of the heat map",
            n=f"n = {int(used.sum())} texts of two or more words",
            caption=(
                "How different the heat map may be when the prediction may move by so much (axis stretched "
                "near 0); the dashed grey line is ln 2. "
                + (
                    "What stands at 0 is possible without moving the prediction at all. "
                    if exact
                    else "The truth lies between the two lines; at 0 the lower one is hardly ever found. "
                )
                + f"Not in {PAPER}, experiment 2b, which looks at 0.01 only."
            ),
            spec=specification(alt.layer(*layers), 220),
            keys=keys,
        )
    ]


def _violin_figure(
    audit: Audit,
    table: str,
    name: str,
    *,
    key: str,
    title: str,
    axis: alt.X,
    caption: str,
    limit: float | None,
) -> Figure | None:
    values = column(audit.tables, table, name)
    values = np.where(column(audit.tables, "instances", "n_tokens") >= 2, values, np.nan)
    predicted = column(audit.tables, "instances", "predicted").astype(int)
    sharp = column(audit.tables, "instances", "max_attention")
    found = violins(values, sharp, predicted, len(audit.classes))
    if not found:
        return None
    counts = np.bincount(predicted[np.isfinite(values)], minlength=len(audit.classes))
    shown = [i for i, n in enumerate(counts) if n]
    keys = [
        Key(f"predicted {audit.classes[i]} (n = {counts[i]})", PALETTE[i % len(PALETTE)])
        for i in shown
    ]
    few = sum(v.shape is None for v in found)
    notes = [f"groups of fewer than {FEWEST} texts, or of all equal values, are drawn as points"]
    gone = int((~np.isfinite(values)).sum())
    return Figure(
        key=key,
        title=title,
        n=f"n = {int(counts.sum())} texts" + (f", {gone} of one word left out" if gone else ""),
        caption=caption + " All shapes are drawn equally wide; the white tick is the median.",
        spec=specification(
            _violin_chart(found, shown, audit.classes, axis, limit),
            4 * max(58, 24 * len(shown) + 10),
        ),
        keys=keys,
        notes=notes if few else [],
    )


def _violin_chart(
    found: list[Violin], shown: list[int], classes: list[str], axis: alt.X, limit: float | None
) -> alt.LayerChart:
    """Horizontal violins: a row of height 1 a bin, in it a slot a class."""
    slot = 0.9 / len(shown)
    shapes, points, medians, labels = [], [], [], []
    for v in found:
        # The sharpest attention on top, the first class on top in its row.
        centre = v.bin + 0.5 - slot * (shown.index(v.series) - (len(shown) - 1) / 2)
        group = {"series": classes[v.series], "bin": BIN_NAMES[v.bin], "n": v.n, "y": centre}
        labels.append({**group, "text": f"n = {v.n}"})
        if v.shape is None:
            points += [{**group, "x": x} for x in v.values[:FEWEST].tolist()]
            continue
        medians.append(
            {**group, "x": v.median, "low": centre - 0.3 * slot, "high": centre + 0.3 * slot}
        )
        half = 0.46 * slot * v.shape[1] / v.shape[1].max()
        shapes += [
            {**group, "x": x, "low": centre - h, "high": centre + h}
            for x, h in zip(v.shape[0].tolist(), half.tolist(), strict=True)
        ]
    # Values on the axis stand in the middle of their rows; the expression turns them into the bins' names.
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
        alt.Chart(rows([{"y": float(i)} for i in range(5)]))
        .mark_rule(color=QUIET, opacity=0.35)
        .encode(y=alt.Y("y:Q", scale=alt.Scale(domain=[0, 4], nice=False), axis=y_axis)),
        alt.Chart(rows(shapes))
        .mark_area(opacity=0.75)
        .encode(
            x=axis,
            y=y,
            y2="high:Q",
            detail=["bin:N", "series:N"],
            color=colour(classes),
            tooltip=hint,
        ),  # fmt: skip
        alt.Chart(rows(points))
        .mark_point(filled=True, size=28, opacity=0.8)
        .encode(x=axis, y="y:Q", color=colour(classes), tooltip=[*hint, "x:Q"]),
        alt.Chart(rows(medians))
        .mark_rule(color="white", strokeWidth=2)
        .encode(
            x=axis, y="low:Q", y2="high:Q", tooltip=[*hint, alt.Tooltip("x:Q", title="median")]
        ),
        alt.Chart(rows(labels))
        .mark_text(align="right", fontSize=10)
        .encode(x=alt.value("width"), y="y:Q", text="text:N"),
    ]
    if limit is not None:
        layers.append(vertical(limit, "ln 2: nothing in common"))
    return alt.layer(*layers)
