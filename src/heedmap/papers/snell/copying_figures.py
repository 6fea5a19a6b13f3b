"""Figures of learning to copy: each training's accuracy over the steps, and its weight on the symbol."""

from collections.abc import Sequence

import altair as alt

from heedmap.papers.kit.parts import Row
from heedmap.papers.snell.settings import KINDS, VARIANTS, CopyingSettings
from heedmap.report.charts import PALETTE, Figure, Key, colour, plot, specification

HEIGHT = 240
MEASURES = {
    "accuracy": (
        "How does copying begin?",
        "share of symbols right",
        "Each line is a training; a line that stays low has not found out which symbol of the source to copy.",
    ),
    "attention": (
        "Does the attention find the symbol to copy?",
        "largest weight on the symbol to copy",
        "How often the largest weight is on the symbol to copy. A model can copy from the symbol before it or "
        "after it too, whose states know of it.",
    ),
}


def figures(looks: Sequence[Row], settings: CopyingSettings) -> list[Figure]:
    """Draw accuracy and attention of every training of the published model, step by step; none without."""
    published_looks = [
        {**row, "series": row["sequences"], "training": f"{row['sequences']} {row['seed']}"}
        for row in looks
        if row["model"] == next(iter(VARIANTS))
    ]
    n = f"n = {settings.seeds} trainings of each"
    return [
        lines(published_looks, measure, "copying", KINDS, n)
        for measure in MEASURES
        if published_looks
    ]


def lines(looks: Sequence[Row], measure: str, key: str, series: Sequence[str], n: str) -> Figure:
    """Draw a line per `training` over the steps, in the colour of its `series`."""
    title, axis, caption = MEASURES[measure]
    values = [
        {
            "series": row["series"],
            "training": row["training"],
            "step": row["step"],
            "value": row[measure],
        }
        for row in looks
    ]
    chart = (
        plot(values)
        .mark_line(strokeWidth=1.3, opacity=0.6)
        .encode(
            x=alt.X("step:Q", title="step"),
            y=alt.Y(
                "value:Q", title=axis, axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1])
            ),
            color=colour(list(series)),
            detail="training:N",
            tooltip=["training:N", "step:Q", alt.Tooltip("value:Q", format=".0%")],
        )
    )
    return Figure(
        key=f"{key}-{measure}",
        title=title,
        n=n,
        caption=caption,
        spec=specification(chart, HEIGHT),
        keys=[Key(name, PALETTE[i]) for i, name in enumerate(series)],
    )
