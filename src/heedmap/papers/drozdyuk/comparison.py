"""All transformers and activations in one table: what each change costs, and the verdicts of the claims."""

import math
from collections.abc import Mapping

from heedmap.experiments.seed_intervals import mean_interval
from heedmap.papers.drozdyuk.claims import ACTIVATIONS, ANY_KEYS, TWICE, spread
from heedmap.papers.drozdyuk.focus_claims import FIRST_LAYER, NO_NOISE, OTHER_CLASS, SAME_WORDS
from heedmap.papers.drozdyuk.published import intervention_of
from heedmap.papers.drozdyuk.reproduction import Drozdyuk, activations_of
from heedmap.papers.kit.result import Table

HOW_TO_READ = """Per cent of the test texts, or points: means over the trainings, in brackets the 95 % \
interval of the mean (Student's; one training has none). A drop is the accuracy that a change of all layers \
costs; the majority class is the commonest of the training texts. The claims, whose words are below, are of \
softmax and 1.5-entmax together."""
# (row, column, intervention or the name of Table 1)
MEASURES = (
    ("accuracy", "accuracy", "original"),
    ("drop to the majority class", "drop", "majority"),
    ("drop under uniform attention", "drop", "uniform"),
    ("drop under change of activation", "drop", "change of activation"),
    ("drop under shuffling", "drop", "shuffling"),
    ("drop under random-K", "drop", "random-K"),
    ("drop under adversarial keys", "drop", "adversarial"),
    ("drop under keys asked for other weights", "drop", "adversarial_weights"),
    ("predictions flipped by opposite keys", "flipped", "opposite"),
)
CLAIMS = {
    TWICE: "entmax loses twice as much",
    ANY_KEYS: "keys can be anything",
    FIRST_LAYER: "the first layer matters most",
    NO_NOISE: "adversarial keys remove noise",
    SAME_WORDS: "random-K finds the same words",
    OTHER_CLASS: "opposite keys find the other class",
}


def comparison(parts: Mapping[str, Drozdyuk]) -> Table:
    """Return a column per transformer and activation: trainings, what each change costs, and the verdicts."""
    models = [
        (size, part, activation)
        for size, part in parts.items()
        for activation in activations_of(part.rows)
    ]
    heads = [
        part.learned.marked(f"{size} {activation}".strip(), activation)
        for size, part, activation in models
    ]
    lines = [["trainings", *(str(_trainings(part, a)) for _, part, a in models)]]
    lines += [
        [label, *(_mean(part, a, intervention_of(change, a), column) for _, part, a in models)]
        for label, column, change in MEASURES
    ]
    verdicts = [
        {claim.text: claim.verdict for claim in part.claims} if a in ACTIVATIONS else {}
        for _, part, a in models
    ]
    lines += [
        [f"claim: {name}", *(verdict.get(text, "–") for verdict in verdicts)]
        for text, name in CLAIMS.items()
    ]
    return Table("All trainings in one table", ["measure", *heads], lines, HOW_TO_READ)


def _trainings(part: Drozdyuk, activation: str) -> int:
    accuracy = spread(part.rows, activation, "original", "accuracy")
    return 0 if accuracy is None else len(accuracy.values)


def _mean(part: Drozdyuk, activation: str, intervention: str, column: str) -> str:
    """Return a mean over the trainings in per cent, with its interval."""
    values = spread(part.rows, activation, intervention, column)
    if values is None:
        return "–"
    low, high = mean_interval(values.values)
    least = -1.0 if column == "drop" else 0.0
    mean = f"{100 * values.mean:.1f}"
    if math.isnan(low):
        return mean
    return f"{mean} [{100 * max(low, least):.1f}, {100 * min(high, 1.0):.1f}]"
