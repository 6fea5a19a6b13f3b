"""Figures 5 and 8 of the survey, in their form: stacked areas, and boxes with whiskers.

Both are, as far as we can tell, Serrano & Smith's: how often the random word mattered more, by the difference
in weight; and the share of a text that is erased when the decision changes.
"""

import altair as alt
import numpy as np
from numpy.typing import NDArray

from heedmap.papers.survey.numbers import TextModel
from heedmap.papers.survey.survey import Survey
from heedmap.report.charts import PALETTE, Figure, Key, colour, plot, specification
from heedmap.report.wording import plural

BINS = 10
# Of a bin: the least by which BINS of them reach the largest difference.
WIDTHS = (0.01, 0.02, 0.05, 0.1)
WHISKER = 1.5  # of the distance between the quartiles (Tukey)
RANKINGS = {
    "random": "random",
    "attention": "attention",
    "gradient": "gradient",
    "product": "gradient × attention",
    "exact": "smallest set",
}
HEIGHT = 14  # of a box, in pixels


def figures(survey: Survey) -> list[Figure]:
    """Draw both figures of the models with a softmax and the first size, where there is anything to draw."""
    return [*_areas(survey), *_boxes(survey)]


def negative_weights(model: TextModel) -> NDArray[np.float64]:
    """Return the differences in weight of the texts whose random word mattered more than the top one."""
    weight = model.column("weight_top") - model.column("weight_random")
    effect = model.column("js_top") - model.column("js_random")
    return np.asarray(weight[np.isfinite(effect) & (effect < 0)])


def counts_by_width(weights: NDArray[np.float64], width: float) -> NDArray[np.int64]:
    """Count the differences in each of BINS bins; a bin holds its lower edge, the last both of its edges."""
    edges = np.linspace(0, BINS * width, BINS + 1)
    return np.histogram(weights, edges)[0]


def _areas(survey: Survey) -> list[Figure]:
    models = survey.retrained
    weights = [negative_weights(model) for model in models]
    below = sum(map(len, weights))
    if not below:
        return []
    largest = max(float(values.max()) for values in weights if len(values))
    width = next((width for width in WIDTHS if BINS * width >= largest), WIDTHS[-1])
    # Of more models than colours, those of one data set together.
    by_data = len(models) > len(PALETTE)
    counts: dict[str, NDArray[np.int64]] = {}
    for model, values in zip(models, weights, strict=True):
        name = str(model["data"]) if by_data else survey.named(model)
        counts[name] = counts.get(name, 0) + counts_by_width(values, width)
    data = [
        {
            "series": name,
            "weight": round(b * width, 2),
            "up to": round(min(b + 1, BINS) * width, 2),
            # The last one again, at its end: a step has its height from its beginning on.
            "texts": int(count[min(b, BINS - 1)]),
        }
        for name, count in counts.items()
        for b in range(BINS + 1)
    ]
    chart = (
        plot(data)
        .mark_area(fillOpacity=0.75, interpolate="step-after")
        .encode(
            x=alt.X("weight:Q", title="difference in weight", axis=alt.Axis(tickCount=5)),
            y=alt.Y("texts:Q", title="texts whose random word mattered more", stack="zero"),
            color=colour([*counts]),
            tooltip=["series:N", "weight:Q", "up to:Q", "texts:Q"],
        )
    )
    total = sum(int(np.isfinite(model.column("js_top")).sum()) for model in models)
    return [
        Figure(
            key="negative-areas",
            title="When does the random word matter more than the most attended one?",
            n=f"{below} of {total} texts of {plural(len(models), 'model')}",
            caption="Texts in which erasing a random word changed the prediction more (JSD) than erasing the "
            f"most attended one, by the difference of their weights in steps of {width:g}. Areas are stacked: "
            "the height of each is its number of texts.",
            spec=specification(chart, 260),
            keys=[Key(name, PALETTE[i]) for i, name in enumerate(counts)],
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


def _boxes(survey: Survey) -> list[Figure]:
    data = []
    counts = []
    for model in survey.retrained:
        fractions = model.fractions
        if not len(fractions["attention"]):
            continue
        counts.append(len(fractions["attention"]))
        for ranking, values in fractions.items():
            lower, low, middle, high, upper = whiskers(values)
            data.append(
                {
                    "model": survey.named(model), "series": RANKINGS[ranking], "lower": lower, "low": low,
                    "median": middle, "high": high, "upper": upper,
                }
            )  # fmt: skip
    if not data:
        return []
    names = list(RANKINGS.values())
    base = plot(data).encode(
        y=alt.Y("model:N", title=None, sort=None, axis=alt.Axis(labelLimit=220)),
        yOffset=alt.YOffset("series:N", sort=names),
        color=colour(names),
    )
    x = alt.X("lower:Q", title="share of words erased", axis=alt.Axis(format="%"))
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
