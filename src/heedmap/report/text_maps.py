"""Texts as heat maps, one line each, below one another: the same text under several models or changes."""

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from heedmap.report.charts import PALETTE, Figure, rows, specification

LINE, GAP = 19, 2  # pixels of a line; characters between label, text and ending


@dataclass(frozen=True)
class TextMap:
    """One line: its label, the tokens with their weights, and what stands at its end."""

    label: str
    tokens: Sequence[str]
    weights: Sequence[float]
    ending: str


def text_maps(maps: Sequence[TextMap], key: str, title: str) -> Figure:
    """Draw texts under one another; full colour is the largest weight of a line."""
    left = max(len(line.label) for line in maps) + GAP
    # A fixed-width font: a token is as wide as its characters and one space.
    ends = [left + sum(len(token) + 1 for token in line.tokens) for line in maps]
    right = max(ends) + GAP
    width = right + max(len(line.ending) for line in maps)
    boxes, labels = [], []
    for place, line in enumerate(maps):
        middle = place + 0.5
        labels += [
            {"x": 0.0, "y": middle, "text": line.label},
            {"x": float(right), "y": middle, "text": line.ending},
        ]
        top, at = max(line.weights, default=0.0), float(left)
        for token, weight in zip(line.tokens, line.weights, strict=True):
            after = at + len(token) + 1
            strength = weight / top if top > 0 else 0.0
            box = {"x": at, "x2": after - 0.2, "y": place + 0.06, "y2": place + 0.94}
            boxes.append({**box, "token": token, "weight": weight, "strength": strength})
            labels.append({"x": at + 0.4, "y": middle, "text": token})
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
        "The weight that each token receives, a mean over heads and rows; full colour is its line's largest. "
        "At the end, what the model predicts of the text so read."
    )
    return Figure(
        key, title, f"{len(maps)} maps", caption, specification(drawing, LINE * len(maps))
    )
