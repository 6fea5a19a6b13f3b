"""The two claims that the paper draws from Table 1, judged on our rows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from heedmap.papers.drozdyuk.published import drop, intervention_of
from heedmap.papers.kit.parts import Row
from heedmap.papers.kit.result import Claim

NOISE = 0.01  # a drop below this, or below two standard errors, does not count
SMALL = 0.05  # up to this drop, predictions count as kept; the paper's adversaries cost 3 points
LARGE = 0.3  # weights count as different from this mean total variation


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
        """Return `81.2 (80.9–81.7)`: mean and range, times 100."""
        if len(self.values) == 1:
            return f"{100 * self.mean:.1f}"
        return f"{100 * self.mean:.1f} ({100 * self.low:.1f}–{100 * self.high:.1f})"


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


def claims(rows: Sequence[Row]) -> list[Claim]:
    """Judge the two claims of Table 1 on softmax and 1.5-entmax models; return none without both."""
    if not {"softmax", "entmax15"} <= {row["activation"] for row in rows}:
        return []
    return [_sparse_drops_more(rows), _keys_can_be_anything(rows)]


def _need(rows: Sequence[Row], activation: str, intervention: str, column: str) -> Spread:
    values = spread(rows, activation, intervention, column)
    assert values is not None
    return values


def _noise(rows: Sequence[Row], activation: str, intervention: str) -> float:
    """Return two standard errors of a drop: only texts whose prediction changed move it, each by ±1/n."""
    kept = _need(rows, activation, intervention, "kept")
    n = _need(rows, activation, intervention, "n").mean
    return max(NOISE, 2 * math.sqrt(max(1 - kept.mean, 0.0) / (n * len(kept.values))))


def _sparse_drops_more(rows: Sequence[Row]) -> Claim:
    """Judge whether entmax drops at least twice as much as softmax in all three tests.

    A test holds if the means say so, the two models' seeds do not overlap, and the difference exceeds the
    noise. It fails if neither model drops by more than noise, or entmax by less than softmax, or
    by less than twice as much under every seed.
    """
    tests = ("shuffling", "change of activation", "random-K")
    held, failed, numbers = 0, 0, []
    for test in tests:
        names = {a: intervention_of(test, a) for a in ("softmax", "entmax15")}
        soft, sparse = (_need(rows, a, name, "drop") for a, name in names.items())
        noise = max(_noise(rows, a, name) for a, name in names.items())
        moved = [_need(rows, a, name, "weights_tvd") for a, name in names.items()]
        published_drop = drop(test)
        difference = sparse.mean - soft.mean
        if difference > noise and sparse.mean >= 2 * soft.mean and sparse.low > soft.high:
            held += 1
        elif max(soft.mean, sparse.mean) <= noise or difference <= 0 or sparse.high < 2 * soft.mean:
            failed += 1
        numbers.append(
            f"{test}: drop in points, softmax {soft.per_cent()}, 1.5-entmax {sparse.per_cent()} "
            f"(published {published_drop[0]:.2f} and {published_drop[1]:.2f}); weights moved by TVD "
            f"{moved[0].mean:.2f} and {moved[1].mean:.2f}; noise {100 * noise:.1f} points"
        )
    for a in ("softmax", "entmax15"):
        other = "entmax15" if a == "softmax" else "softmax"
        matched = _need(rows, a, f"matched:{other}", "drop")
        uniform, majority = _need(rows, a, "uniform", "drop"), _need(rows, a, "majority", "drop")
        numbers.append(
            f"controls for {a}: uniform attention drops {uniform.per_cent()}, the other activation at a "
            f"fitted temperature {matched.per_cent()}, the majority class {majority.per_cent()}"
        )
    seeds = len({row["seed"] for row in rows})
    verdict = "survives" if held == len(tests) else "does not" if failed >= 2 else "undecided"
    majorities = [_need(rows, a, "majority", "drop") for a in ("softmax", "entmax15")]
    if min(majority.low for majority in majorities) <= 0:
        verdict = "undecided"
        numbers.append("a model does no better than the majority class: nothing can be lost")
    if seeds < 2:
        verdict, numbers = "undecided", [*numbers, "one seed has no spread to judge by"]
    text = "1.5-entmax loses 2 to 4 times more accuracy than softmax when its attention is changed"
    return Claim(text, verdict, tuple(numbers))


def _keys_can_be_anything(rows: Sequence[Row]) -> Claim:
    """Judge whether some keys keep the predictions and others flip them, under both activations.

    Kept: one of the two adversaries, trained for other keys or for other weights, moves the weights by a TVD of
    `LARGE` and costs at most `SMALL` under every seed. Flipped: flipped labels are predicted almost
    as often as the labels were.
    """
    held, failed, numbers = 0, 0, []
    for a in ("softmax", "entmax15"):
        original = _need(rows, a, "original", "accuracy")
        keys_drop = _need(rows, a, "adversarial", "drop")
        moved = _need(rows, a, "adversarial", "weights_tvd")
        weights_drop = _need(rows, a, "adversarial_weights", "drop")
        turned = _need(rows, a, "adversarial_weights", "weights_tvd")
        away = _need(rows, a, "adversarial", "key_distance")
        success = _need(rows, a, "opposite", "opposite_accuracy")
        flipped = _need(rows, a, "opposite", "flipped")
        uniform = _need(rows, a, "uniform", "drop")
        blind = _need(rows, a, "opposite_random_k", "opposite_accuracy")
        keeps = any(
            cost.high <= SMALL and tvd.mean >= LARGE
            for cost, tvd in ((keys_drop, moved), (weights_drop, turned))
        )
        flips = success.low >= 0.5 and success.mean >= original.mean - 2 * SMALL
        held += keeps and flips
        failed += success.high < 0.5 or min(keys_drop.low, weights_drop.low) > SMALL
        numbers.append(
            f"{a}: adversarial keys (distance {away.mean:.2f}, weights' TVD {moved.mean:.2f}) drop "
            f"{keys_drop.per_cent()} points, keys asked for other weights (TVD {turned.mean:.2f}) "
            f"{weights_drop.per_cent()}, uniform attention {uniform.per_cent()}; opposite keys reach "
            f"{success.per_cent()} % against flipped labels and flip {flipped.per_cent()} % of the model's "
            f"own predictions, from noise {blind.per_cent()} %"
        )
    seeds = len({row["seed"] for row in rows})
    verdict = "survives" if held == 2 else "does not" if failed == 2 else "undecided"
    if seeds < 2:
        verdict, numbers = "undecided", [*numbers, "one seed has no spread to judge by"]
    text = (
        "Keys trained to differ hardly cost accuracy, and keys trained for it turn most predictions "
        "into their opposite, under softmax and 1.5-entmax alike"
    )
    return Claim(text, verdict, tuple(numbers))
