"""Figures of the heads: what each attends to, how broadly, which are alike, and which relations they follow."""

import math
from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np

from heedmap.papers.clark.published import RELATIONS
from heedmap.papers.clark.relations import ALL
from heedmap.papers.kit.parts import Row
from heedmap.report import head_maps
from heedmap.report.charts import PALETTE, Figure, Key, colour, plot, specification
from heedmap.report.grid_figures import bars
from heedmap.report.head_maps import Panel

PANELS = {
    "cls": "[CLS]", "sep": "[SEP]", "punctuation": ". and ,", "self": "itself",
    "previous": "the previous", "next": "the next",
}  # fmt: skip
SOURCE = "Clark et al., BERT-base"


def figures(
    heads: Sequence[Row], uniform: Row | None, relations: Mapping[str, Row]
) -> list[Figure]:
    """Draw what has been measured."""
    charts = []
    if heads and uniform is not None:
        n = f"n = {len(heads)} heads, {uniform['n']} texts"
        charts += [_masses(heads, uniform, n), _entropies(heads, uniform, n), _map(heads, n)]
    if relations:
        charts.append(_relations(relations))
    return charts


def _panel(title: str, name: str, heads: Sequence[Row]) -> Panel:
    return Panel(title, {(row["layer"], row["head"]): row[name] for row in heads})


def _masses(heads: Sequence[Row], uniform: Row, n: str) -> Figure:
    panels = [
        _panel(f"{title}, {_mean(heads, name):.0%} (uniform {uniform[name]:.0%})", name, heads)
        for name, title in PANELS.items()
        if math.isfinite(uniform[name])
    ]
    return Figure(
        key="masses",
        title="What do the heads attend to?",
        n=n,
        caption=(
            "Mean attention of all rows: a row per layer, a column per head. Above each map the mean of all "
            "heads, and in brackets what uniform attention gives."
        ),
        spec=head_maps.chart(panels, 1.0, 2, "share of the attention"),
        keys=[Key("100 %", head_maps.MORE), Key("50 %", head_maps.MORE + "80")],
    )


def _mean(heads: Sequence[Row], name: str) -> float:
    return float(sum(row[name] for row in heads) / len(heads))


def _entropies(heads: Sequence[Row], uniform: Row, n: str) -> Figure:
    names = {"entropy": "all rows", "entropy_cls": "the row of [CLS]"}
    panels = [
        _panel(f"{title}, mean {_mean(heads, name):.2f}", name, heads)
        for name, title in names.items()
        if math.isfinite(uniform[name])
    ]
    return Figure(
        key="entropies",
        title="How broadly do the heads attend?",
        n=n,
        caption=(
            f"Mean entropy of the rows in nats, with the paper's smoothing; full colour is uniform attention, "
            f"{uniform['entropy']:.2f}."
        ),
        spec=head_maps.chart(panels, uniform["entropy"], 2, "entropy"),
        keys=[Key("ln n", head_maps.MORE), Key("half of it", head_maps.MORE + "80")],
    )


def _map(heads: Sequence[Row], n: str) -> Figure:
    layers = [f"layer {layer}" for layer in dict.fromkeys(row["layer"] for row in heads)]
    points = [
        {
            "series": f"layer {row['layer']}",
            "head": f"{row['layer']}-{row['head']}",
            "label": row["label"],
            "cluster": row["cluster"],
            "x": row["x"],
            "y": row["y"],
        }
        for row in heads
    ]
    chart = (
        plot(points)
        .mark_point(filled=True, size=90, opacity=0.85)
        .encode(
            x=alt.X("x:Q", title="nats per row", scale=alt.Scale(zero=False)),
            y=alt.Y("y:Q", title="nats per row", scale=alt.Scale(zero=False)),
            color=colour(layers),
            shape=alt.Shape(
                "label:N", legend=alt.Legend(orient="bottom", title="label", columns=4)
            ),
            tooltip=["head:N", "label:N", "cluster:N"],
        )
    )
    return Figure(
        key="distances",
        title="Which heads attend alike?",
        n=n,
        caption=(
            "Each point is a head. Distances are Jensen-Shannon divergences of their rows (with the paper's "
            "smoothing), drawn in two dimensions by multidimensional scaling; their relative error (stress) is "
            f"{stress(heads):.2f}."
        ),
        spec=specification(chart, 380),
        keys=[Key(layer, PALETTE[i % len(PALETTE)]) for i, layer in enumerate(layers)],
    )


def stress(heads: Sequence[Row]) -> float:
    """Return Kruskal's stress of the drawn places: √(Σ (drawn − distance)² / Σ distance²)."""
    places = np.array([[row["x"], row["y"]] for row in heads])
    distances = np.array([row["distances"] for row in heads])
    on_page = np.linalg.norm(places[:, None] - places, axis=-1)
    whole = float((distances**2).sum())
    return math.sqrt(float(((on_page - distances) ** 2).sum()) / whole) if whole else 0.0


def _relations(relations: Mapping[str, Row]) -> Figure:
    series = {"best head": ("accuracy", 0), "best offset": ("offset_accuracy", 1)}
    names = [name for name in relations if name != ALL]
    records = [
        {"dataset": name, "series": kind, "seed": 0, "value": relations[name][column]}
        for name in [ALL, *names]
        if name in relations
        for kind, (column, _) in series.items()
    ]
    marks = [
        {"dataset": name, "series": kind, "value": RELATIONS[name][place] / 100, "source": SOURCE}
        for name in RELATIONS
        for kind, (_, place) in series.items()
    ]
    return bars(
        records, key="relations", title="Which relations does a single head follow?",
        measure="share of held-out words", none="none", published=marks, unit="parser",
        caption="The head or offset that is right most often on other sentences.",
    )  # fmt: skip
