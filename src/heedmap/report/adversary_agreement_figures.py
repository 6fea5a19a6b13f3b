"""Figures of trained adversaries against their own importance: τ by λ, beside chance and the control."""

from typing import Any

import altair as alt
import numpy as np
from numpy.typing import NDArray

from heedmap.experiments.findings import AuditResult
from heedmap.experiments.intervals import of_mean
from heedmap.experiments.methods.importance_measures import MEASURE_NAMES
from heedmap.experiments.questions.adversary_agreement import ASKED, Agreement, agreements
from heedmap.experiments.repeats import text_numbers
from heedmap.report.charts import PALETTE, QUIET, Figure, Key, colour, plot, specification
from heedmap.report.grouping import texts

DIRECTIONS = {"adversary": "KL(adversary || base)", "base": "KL(base || adversary)"}


def agreement_by_strength(audit: AuditResult) -> list[Figure]:
    """Draw τ of each adversary's map with its own importance against λ, a figure per measure."""
    if "adversary_agreement" not in audit.tables:
        return []
    models = agreements(audit.tables["adversary_agreement"], len(audit.tables["instances"]))
    return [_figure(audit, models, measure) for measure in ASKED]


def _figure(audit: AuditResult, models: list[Agreement], measure: str) -> Figure:
    run, control, *trained = models
    clusters = text_numbers(audit.tables["instances"])
    points = [
        {
            "series": DIRECTIONS[model.direction],
            "strength": model.strength,
            **_mean_with_interval(model.numbers[f"tau_{measure}"], clusters),
            "chance": float(np.nanmean(model.numbers[f"tau_shuffled_{measure}"])),
        }
        for model in trained
        if np.isfinite(model.numbers[f"tau_{measure}"]).any()
    ]
    levels: list[dict[str, Any]] = [
        {"at": float(np.nanmean(model.numbers[f"tau_{measure}"])), "what": what}
        for model, what in ((run, "this model"), (control, "the control, λ = 0"))
        if np.isfinite(model.numbers[f"tau_{measure}"]).any()
    ]
    x = alt.X("strength:Q", title="λ", scale=alt.Scale(type="log"))
    y_scale = alt.Scale(domain=[-1, 1])
    base = plot(points).encode(
        x=x, color=colour(list(DIRECTIONS.values())), tooltip=["series:N", "strength:Q", "tau:Q"]
    )
    y = alt.Y("tau:Q", title="mean τ of the map with its own importance", scale=y_scale)
    chart = alt.layer(
        plot([{"at": 0.0}]).mark_rule(color=QUIET, opacity=0.5).encode(y="at:Q"),
        plot(levels)
        .mark_rule()
        .encode(
            y=alt.Y("at:Q"),
            strokeDash=alt.StrokeDash(
                "what:N",
                scale=alt.Scale(
                    domain=["this model", "the control, λ = 0"], range=[[1, 3], [6, 3]]
                ),
                legend=None,
            ),
            tooltip=["what:N", "at:Q"],
        ),
        base.mark_line().encode(y=y),
        base.mark_circle(size=45, opacity=1).encode(y=y),
        base.mark_rule().encode(y=alt.Y("low:Q", scale=y_scale), y2="high:Q"),
        base.mark_line(strokeDash=[2, 2], opacity=0.6).encode(y=alt.Y("chance:Q", scale=y_scale)),
    )
    measured = np.isfinite(control.numbers[f"tau_{measure}"])
    others = {"not sampled, of one word or undefined": int((~measured).sum())}
    name = MEASURE_NAMES[measure].removeprefix("the ")
    return Figure(
        key=f"adversary-agreement-{measure.replace('_', '-')}",
        title=f"Do adversaries' maps turn against their own {name}?",
        n=texts(int(measured.sum()), others),
        caption=f"Mean Kendall τ of each trained adversary's map with its own {name}, λ from small to large; "
        "a bar is the 95 % interval over texts, of one model. Below 0: anti-correlated. Chance: the same "
        "weights shuffled within the text, the importance computed again under them.",
        spec=specification(chart, 260),
        keys=[
            *(Key(label, PALETTE[i], "solid") for i, label in enumerate(DIRECTIONS.values())),
            *(
                Key(f"chance, {label}", PALETTE[i], "dotted")
                for i, label in enumerate(DIRECTIONS.values())
            ),
            Key("this model", "currentColor", "dotted"),
            Key("the control, λ = 0", "currentColor", "dashed"),
        ],
    )


def _mean_with_interval(
    values: NDArray[np.float64], clusters: NDArray[np.int64]
) -> dict[str, float]:
    is_defined = np.isfinite(values)
    low, high = of_mean(values[is_defined], clusters[is_defined], bounds=(-1.0, 1.0))
    centre = float(values[is_defined].mean())
    return {
        "tau": centre,
        "low": centre if np.isnan(low) else low,
        "high": centre if np.isnan(high) else high,
    }
