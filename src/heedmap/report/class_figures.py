"""The figure of erasure by class: does the map rank what speaks against a class as what speaks for it?"""

import altair as alt
import numpy as np

from heedmap.experiments.class_sides import SIDES
from heedmap.experiments.findings import AuditResult
from heedmap.report.charts import PALETTE, Figure, Key, rows, specification
from heedmap.report.grouping import texts
from heedmap.report.phrases import LISTED, column

TITLES = dict(zip(SIDES, ("words that speak for it", "words that speak against it"), strict=True))

CAPTION = (
    "A word speaks for a class if the class's log-odds fall when its weight is erased, against it if they "
    "rise. Among either kind: how far the map's order is that of the size of this effect, beside the same "
    "weights shuffled within the text, as a mean over the texts that have both; their number stands at the "
    "right. "
)
TWO = "A class's row is the texts for which it is predicted: what speaks against it speaks for the other."
MANY = (
    "A class's row is all texts in which it is among the likeliest, whether it is predicted or not."
)


def by_class(audit: AuditResult) -> list[Figure]:
    """Draw, for each class, the mean tau-b among the words for and against it, and under shuffled weights."""
    if "class_erasure" not in audit.tables:
        return []
    of = column(audit.tables, "class_erasure", "class").astype(int)
    asked = column(audit.tables, "class_erasure", "sampled") > 0
    two = len(audit.classes) == 2
    names = [name for i, name in enumerate(audit.classes) if (asked & (of == i)).any()][:LISTED]
    data = []
    for name in names:
        here = asked & (of == audit.classes.index(name))
        for side in SIDES:
            taus = np.array(
                [
                    column(audit.tables, "class_erasure", f"tau_{side}{kind}")[here]
                    for kind in ("", "_chance")
                ]
            )
            used = np.isfinite(taus).all(
                0
            )  # a text may have words on this side under one of them alone
            if used.any():
                means = taus[:, used].mean(1)
                data += [
                    {
                        "class": name, "side": TITLES[side], "map": kind, "tau": float(tau),
                        "n": int(used.sum()),
                    }
                    for kind, tau in zip(("the map", "shuffled"), means, strict=True)
                ]  # fmt: skip
    if not data:
        return []
    base = alt.Chart(rows(data)).encode(
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
            "map:N", scale=alt.Scale(domain=["the map", "shuffled"], range=[1, 0]), legend=None
        ),
        tooltip=["class:N", "side:N", "map:N", "tau:Q", "n:Q"],
    )
    counts = (
        base.transform_filter("datum.map == 'the map'")
        .mark_text(align="left", dx=6, fontSize=10)
        .encode(x=alt.value("width"), text="n:Q")
    )
    every = column(audit.tables, "instances", "predicted")
    row = column(audit.tables, "class_erasure", "row").astype(int)
    count = len(np.unique(row[asked]))
    short = int((column(audit.tables, "instances", "n_tokens") < 2).sum())
    hidden = len(np.unique(of[asked])) - len(names)
    return [
        Figure(
            key="class-erasure",
            title="Does the map rank what speaks against a class as well as what speaks for it?",
            n=texts(
                count,
                {"of one word left out": short, "not sampled": len(every) - short - count},
            ),
            caption=CAPTION + (TWO if two else MANY),
            spec=specification(points + counts, 30 + 44 * len(names)),
            keys=[
                *(Key(TITLES[side], PALETTE[i]) for i, side in enumerate(SIDES)),
                Key("weights shuffled", PALETTE[0], "hollow"),
            ],
            notes=[f"{hidden} more classes are not drawn"] if hidden else [],
        )
    ]
