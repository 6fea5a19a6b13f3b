"""Figures of a classifier's attention while it comes about, and of the smallest model that shows why."""

import math
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import altair as alt
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from heedmap.papers.snell.attraction import Compared
from heedmap.papers.snell.sentence_maps import matrix_figures, text_figures
from heedmap.report.charts import PALETTE, QUIET, Figure, Key, colour, plot, specification
from heedmap.report.dynamics_figures import examples
from heedmap.training.dynamics import recorded_in

HEIGHT = 240
CURVES = {
    "seeds": "attention of other seeds, A(α, α')",
    "uniform": "the twin's relevance, A(α, β^uf)",
    "accuracy": "accuracy",
    "accuracy, uniform": "accuracy of the twin",
}
RISE = {
    "relevance": "relevance",
    "attention": "attention",
    "relevance, uniform": "relevance in the twin",
}
STARTS = (0.1, 0.25, 0.5, 0.75, 0.9)
LONG = 2.5


def figures(compared: Compared[Any]) -> list[Figure]:
    """Draw curves of agreement and of keywords, a text with a slider, and one beside its twin."""
    n = f"n = {compared.settings.seeds} models, and as many twins"
    return [
        _lines(
            compared, "curve", CURVES, "snell-agreement", "When is the attention what it will be?", n,
            "How often the word that a model attends to most in the end (its best checkpoint) is among the top "
            "5 % of another map. Where the attention of other seeds first reaches the level of the twin's "
            "relevance, ξ is read off their accuracy; the curves need not be monotone. Faint: one seed.",
        ),
        _lines(
            compared, "keyword", {f"rank {key}": words for key, words in RISE.items()}, "snell-rank",
            "What finds the keyword first?", n,
            "How often a text's keyword (see the table) is among the top 5 % by each map. Faint: "
            "one seed.",
        ),
        _lines(
            compared, "keyword", {f"size {key}": words for key, words in RISE.items()}, "snell-size",
            "What grows first?", n,
            "By how much the keyword's number exceeds the mean of its text's, as a share of what it is in the "
            "end. Relevance has no upper end; attention has. Faint: one seed.", scaled=True,
        ),
        *_texts(compared),
        *(
            matrix_figures(compared.folder, compared.example, compared.twin_example)
            if compared.of_words
            else text_figures(compared.example, compared.twin_example, compared.classes)
        ),
    ]  # fmt: skip


def _texts(compared: Compared[Any]) -> list[Figure]:
    recorded = recorded_in(compared.example / "dynamics")
    if recorded is None:
        return []
    recorded = recorded.filter(pc.equal(recorded["split"], "test"))
    if compared.of_words:
        final = recorded.filter(pc.equal(recorded["step"], pc.max(recorded["step"])))
        right = final.filter(pc.equal(final["predicted"], final["label"]))["label"]
        counts = {
            count_by_label["values"]: count_by_label["counts"]
            for count_by_label in right.value_counts().to_pylist()
        }
        rare = [label for label, count in counts.items() if count == min(counts.values())]
        recorded = recorded.filter(pc.is_in(recorded["label"], pa.array(rare, right.type)))
    return examples(recorded, compared.classes, 1)


def _lines(
    compared: Compared[Any],
    choice: str,
    series: dict[str, str],
    key: str,
    title: str,
    n: str,
    caption: str,
    *,
    scaled: bool = False,
) -> Figure:
    """Draw each series' mean over seeds at the steps that all have, and each seed faintly."""
    per_seed: dict[tuple[str, int], dict[float, float]] = defaultdict(dict)
    for row in compared.rows:
        if row["choice"] == choice and row["quantity"] in series and row["value"] is not None:
            per_seed[series[row["quantity"]], row["seed"]][row["step"]] = row["value"]
    if scaled:
        per_seed = {curve_key: _of_last(curve) for curve_key, curve in per_seed.items()}
    values: list[dict[str, Any]] = []
    for name in series.values():
        curves = [curve for (series_name, _), curve in per_seed.items() if series_name == name]
        for step in sorted(set[float]().union(*curves)):
            values_there = [curve[step] for curve in curves if step in curve]
            if len(values_there) == len(curves):
                values.append(_point(name, "mean", step, float(np.mean(values_there))))
    values += [
        _point(name, f"seed {seed}", step, value)
        for (name, seed), curve in per_seed.items()
        for step, value in curve.items()
        if math.isfinite(value)
    ]
    names = list(series.values())
    scale = alt.Undefined if scaled else alt.Scale(domain=[0, 1])
    base = plot(values).encode(
        x=alt.X("step:Q", title="steps of the training"),
        y=alt.Y("value:Q", title="share", axis=alt.Axis(format="%"), scale=scale),
        color=colour(names),
        detail="which:N",
        tooltip=["series:N", "which:N", "step:Q", alt.Tooltip("value:Q", format=".0%")],
    )
    is_mean = alt.datum.which == "mean"
    chart = alt.layer(
        base.transform_filter(~is_mean).mark_line(strokeWidth=1, opacity=0.25),
        base.transform_filter(is_mean).mark_line(point=True),
    )
    keys = [Key(name, PALETTE[i]) for i, name in enumerate(names)]
    return Figure(key, title, n, caption, specification(chart, HEIGHT), keys)


def _point(series: str, which: str, step: float, value: float) -> dict[str, Any]:
    return {"series": series, "which": which, "step": step, "value": value}


def _of_last(curve: dict[float, float]) -> dict[float, float]:
    """Return a curve as a share of its last value; none where nothing has risen in the end."""
    final = curve[max(curve)]
    return {step: value / final for step, value in curve.items()} if final > 0 else {}


def toy_model(start: float, times: Iterable[float]) -> list[tuple[float, float, float]]:
    """Return attention p on the keyword, its relevance β₁ and that of the other word β₀ at some times.

    Two texts, one with a keyword and a common word, one with two common words, and a linear loss:
    β̇₀ = −p, β̇₁ = p, ṗ = β₁ − β₀, from β = 0 and p = `start` (the authors' blog). With d = β₁ − β₀ it follows
    that p̈ = 2p: p = start · cosh(√2 t) until the keyword has all attention, from where d grows by 2 per unit of
    time.
    """
    root = math.sqrt(2)
    full = math.acosh(1 / start) / root
    states = []
    for time in times:
        until = min(time, full)
        p = start * math.cosh(root * until)
        d = root * start * math.sinh(root * until) + 2 * (time - until)
        states.append((p, d / 2, -d / 2))
    return states


def toy() -> Figure:
    """Draw the toy model, with a slider for the attention that it starts from."""
    times = np.linspace(0, LONG, 51)
    names = ("attention on the keyword", "relevance of the keyword", "relevance of the common word")
    values = [
        {"series": name, "index": index, "time": float(time), "value": float(value)}
        for index, start in enumerate(STARTS)
        for time, numbers in zip(times, toy_model(start, times), strict=True)
        for name, value in zip(names, numbers, strict=True)
    ]
    slider = alt.param(
        name="start",
        value=STARTS.index(0.5),
        bind=alt.binding_range(min=0, max=len(STARTS) - 1, step=1, name="more attention at first "),
    )
    is_selected = "datum.index == start"
    lines = (
        plot(values)
        .mark_line()
        .encode(
            x=alt.X("time:Q", title="time"),
            y=alt.Y("value:Q", title=None),
            color=colour(list(names)),
            tooltip=["series:N", alt.Tooltip("time:Q", format=".2f"), alt.Tooltip("value:Q", format=".2f")],
        )
        .transform_filter(is_selected)
        .add_params(slider)
    )  # fmt: skip
    said = [
        {"index": index, "said": f"attention {start:g} at first", "time": 0.0, "value": LONG}
        for index, start in enumerate(STARTS)
    ]
    text = (
        plot(said)
        .mark_text(align="left", dx=6, fontWeight="bold")
        .encode(x="time:Q", y="value:Q", text="said:N")
        .transform_filter(is_selected)
    )
    zero = plot([{"value": 0.0}]).mark_rule(color=QUIET).encode(y="value:Q")
    return Figure(
        key="snell-toy",
        title="Why does relevance come first? Two words and a linear loss",
        n="gradient flow from no relevance, in closed form",
        caption="One text has a keyword and a common word, the other two common words. Relevance grows with "
        "the attention that its word has; attention moves only as fast as the relevances differ, at first not "
        "at all. A solution with uniform attention exists (the common word −K, the keyword 3K) and is "
        "not reached. Source: the authors' blog.",
        spec=specification(alt.layer(lines, text, zero), HEIGHT),
        keys=[Key(name, PALETTE[i]) for i, name in enumerate(names)],
    )
