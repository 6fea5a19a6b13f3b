"""The two claims that the paper draws from Table 1, judged on our rows, by intervals over seeds.

A seed gives one softmax and one 1.5-entmax model with the same starting weights. Each claim is a number per
seed (a difference of drops, a share) and a bound for it: Student's interval of its mean decides, and becomes
narrower with every seed. Ratios of drops would have no mean, nor logarithms: a drop may be 0 or negative.
The intervals hold the spread between trainings, on these test texts.

* survives: the 95 % interval of every part is on the claim's side, so all of them may be believed at once; of
  two kinds of keys, one of which is enough, those of one at 97.5 % (Bonferroni);
* does not: the interval of one part is on the other side, at 95 % for all parts together (Bonferroni);
* undecided: else; with one seed; where a model is not shown to lose anything when its attention is uniform
  (it does not use its attention, so that no change of it can say anything), or when it guesses the majority.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from heedmap.experiments.seed_intervals import LEVEL, level_of, mean_interval
from heedmap.papers.drozdyuk.published import PLACE, PUBLISHED, SOURCE, drop, intervention_of
from heedmap.papers.kit.claims import UNDECIDED, Side, least, verdict
from heedmap.papers.kit.learned import Learned, Score, accuracy
from heedmap.papers.kit.parts import Row
from heedmap.papers.kit.result import Claim, Estimate
from heedmap.report.wording import plural

ACTIVATIONS = ("softmax", "entmax15")
NAMES = {"softmax": "softmax", "entmax15": "1.5-entmax"}
TESTS = ("shuffling", "change of activation", "random-K")
TIMES = 2  # the paper's sparse model loses 2.2 to 3.8 times as much as its dense one
SMALL = 0.05  # up to this drop, predictions count as kept; the paper's adversaries cost 3 points
LARGE = 0.3  # weights count as different from this mean total variation
MOST = 0.5  # of the predictions
TWICE = "1.5-entmax loses at least twice as much accuracy as softmax under each of three changes"
ANY_KEYS = (
    f"Keys trained to differ move the weights (TVD at least {LARGE:g}) and cost at most {100 * SMALL:g} "
    "points, and keys trained for it turn most predictions into their opposite, under softmax and 1.5-entmax "
    "alike"
)


@dataclass(frozen=True)
class Spread:
    """One number per seed."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Mean over the seeds."""
        return sum(self.values) / len(self.values)

    @property
    def low(self) -> float:
        """The smallest."""
        return min(self.values)

    @property
    def high(self) -> float:
        """The largest."""
        return max(self.values)

    def per_cent(self) -> str:
        """Return `81.2 (80.9–81.7)` or `-0.5 (-2.0 to 1.0)`: mean and range, times 100."""
        if len(self.values) == 1:
            return f"{100 * self.mean:.1f}"
        to = " to " if self.low < 0 else "–"
        return f"{100 * self.mean:.1f} ({100 * self.low:.1f}{to}{100 * self.high:.1f})"


def spread(
    rows: Sequence[Row], activation: str, intervention: str, column: str, layers: str = "all"
) -> Spread | None:
    """Return a column over the seeds; None where there is no such row."""
    values = tuple(
        float(row[column])
        for row in rows
        if (row["activation"], row["intervention"], row["layers"])
        == (activation, intervention, layers)
        and row[column] is not None
    )
    return Spread(values) if values else None


def learned(rows: Sequence[Row], *, papers_data: bool) -> Learned:
    """Return which classifiers have learned, by their activation; on the paper's data by its accuracy, too."""
    scores_by_activation: dict[str, dict[object, list[Score]]] = {}
    majority = {
        (row["activation"], row["seed"]): row["accuracy"]
        for row in rows
        if row["intervention"] == "majority"
    }
    for row in rows:
        if (row["intervention"], row["layers"]) == ("original", "all"):
            activation, seed = row["activation"], row["seed"]
            place = PLACE.get(activation) if papers_data else None
            published = math.nan if place is None else float(PUBLISHED[0][place]) / 100
            chance = majority.get((activation, seed), math.nan)
            score = accuracy(row["accuracy"], chance, row["n"], published)
            scores_by_activation.setdefault(activation, {})[seed] = [score]
    return Learned(scores_by_activation)


def claims(rows: Sequence[Row], *, papers_data: bool = True) -> list[Claim]:
    """Judge the two claims of Table 1 on softmax and 1.5-entmax models; return none without both.

    On other than the paper's data its drops do not stand beside ours.
    """
    if not {*ACTIVATIONS} <= {row["activation"] for row in rows}:
        return []
    return [_sparse_drops_more(rows, papers_data), _keys_can_be_anything(rows)]


def _need(rows: Sequence[Row], activation: str, intervention: str, column: str) -> Spread:
    values = spread(rows, activation, intervention, column)
    assert values is not None
    return values


def _claim(
    text: str,
    sides: Sequence[Side],
    numbers: Sequence[str],
    rows: Sequence[Row],
    estimates: Sequence[Estimate],
    found: str,
) -> Claim:
    """Judge a claim, undecided where nothing can be said of these models."""
    obstacles = _obstacles(rows)
    word = UNDECIDED if obstacles else verdict(sides)
    seeds = len({row["seed"] for row in rows})
    basis = f"By intervals over {plural(seeds, 'seed')}, on these test texts."
    return Claim(text, word, (*numbers, *obstacles), basis, found, least(estimates))


def _estimate(name: str, values: Sequence[float], edge: float = 0.0) -> Estimate:
    mean = sum(values) / len(values) if values else math.nan
    return Estimate(name, mean, *mean_interval(values), edge)


def _reported(*tests: str) -> str:
    """Say what the paper reports of some changes: the drop of its softmax and its entmax model."""
    drops = [
        f"{test} {soft:.2f} and {sparse:.2f}" for test in tests for soft, sparse in [drop(test)]
    ]
    return f"Drops in points, softmax and 1.5-entmax: {'; '.join(drops)} ({SOURCE})."


def _obstacles(rows: Sequence[Row]) -> list[str]:
    """Return in words why nothing can be said of these models; empty where something can."""
    obstacles = []
    for a in ACTIVATIONS:
        uniform, majority = (_need(rows, a, name, "drop") for name in ("uniform", "majority"))
        if len(uniform.values) < 2:
            obstacles.append(f"{NAMES[a]}: one seed has no spread to judge by")
            continue
        if not mean_interval(uniform.values)[0] > 0:
            obstacles.append(
                f"{NAMES[a]} is not shown to use its attention: uniform attention drops "
                f"{uniform.per_cent()} points, 95 % interval {_points(uniform.values)}"
            )
        if not mean_interval(majority.values)[0] > 0:
            obstacles.append(
                f"{NAMES[a]} is not shown to be better than the majority class, which drops "
                f"{majority.per_cent()} points, 95 % interval {_points(majority.values)}"
            )
    return obstacles


def _points(values: Sequence[float], lower_bound: float = -1.0) -> str:
    """Return the interval of the mean in points, `none` with one seed; a share is from `least` to 1."""
    low, high = mean_interval(values)
    if len(values) < 2:
        return "none"
    return f"{100 * max(low, lower_bound):.1f} to {100 * min(high, 1.0):.1f}"


def _sparse_drops_more(rows: Sequence[Row], papers_data: bool) -> Claim:
    """Judge whether entmax drops at least twice as much as softmax in each of the three tests.

    Per test and seed: entmax's drop minus twice softmax's; above 0 is the claim's side.
    """
    sides, numbers, estimates = [], [], []
    for test in TESTS:
        names = {a: intervention_of(test, a) for a in ACTIVATIONS}
        soft, sparse = (_need(rows, a, name, "drop") for a, name in names.items())
        moved = [_need(rows, a, name, "weights_tvd").mean for a, name in names.items()]
        paired_drops = _paired(rows, names, "drop")
        excess = [entmax_drop - TIMES * softmax_drop for softmax_drop, entmax_drop in paired_drops]
        low, _ = mean_interval(excess)
        _, high = mean_interval(excess, 1 - (1 - LEVEL) / len(TESTS))
        sides.append(Side(low > 0, high < 0))
        estimates.append(_estimate(f"{test}, 1.5-entmax less twice softmax", excess))
        soft_drop, sparse_drop = drop(test)
        published = f" (published {soft_drop:.2f} and {sparse_drop:.2f})" if papers_data else ""
        mean = f"{100 * sum(excess) / len(excess):.1f}" if excess else "–"
        numbers.append(
            f"{test}: drop in points, softmax {soft.per_cent()}, 1.5-entmax {sparse.per_cent()}"
            f"{published}; 1.5-entmax minus twice softmax {mean}, 95 % "
            f"interval {_points(excess)}; weights moved by TVD {moved[0]:.2f} "
            f"and {moved[1]:.2f}"
        )
    for a, other_activation in zip(ACTIVATIONS, reversed(ACTIVATIONS), strict=True):
        matched = _need(rows, a, f"matched:{other_activation}", "drop")
        uniform, majority = (_need(rows, a, name, "drop") for name in ("uniform", "majority"))
        numbers.append(
            f"controls for {a}: uniform attention drops {uniform.per_cent()}, the other activation at a "
            f"fitted temperature {matched.per_cent()}, the majority class {majority.per_cent()}"
        )
    return _claim(TWICE, sides, numbers, rows, estimates, _reported(*TESTS))


def _paired(rows: Sequence[Row], names: dict[str, str], column: str) -> list[tuple[float, float]]:
    """Return a column of softmax and entmax by seed, of the seeds that both have."""
    softmax_column, entmax_column = (
        {
            row["seed"]: float(row[column])
            for row in rows
            if (row["activation"], row["intervention"], row["layers"]) == (a, name, "all")
        }
        for a, name in names.items()
    )
    return [
        (softmax_column[seed], entmax_column[seed])
        for seed in sorted({*softmax_column} & {*entmax_column})
    ]


def _keys_can_be_anything(rows: Sequence[Row]) -> Claim:
    """Judge whether some keys keep the predictions and others flip them, under both activations.

    Kept: one of the two adversaries, trained for other keys or for other weights, moves the weights by a TVD of
    at least `LARGE` and costs at most `SMALL`. Flipped: more than `MOST` of the model's own predictions
    become their opposite.
    """
    together = level_of(2 * len(ACTIVATIONS))
    sides, numbers, estimates = [], [], []
    for a in ACTIVATIONS:
        costs, moved = (
            [_need(rows, a, name, column) for name in ("adversarial", "adversarial_weights")]
            for column in ("drop", "weights_tvd")
        )
        adversaries = list(zip(costs, moved, strict=True))
        each = level_of(len(adversaries))  # for one is enough
        sides.append(
            Side(
                any(
                    mean_interval(cost.values, each)[1] <= SMALL
                    and mean_interval(tvd.values, each)[0] >= LARGE
                    for cost, tvd in adversaries
                ),
                all(
                    mean_interval(cost.values, together)[0] > SMALL
                    or mean_interval(tvd.values, together)[1] < LARGE
                    for cost, tvd in adversaries
                ),
            )
        )
        flipped = _need(rows, a, "opposite", "flipped")
        moved_most = max(moved, key=lambda tvd: tvd.mean)
        estimates += [
            _estimate(f"{NAMES[a]}, predictions flipped", flipped.values, MOST),
            _estimate(f"{NAMES[a]}, TVD of the weights", moved_most.values, LARGE),
            _estimate(
                f"{NAMES[a]}, drop (negative)",
                [-x for x in costs[moved.index(moved_most)].values],
                -SMALL,
            ),
        ]
        sides.append(
            Side(
                mean_interval(flipped.values)[0] > MOST,
                mean_interval(flipped.values, together)[1] < MOST,
            )
        )
        away = _need(rows, a, "adversarial", "key_distance")
        success = _need(rows, a, "opposite", "opposite_accuracy")
        uniform = _need(rows, a, "uniform", "drop")
        blind = _need(rows, a, "opposite_random_k", "opposite_accuracy")
        numbers.append(
            f"{a}: adversarial keys (distance {away.mean:.2f}, weights' TVD {moved[0].mean:.2f}) drop "
            f"{costs[0].per_cent()} points, 95 % interval {_points(costs[0].values)}, keys asked for other "
            f"weights (TVD {moved[1].mean:.2f}) {costs[1].per_cent()}, {_points(costs[1].values)}, uniform "
            f"attention {uniform.per_cent()}; opposite keys flip {flipped.per_cent()} % of the model's own "
            f"predictions, {_points(flipped.values, 0.0)}, and reach {success.per_cent()} % against flipped "
            f"labels, from noise {blind.per_cent()} %"
        )
    return _claim(ANY_KEYS, sides, numbers, rows, estimates, _reported("adversarial"))
