"""Figures of agreement: Kendall's tau of attention with the other measures, and the rationale."""

import math
from dataclasses import dataclass

import altair as alt
import numpy as np
from numpy.typing import NDArray

from heedmap.experiments.findings import AuditResult
from heedmap.experiments.rounding import number
from heedmap.report.charts import PALETTE, QUIET, Figure, Key, colour, plot, specification, vertical
from heedmap.report.densities import density
from heedmap.report.grouping import division, texts
from heedmap.report.histograms import HEIGHT, TAU, by_class
from heedmap.report.small_multiples import Group, row_height, row_layers, row_reading
from heedmap.report.wording import column

PAPER = "Jain & Wallace (2019)"
AXIS = alt.Axis(values=[-1, -0.5, 0, 0.5, 1])
WITHOUT = "without a τ left out"
BINS = 40  # of stacked dots
SOLID, DASHED, DOTTED = ("solid", [1, 0]), ("dashed", [7, 4]), ("dotted", [2, 3])


def tau_histograms(audit: AuditResult) -> list[Figure]:
    """Draw attention against each other measure: one histogram per predicted class."""
    measures = [
        ("gradient", "the gradient", "as"),
        ("leave_one_out", "leave-one-out", "as"),
        ("integrated_gradients", "integrated gradients", "a measure that is not in"),
    ]
    divided = division(audit)
    figures = []
    for name, words, source in measures:
        taus = column(audit.tables, "agreement", f"tau_attention_{name}")
        defined = np.isfinite(taus)
        if not defined.any():
            continue
        spec, keys, reading = by_class(taus, divided, TAU)
        sampled = audit.tables[name]["importance"].is_valid().to_numpy()
        left_out = {"not sampled": int((~sampled).sum()), WITHOUT: int((sampled & ~defined).sum())}
        figures.append(
            Figure(
                key=f"tau-{name.replace('_', '-')}",
                title=f"Attention and {words}",
                n=texts(int(defined.sum()), left_out),
                caption=(
                    f"How alike attention and {words} rank the words of a text: 1 is the same "
                    f"order, 0 is no relation. {reading} ({source} {PAPER}, experiment 1)."
                ),
                spec=spec,
                keys=keys,
                notes=divided.notes,
            )
        )
    return figures


def tau_densities(audit: AuditResult) -> list[Figure]:
    """Draw gradient, leave-one-out and attention against one another: three curves."""
    pairs = [
        ("attention, leave-one-out", "attention_leave_one_out", SOLID),
        ("attention, gradient", "attention_gradient", DASHED),
        ("gradient, leave-one-out", "gradient_leave_one_out", DOTTED),
    ]
    curves = [
        Curve(label, column(audit.tables, "agreement", f"tau_{name}"), line, PALETTE[i])
        for i, (label, name, line) in enumerate(pairs)
    ]
    return _curves(
        curves,
        alt.X("x:Q", title="Kendall τ", scale=alt.Scale(domain=[-1, 1]), axis=AXIS),
        (-1, 1),
        vertical(0, "no relation"),
        key="tau-densities",
        title="Do the other measures agree with each other?",
        caption=(
            "Kendall's τ of attention, gradient and leave-one-out in pairs. Where the dotted "
            "curve (without attention) lies further right than the others, attention is the "
            f"odd one out; as {PAPER}, experiment 1."
        ),
    )


def tau_differences(audit: AuditResult) -> list[Figure]:
    """Draw how much better gradient and leave-one-out agree with each other than with attention."""
    yardstick = column(audit.tables, "agreement", "tau_gradient_leave_one_out")
    pairs = [
        ("less τ(attention, leave-one-out)", "leave_one_out", SOLID),
        ("less τ(attention, gradient)", "gradient", DASHED),
    ]
    curves = []
    for i, (label, name, line) in enumerate(pairs):
        values = yardstick - column(audit.tables, "agreement", f"tau_attention_{name}")
        named, defined = label, values[np.isfinite(values)]
        if len(defined):
            share = f"{(defined > 0).mean():.0%} above 0"
            named = f"{label}: mean {number(float(defined.mean()))}, {share}"
        curves.append(Curve(named, values, line, PALETTE[i]))
    # At most 2; the axis is symmetric and as wide as the values need.
    differences = np.concatenate([c.values[np.isfinite(c.values)] for c in curves])
    end = min(2.0, math.ceil(2 * (float(np.abs(differences).max(initial=0.3)) + 0.2)) / 2)
    return _curves(
        curves,
        alt.X(
            "x:Q",
            title="τ(gradient, leave-one-out) less τ with attention",
            scale=alt.Scale(domain=[-end, end], nice=False),
        ),
        (-end, end),
        vertical(0, "attention agrees as well"),
        key="tau-differences",
        title="Do they agree better with each other than with attention?",
        caption=(
            "Text by text, Kendall's τ of gradient and leave-one-out minus that of attention with "
            "one of them: right of the dashed line at 0 the two agree better with each other than "
            f"with attention; as {PAPER}, experiment 1."
        ),
    )


@dataclass(frozen=True)
class Curve:
    """A number per text, NaN where it is undefined, drawn as a density."""

    label: str
    values: NDArray[np.float64]
    line: tuple[str, list[int]]
    colour: str


def _curves(
    curves: list[Curve],
    x: alt.X,
    ends: tuple[float, float],
    guide: alt.Chart,
    *,
    key: str,
    title: str,
    caption: str,
) -> list[Figure]:
    """Draw a density per curve, or where one cannot be estimated, a row of dots for each.

    No figure if no text has a number.
    """
    drawable = [curve for curve in curves if np.isfinite(curve.values).any()]
    if not drawable:
        return []
    total = len(curves[0].values)
    counts = {curve.label: int(np.isfinite(curve.values).sum()) for curve in curves}
    shapes = {curve.label: density(curve.values, *ends) for curve in drawable}
    domain = [curve.label for curve in curves]
    as_rows = any(shape is None for shape in shapes.values())
    if as_rows:
        groups = [
            Group(
                curve.label.split(":")[0],
                curve.label,
                curve.values[np.isfinite(curve.values)],
                np.flatnonzero(np.isfinite(curve.values)),
            )
            for curve in drawable
        ]
        shown = [label.split(":")[0] for label in domain]
        layers = [guide, *row_layers(groups, shown, x, *ends, BINS, "value")]
        caption = f"{caption} {row_reading(groups, 'pair')}."
    else:
        layers = [guide]
    keys = []
    for curve in drawable:
        name, dash = curve.line
        n = counts[curve.label]
        left_out = f", {total - n} undefined" if n < total else ""
        line = "" if as_rows else name
        keys.append(Key(f"{curve.label} (n = {n:,}{left_out})", curve.colour, line))
        shape = shapes[curve.label]
        if as_rows or shape is None:
            continue
        data: list[dict[str, object]] = [
            {"series": curve.label, "x": x, "density": y}
            for x, y in zip(shape[0].tolist(), shape[1].tolist(), strict=True)
        ]
        of_text = np.flatnonzero(np.isfinite(curve.values))
        data[0] |= {"rows": of_text.tolist(), "xs": curve.values[of_text].tolist()}
        layers.append(
            plot(data)
            .mark_line(strokeDash=dash, strokeWidth=2)
            .encode(
                x=x,
                y=alt.Y("density:Q", title="density"),
                color=colour(domain),
                tooltip=[alt.Tooltip("series:N", title="pair")],
            )
        )
    largest_n = max(counts.values())
    return [
        Figure(
            key=key,
            title=title,
            n=texts(largest_n, {WITHOUT: total - largest_n}),
            caption=caption,
            spec=specification(
                alt.layer(*layers), row_height(len(drawable)) if as_rows else HEIGHT
            ),
            keys=keys,
        )
    ]


def rationale(audit: AuditResult) -> list[Figure]:
    """Draw the mean ROC AUC of each measure, with its interval, from the findings."""
    names = {
        "rationale_attention": "attention",
        "rationale_gradient": "gradient",
        "rationale_leave_one_out": "leave-one-out",
        "rationale_integrated_gradients": "integrated gradients",
    }
    findings = [f for f in audit.findings if f.key in names and math.isfinite(f.value)]
    if not findings:
        return []
    data = [
        {
            "measure": names[f.key],
            "value": f.value,
            "low": f.low if math.isfinite(f.low) else f.value,
            "high": f.high if math.isfinite(f.high) else f.value,
            "n": f.n,
            "text": f"{number(f.value)}, n = {f.n:,}",
        }
        for f in findings
    ]
    lowest = min([0.5, *(row["low"] for row in data if isinstance(row["low"], float))])
    scale = alt.Scale(domain=[math.floor(lowest * 10 - 0.5) / 10, 1], zero=False, nice=False)
    base = plot(data).encode(
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
    # At the right edge and above the marks, so that it stays inside the chart.
    text = base.mark_text(dy=-11, align="right", fontSize=11).encode(
        x=alt.value("width"), text="text:N"
    )
    return [
        Figure(
            key="rationale",
            title="Who finds the deciding words?",
            n="n = "
            + (
                f"{findings[0].n} texts"
                if len({f.n for f in findings}) == 1
                else ", ".join(f"{f.n} ({names[f.key]})" for f in findings)
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
