"""The claims that the paper draws from its pictures: the first layer, and which words each change highlights.

Each is a number per seed, judged like those of Table 1 (see `claims`): it survives if the 95 % interval of
every part is on its side, and falls if that of one part is on the other side at 95 % for all parts together.
A part is an activation, and for words a lexicon (see `focus`). Chance is uniform attention on the same texts.
"""

import math
from collections.abc import Sequence

from heedmap.experiments.seed_intervals import level_of, mean_interval
from heedmap.papers.drozdyuk.claims import ACTIVATIONS
from heedmap.papers.drozdyuk.focus import LEXICONS
from heedmap.papers.kit.claims import Check, Side, judged
from heedmap.papers.kit.learned import Learned
from heedmap.papers.kit.parts import Row
from heedmap.papers.kit.result import Claim, Estimate, bracketed, signed

NAMED = {
    "log_odds": "words of the logistic regression",
    "read_alone": "words that the model reads as evidence alone",
    "marked": "words that people marked",
}
FIRST_LAYER = "Shuffling the keys of the first layer costs more than shuffling any other layer"
NO_NOISE = "Adversarial keys focus on relevant words and remove noise"
SAME_WORDS = "Random-K focuses on the same words as the attention that was learned"
OTHER_CLASS = "Opposite keys focus on words of the other class"
BASIS = "By intervals over the seeds, on these test texts."
FOUND = "It says so of its Figures 5 to 10, read by eye; it gives no number."


def focus_claims(rows: Sequence[Row], learned: Learned) -> list[Claim]:
    """Judge the four claims; leave out those whose rows are missing."""
    judgements = (
        (
            FIRST_LAYER,
            "The first layer matters most (section 4.3); no number is printed.",
            _first_layer,
        ),
        (NO_NOISE, FOUND, _adversarial),
        (SAME_WORDS, FOUND, _random),
        (OTHER_CLASS, FOUND, _opposite),
    )
    made = []
    for text, found, parts_of in judgements:
        parts = [
            (f"{activation}, {line}", activation, numbers)
            for activation in ACTIVATIONS
            for line, numbers in parts_of(rows, activation)
        ]
        if parts:
            checks = [_check(*part, len(parts)) for part in parts]
            made.append(judged(text, checks, learned, basis=BASIS, found=found))
    return made


def _check(line: str, activation: str, numbers: Sequence[float], tries: int) -> Check:
    """Judge one number per seed, which the claim says to be above 0."""
    mean = sum(numbers) / len(numbers)
    low, high = mean_interval(numbers)
    side = Side(low > 0, mean_interval(numbers, level_of(tries))[1] < 0)
    interval = "one seed, no interval" if math.isnan(low) else bracketed(low, high)
    estimate = Estimate(line, mean, low, high)
    return Check(f"{line}: {signed(mean)} {interval}", side, (activation,), estimate)


Part = tuple[str, list[float]]


def _column(
    rows: Sequence[Row], activation: str, intervention: str, column: str, layers: str = "all"
) -> dict[int, float]:
    """Return a column by seed, of the rows that have it."""
    return {
        row["seed"]: float(row[column])
        for row in rows
        if (row["activation"], row["intervention"], row["layers"])
        == (activation, intervention, layers)
        and row.get(column) is not None
    }


def _less(first: dict[int, float], second: dict[int, float]) -> list[float]:
    """Return the difference of two columns by seed."""
    return [first[seed] - second[seed] for seed in sorted({*first} & {*second})]


def _first_layer(rows: Sequence[Row], activation: str) -> list[Part]:
    """Compare the drop of the first layer with the largest of the others, seed by seed."""
    name = "shuffle:positions"
    layers = {row["layers"] for row in rows if row["intervention"] == name} - {"all", "0"}
    columns = [_column(rows, activation, name, "drop", layer) for layer in sorted(layers)]
    first = _column(rows, activation, name, "drop", "0")
    seeds = sorted({*first}.intersection(*columns)) if columns else []
    if not seeds:
        return []
    excess = [first[seed] - max(column[seed] for column in columns) for seed in seeds]
    return [("accuracy lost by the first layer less the most that another loses", excess)]


def _mass(rows: Sequence[Row], activation: str, changed: str, kinds: Sequence[str]) -> list[Part]:
    """Compare a mass under a change with the model's own, and with uniform attention, by lexicon."""
    parts = []
    for lexicon in LEXICONS:
        for kind in kinds:
            column = f"{lexicon}_{kind}"
            words = f"{NAMED[lexicon]}{' for the other class' if kind == 'other_mass' else ''}"
            for reference, name in (
                ("original", "their weight in the model as it is"),
                ("uniform", "their share of the tokens"),
            ):
                numbers = _less(
                    _column(rows, activation, changed, column),
                    _column(rows, activation, reference, column),
                )
                if numbers:
                    parts.append((f"weight on {words} less {name}", numbers))
    return parts


def _adversarial(rows: Sequence[Row], activation: str) -> list[Part]:
    """Ask for more weight on relevant words than the model's own: what is not on them is noise."""
    return _mass(rows, activation, "adversarial", ["mass"])


def _opposite(rows: Sequence[Row], activation: str) -> list[Part]:
    """Ask for more weight on words for the class that the model, left alone, does not predict."""
    return _mass(rows, activation, "opposite", ["other_mass"])


def _random(rows: Sequence[Row], activation: str) -> list[Part]:
    """Compare how many of the top words are the model's own with chance.

    An MLP on noise knows no word: where every layer's keys are its own, no word of a text is more likely to be
    on top than another, but for its position. So the claim can hardly be true of it.
    """
    numbers = _less(
        _column(rows, activation, "random_k", "overlap"),
        _column(rows, activation, "uniform", "overlap"),
    )
    return (
        [("share of the top words that are the model's own less chance", numbers)]
        if numbers
        else []
    )
