"""Figures: the change by calibration against entropy, and which maps link words or agree with leave-one-out."""

from typing import Any

import altair as alt

from heedmap.papers.lu.measures import FIFTHS
from heedmap.papers.lu.numbers import CHOICES, Lu
from heedmap.report.charts import PALETTE, TEXT, Figure, Key, colour, plot, specification
from heedmap.report.grid_figures import bars
from heedmap.report.wording import plural

NAMES = {"attention": "a", "calibrated": "a_c", "mask": "1 − m", "fused": "fused"}


def figures(lu: Lu) -> list[Figure]:
    """Draw all figures; none without rows."""
    if not lu.rows:
        return []
    by_entropy = [_entropy_figure(lu, fusion) for fusion in lu.fusions if fusion != "none"]
    by_map = {
        "leave-one-out, τ": ("Which weights agree with leave-one-out?", "Kendall's τ"),
        "end": ("How much attention is on the end of the sentence?", "weight on the end"),
        **{
            f"AER {choice}": (
                f"Which weights link words? ({CHOICES[choice]})",
                "alignment error rate",
            )
            for choice in lu.choices
        },
    }
    return [
        *by_entropy,
        *(_map_figure(lu, quantity, *words) for quantity, words in by_map.items()),
    ]


def _map_figure(lu: Lu, quantity: str, title: str, measure: str) -> Figure:
    """Draw a bar per map and fusion, of the mean of layers."""
    runs = [
        {"dataset": NAMES[map], "series": fusion, "seed": seed, "value": value}
        for fusion, map in lu.maps(quantity)
        for seed, value in lu.by_seed(quantity, fusion, map).items()
    ]
    return bars(
        runs,
        key=f"lu-{quantity.split(',', maxsplit=1)[0].lower().replace(' ', '-')}",
        title=title,
        measure=measure,
        none="none",
        caption="The mean of the layers and heads.",
        unit="value",
    )


def _entropy_figure(lu: Lu, fusion: str) -> Figure:
    """Draw the JSD of a and a_c against the entropy of a, by layer and fifth of the rows."""
    points: list[dict[str, Any]] = []
    layers = [f"layer {layer + 1}" for layer in range(lu.settings.layers)]
    for layer, series in enumerate(layers):
        for fifth in range(1, FIFTHS + 1):
            entropies = lu.by_seed(f"entropy, fifth {fifth}", fusion, "attention", layer)
            for column, masks in (("value", "learned"), ("chance", "shuffled")):
                changes = lu.by_seed(f"JSD, fifth {fifth}", fusion, "calibrated", layer, column)
                points += [
                    {"series": series, "masks": masks, "entropy": entropies[seed], "jsd": change}
                    for seed, change in changes.items()
                ]
    layered = alt.layer(*(
        plot([point for point in points if point["masks"] == masks])
        .mark_point(size=45, filled=masks == "learned", shape=shape)
        .encode(
            x=alt.X("entropy:Q", title="entropy of a (nats)"),
            y=alt.Y("jsd:Q", title="JSD of a and a_c (nats)"),
            color=colour(layers),
            tooltip=["series:N", "masks:N", "entropy:Q", "jsd:Q"],
        )
        for masks, shape in (("learned", "circle"), ("shuffled", "diamond"))
    ))  # fmt: skip
    trainings = len(lu.by_seed("entropy, fifth 1", fusion, "attention", 0))
    return Figure(
        key=f"lu-entropy-{fusion}",
        title=f"Are weights of high entropy calibrated most? ({fusion})",
        n=f"n = {plural(trainings, 'training')}",
        caption="Each point is a fifth of a layer's rows by their entropy, in one training. Hollow: the "
        "same masks shuffled over the source, which is what masks in any order change.",
        spec=specification(layered, 260),
        keys=[
            *(Key(layer, PALETTE[i % len(PALETTE)]) for i, layer in enumerate(layers)),
            Key("shuffled masks", TEXT, "hollow"),
        ],
    )
