"""Table 1 beside ours, all trainings in one table, the claims, and every intervention over the seeds."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import pandas as pd
import pyarrow as pa

from heedmap.papers.drozdyuk.claims import Spread, spread
from heedmap.papers.drozdyuk.comparison import comparison
from heedmap.papers.drozdyuk.figures import figures
from heedmap.papers.drozdyuk.focus_claims import NAMED
from heedmap.papers.drozdyuk.interventions import SCHEMA
from heedmap.papers.drozdyuk.published import PLACE, PUBLISHED, intervention_of
from heedmap.papers.drozdyuk.reproduction import Drozdyuk, activations_of, of_size
from heedmap.papers.kit.parts import Row
from heedmap.papers.kit.result import Claim, Result, Table

HOW_TO_READ = """Accuracy in per cent; ours: mean over the seeds (smallest–largest). `opposite` counts flipped \
labels: it is the attack's success."""
WHOSE = " [S4]: Drozdyuk et al., Table 1, one run."
DISTANCES = """Means over seeds and test texts. Distances are those of the layers an intervention touches; the \
key distance is ‖K − K'‖ / ‖K‖; `matched` is an activation at a temperature fitted on dev."""
FOCUS = """Share of the weight, a mean over layers, heads, rows and test texts, on words that speak for \
a class. Three lexicons: the logistic regression of the training texts, the model's own reading of each \
word alone, and what people marked; then on those for the class that the model, left alone, does not \
predict. Uniform attention is chance, for the top words too; of these the model as it is keeps all, less \
ties."""
COLUMNS = {
    "data": "what the data are called",
    "model": "the classifier: the size of the transformer, or the place of a trained one",
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


def result(drozdyuk: Drozdyuk) -> Result:
    """Make the result that all files of a reproduction show."""
    parts = drozdyuk.by_transformer
    accuracies = {size: _accuracies(part, size) for size, part in parts.items()}
    together = comparison(parts)
    title = (
        "Drozdyuk et al., Table 1 [S4], and ours (accuracy, %)"
        if drozdyuk.papers_data
        else "Accuracy under each change of the attention (%)"
    )
    table_1 = next(iter(accuracies.values()))
    columns = [column.name for column in SCHEMA if not pa.types.is_list(column.type)]
    sections: list[Table | Claim] = [*accuracies.values(), together, *drozdyuk.claims]
    for size, part in parts.items():
        sections += [_interventions(part, size), *focus_table(part.rows, size)]
    return drozdyuk.make_result(
        f"Drozdyuk et al. on {drozdyuk.name}",
        sections,
        summary=together if "" not in parts else replace(table_1, title=title, note=""),
        latex=together if "" not in parts else replace(table_1, title=title),
        figures=figures(drozdyuk),
        rows=pd.DataFrame(
            [
                {**row, "learned": part.learned.of(row["activation"], row["seed"])}
                for part in parts.values()
                for row in part.rows
            ],
            columns=[*columns, "learned"],
        ),
        columns=COLUMNS,
    )


def _accuracies(drozdyuk: Drozdyuk, size: str) -> Table:
    """Return ours of each row of Table 1 in per cent, mean (smallest–largest), beside it on such data."""
    rows, papers_data = drozdyuk.rows, drozdyuk.papers_data

    def ours(line: tuple[str, float, float], activation: str) -> str:
        name = intervention_of(line[0], activation)
        column = "opposite_accuracy" if name == "opposite" else "accuracy"
        values = spread(rows, activation, name, column)
        return "–" if values is None else values.per_cent()

    def theirs(line: tuple[str, float, float], activation: str) -> str:
        place = PLACE.get(activation)
        return "–" if place is None else f"{line[place]:.2f}"

    columns: dict[str, Callable[[tuple[str, float, float]], str]] = {"row": lambda line: line[0]}
    for activation in activations_of(rows):
        if papers_data:
            columns[f"{activation} [S4]"] = partial(theirs, activation=activation)
        head = drozdyuk.learned.marked(f"{activation}, ours", activation)
        columns[head] = partial(ours, activation=activation)
    title = "Table 1 [S4] beside ours" if papers_data else "Accuracy under each change"
    note = HOW_TO_READ + (WHOSE if papers_data else "")
    return Table.of(of_size(title, size), PUBLISHED, columns, note)


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


def _interventions(drozdyuk: Drozdyuk, size: str) -> Table:
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
        of_size("Every intervention", size),
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


def focus_table(rows: Sequence[Row], size: str = "") -> list[Table]:
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
        of_size("On which words is the weight?", size),
        subjects,
        {"activation": lambda s: s[0], "intervention": lambda s: s[1], **columns},
        FOCUS,
        labels=2,
    )
    return [table] if subjects else []
