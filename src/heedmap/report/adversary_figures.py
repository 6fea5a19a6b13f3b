"""Figures of the most different heat map: against the paper's search, and by how much may move."""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np
import pyarrow as pa

from heedmap.findings import Conclusions
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
from heedmap.report.densities import histogram, quartiles
from heedmap.report.words import column


def is_exact(tables: Mapping[str, pa.Table], classes: Sequence[str]) -> bool:
    """Whether the most different weights are the optimum: two classes, and a linear read-out.

    Only there and with more classes is there a curve of bounds; a transformer is searched.
    """
    return len(classes) == 2 and "curve_lower" in tables["adversary"].column_names


def exact_and_search(audit: Conclusions) -> list[Figure]:
    """Histogram of the largest JSD: ours and what the paper's search finds."""
    if "adversary" not in audit.tables:
        return []
    used = column(audit.tables, "instances", "n_tokens") >= 2
    exact = is_exact(audit.tables, audit.classes)
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
                "The largest JSD at the same prediction as computed here, and as found by the "
                f"gradient search of {PAPER}, which gives a lower bound. The vertical lines are "
                "the means."
                + (f" It found nothing in {missed} texts, counted as 0." if missed else "")
            ),
            spec=specification(alt.layer(bars, lines, vertical(LN2, "ln 2")), 190),
            keys=keys,
        )
    ]


def curve(audit: Conclusions) -> list[Figure]:
    """Largest JSD as the prediction may move further."""
    if "adversary" not in audit.tables or audit.settings.audit is None:
        return []
    used = column(audit.tables, "instances", "n_tokens") >= 2
    steps = audit.settings.audit.curve
    if not used.any() or not steps:
        return []
    table = audit.tables["adversary"]
    if "curve_lower" not in table.column_names:
        return []
    lower = np.array(table["curve_lower"].to_pylist(), dtype=float)[used]
    upper = np.array(table["curve_upper"].to_pylist(), dtype=float)[used]
    exact = is_exact(audit.tables, audit.classes)
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
                "How different the heat map may be when the prediction may move by so much (axis "
                "stretched near 0); the dashed grey line is ln 2. "
                + (
                    "What stands at 0 is possible without moving the prediction at all. "
                    if exact
                    else "The truth lies between the two lines; at 0 the lower one finds little. "
                )
                + f"Not in {PAPER}, experiment 2b, which looks at 0.01 only."
            ),
            spec=specification(alt.layer(*layers), 220),
            keys=keys,
        )
    ]
