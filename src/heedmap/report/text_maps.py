"""Texts as heat maps below one another, each under its label: the same text under several models or changes."""

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from heedmap.report.charts import PALETTE, Figure, rows, specification

LINE = 32  # pixels of a map: its label and the text below
FEWEST = 56  # characters across: as many fit a figure of the page


@dataclass(frozen=True)
class TextMap:
    """One map: its label, the tokens with their weights, and what stands behind the label."""

    label: str
    tokens: Sequence[str]
    weights: Sequence[float]
    ending: str


def text_maps(maps: Sequence[TextMap], key: str, title: str) -> Figure:
    """Draw texts under one another; full colour is the largest weight of a map."""
    # A fixed-width font: a token is as wide as its characters and one space.
    lengths = [sum(len(token) + 1 for token in line.tokens) for line in maps]
    labelled = [f"{line.label}: {line.ending}" for line in maps]
    width = max([FEWEST, *lengths, *map(len, labelled)])
    boxes, labels = [], []
    for place, line in enumerate(maps):
        labels.append({"x": 0.0, "y": place + 0.3, "text": labelled[place]})
        top, at = max(line.weights, default=0.0), 0.0
        for token, weight in zip(line.tokens, line.weights, strict=True):
            after = at + len(token) + 1
            strength = weight / top if top > 0 else 0.0
            box = {"x": at, "x2": after - 0.2, "y": place + 0.5, "y2": place + 1.0}
            boxes.append({**box, "token": token, "weight": weight, "strength": strength})
            labels.append({"x": at + 0.3, "y": place + 0.75, "text": token})
            at = after
    x = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[0, width], nice=False))
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[len(maps), 0], nice=False))
    shades = alt.Chart(rows(boxes)).mark_rect(color=PALETTE[0]).encode(
        x=x, x2="x2:Q", y=y, y2="y2:Q",
        fillOpacity=alt.FillOpacity("strength:Q", scale=None),
        tooltip=["token:N", "weight:Q"],
    )  # fmt: skip
    words = alt.Chart(rows(labels)).mark_text(
        align="left", baseline="middle", font="monospace", fontSize=11
    )
    drawing = alt.layer(shades, words.encode(x=x, y=y, text="text:N"))
    caption = (
        "The weight that each token receives, a mean over heads and rows; full colour is the map's largest. "
        "Behind a label: what the model predicts of the text so read."
    )
    return Figure(
        key, title, f"{len(maps)} maps", caption, specification(drawing, LINE * len(maps))
    )
