import math
from itertools import combinations, pairwise

import mpmath
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from making import random_rows
from wording import refused

from heedmap.counterfactual import position_pairs
from heedmap.counterfactual.exact import adversary, most_different, prediction_interval
from heedmap.measures import LN2, jensen_shannon, total_variation


def slow_optimum(weights, logits, low, high):
    """The best vertex of one row, each tried in turn; JSD 0 is the original's own."""
    best = 0.0

    def consider(candidate):
        nonlocal best
        best = max(best, float(jensen_shannon(candidate, weights)))

    for i in range(len(weights)):
        if low <= logits[i] <= high:
            consider(torch.eye(len(weights), dtype=torch.float64)[i])
    for i, j in combinations(range(len(weights)), 2):
        for bound in (low, high):
            if min(logits[i], logits[j]) < bound < max(logits[i], logits[j]):
                candidate = torch.zeros(len(weights), dtype=torch.float64)
                candidate[j] = (bound - logits[i]) / (logits[j] - logits[i])
                candidate[i] = 1 - candidate[j]
                consider(candidate)
    return best


def logit_of(attention, readout, bias):
    return (attention * (readout[..., 1] - readout[..., 0])).sum(-1) + bias[1] - bias[0]


def predictions(attention, readout, bias):
    return (torch.einsum("bt,btc->bc", attention, readout) + bias).softmax(-1)


@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 0.01, 0.05, 0.3, 1.0])
@pytest.mark.parametrize("kind", [{}, {"sparse": True}, {"tied": True}, {"scale": 15.0}])
def test_the_optimum_is_the_best_vertex(epsilon, kind):
    attention, readout, bias, mask = random_rows(40, 7, **kind)
    found = adversary(attention, readout, bias, mask, epsilon)
    logit = logit_of(attention, readout, bias)
    lower, upper = prediction_interval(logit, epsilon)
    for row in range(40):
        real = mask[row]
        own = (readout[row, real, 1] - readout[row, real, 0]) + bias[1] - bias[0]
        # At ε = 0 rounding decides whether a vertex is inside: the slow loop gets the same slack.
        low = min(lower[row], own.max()) - 1e-12
        high = max(upper[row], own.min()) + 1e-12
        expected = slow_optimum(attention[row, real], own, low, high)
        assert found.jsd[row] == pytest.approx(expected, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    epsilon=st.sampled_from([0.0, 1e-9, 1e-4, 0.01, 0.2, 1.0]),
    scale=st.sampled_from([1e-6, 1.0, 5.0, 40.0]),
    sparse=st.booleans(),
    tied=st.booleans(),
)
def test_the_optimum_keeps_the_prediction_and_is_what_it_says(seed, epsilon, scale, sparse, tied):
    attention, readout, bias, mask = random_rows(
        8, 9, seed=seed, scale=scale, sparse=sparse, tied=tied
    )
    found = adversary(attention, readout, bias, mask, epsilon)
    dense = found.dense(9)
    lower, upper = prediction_interval(logit_of(attention, readout, bias), epsilon)
    reached = logit_of(dense, readout, bias)
    assert (reached >= lower - 1e-9).all()
    assert (reached <= upper + 1e-9).all()
    assert (dense >= 0).all()
    assert dense[~mask].eq(0).all()
    torch.testing.assert_close(dense.sum(-1), torch.ones(8, dtype=torch.float64))
    torch.testing.assert_close(found.jsd, jensen_shannon(dense, attention))
    assert (found.minor_weight <= 0.5).all()


@pytest.mark.parametrize("epsilon", [0.005, 0.05, 0.3])
def test_no_feasible_weighting_is_more_different(epsilon):
    attention, readout, bias, mask = random_rows(20, 5)
    found = adversary(attention, readout, bias, mask, epsilon)
    generator = torch.Generator().manual_seed(1)
    draws = torch.rand(4000, 20, 5, generator=generator, dtype=torch.float64).log().neg()
    draws = draws.pow(4) * mask
    draws = draws / draws.sum(-1, keepdim=True)
    # Between the original and any weighting there is a feasible one: halve the step until it is.
    original = predictions(attention, readout, bias)
    tried = 0
    for _ in range(12):
        distance = total_variation(
            (torch.einsum("sbt,btc->sbc", draws, readout) + bias).softmax(-1),
            original.expand(4000, 20, 2),
        )
        feasible = distance <= epsilon
        jsd = jensen_shannon(draws, attention.expand_as(draws))
        assert (torch.where(feasible, jsd, 0).amax(0) <= found.jsd + 1e-9).all()
        tried += int(feasible.sum())
        draws = 0.5 * (draws + attention)
    assert tried > 100_000


def test_more_freedom_never_means_a_smaller_optimum():
    rows = random_rows(50, 8)
    values = [
        adversary(*rows, eps).jsd for eps in (0.0, 1e-12, 1e-4, 0.01, 0.05, 0.2, 0.5, 0.9, 1.0)
    ]
    for tight, loose in pairwise(values):
        assert (loose >= tight - 1e-9).all()
    assert (values[-1] > values[0]).any()


def test_when_everything_is_feasible_one_position_takes_all():
    attention, readout, bias, mask = random_rows(30, 8, shortest=2)
    found = adversary(attention, readout, bias, mask, 1.0)
    smallest = attention.masked_fill(~mask, 2).min(-1)
    assert torch.equal(found.major_position, found.minor_position)
    torch.testing.assert_close(
        attention.gather(1, found.major_position[:, None])[:, 0], smallest.values
    )
    assert (found.jsd <= LN2).all()


def test_positions_that_say_the_same_leave_the_attention_free():
    attention, readout, bias, mask = random_rows(30, 8, shortest=2)
    flat = readout[:, :1].expand_as(readout)
    assert torch.equal(
        adversary(attention, flat, bias, mask, 0.0).jsd,
        adversary(attention, readout, bias, mask, 1.0).jsd,
    )


def test_a_row_does_not_depend_on_its_batch_or_its_padding():
    attention, readout, bias, mask = random_rows(25, 9)
    together = adversary(attention, readout, bias, mask, 0.03)
    for row in range(25):
        real = mask[row]
        n = int(real.sum())
        for left, right in ((0, 0), (3, 0), (0, 4)):
            alone = adversary(
                torch.nn.functional.pad(attention[row, real], (left, right))[None],
                torch.nn.functional.pad(readout[row, real], (0, 0, left, right), value=9.0)[None],
                bias,
                torch.nn.functional.pad(torch.ones(n, dtype=torch.bool), (left, right))[None],
                0.03,
            )
            assert alone.jsd[0] == pytest.approx(float(together.jsd[row]), abs=1e-14)
            place = real.nonzero()[:, 0].tolist()
            assert place[int(alone.major_position[0]) - left] == together.major_position[row]
            assert place[int(alone.minor_position[0]) - left] == together.minor_position[row]


def test_small_blocks_give_the_same_answer(monkeypatch):
    rows = random_rows(30, 12)
    whole = adversary(*rows, 0.02)
    monkeypatch.setattr(position_pairs, "BLOCK", 10)
    assert torch.equal(adversary(*rows, 0.02).jsd, whole.jsd)


def test_one_position_is_its_own_only_weighting():
    attention, readout, bias, mask = random_rows(6, 1)
    found = adversary(attention, readout, bias, mask, 0.0)
    assert found.jsd.eq(0).all()
    assert torch.equal(found.major_position, found.minor_position)
    assert found.dense(1).eq(1).all()


@pytest.mark.parametrize("weights", [[0.3, 0.7], [1.0, 0.0], [0.0, 1.0], [1e-17, 1.0]])
def test_two_positions_and_no_tolerance_leave_only_the_original(weights):
    attention = torch.tensor([weights], dtype=torch.float64)
    readout = torch.tensor([[[0.3, -1.1], [0.7, 2.3]]], dtype=torch.float64)
    bias = torch.tensor([0.1, 0.2], dtype=torch.float64)
    found = adversary(attention, readout, bias, torch.ones(1, 2, dtype=torch.bool), 0.0)
    assert found.jsd[0] == pytest.approx(0, abs=1e-12)
    torch.testing.assert_close(found.dense(2), attention)


def test_bounds_may_be_one_sided():
    attention, readout, bias, mask = random_rows(20, 6, shortest=3)
    relevance, offset = readout[..., 1] - readout[..., 0], bias[1] - bias[0]
    logit = logit_of(attention, readout, bias)
    nothing = torch.full_like(logit, torch.inf)
    above = most_different(attention, relevance, offset, mask, logit, nothing)
    below = most_different(attention, relevance, offset, mask, -nothing, logit)
    anything = most_different(attention, relevance, offset, mask, -nothing, nothing)
    assert (logit_of(above.dense(6), readout, bias) >= logit - 1e-9).all()
    assert (logit_of(below.dense(6), readout, bias) <= logit + 1e-9).all()
    # The best single position lies on one of the two sides.
    torch.testing.assert_close(torch.maximum(above.jsd, below.jsd), anything.jsd)


def test_a_bias_per_row_is_added_to_its_row():
    attention, readout, _, mask = random_rows(10, 6)
    relevance = readout[..., 1] - readout[..., 0]
    shift = torch.linspace(-3, 3, 10, dtype=torch.float64)
    logit = (attention * relevance).sum(-1)
    plain = most_different(attention, relevance, 0 * shift, mask, logit - 0.1, logit + 0.1)
    moved = most_different(
        attention, relevance, shift, mask, logit + shift - 0.1, logit + shift + 0.1
    )
    torch.testing.assert_close(plain.jsd, moved.jsd)


def test_a_row_without_real_positions_is_an_error():
    attention, readout, bias, mask = random_rows(2, 3)
    mask[1] = False
    with refused("one real position", kind=ValueError):
        adversary(attention, readout, bias, mask, 0.1)


LOGITS = [-800.0, -40.0, -20.0, -3.0, -1e-3, 0.0, 0.4, 5.0, 36.0, 40.0, 300.0, 800.0]


@pytest.mark.parametrize("epsilon", [1e-30, 1e-17, 1e-6, 0.01, 0.05, 0.499])
def test_the_interval_is_right_to_the_last_digits_even_when_saturated(epsilon):
    lower, upper = prediction_interval(torch.tensor(LOGITS, dtype=torch.float64), epsilon)
    with mpmath.workdps(800):
        for x, low, high in zip(LOGITS, lower.tolist(), upper.tolist(), strict=True):
            p = 1 / (1 + mpmath.exp(-mpmath.mpf(x)))
            below, above = p - mpmath.mpf(epsilon), p + mpmath.mpf(epsilon)
            expected_low = mpmath.log(below / (1 - below)) if below > 0 else -math.inf
            expected_high = mpmath.log(above / (1 - above)) if above < 1 else math.inf
            assert low == pytest.approx(float(expected_low), rel=1e-13, abs=1e-12)
            assert high == pytest.approx(float(expected_high), rel=1e-13, abs=1e-12)


def test_no_tolerance_returns_the_logit_itself():
    logits = torch.tensor(LOGITS, dtype=torch.float64)
    lower, upper = prediction_interval(logits, 0.0)
    assert torch.equal(lower, logits)
    assert torch.equal(upper, logits)


def test_full_tolerance_is_no_constraint():
    lower, upper = prediction_interval(torch.tensor(LOGITS, dtype=torch.float64), 1.0)
    assert lower.eq(-torch.inf).all()
    assert upper.eq(torch.inf).all()


def test_a_negative_tolerance_is_an_error():
    with refused("epsilon >= 0", "-0.1", kind=ValueError):
        prediction_interval(torch.zeros(1), -0.1)


def test_rectangles_of_one_block_are_padded_to_no_more_than_it_holds(monkeypatch):
    monkeypatch.setattr(position_pairs, "BLOCK", 24)
    sides = [(0, 5), (0, 9), (1, 1), (1, 7), (2, 3), (2, 4), (3, 3), (3, 4), (9, 9)]
    shorts, longs = (list(side) for side in zip(*sides, strict=True))
    ranges = position_pairs._blocks(shorts, longs)
    # Every rectangle with an area is in one range; one too large for a block has its own.
    assert [row for start, stop in ranges for row in range(start, stop)] == list(range(2, 9))
    assert ranges[-1] == (8, 9)
    for start, stop in ranges[:-1]:
        assert (stop - start) * shorts[stop - 1] * max(longs[start:stop]) <= 24
    for (start, _), (_, stop) in pairwise(ranges):
        assert (stop - start) * shorts[stop - 1] * max(longs[start:stop]) > 24  # no two make one
    assert position_pairs._blocks([0, 0], [3, 4]) == position_pairs._blocks([], []) == []
