"""A text's attention, output relevance and influence while its model learns, with a slider for the step."""

from collections.abc import Sequence

import altair as alt
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from heedmap.experiments.findings import AuditResult
from heedmap.experiments.questions.dynamics import QUANTITIES
from heedmap.report.charts import PALETTE, QUIET, Figure, Key, colour, plot, specification

LONGEST = 30  # tokens that are drawn
TEXTS = 2
ROW = 20
SERIES = ("attention", "relevance for its label", "influence")
CHANCE = "chance, for a random order of the words"


def texts(audit: AuditResult) -> list[Figure]:
    """Draw the first recorded texts that fit into a figure and that the trained model answers correctly."""
    return examples(audit.tables["dynamics"], audit.classes)


def examples(recorded: pa.Table, classes: Sequence[str], count: int = TEXTS) -> list[Figure]:
    """Draw the first texts of a record of the test split, with the names of their classes."""
    final = recorded.filter(pc.equal(recorded["step"], pc.max(recorded["step"])))
    return [one_text(recorded, row, classes) for row in right_rows(final)[:count]]


def right_rows(final: pa.Table) -> list[int]:
    """Return the rows of the texts that fit into a figure and are answered correctly, of one step's record."""
    return [
        text["row"]
        for text in final.select(["row", "predicted", "label", "attention"]).to_pylist()
        if text["predicted"] == text["label"] and 3 <= len(text["attention"]) <= LONGEST
    ]


def agreement(audit: AuditResult) -> list[Figure]:
    """Draw how well each quantity predicts the final attention, step by step, beside the chance level."""
    records = audit.tables["dynamics"].to_pandas()
    values = []
    for name, series in zip(QUANTITIES, SERIES, strict=True):
        means = records.groupby("step")[f"match_{name}"].mean().dropna()
        values += [
            {"series": series, "step": int(step), "value": value} for step, value in means.items()
        ]
    right = (records["predicted"] == records["label"]).groupby(records["step"]).mean()
    chance = records.groupby("step")["chance_attention"].mean()
    values += [
        {"series": series, "step": int(step), "value": value}
        for series, means_by_step in (("accuracy", right), (CHANCE, chance))
        for step, value in means_by_step.items()
    ]
    names = [*SERIES, "accuracy"]
    base = plot(values).encode(
        x=alt.X("step:Q", title="steps of the training"),
        y=alt.Y(
            "value:Q",
            title="share of texts",
            axis=alt.Axis(format="%"),
            scale=alt.Scale(domain=[0, 1]),
        ),
        tooltip=["series:N", "step:Q", alt.Tooltip("value:Q", format=".0%")],
    )
    is_chance = alt.datum.series == CHANCE
    lines = base.transform_filter(~is_chance).mark_line(point=True).encode(color=colour(names))
    floor = base.transform_filter(is_chance).mark_line(strokeDash=[3, 3], color=QUIET)
    return [
        Figure(
            key="dynamics",
            title="What comes first, relevance or attention?",
            n=f"n = {records['row'].nunique():,} texts",
            caption="How often the word with the largest weight after the last step is among the top 5 % of "
            "the text's words at an earlier step, by attention, by relevance and by influence (Snell et al. "
            "2021). In a text of up to 20 words the top 5 % are one word.",
            spec=specification(alt.layer(lines, floor), 240),
            keys=[
                *(Key(name, PALETTE[i]) for i, name in enumerate(names)),
                Key(CHANCE, QUIET, "dashed"),
            ],
        )
    ]


def one_text(recorded: pa.Table, row: int, classes: Sequence[str]) -> Figure:
    """Draw a recorded text: a point per token and quantity, at the step of the slider.

    Each quantity is drawn as a share of its largest size at any step, so that its growth is seen.
    """
    steps = sorted(
        (record for record in recorded.to_pylist() if record["row"] == row),
        key=lambda record: record["step"],
    )
    tokens = next(record["tokens"] for record in steps if record["tokens"] is not None)
    labels = [f"{i + 1} {token.strip()}" for i, token in enumerate(tokens[:LONGEST])]
    values = []
    for name, series in zip(QUANTITIES, SERIES, strict=True):
        if steps[0][name] is None:
            continue
        scale = max(float(np.abs(np.float64(record[name])).max()) for record in steps) or 1.0
        for index, record in enumerate(steps):
            values += [
                {
                    "series": series,
                    "token": token,
                    "index": index,
                    "step": record["step"],
                    "value": float(value) / scale,
                }
                for token, value in zip(labels, record[name], strict=False)
            ]
    slider = alt.param(
        name="at",
        value=len(steps) - 1,
        bind=alt.binding_range(min=0, max=len(steps) - 1, step=1, name="record "),
    )
    points = (
        plot(values)
        .mark_point(filled=True, size=70, opacity=0.75)
        .encode(
            x=alt.X(
                "value:Q",
                title="share of its largest size in the training",
                scale=alt.Scale(domain=[-1, 1]),
            ),
            y=alt.Y(
                "token:N",
                sort=labels,
                title=None,
                axis=alt.Axis(labelLimit=140, ticks=False, domain=False),
            ),
            color=colour(list(SERIES)),
            shape=alt.Shape("series:N", legend=None),
            tooltip=["token:N", "series:N", "step:Q", alt.Tooltip("value:Q", format=".2f")],
        )
    )
    said = [
        {"index": index, "said": f"after {record['step']} steps", "token": labels[0], "value": -1.0}
        for index, record in enumerate(steps)
    ]
    when = (
        plot(said)
        .mark_text(align="left", dx=4, fontWeight="bold")
        .encode(x="value:Q", y=alt.Y("token:N", sort=labels), text="said:N")
    )
    # A layer's own filter does not reach charts with data of their own.
    at_slider = "datum.index == at"
    chart = alt.layer(
        points.transform_filter(at_slider).add_params(slider), when.transform_filter(at_slider)
    )
    return Figure(
        key=f"dynamics-{row}",
        title="How does the attention come about?",
        n=f"one text, {classes[steps[0]['label']]}",
        caption=f"Before the training and after up to {steps[-1]['step']} steps: the slider goes through the "
        "records. Relevance to the right speaks for the text's label, to the left for others.",
        spec=specification(chart, ROW * len(labels)),
        keys=[Key(name, PALETTE[i]) for i, name in enumerate(SERIES)],
    )
