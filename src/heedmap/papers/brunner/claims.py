"""The claims of the paper's abstract, and one on special tokens, judged by intervals over the test texts.

Where a claim says "large", "mainly" or "strong", the edge is ours and stands in its text. Each is judged on the
trained model; what the same architecture does with random weights stands beside it and decides nothing.
"""

import math
from collections.abc import Mapping
from itertools import pairwise

import pandas as pd

from heedmap.papers.brunner.numbers import SIGNED, Lookup, Number, Numbers, mean
from heedmap.papers.kit.claims import NEITHER, Check, Side, apart, judged
from heedmap.papers.kit.learned import Learned
from heedmap.papers.kit.result import Claim, over_texts

MOST = 0.5  # of the tokens, or of a contribution
BESIDE = Side(True, False)  # of a line that is shown, and decides nothing
LINEAR = Lookup("linear", "cosine", "text")


def claims(models: Mapping[str, Numbers]) -> list[Claim]:
    """Judge the claims of which all numbers of the trained model are there."""
    trained, random = models["trained"], models.get("random", Numbers([]))
    parts: list[tuple[str, list[Check]]] = []
    if trained.heads:
        parts.append(_not_identifiable(trained))
    if trained.tokens:
        parts += [_identity(trained, random), _angle(trained, random), _depth(trained, random)]
    if trained.contributions:
        parts.append(_mixing(trained, random))
    if trained.heads:
        parts.append(_special(trained, random))
    return [judged(text, checks, Learned({}), basis=over_texts(1)) for text, checks in parts]


def _below(number: Number, edge: float) -> Side:
    low, high = number.interval
    return Side(high < edge, low > edge)


def _always(share: float, texts: int) -> Side:
    return Side(share == 1, share < 1) if texts else NEITHER


def _random(number: str) -> Check:
    return Check(f"the same with random weights: {number}", BESIDE)


def _not_identifiable(trained: Numbers) -> tuple[str, list[Check]]:
    text = (
        "For sequences longer than the attention head dimension, attention weights are not identifiable: other "
        "rows that sum to 1 give a head's output"
    )
    heads = trained.all_heads
    if "rank" not in heads:
        return text, [
            Check("the model's values, or its output projections, are out of reach", NEITHER)
        ]
    # d_v is not known from outside, but no rank exceeds it.
    size = int(heads["rank"].max())
    is_long = heads["positions"] > size + 1
    checks = []
    for name, part in (("more", heads[is_long]), ("fewer", heads[~is_long])):
        texts = part["text"].nunique()
        with_room = float((part["free_on_simplex"] > 0).mean()) if texts else 0.0
        line = (
            f"{texts} texts of {name} positions than the largest rank {size} and one: room in "
            f"{100 * with_room:.1f} % of {len(part)} rows of texts and heads"
        )
        side = (
            Side(True, False)
            if name == "fewer"
            else Side(texts > 0 and with_room == 1, texts > 0 and with_room < 1)
        )
        checks.append(Check(line, side))
    return text, checks


def _identity(trained: Numbers, random: Numbers) -> tuple[str, list[Check]]:
    text = (
        "Input tokens retain to a large degree their identity: more than half are recovered from the last "
        "layer's states, by a linear map and the cosine, among the tokens of their text"
    )
    last = trained.layers[-1]
    number, chance = trained.recovered(LINEAR, last), trained.chance(LINEAR, last)
    low, high = number.interval
    everywhere = Lookup("linear", "cosine", "vocabulary")
    return text, [
        Check(
            f"{number.per_cent()} % of the tokens, by chance {chance.per_cent()} %; among the whole vocabulary "
            f"{trained.recovered(everywhere, last).per_cent()} %, of tokens that no training text has "
            f"{trained.recovered_new(everywhere, last).per_cent()} %",
            Side(low > MOST, high <= MOST),
        ),
        _random(f"{random.recovered(LINEAR, last).per_cent()} %"),
    ]


def _angle(trained: Numbers, random: Numbers) -> tuple[str, list[Check]]:
    text = (
        "Identity is mainly encoded in the angle: in the last layer, the cosine recovers more tokens than the "
        "Euclidean distance, without a map and after a linear one"
    )
    last, checks = trained.layers[-1], []
    for name in ("naive", "linear"):
        cosine, euclidean = (Lookup(name, distance, "text") for distance in ("cosine", "l2"))
        numbers = [
            model.difference((cosine, last), (euclidean, last)).per_cent()
            for model in (trained, random)
        ]
        side = apart(trained.difference((cosine, last), (euclidean, last)).interval)
        checks.append(
            Check(
                f"{name}: {trained.recovered(cosine, last).per_cent()} % against "
                f"{trained.recovered(euclidean, last).per_cent()} %, difference in points {numbers[0]}; with "
                f"random weights {numbers[1]}",
                side,
            )
        )
    return text, checks


def _depth(trained: Numbers, random: Numbers) -> tuple[str, list[Check]]:
    text = (
        "Identity gradually decreases with depth: fewer tokens are recovered in the middle than after the "
        "first layer, and fewer after the last than in the middle, by a linear map and the cosine among the "
        "tokens of their text"
    )
    layers = trained.layers[1:]
    marks = [layers[0], layers[(len(layers) - 1) // 2], layers[-1]]
    checks = []
    for earlier, later in pairwise(marks):
        number, control = (
            model.difference((LINEAR, later), (LINEAR, earlier)) for model in (trained, random)
        )
        side = Side(number.high < 0, number.low > 0) if earlier != later else NEITHER
        checks.append(
            Check(
                f"from layer {earlier} to {later}: {trained.recovered(LINEAR, earlier).per_cent()} % to "
                f"{trained.recovered(LINEAR, later).per_cent()} %, change in points {number.per_cent()}; with "
                f"random weights {control.per_cent()}",
                side,
            )
        )
    return text, checks


def _mixing(trained: Numbers, random: Numbers) -> tuple[str, list[Check]]:
    text = (
        "Input information is strongly mixed: in the last layer a token contributes less than half of its own "
        "state, in the median"
    )
    last = max(trained.contributions)
    number = trained.median(last)
    return text, [
        Check(
            f"median {number.per_cent()} %, mean {trained.mass('contribution', last).per_cent()} %; every "
            f"token alike would be {trained.mass('uniform', last).per_cent()} %; another token contributes "
            f"more to {trained.not_largest(last).per_cent()} % of the states",
            _below(number, MOST),
        ),
        _random(
            f"median {random.median(last).per_cent()} %, another token contributes more to "
            f"{random.not_largest(last).per_cent()} % of the states"
        ),
    ]


def special_difference(model: Numbers, reference: str) -> Number:
    """Return effective attention on special tokens minus a reference's, over the heads with a null space."""
    heads = model.all_heads
    if "free" not in heads:
        return Number(math.nan)
    heads = heads[heads["free"] > 0]
    moved: pd.Series = heads["special_effective"] - heads[f"special_{reference}"]
    return mean(moved.groupby(heads["text"]).mean(), SIGNED)


def _special(trained: Numbers, random: Numbers) -> tuple[str, list[Check]]:
    text = (
        "Effective attention is less on special tokens than raw attention, where the two differ, and less than "
        "after a random null space of the same dimension (Sun & Marasović 2021, on Brunner et al.'s measure)"
    )
    checks = []
    for reference, name in (("raw", "raw"), ("control", "a random null space")):
        number = special_difference(trained, reference)
        line = (
            f"share of special tokens, effective minus {name}, in points, of heads with a null space in "
            f"{number.texts} texts: {number.per_cent()}; with random weights "
            f"{special_difference(random, reference).per_cent()}"
        )
        checks.append(Check(line, _below(number, 0.0)))
    return text, checks
