"""Figures of further trainings: accuracies over seeds, maps of other seeds, adversaries, deception."""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np
import torch
from numpy.typing import NDArray

from heedmap.experiments.findings import AuditResult
from heedmap.experiments.questions.adversary_by_model import by_model
from heedmap.experiments.questions.deception import summary
from heedmap.experiments.questions.guidance import GUIDES
from heedmap.experiments.questions.trained_adversary import adversaries as trained
from heedmap.experiments.seeds import Seeds
from heedmap.measures import LN2, jensen_shannon
from heedmap.report.charts import PALETTE, QUIET, Figure, Key, colour, plot, specification, vertical
from heedmap.report.grouping import division, of_words, texts
from heedmap.report.violin_figures import violin_figure
from heedmap.report.wording import column, epsilon

Accuracies = Mapping[str, Sequence[float]]
ROW = 34  # height of a row of points
DIRECTIONS = {"adversary": "KL(adversary || base)", "base": "KL(base || adversary)"}


def necessity(audit: AuditResult) -> list[Figure]:
    """Draw the accuracy of models trained with learned and with uniform weights, seed by seed."""
    if "necessity" not in audit.tables:
        return []
    table = audit.tables["necessity"]
    label = column(audit.tables, "necessity", "label").astype(int)
    values: dict[str, Sequence[float]] = {
        "trained with attention": Seeds(table["learned"], label, audit.classes).accuracy,
        "trained with uniform weights": Seeds(table["uniform"], label, audit.classes).accuracy,
    }
    right, uniform_right = (
        column(audit.tables, "necessity", n) == label for n in ("predicted", "uniform_at_test")
    )
    values["this model"] = [float(right.mean())]
    values["this model, uniform at test"] = [float(uniform_right.mean())]
    shuffled = column(audit.tables, "necessity", "shuffled_right")
    values["this model, shuffled at test"] = [float(shuffled.mean())]
    return [
        _accuracies(
            audit,
            values,
            label,
            key="necessity",
            title="Is the attention needed?",
            caption="Accuracy on the audited texts; a point is a training, the tick their mean. If uniform "
            "weights do as well, the attention explains nothing (Wiegreffe & Pinter 2019). At test only: "
            "weights that the model was not trained with.",
        )
    ]


def guidance(audit: AuditResult) -> list[Figure]:
    """Draw the accuracy of the guided models by guide, seed by seed."""
    if "guidance" not in audit.tables:
        return []
    table = audit.tables["guidance"]
    label = column(audit.tables, "guidance", "label").astype(int)
    values = {
        words: Seeds(table[name], label, audit.classes).accuracy for name, words in GUIDES.items()
    }
    return [
        _accuracies(
            audit,
            values,
            label,
            key="guidance",
            title="Which weights help another model?",
            caption="Accuracy of a model that reads each word by itself and is given these weights; a point is "
            "a training, the tick their mean. Weights that say something beat uniform ones, and those that the "
            "model learns itself (Wiegreffe & Pinter 2019).",
        )
    ]


def _accuracies(
    audit: AuditResult, values: Accuracies, label: np.ndarray, *, key: str, title: str, caption: str
) -> Figure:
    data = [
        {"of": name, "accuracy": accuracy}
        for name, accuracies in values.items()
        for accuracy in accuracies
    ]
    means = [
        {"of": name, "mean": float(np.mean(accuracies))} for name, accuracies in values.items()
    ]
    majority = float(np.bincount(label).max() / len(label))
    y = alt.Y(
        "of:N",
        sort=list(values),
        title=None,
        axis=alt.Axis(labelLimit=190, ticks=False, domain=False),
    )
    axis = "accuracy"
    x = alt.X("accuracy:Q", title=axis, scale=alt.Scale(zero=False), axis=alt.Axis(format="%"))
    chart = alt.layer(
        vertical(majority, "the commonest class").encode(x=alt.X("at:Q", title=axis)),
        plot(data)
        .mark_circle(size=50, opacity=1, fillOpacity=0.55, color=PALETTE[0])
        .encode(x=x, y=y, tooltip=["of:N", alt.Tooltip("accuracy:Q", format=".1%")]),
        plot(means)
        .mark_tick(thickness=3, height=18)
        .encode(
            x=alt.X("mean:Q", title=axis),
            y=y,
            tooltip=["of:N", alt.Tooltip("mean:Q", format=".1%")],
        ),
    )
    return Figure(
        key=key,
        title=title,
        n=f"n = {len(label):,} texts, {max(map(len, values.values()))} trainings each",
        caption=caption,
        spec=specification(chart, ROW * len(values)),
        keys=[Key("one training", PALETTE[0]), Key("the commonest class", QUIET, "dashed")],
    )


def stability_violins(audit: AuditResult) -> list[Figure]:
    """Draw how far other seeds' maps are, by sharpness of the attention."""
    if "stability" not in audit.tables:
        return []
    values, n = of_words(audit, column(audit.tables, "stability", "jsd"))
    count = len(audit.tables["stability"]["each_jsd"][0])
    figure = violin_figure(
        values,
        n,
        column(audit.tables, "instances", "max_attention"),
        division(audit),
        key="stability",
        title="How different are the maps of other seeds?",
        axis=alt.X(
            "x:Q",
            title="median JSD from the maps of other seeds",
            scale=alt.Scale(domain=[0, 0.82]),
            axis=alt.Axis(values=[0, 0.2, 0.4, 0.6]),
        ),
        caption=f"The same model trained from {count} other seeds, each text's median (as Wiegreffe & Pinter "
        "2019, figure 3). This is the noise that every other distance between maps is read against.",
        limit=LN2,
    )
    return [] if figure is None else [figure]


def stability_scatter(audit: AuditResult) -> list[Figure]:
    """Draw each text's distance of the maps of other seeds against the change of the prediction."""
    if "stability" not in audit.tables:
        return []
    jsd, n = of_words(audit, column(audit.tables, "stability", "jsd"))
    change = column(audit.tables, "stability", "change")
    data = [
        {"change": float(x), "jsd": float(y), "rows": [row]}
        for row, (x, y) in enumerate(zip(change, jsd, strict=True))
        if np.isfinite(y)
    ]
    if not data:
        return []
    chart = (
        plot(data)
        .mark_circle(size=18, opacity=1, fillOpacity=0.35, color=PALETTE[0])
        .encode(
            x=alt.X("change:Q", title="mean change of the prediction (TVD)"),
            y=alt.Y("jsd:Q", title="median JSD of the maps"),
        )
    )
    return [
        Figure(
            key="stability-change",
            title="Do maps differ where predictions do?",
            n=n,
            caption="A point is a text. High at the left: seeds that agree on the answer and not on the words "
            "(as Wiegreffe & Pinter 2019).",
            spec=specification(chart, 240),
            keys=[Key("a text", PALETTE[0])],
        )
    ]


def adversaries(audit: AuditResult) -> list[Figure]:
    """Draw TVD against JSD of the trained adversaries, and the points that they are compared with."""
    if "trained_adversary" not in audit.tables:
        return []
    trainings = trained(audit.tables["trained_adversary"])
    long = column(audit.tables, "instances", "n_tokens") > 1
    curve = [
        {
            "series": DIRECTIONS[training.direction],
            "strength": training.strength,
            "tvd": float(training.tvd[long].mean()),
            "jsd": float(training.jsd[long].mean()),
        }
        for training in trainings
        if training.strength > 0
    ]
    marks = [
        {"what": "λ = 0, the control", "tvd": float(trainings[0].tvd[long].mean()),
         "jsd": float(trainings[0].jsd[long].mean())},
        *_marks(audit, long),
    ]  # fmt: skip
    names, kinds = (
        list(DIRECTIONS.values()),
        list(dict.fromkeys(str(mark["what"]) for mark in marks)),
    )
    x = alt.X("tvd:Q", title="mean change of the prediction (TVD)", scale=alt.Scale(zero=True))
    y = alt.Y("jsd:Q", title="mean JSD of the maps", scale=alt.Scale(domain=[0, 0.72]))
    base = plot(curve).encode(
        x=x, y=y, color=colour(names), tooltip=["series:N", "strength:Q", "tvd:Q", "jsd:Q"]
    )
    colours = alt.Scale(domain=kinds, range=list(PALETTE[2 : 2 + len(kinds)]))
    chart = alt.layer(
        base.mark_line().encode(order="strength:Q"),
        base.mark_circle(size=45, opacity=1),
        plot(marks)
        .mark_point(size=70, shape="diamond", filled=True, opacity=0.85)
        .encode(
            x=x,
            y=y,
            color=alt.Color("what:N", scale=colours, legend=None),
            tooltip=["what:N", "tvd:Q", "jsd:Q"],
        ),
    ).resolve_scale(color="independent")
    return [
        Figure(
            key="trained-adversaries",
            title="How far can a trained model go?",
            n=texts(int(long.sum()), {"of one word left out": int((~long).sum())}),
            caption="Each point of a line is a model trained to answer as this one and to attend elsewhere, λ "
            "from small to large (Wiegreffe & Pinter 2019, figure 5). Above and to the left of the other "
            "seeds: the same answers from other words, more than another training gives by itself. Adversarial "
            "weights of single texts, which no model has to come up with, stand at the tolerance.",
            spec=specification(chart, 280),
            keys=[
                *(Key(name, PALETTE[i], "solid") for i, name in enumerate(names)),
                *(Key(kind, PALETTE[2 + i]) for i, kind in enumerate(kinds)),
            ],
        )
    ]


def _marks(audit: AuditResult, long: np.ndarray) -> list[dict[str, object]]:
    """Return the points of other seeds, uniform weights (trained, and at test) and adversarial ones."""
    marks: list[dict[str, object]] = []
    if "stability" in audit.tables:
        lists = (audit.tables["stability"][name].to_pylist() for name in ("each_tvd", "each_jsd"))
        tvd, jsd = (np.array(values, dtype=float)[long].mean(0) for values in lists)
        for x, y in zip(tvd, jsd, strict=True):
            marks.append({"what": "another seed", "tvd": float(x), "jsd": float(y)})
    weights = [
        torch.tensor(values).double()
        for values in audit.tables["instances"]["attention"].to_pylist()
    ]
    even = [float(jensen_shannon(w, torch.full_like(w, 1 / max(1, len(w))))) for w in weights]
    tolerance = np.full(len(long), epsilon(audit))
    if "necessity" in audit.tables:
        trained_apart = np.array(audit.tables["necessity"]["uniform_tvd"].to_pylist(), dtype=float)
        flat = float(np.array(even)[long].mean())
        for x in trained_apart[long].mean(0):
            marks.append({"what": "trained with uniform weights", "tvd": float(x), "jsd": flat})
    for name, tvd, jsd in (
        ("uniform weights at test", _of(audit, "permutation", "uniform_tvd"), np.array(even)),
        ("adversarial weights, text by text", tolerance, _of(audit, "adversary", "jsd")),
        ("the paper's search for them", tolerance, _of(audit, "adversary", "search_jsd")),
    ):
        defined = long & np.isfinite(tvd) & np.isfinite(jsd)
        if defined.any():
            marks.append(
                {"what": name, "tvd": float(tvd[defined].mean()), "jsd": float(jsd[defined].mean())}
            )
    return marks


def _of(audit: AuditResult, table: str, name: str) -> NDArray[np.float64]:
    return column(audit.tables, table, name)


def deception(audit: AuditResult) -> list[Figure]:
    """Draw accuracy against the attention to impermissible words, by penalty."""
    if "deception" not in audit.tables:
        return []
    runs = summary(audit.tables["deception"])
    present, removed = runs[~runs["removed"]], runs[runs["removed"]]
    data = [
        {"series": str(name), "mass": float(mass), "accuracy": float(accuracy)}
        for name, mass, accuracy in zip(
            present["name"], present["mass"], present["accuracy"], strict=True
        )
        if np.isfinite(mass)
    ]
    if not data:
        return []
    names = list(dict.fromkeys(str(point["series"]) for point in data))
    without = float(removed["accuracy"].mean())
    plain = present[present["strength"] == 0]
    smallest_mass = float(plain["least"].mean())
    trainings = present.groupby("name").size().max()
    hidden = "attention to the impermissible words"
    chart = alt.layer(
        vertical(float(plain["uniform"].mean()), "uniform weights").encode(
            x=alt.X("at:Q", title=hidden)
        ),
        plot([{"at": without, "what": "without the words"}])
        .mark_rule(strokeDash=[1, 3], color=QUIET)
        .encode(
            y=alt.Y("at:Q", title="accuracy"), tooltip=["what:N", alt.Tooltip("at:Q", format=".1%")]
        ),
        plot(data)
        .mark_circle(size=60, opacity=1, fillOpacity=0.7)
        .encode(
            x=alt.X(
                "mass:Q",
                title=hidden,
                scale=alt.Scale(domain=[0, 1]),
            ),
            y=alt.Y("accuracy:Q", scale=alt.Scale(zero=False), axis=alt.Axis(format="%")),
            color=colour(names),
            tooltip=["series:N", "mass:Q", alt.Tooltip("accuracy:Q", format=".1%")],
        ),
    )
    return [
        Figure(
            key="deception",
            title="Can the model hide what it uses?",
            n=f"n = {len(audit.tables['instances']):,} texts, {trainings} trainings per penalty",
            caption="Left and as high as λ = 0, and above the dotted line: the words still decide and are no "
            "longer shown (Pruthi et al. 2020)."
            + (
                ""
                if np.isnan(smallest_mass)
                else f" Other weights of the same states could leave {smallest_mass:.3f} on them."
            ),
            spec=specification(chart, 240),
            keys=[
                *(Key(name, PALETTE[i % len(PALETTE)]) for i, name in enumerate(names)),
                Key("uniform weights", QUIET, "dashed"),
                Key("without the words", QUIET, "dotted"),
            ],
        )
    ]


def ease(audit: AuditResult) -> list[Figure]:
    """Draw how far adversarial weights go, by encoder and normaliser, beside the map of another seed."""
    if "adversary_by_model" not in audit.tables:
        return []
    models = by_model(audit.tables["adversary_by_model"])
    normalisers = list(dict.fromkeys(models["normaliser"]))
    data = [
        {"encoder": encoder, "series": normaliser, "jsd": float(jsd), "seed": float(seed)}
        for encoder, normaliser, jsd, seed in models[
            ["encoder", "normaliser", "jsd", "seed_jsd"]
        ].itertuples(index=False)
    ]
    base = plot(data).encode(
        y=alt.Y("encoder:N", title=None, sort=list(dict.fromkeys(models["encoder"]))),
        yOffset=alt.YOffset("series:N", sort=normalisers),
    )
    chart = alt.layer(
        base.mark_bar(height=12).encode(
            x=alt.X(
                "jsd:Q",
                title="mean JSD of the adversarial weights",
                scale=alt.Scale(domain=[0, 0.72]),
            ),
            color=colour(normalisers),
            tooltip=["encoder:N", "series:N", "jsd:Q", "seed:Q"],
        ),
        base.mark_tick(thickness=3, height=14).encode(x="seed:Q"),
    )
    return [
        Figure(
            key="adversary-by-model",
            title="Where are adversaries easy to find?",
            n=f"n = {len(audit.tables['instances']):,} texts",
            caption="How far other weights of a text can go with the same prediction, by model; the tick is "
            "how far the map of the same model from another seed is.",
            spec=specification(chart, 50 * models["encoder"].nunique()),
            keys=[
                *(Key(name, PALETTE[i]) for i, name in enumerate(normalisers)),
                Key("another seed", "currentColor", "solid"),
            ],
        )
    ]
