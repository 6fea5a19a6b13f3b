"""Agreement with marked tokens: hand-worked cases, brute force over all orders and all sets."""

from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, f1_score

from heedmap.importance.rationale_agreement import (
    average_precision,
    average_precision_by_chance,
    chosen,
    iou_f1,
    iou_f1_at_most,
    matches,
    number_of,
    spans,
    token_f1,
    token_f1_at_best,
    token_f1_by_chance,
)


def marks(text):
    return np.array([letter == "x" for letter in text])


def all_marks(most):
    for size in range(1, most + 1):
        for code in range(1 << size):
            yield np.array([code >> i & 1 for i in range(size)], dtype=bool)


def all_sets(size, count):
    for places in combinations(range(size), count):
        mask = np.zeros(size, dtype=bool)
        mask[list(places)] = True
        yield mask


def iou(one, other):
    """The slow way: over sets of tokens."""
    one, other = set(range(*one)), set(range(*other))
    return Fraction(len(one & other), len(one | other))


def test_a_text_worked_by_hand():
    """Ten tokens, marked 2 to 4 and 8; the three of the largest scores are 2, 3 and 6."""
    gold = marks("..xxx...x.")
    scores = np.array([0, 1, 9, 8, 3, 2, 7, 0, 4, 0.5])
    # In order: 2 (hit), 3 (hit), 6, 8 (hit), 4 (hit).
    assert average_precision(gold, scores) == pytest.approx((1 + 1 + 3 / 4 + 4 / 5) / 4)
    hard = chosen(scores, 3)
    assert spans(hard) == [(2, 4), (6, 7)]
    assert token_f1(gold, hard) == pytest.approx(2 * 2 / (3 + 4))
    # 2-4 has an IOU of 2/3 with 2-5: one of two predicted spans, one of two marked ones.
    assert iou_f1(gold, hard) == pytest.approx(1 / 2)
    assert token_f1_by_chance(gold, 3) == pytest.approx(2 * 1.2 / 7)
    assert token_f1_at_best(gold, 3) == pytest.approx(6 / 7)
    assert iou_f1_at_most(gold, 3) == 1.0  # two tokens of the first span, and the single one


def test_an_iou_of_one_half_is_not_larger_than_one_half():
    assert iou((0, 2), (0, 1)) == Fraction(1, 2)
    assert not matches((0, 2), (0, 1))
    ends = [(a, b) for a in range(6) for b in range(a + 1, 7)]
    assert all(matches(p, q) == (iou(p, q) > Fraction(1, 2)) for p in ends for q in ends)
    assert iou_f1(marks("x.."), marks("xx.")) == 0.0
    assert iou_f1(marks("xxx"), marks("xx.")) == 1.0


@pytest.mark.parametrize("seed", range(4))
def test_average_precision_is_sklearns_with_ties_too(seed):
    rng = np.random.default_rng(seed)
    for size in [2, 2, 3, 5, 40]:
        gold = np.arange(size) < rng.integers(1, size)
        rng.shuffle(gold)
        for scores in (rng.random(size), rng.integers(0, 3, size).astype(float), np.zeros(size)):
            assert average_precision(gold, scores) == pytest.approx(
                average_precision_score(gold, scores), abs=1e-12
            )


def test_average_precision_is_undefined_where_all_or_none_are_marked():
    for gold in (marks("."), marks("x"), marks("..."), marks("xx")):
        assert np.isnan(average_precision(gold, np.arange(len(gold), dtype=float)))
        assert np.isnan(average_precision_by_chance(gold))


def test_chance_is_the_mean_over_all_orders():
    for gold in all_marks(5):
        if not gold.any() or gold.all():
            continue
        orders = [np.array(order, dtype=float) for order in permutations(range(len(gold)))]
        mean = np.mean([average_precision(gold, scores) for scores in orders])
        assert average_precision_by_chance(gold) == pytest.approx(mean, abs=1e-12)
        for count in range(1, len(gold) + 1):
            mean = np.mean([token_f1(gold, chosen(scores, count)) for scores in orders])
            assert token_f1_by_chance(gold, count) == pytest.approx(mean, abs=1e-12)


def test_the_best_of_all_sets_reaches_the_ceiling_and_none_is_above():
    attained = total = 0
    for gold in all_marks(6):
        if not gold.any():
            continue
        for count in range(1, len(gold) + 1):
            sets = list(all_sets(len(gold), count))
            best = max(token_f1(gold, mask) for mask in sets)
            assert token_f1_at_best(gold, count) == pytest.approx(best)
            best = max(iou_f1(gold, mask) for mask in sets)
            assert best <= iou_f1_at_most(gold, count) + 1e-12
            attained += best == pytest.approx(iou_f1_at_most(gold, count))
            total += 1
            if count == gold.sum():
                assert best == iou_f1_at_most(gold, count) == 1.0
    assert attained / total > 0.6


def test_the_f1_of_spans_is_that_of_all_pairs_of_spans():
    rng = np.random.default_rng(0)
    for _ in range(300):
        gold, mine = rng.random((2, rng.integers(1, 14))) < 0.6
        if not gold.any() or not mine.any():
            continue
        right = [any(iou(p, g) > Fraction(1, 2) for g in spans(gold)) for p in spans(mine)]
        found = [any(iou(p, g) > Fraction(1, 2) for p in spans(mine)) for g in spans(gold)]
        assert sum(right) == sum(found)  # one to one
        precision, recall = np.mean(right), np.mean(found)
        expected = 2 * precision * recall / (precision + recall) if precision else 0.0
        assert iou_f1(gold, mine) == pytest.approx(expected)
        assert token_f1(gold, mine) == pytest.approx(f1_score(gold, mine))


def test_a_share_is_rounded_up_and_never_by_an_error_of_floats():
    assert [number_of(Fraction(q, 100), 700) for q in (1, 5, 10, 20, 50)] == [7, 35, 70, 140, 350]
    assert [number_of(Fraction(q, 100), 1) for q in (1, 50)] == [1, 1]
    assert number_of(Fraction(3, 2), 5) == 5


def test_of_equal_scores_the_first_tokens_are_chosen():
    assert chosen(np.zeros(4), 2).tolist() == [True, True, False, False]
