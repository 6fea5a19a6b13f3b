"""Figures of agreement: Kendall's tau of attention with the other measures, and the rationale."""

import math

import altair as alt
import numpy as np
from numpy.typing import NDArray

from heedmap.findings import Conclusions
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
from heedmap.report.densities import density, histogram
from heedmap.report.words import column, number

PAPER = "Jain & Wallace (2019)"
AXIS = alt.Axis(values=[-1, -0.5, 0, 0.5, 1])
MOST_FILLED = 3  # classes that are drawn as filled histograms


def tau_histograms(audit: Conclusions) -> list[Figure]:
    """Attention against each other measure: one histogram a predicted class."""
    measures = [
        ("gradient", "the gradient", "as"),
        ("leave_one_out", "leave-one-out", "as"),
        ("integrated_gradients", "integrated gradients", "a measure that is not in"),
    ]
    predicted = column(audit.tables, "instances", "predicted").astype(int)
    figures = []
    for name, words, source in measures:
        taus = column(audit.tables, "agreement", f"tau_attention_{name}")
        if np.isfinite(taus).any():
            figures.append(
                _tau_histogram(
                    audit.classes, taus, predicted, name=name, words=words, source=source
                )
            )
    return figures


def _tau_histogram(
    classes: list[str],
    taus: NDArray[np.float64],
    predicted: NDArray[np.int64],
    *,
    name: str,
    words: str,
    source: str,
) -> Figure:
    used = np.isfinite(taus)
    data, means, keys, present = [], [], [], []
    for i, label in enumerate(classes):
        own = taus[used & (predicted == i)]
        if len(own):
            shade = PALETTE[i % len(PALETTE)]
            mean = float(own.mean())
            keys.append(Key(f"predicted {label} (n = {len(own)}, mean {number(mean)})", shade))
            present.append(label)
            data += [{"series": label, **row} for row in histogram(own, -1, 1, 30)]
            means.append({"series": label, "mean": mean})
    scale = alt.Scale(domain=[-1, 1])
    x = alt.X("start:Q", title="Kendall τ", scale=scale, axis=AXIS)
    bins = alt.X("start:Q", bin="binned", title="Kendall τ", scale=scale, axis=AXIS)
    y = alt.Y("share:Q", title="share of the class", stack=None, axis=alt.Axis(format="%"))
    hint = [
        alt.Tooltip("series:N", title="predicted"),
        alt.Tooltip("start:Q", title="τ from"),
        alt.Tooltip("end:Q", title="to"),
        alt.Tooltip("share:Q", format=".1%"),
    ]
    layers: list[alt.Chart] = [vertical(0, "no relation")]
    if len(present) <= MOST_FILLED:
        bars = (
            alt.Chart(rows(data))
            .mark_bar(opacity=0.6, binSpacing=0)
            .encode(x=bins, x2="end:Q", y=y, color=colour(classes), tooltip=hint)
        )
        mean = alt.Chart(rows(means)).mark_rule(strokeWidth=2)
        layers += [
            bars,
            mean.encode(
                x="mean:Q",
                color=colour(classes),
                tooltip=[alt.Tooltip("series:N", title="predicted"), "mean:Q"],
            ),
        ]
    else:
        # Outlines: more than a few filled histograms hide one another. The last bin ends at 1.
        data += [{**row, "start": 1.0} for row in data if row["end"] == 1]
        outline = alt.Chart(rows(data)).mark_line(interpolate="step-after", strokeWidth=1.5)
        layers.append(outline.encode(x=x, y=y, color=colour(classes), tooltip=hint))
    gone = int((~used).sum())
    return Figure(
        key=f"tau-{name.replace('_', '-')}",
        title=f"Attention and {words}",
        n=f"n = {int(used.sum())} texts" + (f", {gone} without a τ left out" if gone else ""),
        caption=(
            f"How alike attention and {words} rank the words of a text: 1 is the same order, 0 is "
            "no relation. One histogram for each predicted class, each summing to 100 %"
            + ("; the vertical lines are the means " if len(present) <= MOST_FILLED else " ")
            + f"({source} {PAPER}, experiment 1)."
        ),
        spec=specification(alt.layer(*layers), 190),
        keys=keys,
    )


def tau_densities(audit: Conclusions) -> list[Figure]:
    """Gradient, leave-one-out and attention against one another: three curves."""
    pairs = [
        ("attention, leave-one-out", "tau_attention_leave_one_out", "solid", [1, 0]),
        ("attention, gradient", "tau_attention_gradient", "dashed", [7, 4]),
        ("gradient, leave-one-out", "tau_gradient_leave_one_out", "dotted", [2, 3]),
    ]
    lines, keys, notes, most = [], [], [], 0
    domain = [label for label, *_ in pairs]
    for i, (label, name, line, dash) in enumerate(pairs):
        taus = column(audit.tables, "agreement", name)
        n = int(np.isfinite(taus).sum())
        shape = density(taus, -1, 1)
        if shape is None:
            notes.append(f"{label}: too few texts for a curve (n = {n})")
            continue
        most = max(most, n)
        keys.append(Key(f"{label} (n = {n})", PALETTE[i], line))
        data = [
            {"series": label, "x": x, "density": y}
            for x, y in zip(shape[0].tolist(), shape[1].tolist(), strict=True)
        ]
        lines.append(
            alt.Chart(rows(data))
            .mark_line(strokeDash=dash, strokeWidth=2)
            .encode(
                x=alt.X("x:Q", title="Kendall τ", scale=alt.Scale(domain=[-1, 1]), axis=AXIS),
                y=alt.Y("density:Q", title="density"),
                color=colour(domain),
            )
        )
    if not lines:
        return []
    return [
        Figure(
            key="tau-densities",
            title="Do the other measures agree with each other?",
            n=f"n = {most} texts",
            caption=(
                "Kendall's τ of attention, gradient and leave-one-out in pairs. Where the dotted "
                "curve (without attention) lies further right than the others, attention is the "
                f"odd one out; as {PAPER}, experiment 1."
            ),
            spec=specification(alt.layer(*lines, vertical(0, "no relation")), 190),
            keys=keys,
            notes=notes,
        )
    ]


def rationale(audit: Conclusions) -> list[Figure]:
    """Mean ROC AUC of each measure, with its interval, from the findings."""
    names = {
        "rationale_attention": "attention",
        "rationale_gradient": "gradient",
        "rationale_leave_one_out": "leave-one-out",
        "rationale_integrated_gradients": "integrated gradients",
    }
    found = [f for f in audit.findings if f.key in names and math.isfinite(f.value)]
    if not found:
        return []
    data = [
        {
            "measure": names[f.key],
            "value": f.value,
            "low": f.low if math.isfinite(f.low) else f.value,
            "high": f.high if math.isfinite(f.high) else f.value,
            "n": f.n,
            "text": f"{number(f.value)}, n = {f.n}",
        }
        for f in found
    ]
    lowest = min([0.5, *(row["low"] for row in data if isinstance(row["low"], float))])
    scale = alt.Scale(domain=[math.floor(lowest * 10 - 0.5) / 10, 1], zero=False, nice=False)
    base = alt.Chart(rows(data)).encode(
        y=alt.Y("measure:N", title=None, sort=None, axis=alt.Axis(labelLimit=130)),
        x=alt.X(
            "value:Q",
            title="mean ROC AUC",
            scale=scale,
        ),
        tooltip=["measure:N", "value:Q", "low:Q", "high:Q", "n:Q"],
    )
    bars = base.mark_rule(strokeWidth=3, color=PALETTE[0]).encode(
        x=alt.X("low:Q", title="mean ROC AUC", scale=scale), x2="high:Q"
    )
    dots = base.mark_circle(size=90, opacity=1, color=PALETTE[0])
    # At the right edge and above the marks, where no value can push it out of the chart.
    text = base.mark_text(dy=-11, align="right", fontSize=11).encode(
        x=alt.value("width"), text="text:N"
    )
    return [
        Figure(
            key="rationale",
            title="Who finds the deciding words?",
            n="n = "
            + (
                f"{found[0].n} texts"
                if len({f.n for f in found}) == 1
                else ", ".join(f"{f.n} ({names[f.key]})" for f in found)
            ),
            caption=(
                "The chance that a word of the gold rationale gets more weight than another word, "
                "mean over texts with its 95 % interval: 1 is always, 0.5 (dashed) is chance. The "
                "rationale is known only where the data brings one; not in the two papers."
            ),
            spec=specification(alt.layer(vertical(0.5, "chance"), bars, dots, text), 170),
            keys=[Key("mean and 95 % interval", PALETTE[0]), Key("chance", QUIET, "dashed")],
        )
    ]
