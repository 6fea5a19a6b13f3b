"""Table 1 beside ours, every intervention over the seeds, the claims, and figures of the first two."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import pandas as pd
import pyarrow as pa

from heedmap.papers.drozdyuk.claims import ACTIVATIONS, Spread, claims, learned, spread
from heedmap.papers.drozdyuk.focus_claims import NAMED, focus_claims
from heedmap.papers.drozdyuk.interventions import SCHEMA
from heedmap.papers.drozdyuk.published import GIVEN, PLACE, PUBLISHED, SOURCE, drop, intervention_of
from heedmap.papers.drozdyuk.settings import DrozdyukSettings
from heedmap.papers.kit.learned import Learned
from heedmap.papers.kit.parts import Row
from heedmap.papers.kit.reproduction import CellReproduction
from heedmap.papers.kit.result import Claim, Result, Table, changed_settings
from heedmap.report.activation_figures import activation_figures
from heedmap.report.charts import Figure
from heedmap.report.grid_figures import bars
from heedmap.report.text_maps import TextMap, text_maps

HOW_TO_READ = """Accuracy in per cent; ours: mean over the seeds (smallest–largest). `opposite` counts flipped \
labels: it is the attack's success. [S4]: Drozdyuk et al., Table 1, one run."""
DISTANCES = """Means over seeds and test texts. Distances are those of the layers an intervention touches; the \
key distance is ‖K − K'‖ / ‖K‖; `matched` is an activation at a temperature fitted on dev."""
FOCUS = """Share of the weight, a mean over layers, heads, rows and test texts, on words that speak for \
a class. Three lexicons: the logistic regression of the training texts, the model's own reading of each \
word alone, and what people marked; then on those for the class that the model, left alone, does not \
predict. Uniform attention is chance, for the top words too; of these the model as it is keeps all, less \
ties."""
COLUMNS = {
    "data": "what the data are called",
    "model": "the classifier",
    "activation": "its attention's activation",
    "seed": "of classifier and adversaries",
    "intervention": "change of the attention",
    "layers": "layers that it touches",
    "n": "test texts",
    "accuracy": "share of the texts that are right",
    "drop": "share lost to the change",
    "opposite_accuracy": "share of flipped labels that are met",
    "kept": "share of the predictions that stay",
    "flipped": "share of the predictions that become their opposite",
    "prediction_tvd": "mean total variation of the prediction, at most 1",
    "weights_tvd": "mean total variation of the weights, at most 1",
    "weights_jsd": "mean Jensen-Shannon divergence of the weights, nats",
    "key_distance": "mean ‖K − K'‖ / ‖K‖",
    "temperature": "fitted on dev",
    **{
        f"{lexicon}_{kind}": f"share of the weight on {words}{ending}"
        for lexicon, words in NAMED.items()
        for kind, ending in (("mass", ""), ("other_mass", ", for the class not predicted"))
    },
    "overlap": "share of a text's top words that are the model's own",
    "learned": "whether the classifier has learned; empty where it cannot be told",
}
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


@dataclass(frozen=True)
class Drozdyuk(CellReproduction[DrozdyukSettings]):
    """The rows of all interventions so far."""

    @property
    def missing(self) -> int:
        """The number of cells that are still to be run: one per seed and activation."""
        finished = {(row["activation"], row["seed"]) for row in self.rows}
        return self.settings.seeds * len(self.settings.activations) - len(finished)

    @property
    def differences(self) -> list[str]:
        """How it differs from the settings that the paper gives."""
        trained = ["a classifier that was trained before"] if self.settings.model else []
        words = {name: f"{noun} {{}}" for name, (noun, _) in GIVEN.items()}
        published = {name: value for name, (_, value) in GIVEN.items()}
        return [*trained, *changed_settings(self.settings, words, published)]

    @cached_property
    def learned(self) -> Learned:
        """Which classifiers have learned, by their activation."""
        return learned(self.rows)

    @cached_property
    def claims(self) -> list[Claim]:
        """The paper's claims: two of Table 1, which need both activations, and those of its pictures."""
        table = [self.learned.judged(claim, *ACTIVATIONS) for claim in claims(self.rows)]
        return [*table, *focus_claims(self.rows, self.learned)]


def result(drozdyuk: Drozdyuk) -> Result:
    """Make the result that all files of a reproduction show."""
    heads, lines = beside_published(drozdyuk.rows)
    title = "Drozdyuk et al., Table 1 [S4], and ours (accuracy, %)"
    columns = [column.name for column in SCHEMA if not pa.types.is_list(column.type)]
    return drozdyuk.make_result(
        f"Drozdyuk et al. on {drozdyuk.name}",
        [
            Table("Table 1 [S4] beside ours", heads, lines, HOW_TO_READ),
            *drozdyuk.claims,
            _interventions(drozdyuk),
            *focus_table(drozdyuk.rows),
        ],
        summary=Table(title, heads, lines),
        latex=Table(title, heads, lines, HOW_TO_READ),
        figures=figures(drozdyuk),
        rows=pd.DataFrame(
            [
                {**row, "learned": drozdyuk.learned.of(row["activation"], row["seed"])}
                for row in drozdyuk.rows
            ],
            columns=[*columns, "learned"],
        ),
        columns=COLUMNS,
    )


def activations_of(rows: Sequence[Row]) -> list[str]:
    """Return the activations in the order in which they were run."""
    return list(dict.fromkeys(row["activation"] for row in rows))


def beside_published(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Return heads and lines: each row of Table 1 [S4] in per cent, ours as mean (smallest–largest)."""
    activations, judged = activations_of(rows), learned(rows)
    heads = ["row"]
    for activation in activations:
        heads += [f"{activation} [S4]", judged.marked(f"{activation}, ours", activation)]
    lines = []
    for published in PUBLISHED:
        line: list[str] = [published[0]]
        for activation in activations:
            place = PLACE.get(activation)
            name = intervention_of(published[0], activation)
            column = "opposite_accuracy" if name == "opposite" else "accuracy"
            ours = spread(rows, activation, name, column)
            line.append("–" if place is None else f"{published[place]:.2f}")
            line.append("–" if ours is None else ours.per_cent())
        lines.append(line)
    return heads, lines


_MEANS: tuple[tuple[str, str, float, int], ...] = (
    ("accuracy %", "accuracy", 100.0, 1),
    ("drop", "drop", 100.0, 1),
    ("flipped labels %", "opposite_accuracy", 100.0, 1),
    ("kept %", "kept", 100.0, 1),
    ("TVD of prediction", "prediction_tvd", 1.0, 3),
    ("TVD of weights", "weights_tvd", 1.0, 3),
    ("JSD of weights", "weights_jsd", 1.0, 3),
    ("key distance", "key_distance", 1.0, 2),
    ("temperature", "temperature", 1.0, 2),
)


def _interventions(drozdyuk: Drozdyuk) -> Table:
    """Return all interventions: means over the seeds, and the range of the accuracy."""
    rows = drozdyuk.rows
    Kind = tuple[str, str, str]

    def over_seeds(kind: Kind, column: str) -> Spread | None:
        activation, intervention, layers = kind
        return spread(rows, activation, intervention, column, layers)

    def mean(column: str, factor: float, digits: int, kind: Kind) -> str:
        values = over_seeds(kind, column)
        return "" if values is None else f"{factor * values.mean:.{digits}f}"

    def accuracies(kind: Kind) -> str:
        accuracy = over_seeds(kind, "accuracy")
        assert accuracy is not None
        return f"{100 * accuracy.low:.1f}–{100 * accuracy.high:.1f}"

    return Table.of(
        "Every intervention",
        dict.fromkeys((row["activation"], row["intervention"], row["layers"]) for row in rows),
        {
            "activation": lambda kind: drozdyuk.learned.marked(kind[0], kind[0]),
            "intervention": lambda kind: kind[1],
            "layers": lambda kind: kind[2],
            **{
                head: partial(mean, column, factor, digits)
                for head, column, factor, digits in _MEANS
            },
            "range of accuracy %": accuracies,
        },
        DISTANCES,
        labels=3,
    )


def focus_table(rows: Sequence[Row]) -> list[Table]:
    """Return where each change of all layers puts the weight, means over seeds; none without a measure."""
    subjects = dict.fromkeys(
        (row["activation"], row["intervention"])
        for row in rows
        if row["layers"] == "all" and row.get("overlap") is not None
    )

    def mean(column: str, subject: tuple[str, str]) -> str:
        values = spread(rows, *subject, column)
        return "" if values is None else f"{100 * values.mean:.1f}"

    columns = {
        f"{head} %": partial(mean, column)
        for head, column in (
            ("log-odds", "log_odds_mass"), ("of the other class", "log_odds_other_mass"),
            ("read alone", "read_alone_mass"), ("its other class", "read_alone_other_mass"),
            ("marked", "marked_mass"), ("marked, other class", "marked_other_mass"),
            ("top words kept", "overlap"),
        )
    }  # fmt: skip
    table = Table.of(
        "On which words is the weight?",
        subjects,
        {"activation": lambda s: s[0], "intervention": lambda s: s[1], **columns},
        FOCUS,
        labels=2,
    )
    return [table] if subjects else []


def figures(drozdyuk: Drozdyuk) -> list[Figure]:
    """Draw Table 1, what each change costs and moves, the activations, and texts; none without rows."""
    if not drozdyuk.rows:
        return []
    table = {
        row[0]: ("opposite_accuracy" if row[0] == "opposite" else "accuracy") for row in PUBLISHED
    }
    return [
        _bars(
            drozdyuk, table,
            published={name: values for name, *values in PUBLISHED},
            key="accuracy", title="Table 1: accuracy under each change", measure="accuracy",
            none="none right", caption="Of `opposite` the share of flipped labels that are met.",
        ),
        _bars(
            drozdyuk, dict.fromkeys([*CHANGES, "majority"], "drop"),
            published={name: drop(name) for name, *_ in PUBLISHED if name in CHANGES},
            key="drop", title="What does each change of the attention cost?", measure="drop of accuracy",
            none="nothing lost", caption="`majority` drops to the most frequent class of the training texts.",
        ),
        _bars(
            drozdyuk, dict.fromkeys(CHANGES, "weights_tvd"),
            key="weights", title="How far does each change move the weights?",
            measure="TVD of the weights", none="the same weights",
        ),
        *activation_figures(),
        *_text_figures(drozdyuk),
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
                for label, text in zip(("own", change), texts, strict=True):
                    ending = f"predicts {text['predicted']} ({text['probability']:.2f})"
                    for layer, weights in enumerate(text["weights"]):
                        name = f"layer {layer}, {activation}, {label}"
                        line = TextMap(name, text["tokens"], weights, ending)
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
