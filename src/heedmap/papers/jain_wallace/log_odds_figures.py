"""The released code's two figures of attention and log-odds: how far apart, and does it matter?"""

from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np
from numpy.typing import NDArray

from heedmap.measures import LN2
from heedmap.papers.jain_wallace.locations import title_of
from heedmap.papers.jain_wallace.numbers import DatasetNumbers
from heedmap.report.charts import Figure, colour, plot, specification, vertical
from heedmap.report.grouping import Division, texts
from heedmap.report.violin_figures import violin_figure

POINTS = 800
APART = "JSD from the log-odds weights"
WEIGHTS = (
    "The log-odds weights are the softmax over a text's words of the size of their coefficients in a logistic "
    "regression on the bag of words; the model is the LSTM with additive attention"
)


def log_odds_figures(results: Sequence[DatasetNumbers]) -> list[Figure]:
    """Draw two figures per data set with baselines, over all texts of all seeds."""
    return [figure for result in results if result.log_odds for figure in _figures(result)]


def _figures(result: DatasetNumbers) -> list[Figure]:
    by_seed = result.log_odds
    jsd, tvd, sharp, predicted, length = (
        np.concatenate([np.asarray(seed[name], dtype=np.float64) for seed in by_seed])
        for name in ("jsd", "tvd", "max_attention", "predicted", "n_tokens")
    )
    short = length < 2
    title, division = (
        title_of(result.dataset),
        Division(by_seed[0]["classes"], predicted.astype(int), True),
    )
    left_out = {"of one word left out": int(short.sum())}
    seeds = f", over {len(by_seed)} seeds" if len(by_seed) > 1 else ""
    violin = violin_figure(
        np.where(short, np.nan, jsd),
        texts(int((~short).sum()), left_out) + seeds,
        sharp,
        division,
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
    scatter = _scatter(title, jsd, tvd, short, division, result.dataset, left_out, seeds)
    return [figure for figure in (violin, scatter) if figure is not None]


def _scatter(
    title: str,
    jsd: NDArray[np.float64],
    tvd: NDArray[np.float64],
    short: NDArray[np.bool_],
    division: Division,
    dataset: str,
    left_out: dict[str, int],
    seeds: str,
) -> Figure | None:
    long_texts = np.flatnonzero(~short)
    if not len(long_texts):
        return None
    sample = np.sort(np.random.default_rng([0, *b"log-odds"]).permutation(long_texts)[:POINTS])
    data: list[dict[str, Any]] = [
        {"series": division.labels[division.series[i]], "jsd": float(jsd[i]), "tvd": float(tvd[i])}
        for i in sample
    ]
    points = (
        plot(data)
        .mark_circle(size=22, opacity=1, fillOpacity=0.5)
        .encode(
            x=alt.X("jsd:Q", title=APART, scale=alt.Scale(domain=[0, 0.72], nice=False)),
            y=alt.Y(
                "tvd:Q", title="change of the prediction (TVD)", scale=alt.Scale(domain=[0, 1])
            ),
            color=colour(division.labels),
            tooltip=["series:N", "jsd:Q", "tvd:Q"],
        )
    )
    sampled = {
        "of them drawn, a seeded sample": len(sample) if len(sample) < len(long_texts) else 0
    }
    small_share = float((tvd[long_texts] < 0.05).mean())
    return Figure(
        key=f"log-odds-scatter-{dataset}",
        title=f"{title}: what the log-odds weights change",
        n=texts(len(long_texts), {**sampled, **left_out}) + seeds,
        caption=(
            "A point per text: how far the model's weights are from the log-odds weights, and by how much the "
            f"prediction moves when these take their place. In {small_share:.0%} of the texts it moves by less "
            f"than 0.05. {WEIGHTS}. Drawn by the code of Jain & Wallace (2019), not in the paper."
        ),
        spec=specification(alt.layer(vertical(LN2, "ln 2: nothing in common"), points), 220),
        keys=[
            division.key(i, tvd[long_texts][division.series[long_texts] == i], mean=True)
            for i in range(len(division.labels))
            if (division.series[long_texts] == i).any()
        ],
    )
