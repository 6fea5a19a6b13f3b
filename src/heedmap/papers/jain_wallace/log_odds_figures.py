"""Does attention fall where the log-odds say, and does it matter? The released code's two figures of it."""

from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np
from numpy.typing import NDArray

from heedmap.data.catalog import CATALOG
from heedmap.measures import LN2
from heedmap.papers.jain_wallace.numbers import DatasetNumbers
from heedmap.report.charts import Figure, colour, rows, specification, vertical
from heedmap.report.grouping import Division, texts
from heedmap.report.violin_figures import violin_figure

POINTS = 800
APART = "JSD from the log-odds weights"
WEIGHTS = (
    "The log-odds weights are the softmax over a text's words of the size of their coefficients in a logistic "
    "regression on the bag of words; the model is the LSTM with additive attention"
)


def log_odds_figures(results: Sequence[DatasetNumbers]) -> list[Figure]:
    """Two figures a data set, of those whose baselines were run: all texts of all seeds."""
    return [figure for one in results if one.log_odds for figure in _figures(one)]


def _figures(result: DatasetNumbers) -> list[Figure]:
    found = result.log_odds
    jsd, tvd, sharp, predicted, length = (
        np.concatenate([np.asarray(seed[name], dtype=np.float64) for seed in found])
        for name in ("jsd", "tvd", "max_attention", "predicted", "n_tokens")
    )
    short = length < 2
    title, divided = (
        CATALOG[result.dataset].title,
        Division(found[0]["classes"], predicted.astype(int), True),
    )
    gone = {"of one word left out": int(short.sum())}
    seeds = f", over {len(found)} seeds" if len(found) > 1 else ""
    violin = violin_figure(
        np.where(short, np.nan, jsd),
        texts(int((~short).sum()), gone) + seeds,
        sharp,
        divided,
        key=f"log-odds-violin-{result.dataset}",
        title=f"{title}: how far is attention from the words' log-odds?",
        axis=alt.X(
            "x:Q",
            title=APART,
            scale=alt.Scale(domain=[0, 0.82]),
            axis=alt.Axis(values=[0, 0.2, 0.4, 0.6]),
        ),
        caption=f"{WEIGHTS}. Drawn by the code of Jain & Wallace (2019), not in the paper.",
        limit=LN2,
    )
    scatter = _scatter(title, jsd, tvd, short, divided, result.dataset, gone, seeds)
    return [figure for figure in (violin, scatter) if figure is not None]


def _scatter(
    title: str,
    jsd: NDArray[np.float64],
    tvd: NDArray[np.float64],
    short: NDArray[np.bool_],
    divided: Division,
    dataset: str,
    gone: dict[str, int],
    seeds: str,
) -> Figure | None:
    used = np.flatnonzero(~short)
    if not len(used):
        return None
    drawn = np.sort(np.random.default_rng([0, *b"log-odds"]).permutation(used)[:POINTS])
    data: list[dict[str, Any]] = [
        {"series": divided.labels[divided.of[i]], "jsd": float(jsd[i]), "tvd": float(tvd[i])}
        for i in drawn
    ]
    points = (
        alt.Chart(rows(data))
        .mark_circle(size=22, opacity=1, fillOpacity=0.5)
        .encode(
            x=alt.X("jsd:Q", title=APART, scale=alt.Scale(domain=[0, 0.72], nice=False)),
            y=alt.Y(
                "tvd:Q", title="change of the prediction (TVD)", scale=alt.Scale(domain=[0, 1])
            ),
            color=colour(divided.labels),
            tooltip=["series:N", "jsd:Q", "tvd:Q"],
        )
    )
    sampled = {"of them drawn, a seeded sample": len(drawn) if len(drawn) < len(used) else 0}
    near = float((tvd[used] < 0.05).mean())
    return Figure(
        key=f"log-odds-scatter-{dataset}",
        title=f"{title}: what the log-odds weights change",
        n=texts(len(used), {**sampled, **gone}) + seeds,
        caption=(
            "A point per text: how far the model's weights are from the log-odds weights, and by how much the "
            f"prediction moves when these take their place. In {near:.0%} of the texts it moves by less than "
            f"0.05. {WEIGHTS}. Drawn by the code of Jain & Wallace (2019), not in the paper."
        ),
        spec=specification(alt.layer(vertical(LN2, "ln 2: nothing in common"), points), 220),
        keys=[
            divided.key(i, tvd[used][divided.of[used] == i], mean=True)
            for i in range(len(divided.labels))
            if (divided.of[used] == i).any()
        ],
    )
