"""Texts as heat maps below one another, each under its label: the same text under several models or changes."""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap

import altair as alt

from heedmap.report.charts import PALETTE, Figure, Key, plot, specification

LINE = 32  # pixels of a label and a line of the text below
ACROSS = 56  # characters; longer labels and texts go on in the next line
GAP = 0.5  # lines between two texts


@dataclass(frozen=True)
class TextMap:
    """One map: its label, the tokens with their weights, and what stands behind the label.

    Maps of one `series` have one colour.
    """

    label: str
    tokens: Sequence[str]
    weights: Sequence[float]
    ending: str
    series: str


def text_maps(maps: Sequence[TextMap], key: str, title: str) -> Figure:
    """Draw texts under one another; full colour is the largest weight of a map."""
    series = [*dict.fromkeys(line.series for line in maps)]
    boxes, labels, top = [], [], 0.0
    for place, line in enumerate(maps):
        if place and line.tokens != maps[place - 1].tokens:
            top += GAP
        for words in wrap(f"{line.label}: {line.ending}", ACROSS):
            labels.append({"x": 0.0, "y": top + 0.3, "text": words})
            top += 0.5
        largest, at = max(line.weights, default=0.0), 0.0
        for token, weight in zip(line.tokens, line.weights, strict=True):
            # A fixed-width font: a token is as wide as its characters and one space.
            letters = token if len(token) < ACROSS else f"{token[: ACROSS - 2]}…"
            if at + len(letters) >= ACROSS:
                at, top = 0.0, top + 0.5
            after = at + len(letters) + 1
            strength = weight / largest if largest > 0 else 0.0
            box = {"x": at, "x2": after - 0.2, "y": top, "y2": top + 0.5}
            numbers = {"weight": weight, "strength": strength}
            boxes.append({**box, "series": line.series, "token": token, **numbers})
            labels.append({"x": at + 0.3, "y": top + 0.25, "text": letters})
            at = after
        top += 0.5
    x = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[0, ACROSS], nice=False))
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[top, 0], nice=False))
    colours = [PALETTE[i % len(PALETTE)] for i in range(len(series))]
    shades = plot(boxes).mark_rect().encode(
        x=x, x2="x2:Q", y=y, y2="y2:Q",
        color=alt.Color("series:N", scale=alt.Scale(domain=series, range=colours), legend=None),
        fillOpacity=alt.FillOpacity("strength:Q", scale=None),
        tooltip=["token:N", "weight:Q"],
    )  # fmt: skip
    words = plot(labels).mark_text(
        align="left",
        baseline="middle",
        font="monospace",
        fontSize=alt.ExprRef(f"min(11, width / {0.61 * ACROSS:g})"),
    )
    drawing = alt.layer(shades, words.encode(x=x, y=y, text="text:N"))
    caption = (
        "The weight that each token receives, a mean over heads and rows; full colour is the map's largest. "
        "The marks [ and ] are the text's start and end, <unk> is a word that is not in the vocabulary. "
        "Behind a label: the class that is predicted of the text so read, and its probability."
    )
    height = round(LINE * top)
    keys = [Key(name, colour) for name, colour in zip(series, colours, strict=True)]
    return Figure(key, title, f"{len(maps)} maps", caption, specification(drawing, height), keys)
