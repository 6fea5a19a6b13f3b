"""The figure of erasure by class: does the map rank what speaks against a class as what speaks for it?"""

from collections.abc import Sequence

import altair as alt
import numpy as np

from heedmap.experiments.findings import AuditResult
from heedmap.experiments.methods.class_sides import SIDES
from heedmap.experiments.questions.class_erasure import MOST
from heedmap.report.charts import PALETTE, Figure, Key, plot, specification
from heedmap.report.grouping import texts, unpredicted
from heedmap.report.wording import LISTED, column

TITLES = dict(zip(SIDES, ("words that speak for it", "words that speak against it"), strict=True))

CAPTION = (
    "A word speaks for a class if the class's log-odds fall when its weight is erased, against it if they "
    "rise. Among either kind: how far the map's order is that of the size of this effect, beside the same "
    "weights shuffled within the text, as a mean over the texts that have both; their number stands at the "
    "right. "
)
TWO = "A class's row is the texts for which it is predicted: what speaks against it speaks for the other."
MANY = (
    "A class's row is all texts that have it as a possible answer, whether it is predicted or not."
)
TOO_MANY = (
    f"A class's row is the texts in which it is one of the {MOST} likeliest of {{}} classes, whether it is "
    "predicted or not."
)


def by_class(audit: AuditResult) -> list[Figure]:
    """Draw, for each class, the mean tau-b among the words for and against it, and under shuffled weights."""
    if "class_erasure" not in audit.tables:
        return []
    class_index = column(audit.tables, "class_erasure", "class").astype(int)
    sampled = column(audit.tables, "class_erasure", "sampled") > 0
    two = len(audit.classes) == 2
    labels = column(audit.tables, "instances", "label")
    group = "predicted" if two or np.isnan(labels).any() else "label"
    with_texts = np.unique(column(audit.tables, "instances", group).astype(int))
    drawable = [i for i in with_texts.tolist() if (sampled & (class_index == i)).any()]
    names = [audit.classes[i] for i in drawable[:LISTED]]
    data = []
    for i, name in zip(drawable, names, strict=False):
        of_class = sampled & (class_index == i)
        for side in SIDES:
            taus = np.array(
                [
                    column(audit.tables, "class_erasure", f"tau_{side}{kind}")[of_class]
                    for kind in ("", "_chance")
                ]
            )
            defined = np.isfinite(taus).all(
                0
            )  # a text may have words on this side under one of them alone
            if defined.any():
                means = taus[:, defined].mean(1)
                data += [
                    {
                        "class": name, "side": TITLES[side], "map": kind, "tau": float(tau),
                        "n": int(defined.sum()),
                    }
                    for kind, tau in zip(("the map", "shuffled"), means, strict=True)
                ]  # fmt: skip
    if not data:
        return []
    base = plot(data).encode(
        y=alt.Y("class:N", sort=names, title=None, axis=alt.Axis(labelLimit=160)),
        yOffset=alt.YOffset("side:N", sort=list(TITLES.values())),
        color=alt.Color(
            "side:N",
            scale=alt.Scale(domain=list(TITLES.values()), range=list(PALETTE[:2])),
            legend=None,
        ),
    )
    points = base.mark_point(size=70, strokeWidth=2).encode(
        x=alt.X("tau:Q", title=["mean Kendall τ-b", "with the effect of erasing the word"]),
        fill=alt.Fill(
            "side:N",
            scale=alt.Scale(domain=list(TITLES.values()), range=list(PALETTE[:2])),
            legend=None,
        ),
        shape=alt.Shape(
            "map:N",
            scale=alt.Scale(domain=["the map", "shuffled"], range=["circle", "diamond"]),
            legend=None,
        ),
        fillOpacity=alt.FillOpacity(
            "map:O", scale=alt.Scale(domain=["the map", "shuffled"], range=[1, 0]), legend=None
        ),
        tooltip=["class:N", "side:N", "map:N", "tau:Q", "n:Q"],
    )
    counts = (
        base.transform_filter("datum.map == 'the map'")
        .mark_text(align="left", dx=6, fontSize=10)
        .encode(x=alt.value("width"), text="n:Q")
    )
    predicted = column(audit.tables, "instances", "predicted")
    row = column(audit.tables, "class_erasure", "row").astype(int)
    count = len(np.unique(row[sampled]))
    short = int((column(audit.tables, "instances", "n_tokens") < 2).sum())
    return [
        Figure(
            key="class-erasure",
            title="Does the map rank what speaks against a class as well as what speaks for it?",
            n=texts(
                count,
                {"of one word left out": short, "not sampled": len(predicted) - short - count},
            ),
            caption=CAPTION + _row_text(len(audit.classes)),
            spec=specification(points + counts, 30 + 44 * len(names)),
            keys=[
                *(Key(TITLES[side], PALETTE[i]) for i, side in enumerate(SIDES)),
                Key("weights shuffled", PALETTE[0], "hollow"),
            ],
            notes=_not_drawn(len(drawable), len(with_texts), audit.classes, group == "predicted"),
        )
    ]


def _row_text(classes: int) -> str:
    """Say which texts the row of a class is made of."""
    if classes == 2:
        return TWO
    return MANY if classes <= MOST else TOO_MANY.format(classes)


def _not_drawn(
    drawable: int, with_texts: int, classes: Sequence[str], by_prediction: bool
) -> list[str]:
    """Count the classes without a row, by reason."""
    missing = len(classes) - with_texts
    of_label = f"{missing} of {len(classes)} classes {'has' if missing == 1 else 'have'} no text"
    reasons = {
        unpredicted(with_texts, classes) if by_prediction else of_label: missing,
        f"{with_texts - drawable} more have none that is sampled": with_texts - drawable,
        f"{drawable - LISTED} more are too many to draw": max(drawable - LISTED, 0),
    }
    return [reason for reason, count in reasons.items() if count]
