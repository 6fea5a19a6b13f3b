"""Figures 5 and 8 of the survey, in their form: stacked areas, and boxes with whiskers.

Both are, as far as we can tell, Serrano & Smith's: how often the random word mattered more, by the difference
in weight; and the share of a text that is erased when the decision changes.
"""

from collections.abc import Sequence

import altair as alt
import numpy as np
from numpy.typing import NDArray

from heedmap.papers.survey.numbers import TextModel
from heedmap.report.charts import PALETTE, Figure, Key, colour, rows, specification

BINS = 10
WHISKER = 1.5  # of the distance between the quartiles (Tukey)
RANKINGS = {
    "random": "random",
    "attention": "attention",
    "gradient": "gradient",
    "product": "gradient × attention",
    "exact": "smallest set",
}
HEIGHT = 14  # of a box, in pixels


def figures(models: Sequence[TextModel]) -> list[Figure]:
    """Draw both figures of the models with a softmax and the first size, where there is anything to draw."""
    return [*_areas(models), *_boxes(models)]


def negative_counts(model: TextModel) -> NDArray[np.int64]:
    """Count, by tenths of the difference in weight, the texts whose random word mattered more than the top."""
    weight = model.column("weight_top") - model.column("weight_random")
    effect = model.column("js_top") - model.column("js_random")
    negative = weight[np.isfinite(effect) & (effect < 0)]
    bins = np.clip((negative * BINS).astype(int), 0, BINS - 1)
    return np.bincount(bins, minlength=BINS)


def _areas(models: Sequence[TextModel]) -> list[Figure]:
    names = [model.name for model in models]
    counts = {model.name: negative_counts(model) for model in models}
    if not sum(int(count.sum()) for count in counts.values()):
        return []
    data = [
        {"series": name, "weight": (b + 0.5) / BINS, "texts": int(count[b])}
        for name, count in counts.items()
        for b in range(BINS)
    ]
    chart = (
        alt.Chart(rows(data))
        .mark_area(fillOpacity=0.75)
        .encode(
            x=alt.X(
                "weight:Q",
                title="most attended word's weight − the random one's",
                axis=alt.Axis(tickCount=5),
            ),
            y=alt.Y("texts:Q", title="texts whose random word mattered more", stack="zero"),
            color=colour(names),
            tooltip=["series:N", "weight:Q", "texts:Q"],
        )
    )
    total = sum(int(np.isfinite(model.column("js_top")).sum()) for model in models)
    below = sum(int(count.sum()) for count in counts.values())
    return [
        Figure(
            key="negative-areas",
            title="When does the random word matter more than the most attended one?",
            n=f"{below} of {total} texts of {len(models)} models",
            caption="Areas are stacked: the height of each is the number of texts, by tenths of the difference "
            "in weight, in which erasing the random word changed the prediction more (JSD).",
            spec=specification(chart, 260),
            keys=[Key(name, PALETTE[i % len(PALETTE)]) for i, name in enumerate(names)],
        )
    ]


def whiskers(values: NDArray[np.float64]) -> tuple[float, float, float, float, float]:
    """Return the lower whisker, the quartiles and the upper whisker of shares, infinite ones as 1.

    A whisker ends at the value farthest from its quartile but within 1.5 times the distance of the quartiles.
    """
    shares = np.minimum(values, 1.0)
    low, middle, high = np.quantile(shares, [0.25, 0.5, 0.75])
    reach = WHISKER * (high - low)
    # A quartile lies between two values, so that the nearest value within reach may be on its inner side.
    lower = min(float(shares[shares >= low - reach].min()), float(low))
    upper = max(float(shares[shares <= high + reach].max()), float(high))
    return lower, float(low), float(middle), float(high), upper


def _boxes(models: Sequence[TextModel]) -> list[Figure]:
    data = []
    counts = []
    for model in models:
        fractions = model.fractions
        if not len(fractions["attention"]):
            continue
        counts.append(len(fractions["attention"]))
        for ranking, values in fractions.items():
            lower, low, middle, high, upper = whiskers(values)
            data.append(
                {
                    "model": model.name, "series": RANKINGS[ranking], "lower": lower, "low": low,
                    "median": middle, "high": high, "upper": upper,
                }
            )  # fmt: skip
    if not data:
        return []
    names = list(RANKINGS.values())
    base = alt.Chart(rows(data)).encode(
        y=alt.Y("model:N", title=None, axis=alt.Axis(labelLimit=220)),
        yOffset=alt.YOffset("series:N", sort=names),
        color=colour(names),
    )
    x = alt.X("lower:Q", title="share of the words erased at the change", axis=alt.Axis(format="%"))
    chart = alt.layer(
        base.mark_rule().encode(x=x, x2="upper:Q"),
        base.mark_bar(height=HEIGHT - 6).encode(x="low:Q", x2="high:Q"),
        base.mark_tick(thickness=3, height=HEIGHT - 3).encode(
            x="median:Q", color=alt.value("currentColor")
        ),
    )
    least, most = min(counts), max(counts)
    return [
        Figure(
            key="erased-whiskers",
            title="How much must go until the decision changes?",
            n=f"n = {least if least == most else f'{least} to {most}'} texts of a model whose decision changes",
            caption="Boxes join the quartiles, the tick is the median, whiskers reach the farthest text within "
            "1.5 times the box. A text that a ranking never changes counts as 100 %. Of models without a "
            "linear read-out (pairs), no smallest set is known: the texts are those that any ranking changes.",
            spec=specification(chart, len(counts) * (HEIGHT * len(names) + 10)),
            keys=[Key(name, PALETTE[i]) for i, name in enumerate(names)],
        )
    ]
