"""Figures of erasure: one weight against another, and how soon the answer changes along each ranking."""

import altair as alt
import numpy as np
from numpy.typing import NDArray

from heedmap.experiments.findings import AuditResult
from heedmap.experiments.methods.flip_sets import RANKINGS
from heedmap.experiments.methods.flip_table import flip_table
from heedmap.experiments.questions.erasure import PAIRS
from heedmap.experiments.repeats import text_numbers
from heedmap.report.charts import (
    PALETTE,
    Figure,
    Key,
    colour,
    in_lines,
    plot,
    row_names,
    specification,
)
from heedmap.report.grouping import of_words, texts
from heedmap.report.wording import column
from heedmap.settings.audit import AuditSettings

POINTS = 800  # a larger audit is sampled
BINS = 10  # of the difference in weight
FEWEST = 5  # texts of a bin with a median
GRID = 101  # points of a curve
RANDOM = "at random"
SMALLEST = "the smallest set"
SCORES = {"attention": "the map", "gradient": "gradient", "product": "gradient × attention"}
CELLS = ("both", "only first", "only other", "neither")  # a column is narrow
TEST = "p"
CAPTION = (
    "A row per score: in how many texts the answer changes when the weight of its first word is erased, and "
    "when that of one random other word is. p, McNemar's exact test, says how easily the cells of only one and "
    "only the other would differ this much by chance (Serrano & Smith 2019); in it a text that repeats counts "
    "once. The gradient is by the weights."
)


def differences(audit: AuditResult) -> list[Figure]:
    """Draw what erasing the most attended word does beyond a random one, against the difference in weight.

    Serrano & Smith (2019) draw the same, but thin the points out by the difference in weight; here they are a
    plain sample, and the line joins the medians of bins of all texts.
    """
    if "erasure" not in audit.tables:
        return []
    weights, effects = (
        column(audit.tables, "erasure", f"{name}_top")
        - column(audit.tables, "erasure", f"{name}_random")
        for name in ("weight", "js")
    )
    effects, n = of_words(audit, effects)
    defined = np.flatnonzero(np.isfinite(effects) & np.isfinite(weights))
    if not len(defined):
        return []
    seed = (audit.settings.audit or AuditSettings()).seed
    rng = np.random.default_rng([seed, *b"erasure"])
    sample = np.sort(rng.permutation(defined)[:POINTS])
    data = [
        {"weight": float(weights[i]), "effect": float(effects[i]), "rows": [int(i)]} for i in sample
    ]
    x = alt.X("weight:Q", title=["weight of the most attended word", "− of the other"])
    y = alt.Y("effect:Q", title="JSD when erased − the other's (nats)")
    points = (
        plot(data)
        .mark_circle(size=22, opacity=1, fillOpacity=0.4, color=PALETTE[0])
        .encode(x=x, y=y)
    )
    line = (
        plot(_medians(weights[defined], effects[defined]))
        .mark_line(point=True, color=PALETTE[1])
        .encode(x=x, y=y)
    )
    below = float((effects[defined] < 0).mean())
    return [
        Figure(
            key="erasure-differences",
            title="Does erasing the most attended word change the prediction more?",
            n=n,
            caption="A point per text: how much more the prediction changes when the most attended word's "
            "weight is erased than when a random other word's is. Below 0 the other one mattered more "
            f"({below:.0%} of the texts).",
            spec=specification(alt.layer(points, line), 220),
            keys=[
                Key("a text", PALETTE[0]),
                Key("median of a tenth of the range", PALETTE[1], "solid"),
            ],
        )
    ]


def _medians(x: NDArray[np.float64], y: NDArray[np.float64]) -> list[dict[str, float]]:
    edges = np.linspace(x.min(), x.max(), BINS + 1)
    bins = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, BINS - 1)
    return [
        {
            "weight": float((edges[b] + edges[b + 1]) / 2),
            "effect": float(np.median(y[bins == b])),
        }
        for b in range(BINS)
        if (bins == b).sum() >= FEWEST
    ]


def decision_flips(audit: AuditResult) -> list[Figure]:
    """Draw the decision-flip table of Serrano & Smith (2019): a row per score, with McNemar's exact test."""
    if "erasure" not in audit.tables:
        return []
    cells, total, different = [], 0, text_numbers(audit.tables["instances"])
    for score, (top_item, other_item) in PAIRS.items():
        top_flips, other_flips = (
            column(audit.tables, "erasure", f"flip_{item}") for item in (top_item, other_item)
        )
        table = flip_table(top_flips, other_flips, different)
        counts = (table.both, table.only_first, table.only_other, table.neither)
        total = sum(counts)
        cells += [
            {
                "score": SCORES[score],
                "texts": name,
                "share": count / max(1, total),
                "value": f"{count / max(1, total):.1%}",
            }
            for name, count in zip(CELLS, counts, strict=True)
        ]
        cells.append({"score": SCORES[score], "texts": TEST, "share": 0, "value": _p(table.p)})
    if not total:
        return []
    base = plot(cells).encode(
        x=alt.X(
            "texts:N",
            sort=[*CELLS, TEST],
            title=None,
            axis=alt.Axis(
                orient="top",
                labelAngle=0,
                labelExpr=in_lines([*CELLS, TEST], 5),
                labelPadding=14,
                domain=False,
                ticks=False,
            ),
        ),
        y=alt.Y(
            "score:N",
            sort=list(SCORES.values()),
            title=None,
            axis=row_names([*SCORES.values()], 12),
        ),
        tooltip=["score:N", "texts:N", "value:N"],
    )
    shades = base.mark_rect(stroke="transparent", color=PALETTE[0]).encode(
        fillOpacity=alt.FillOpacity(
            "share:Q", scale=alt.Scale(domain=[0, 1], range=[0, 0.55]), legend=None
        )
    )
    numbers = base.mark_text(fontSize=12).encode(text="value:N")
    missing = column(audit.tables, "erasure", "flip_top")
    short = column(audit.tables, "instances", "n_tokens") < 2
    left_out = {
        "of one word left out": int(short.sum()),
        "not sampled": int((np.isnan(missing) & ~short).sum()),
    }
    return [
        Figure(
            key="decision-flips",
            title="Whose erased weight changes the answer?",
            n=texts(total, left_out),
            caption=CAPTION,
            spec=specification(alt.layer(shades, numbers), 30 * len(SCORES) + 20),
            keys=[Key("share of the texts", PALETTE[0])],
        )
    ]


def _p(value: float) -> str:
    return f"{value:.2g}" if value >= 0.001 else "<0.001"


def curves(audit: AuditResult) -> list[Figure]:
    """Draw the share of the texts whose answer has changed, against the share of the words erased.

    The texts are the same for every ranking: those that some set of words flips, where that is known, else
    those that any ranking flips. A text that a ranking never flips counts to its end (Serrano & Smith 2019
    leave it out, of each ranking others). Texts that are read in windows have no curve: each window has one.
    """
    table = audit.tables.get("decision_flips")
    if table is None or "count_random" not in table.column_names:
        return []
    size = column(audit.tables, "decision_flips", "n_tokens")
    counts = {
        words: column(audit.tables, "decision_flips", f"count_{name}")
        for name, words in RANKINGS.items()
    }
    # Leave-one-out is not known of a model that cannot read again.
    counts = {words: count for words, count in counts.items() if np.isfinite(count).any()}
    lists = table["count_random"].to_pylist()
    draws = max((len(row) for row in lists if row), default=1)
    counts[RANDOM] = np.array([[np.nan] * draws if row is None else row for row in lists]).T
    smallest_set = column(audit.tables, "decision_flips", "count_exact")
    if np.isfinite(smallest_set).any():
        counts[SMALLEST] = smallest_set
        flippable = smallest_set > 0
    else:
        flippable = np.any([np.atleast_2d(count > 0).any(0) for count in counts.values()], axis=0)
    if not flippable.any():
        return []
    shares = np.linspace(0, 1, GRID)
    data = []
    for name, count in counts.items():
        reached = np.where(count > 0, count / size, np.inf)[..., flippable]
        data += [
            {"series": name, "erased": float(s), "changed": float((reached <= s + 1e-9).mean())}
            for s in shares
        ]
    names = list(counts)
    dashed = names.index(SMALLEST) if SMALLEST in names else len(names)
    dashes = [[5, 3] if i == dashed else [1, 0] for i in range(len(names))]
    chart = (
        plot(data)
        .mark_line(interpolate="step-after")
        .encode(
            x=alt.X("erased:Q", title="share of the words erased", axis=alt.Axis(format="%")),
            y=alt.Y("changed:Q", title="answers changed", axis=alt.Axis(format="%")),
            color=colour(names),
            # Dashed, since the best ranking may lie under it.
            strokeDash=alt.StrokeDash(
                "series:N", scale=alt.Scale(domain=names, range=dashes), legend=None
            ),
        )
    )
    never = int(np.isfinite(counts[RANKINGS["attention"]]).sum() - flippable.sum())
    return [
        Figure(
            key="erasure-curves",
            title="How soon does the answer change?",
            n=texts(int(flippable.sum()), {"that nothing flips left out": never}),
            caption="Words are erased in the order of each ranking until the model gives another answer; the "
            "higher and further left, the better the ranking. A text that a ranking never flips is censored at "
            "100 %, and no other is, so these are Kaplan-Meier's curves. One word always stays.",
            spec=specification(chart, 240),
            keys=[
                Key(name, PALETTE[i % len(PALETTE)], "dashed" if i == dashed else "solid")
                for i, name in enumerate(names)
            ],
        )
    ]
