"""Figures: tokens recovered and contributions by layer, and effective attention by head."""

from collections.abc import Mapping
from typing import Any

import altair as alt

from heedmap.papers.brunner.lookup import CANDIDATES
from heedmap.papers.brunner.numbers import Lookup, Number, Numbers
from heedmap.report import head_maps
from heedmap.report.charts import PALETTE, QUIET, TEXT, Figure, Key, colour, plot, specification
from heedmap.report.head_maps import MORE, Panel

Lines = Mapping[tuple[str, str], Mapping[int, Number]]
"""Numbers by layer, of every series and model."""
MAP_NAMES = {"naive": "no map", "linear": "linear map", "mlp": "MLP"}
MATRIX_NAMES = {"contribution": "contribution", "attention": "attention", "rollout": "rollout"}


def figures(models: Mapping[str, Numbers], name: str) -> list[Figure]:
    """Draw what is there so far."""
    drawn = []
    if any(model.tokens for model in models.values()):
        drawn += [_recovered(models, name, candidates) for candidates in CANDIDATES]
    if any(model.contributions for model in models.values()):
        drawn.append(_contributions(models, name))
    for weights, model in models.items():
        if model.heads and "effective_share" in model.all_heads:
            drawn.append(_effective(model, weights, name))
    return drawn


def _recovered(models: Mapping[str, Numbers], name: str, candidates: str) -> Figure:
    lines: dict[tuple[str, str], dict[int, Number]] = {}
    for weights, model in models.items():
        if not model.tokens:
            continue
        for series, label in MAP_NAMES.items():
            lookup = Lookup(series, "cosine", candidates)
            lines[label, weights] = {n: model.recovered(lookup, n) for n in model.layers}
        lookup = Lookup("linear", "cosine", candidates)
        lines[CHANCE, weights] = {n: model.chance(lookup, n) for n in model.layers}
    pool = "its text" if candidates == "text" else "the vocabulary"
    return Figure(
        key=f"recovered-{candidates}",
        title=f"Is the token still in the hidden state? Candidates: {pool} ({name})",
        n=_texts(lines),
        caption="Share of the words' tokens in held-out texts whose embedding is the nearest by the cosine, "
        "after no map, a linear one or an MLP, with 95 % intervals over texts. Chance: the lookups after the "
        "linear map, if the tokens of the text changed places.",
        spec=_chart(lines, [*MAP_NAMES.values()], "share of tokens"),
        keys=_keys([*MAP_NAMES.values()], lines, CHANCE),
    )


def _contributions(models: Mapping[str, Numbers], name: str) -> Figure:
    lines: dict[tuple[str, str], dict[int, Number]] = {}
    for weights, model in models.items():
        if not model.contributions:
            continue
        for matrix, label in MATRIX_NAMES.items():
            lines[label, weights] = {n + 1: model.mass(matrix, n) for n in model.contributions}
        lines[ALIKE, weights] = {n + 1: model.mass("uniform", n) for n in model.contributions}
    return Figure(
        key="contributions",
        title=f"How much of a hidden state is its own token's? ({name})",
        n=_texts(lines),
        caption="Mean share of the token itself: among the contributions ‖∂h_i/∂x_j‖ of all tokens, in the "
        "attention of the layer (mean over heads), and in attention rollout, which counts the residual "
        "connection as half; with 95 % intervals over texts.",
        spec=_chart(lines, [*MATRIX_NAMES.values()], "share of the token itself"),
        keys=_keys([*MATRIX_NAMES.values()], lines, ALIKE),
    )


CHANCE, ALIKE = "chance", "every token alike"


def _texts(lines: Lines) -> str:
    return f"n = {max(number.texts for line in lines.values() for number in line.values())} texts"


def _keys(series: list[str], lines: Lines, guide: str) -> list[Key]:
    keys = [Key(name, PALETTE[i]) for i, name in enumerate(series)]
    kinds = dict.fromkeys(weights for _, weights in lines)
    keys += [
        Key(f"{kind} weights", TEXT, "solid" if kind == "trained" else "dashed") for kind in kinds
    ]
    return [*keys, Key(guide, QUIET, "dotted")]


def _chart(lines: Lines, series: list[str], measure: str) -> dict[str, Any]:
    data: list[dict[str, Any]] = [
        {
            "series": name, "weights": weights, "layer": layer, "value": number.value, "texts": number.texts,
            "low": number.low if number.low == number.low else number.value,
            "high": number.high if number.high == number.high else number.value,
        }
        for (name, weights), line in lines.items()
        for layer, number in line.items()
        if number.texts
    ]  # fmt: skip
    layers = sorted({row["layer"] for row in data})
    y = alt.Y("value:Q", title=measure, axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1]))
    x = alt.X(
        "layer:Q",
        title="layer",
        scale=alt.Scale(domain=[layers[0] - 0.3, layers[-1] + 0.3], nice=False),
        axis=alt.Axis(values=layers, tickCount=len(layers), format="d", grid=False),
    )
    hint = ["series:N", "weights:N", "layer:Q", "value:Q", "low:Q", "high:Q", "texts:Q"]
    dash = alt.StrokeDash(
        "weights:N",
        scale=alt.Scale(domain=["trained", "random"], range=[[1, 0], [6, 4]]),
        legend=None,
    )
    shown = plot([row for row in data if row["series"] in series])
    base = shown.encode(x=x, color=colour(series), tooltip=hint)
    guides = plot([row for row in data if row["series"] not in series])
    layered: list[alt.Chart] = [
        guides.mark_line(strokeDash=[2, 3], strokeWidth=1.5, color=QUIET).encode(
            x=x, y=y, detail="weights:N", tooltip=hint
        ),
        base.mark_line(strokeWidth=1.5, opacity=0.8).encode(y=y, strokeDash=dash),
        base.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q", title=measure), y2="high:Q"),
        base.mark_circle(size=30, opacity=1).encode(y=y),
    ]
    return specification(alt.layer(*layered), 260)


def _effective(model: Numbers, weights: str, name: str) -> Figure:
    panels = []
    for measure, title in (
        ("effective_share", "effective share"),
        ("special_raw", "special tokens, raw"),
        ("special_effective", "special tokens, effective"),
    ):
        cells: dict[tuple[int, int | None], float] = {}
        for layer, frame in model.heads.items():
            for head, values in frame.groupby("head")[measure]:
                cells[layer, int(str(head))] = float(values.mean())
            cells[layer, None] = float(frame[measure].mean())
        panels.append(Panel(title, cells))
    return Figure(
        key=f"effective-{weights}",
        title=f"How much of the attention is effective? {weights.capitalize()} weights ({name})",
        n=f"n = {model.all_heads['text'].nunique()} texts",
        caption="Means over the rows of words: a row per layer (the first is 0), a column per head, the mean "
        "over heads set apart. The effective share is ‖A⊥‖ / ‖A‖; the mass on special tokens is a share of the "
        "row, in effective attention of Σ|A⊥|.",
        spec=head_maps.chart(panels, 1.0, 3, "mean"),
        keys=[Key("1", MORE), Key("½", MORE + "80"), Key("0", MORE + "10")],
    )
