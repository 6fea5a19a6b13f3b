"""Softmax, 1.5-entmax and sparsemax as curves and maps: the weight of one score beside others of 0."""

import altair as alt
import torch

from heedmap.models.normalisers import normalise
from heedmap.report.charts import PALETTE, Figure, Key, plot, specification

COMPUTED = "computed, no data"
ACTIVATIONS = ("softmax", "entmax15", "sparsemax")
REACH = 3  # scores from −REACH to REACH
STEPS, CELLS = 61, 25  # of a curve; of each side of a map
GAP = 1.0  # between two maps, in units of a score


def activation_figures() -> list[Figure]:
    """Draw f([t, 0])₁ over t, and f([s, t, 0])₁ over s and t, per activation (Drozdyuk et al., Figure 4)."""
    curve, maps, titles = [], [], []
    scores = torch.linspace(-REACH, REACH, STEPS, dtype=torch.float64)
    side = torch.linspace(-REACH, REACH, CELLS + 1, dtype=torch.float64)
    middles = (side[1:] + side[:-1]) / 2
    for place, name in enumerate(ACTIVATIONS):
        left = place * (2 * REACH + GAP)
        for t, weight in zip(scores.tolist(), first_weights(scores[:, None], name), strict=True):
            curve.append({"series": name, "t": t, "weight": weight})
        grid = torch.cartesian_prod(middles, middles)
        half = REACH / CELLS
        for (s, t), weight in zip(grid.tolist(), first_weights(grid, name), strict=True):
            x, y = s + REACH + left, t
            box = {"x": x - half, "x2": x + half, "y": y - half, "y2": y + half}
            maps.append({**box, "series": name, "s": s, "t": t, "weight": weight})
        titles.append({"x": left, "y": REACH + 0.5, "text": name})
    colours = [PALETTE[i] for i in range(len(ACTIVATIONS))]
    scale = alt.Scale(domain=[*ACTIVATIONS], range=colours)
    lines = plot(curve).mark_line().encode(
        x=alt.X("t:Q", title="score t beside one of 0"),
        y=alt.Y("weight:Q", title="weight of t"),
        color=alt.Color("series:N", scale=scale, legend=None),
        tooltip=["series:N", "t:Q", "weight:Q"],
    )  # fmt: skip
    width = len(ACTIVATIONS) * (2 * REACH + GAP)
    x = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[0, width], nice=False))
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[-REACH, REACH + 1], nice=False))
    boxes = plot(maps).mark_rect().encode(
        x=x, x2="x2:Q", y=y, y2="y2:Q",
        color=alt.Color("series:N", scale=scale, legend=None),
        fillOpacity=alt.FillOpacity("weight:Q", scale=None),
        tooltip=["series:N", "s:Q", "t:Q", "weight:Q"],
    )  # fmt: skip
    text = plot(titles).mark_text(align="left", fontSize=11)
    drawn_maps = alt.layer(boxes, text.encode(x=x, y=y, text="text:N"))
    keys = [Key(name, colour) for name, colour in zip(ACTIVATIONS, colours, strict=True)]
    return [
        Figure(
            "activations",
            "Softmax, 1.5-entmax and sparsemax of two scores",
            COMPUTED,
            "The weight of a score t beside one score of 0. The sparse ones reach 0 and 1.",
            specification(alt.layer(lines), 220),
            keys,
        ),
        Figure(
            "activations-of-three",
            "Softmax, 1.5-entmax and sparsemax of three scores",
            COMPUTED,
            f"The weight of a score s (across) beside t (upwards) and 0, both from −{REACH} to {REACH}: "
            "empty is 0, full colour is 1.",
            specification(drawn_maps, 230),
            keys,
        ),
    ]


def first_weights(scores: torch.Tensor, name: str) -> list[float]:
    """Return the weight of the first score of each row (B, S), beside the others and one of 0."""
    beside = torch.cat([scores, torch.zeros(len(scores), 1, dtype=scores.dtype)], dim=1)
    weights = normalise(beside, torch.ones_like(beside, dtype=torch.bool), name)
    first: list[float] = weights[:, 0].tolist()
    return first
