"""What a text's answer loses without the words that a ranking puts first, and whether it stays with them alone.

A reader of a heat map believes that the highlighted words made the answer and the rest did not. Here the model
reads each text again: without these words, with them alone, and with all other words replaced by those of
other texts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from heedmap.data.texts import Text, read_as, replaced, shortened
from heedmap.experiments.context import AuditContext
from heedmap.experiments.methods.followed_answers import FollowedAnswers, followed_answers
from heedmap.importance.deletions import read
from heedmap.models.layered import Layered
from heedmap.models.trace import Model
from heedmap.terminal.progress import track

Scores = NDArray[np.float64]
Order = NDArray[np.int64]

PART = 3  # at most one word in PART is highlighted
TWICE = 2 - 1e-6  # times the weight of an even map
ORDERS = 3  # of words that tie, and random ones; as many texts lend their words
PREFIXES = 16  # numbers of first words that are left out, at most
AT_ONCE = 64  # texts whose readings are made together
TRIES = 20  # to find another text than the one on trial


@dataclass(frozen=True)
class Ranked:
    """Orders of one text's words, the first one first, and how many of them are highlighted.

    A map that highlights nothing has no order to ask about; an order for comparison may highlight nothing.
    """

    orders: Sequence[Order]
    highlighted: int


@dataclass(frozen=True)
class Outcome:
    """What became of the answer of one text, as a mean over the orders of its words.

    Attributes:
        highlighted: how many words are highlighted.
        gone: the largest loss of what is followed of the answer (`followed_answers`: its probability) without
            the first k words, k up to a third of them.
        alone: the same with the highlighted words alone.
        alone_stays: whether it is the answer then, too.
        among: the same if all other words are replaced by those of other texts; NaN if there are none.
        among_stays: whether it is the answer then, too.

    Without an order `gone` is 0, and `alone` and `among` are that of guessing. Of an order of which nothing is
    highlighted, these are NaN.
    """

    highlighted: int
    gone: float
    alone: float
    alone_stays: float
    among: float
    among_stays: float


WHAT = ("gone", "alone", "alone_stays", "among", "among_stays")
"""The numbers of an outcome, as columns of tables."""


def count_highlighted(scores: Scores) -> int:
    """Return how many words stand out: those with at least TWICE the weight that an even map would give them.

    It is 0 if they are more than a third of the words. Negative scores have no weight.

    >>> count_highlighted(np.array([0.1, 0.6, 0.1, 0.2])), count_highlighted(np.ones(9))
    (1, 0)
    """
    weights = np.maximum(scores, 0.0)
    if not weights.sum() > 0:
        return 0
    count = int((weights >= TWICE * weights.mean()).sum())
    return count if count <= len(scores) // PART else 0


def prefixes(size: int) -> NDArray[np.int64]:
    """Return how many first words of a text are left out: up to a third of them, in at most PREFIXES steps.

    >>> prefixes(12), prefixes(300)[-3:]
    (array([1, 2, 3, 4]), array([ 54,  74, 100]))
    """
    longest = size // PART
    if longest <= PREFIXES:
        return np.arange(1, longest + 1)
    steps = np.round(np.geomspace(1, longest, PREFIXES)).astype(np.int64)
    return np.maximum(steps, np.arange(1, PREFIXES + 1))  # small numbers step by one


def prefix_passes(texts: Sequence[Text]) -> float:
    """Return how many whole readings of a text its prefixes along one order take, as a mean."""
    steps = np.minimum(np.array([len(text) for text in texts]) // PART, PREFIXES)
    return float(np.mean(steps * (1 - 1 / PART / 2)))


def ranked(scores: Scores, rng: np.random.Generator) -> Ranked:
    """Rank words by a map, the largest score first; without an order if it highlights nothing."""
    count = count_highlighted(scores)
    return Ranked(orders_of(scores, rng) if count else [], count)


def orders_of(scores: Scores, rng: np.random.Generator) -> list[Order]:
    """Return words, the largest score first: in one order, or in ORDERS drawn ones if any tie.

    Scores that differ by rounding alone tie only if they are `levelled`.
    """
    permutations = [rng.permutation(len(scores)) for _ in range(ORDERS)]
    orders = [
        permutation[np.argsort(-scores[permutation], kind="stable")] for permutation in permutations
    ]
    return orders if len(np.unique(scores)) < len(scores) else orders[:1]


def at_random(size: int, highlighted: int, rng: np.random.Generator) -> Ranked:
    """Draw ORDERS orders of a text's words, of which as many are highlighted as of a map."""
    return Ranked([rng.permutation(size) for _ in range(ORDERS)], highlighted)


@dataclass
class Readings:
    """Changed texts that are read together, each of a row once."""

    texts: list[Text] = field(default_factory=list)
    numbers: dict[tuple[int, tuple[str | int, ...]], int] = field(default_factory=dict)

    def add(self, row: int, text: Text) -> int:
        """Return the number under which the reading is found."""
        number = self.numbers.setdefault((row, read_as(text)), len(self.texts))
        if number == len(self.texts):
            self.texts.append(text)
        return number


@dataclass(frozen=True)
class _Asked:
    """The numbers of the readings of one ranking of one text."""

    without: list[list[int]]
    alone: list[int]
    among_others: list[int]


Outcomes = Mapping[int, Outcome]
"""By the text's row."""


def outcomes(
    context: AuditContext, ranked: Mapping[int, Mapping[str, Ranked]]
) -> dict[str, dict[int, Outcome]]:
    """Read texts again along rankings of their words, given by row and name; return the outcomes by name."""
    outcomes_by_name: dict[str, dict[int, Outcome]] = {}
    rows = list(ranked)
    for start in track(range(0, len(rows), AT_ONCE)):
        part = {row: ranked[row] for row in rows[start : start + AT_ONCE]}
        for row, of_row in _outcomes_together(context, part).items():
            for name, outcome in of_row.items():
                outcomes_by_name.setdefault(name, {})[row] = outcome
    return outcomes_by_name


def _outcomes_together(
    context: AuditContext, ranked: Mapping[int, Mapping[str, Ranked]]
) -> dict[int, dict[str, Outcome]]:
    # Rankings often share their first words: each changed text is read once for all of them.
    readings = Readings()
    readings_by_row: dict[int, dict[str, _Asked]] = {}
    for row, of_row in ranked.items():
        text, donors = context.texts[row], donors_of(context, row)
        readings_by_row[row] = {
            name: _ask(context.model, readings, row, text, ranking, donors)
            for name, ranking in of_row.items()
        }
    answers = followed_answers(context)
    read_again = answers.read(read(context.model, readings.texts))

    def outcome(row: int, name: str) -> Outcome:
        read_texts = readings_by_row[row][name]
        if not read_texts.without:
            guessed = float(answers.guessing[row])
            return Outcome(0, 0.0, guessed, 0.0, guessed, 0.0)
        lost = [
            answers.whole[row] - answers.strength(read_again[numbers], row).min()
            for numbers in read_texts.without
        ]
        gone = float(np.maximum(lost, 0.0).mean())
        parts = (
            _answered(answers, read_again[numbers_read], row)
            for numbers_read in (read_texts.alone, read_texts.among_others)
        )
        return Outcome(ranked[row][name].highlighted, gone, *chain.from_iterable(parts))

    return {
        row: {name: outcome(row, name) for name in names} for row, names in readings_by_row.items()
    }


def _answered(
    answers: FollowedAnswers, readings: Float[np.ndarray, "N O"], row: int
) -> tuple[float, float]:
    """Return what readings have of an answer, and how often they give it, as means; NaN of no readings."""
    if not len(readings):
        return np.nan, np.nan
    strength, is_same = answers.strength(readings, row), answers.is_same(readings, row)
    return float(strength.mean()), float(is_same.mean())


def chance_of_answers(
    context: AuditContext, sizes: Mapping[int, int], rng_name: str
) -> dict[int, float]:
    """Return what a few words of other texts have of a text's answer, a mean over ORDERS draws.

    `sizes`: how many words by row. This is what the model says when it sees nothing of the text; NaN where
    there is no other text.
    """
    texts: list[Text] = []
    rows: list[int] = []
    for row, size in sizes.items():
        rng = context.text_generator(rng_name, row)
        text = context.texts[row]
        for donor in donors_of(context, row):
            foreign_text = among_others(context.model, text, np.ones(len(text), dtype=bool), donor)
            texts.append(shortened(foreign_text, rng.permutation(len(foreign_text)) < size))
            rows.append(row)
    answers = followed_answers(context)
    read_again = answers.read(read(context.model, texts))
    chances = dict.fromkeys(sizes, np.nan)
    row_of_text = np.array(rows, dtype=np.int64)
    for row in sizes:
        if (is_of_row := row_of_text == row).any():
            chances[row] = float(answers.strength(read_again[is_of_row], row).mean())
    return chances


def among_others(model: Model, text: Text, is_replaced: NDArray[np.bool_], donor: Text) -> Text:
    """Replace some words by another text's; of a transformer's text without the last ones if it gets longer.

    Else a text as long as the transformer can read might not fit, for other words may have more sub-words.
    """
    changed = replaced(text, is_replaced, donor)
    if not isinstance(model, Layered):
        return changed
    is_kept, longest = np.ones(len(text), dtype=bool), model.lengths([text])[0]
    for position in np.flatnonzero(is_replaced)[:0:-1].tolist():
        if model.lengths([shortened(changed, is_kept)])[0] <= longest:
            break
        is_kept[position] = False
    return changed if is_kept.all() else shortened(changed, is_kept)


def donors_of(context: AuditContext, row: int) -> list[Text]:
    """Draw ORDERS other audited texts, whose words replace those of a text; none if all texts are the same."""
    rng = context.text_generator("donors", row)
    text, lenders = tuple(context.texts[row]), context.lenders
    donors: list[Text] = []
    for _ in range(ORDERS):
        for donor_row in rng.integers(len(lenders), size=TRIES).tolist():
            if tuple(lenders[donor_row]) != text:
                donors.append(lenders[donor_row])
                break
    return donors


def _ask(
    model: Model, readings: Readings, row: int, text: Text, ranking: Ranked, donors: Sequence[Text]
) -> _Asked:
    places = [np.argsort(order, kind="stable") for order in ranking.orders]
    without = [
        [readings.add(row, shortened(text, place >= k)) for k in prefixes(len(text)).tolist()]
        for place in places
    ]
    if not ranking.highlighted:
        return _Asked(without, [], [])
    alone = [readings.add(row, shortened(text, place < ranking.highlighted)) for place in places]
    # Each of several orders has a donor of its own, and a single order has them all.
    pairs = zip(places * (ORDERS // len(places)), donors, strict=False)
    among = [
        readings.add(row, among_others(model, text, place >= ranking.highlighted, donor))
        for place, donor in pairs
    ]
    return _Asked(without, alone, among)
