"""The figures: Table 1, what each change costs and moves, the activations, and texts under each change."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from heedmap.papers.drozdyuk.published import PLACE, PUBLISHED, SOURCE, drop, intervention_of
from heedmap.papers.drozdyuk.reproduction import Drozdyuk, activations_of
from heedmap.report.activation_figures import activation_figures
from heedmap.report.charts import Figure
from heedmap.report.grid_figures import bars
from heedmap.report.text_maps import TextMap, text_maps

# The bars: rows of Table 1 that do not attack labels, and controls.
CHANGES = {
    "uniform": "uniform",
    "change of activation": "change of activation",
    "shuffling": "shuffling",
    "random-K": "random-K",
    "adversarial": "adversarial",
    "asked for other weights": "adversarial_weights",
}
# The changes that Figures 5 to 10 draw on texts, as Table 1 names them.
DRAWN = ("change of activation", "shuffling", "adversarial", "random-K", "opposite")


def figures(drozdyuk: Drozdyuk) -> list[Figure]:
    """Draw bars for each transformer, the activations, and texts; none without rows."""
    if not drozdyuk.rows:
        return []

    def of_each(draw: Callable[[Drozdyuk], list[Figure]]) -> list[Figure]:
        return [
            replace(figure, key=f"{figure.key}-{size}" if size else figure.key)
            for size, part in drozdyuk.by_transformer.items()
            for figure in draw(part)
        ]

    return [*of_each(_bar_figures), *activation_figures(), *of_each(_text_figures)]


def _bar_figures(drozdyuk: Drozdyuk) -> list[Figure]:
    """Draw Table 1, and what each change costs and moves."""
    table = {
        row[0]: ("opposite_accuracy" if row[0] == "opposite" else "accuracy") for row in PUBLISHED
    }
    beside = drozdyuk.papers_data
    return [
        _bars(
            drozdyuk, table,
            published={name: values for name, *values in PUBLISHED} if beside else {},
            key="accuracy", measure="accuracy",
            title=f"{'Table 1: a' if beside else 'A'}ccuracy under each change",
            none="none right", caption="Opposite: the share of flipped labels that are met.",
        ),
        _bars(
            drozdyuk, dict.fromkeys([*CHANGES, "majority"], "drop"),
            published={name: drop(name) for name, *_ in PUBLISHED if beside and name in CHANGES},
            key="drop", title="What does each change of the attention cost?", measure="drop of accuracy",
            none="nothing lost", caption="Majority: the drop to the most frequent class of the training texts.",
        ),
        _bars(
            drozdyuk, dict.fromkeys(CHANGES, "weights_tvd"),
            key="weights", title="How far does each change move the weights?",
            measure="TVD of the weights", none="the same weights",
        ),
    ]  # fmt: skip


def _text_figures(drozdyuk: Drozdyuk) -> list[Figure]:
    """Draw texts under each change, as in Figures 5 to 10: the model's own weights above the changed ones."""
    seed = min(row["seed"] for row in drozdyuk.rows)
    drawn = {
        (row["activation"], row["intervention"]): row["drawn"]
        for row in drozdyuk.rows
        if row["seed"] == seed and row["layers"] == "all" and row.get("drawn")
    }
    made = []
    for change in DRAWN:
        maps = []
        for activation in activations_of(drozdyuk.rows):
            own = drawn.get((activation, "original"), [])
            changed = drawn.get((activation, intervention_of(change, activation)), [])
            if len(own) != len(changed):
                continue
            for number, texts in enumerate(zip(own, changed, strict=True)):
                for label, text in zip(("unchanged", change), texts, strict=True):
                    ending = f"predicts {text['predicted']} ({text['probability']:.2f})"
                    for layer, weights in enumerate(text["weights"]):
                        name = f"layer {layer}, {activation}, {label}"
                        line = TextMap(name, text["tokens"], weights, ending, activation)
                        maps.append((number, layer, line))
        if maps:
            # Text by text and layer by layer: each activation's own weights, then the changed ones.
            lines = [line for _, _, line in sorted(maps, key=lambda item: item[:2])]
            title = f"One text of each class: {change} ({drozdyuk.name}, seed {seed})"
            made.append(text_maps(lines, f"texts-{change.replace(' ', '-').lower()}", title))
    return made


def _bars(
    drozdyuk: Drozdyuk,
    columns: Mapping[str, str],
    *,
    published: Mapping[str, Sequence[float]] | None = None,
    key: str,
    title: str,
    measure: str,
    none: str,
    caption: str = "",
) -> Figure:
    """Draw a bar per change (with its column) and activation; `published` is per cent by activation."""
    activations = activations_of(drozdyuk.rows)
    runs = [
        {"dataset": name, "series": row["activation"], "seed": row["seed"], "value": row[column]}
        for name, column in columns.items()
        for row in drozdyuk.rows
        if row["layers"] == "all"
        and row["intervention"] == intervention_of(CHANGES.get(name, name), row["activation"])
    ]
    marks = [
        {"dataset": name, "series": a, "value": values[PLACE[a] - 1] / 100, "source": SOURCE}
        for name, values in (published or {}).items()
        for a in activations
        if a in PLACE
    ]
    return bars(
        runs, key=key, title=f"{title} ({drozdyuk.name})", measure=measure, none=none, caption=caption,
        published=marks, unit="value",
    )  # fmt: skip
