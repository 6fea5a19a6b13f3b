from itertools import permutations as every_order

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from making import padded_rows
from oracles import permutation_moments
from wording import refused

from heedmap.counterfactual.permute import _shuffled, orders, permuted_logits


def by_mask(*arguments, **options):
    """The rows in the order in which permutations take them: the mask second."""
    attention, readout, bias, mask = padded_rows(*arguments, **options)
    return attention, mask, readout, bias


def every_permutation(attention, mask, readout, bias):
    """All n! logits of one row, the slow way."""
    weights, relevance = attention[mask].tolist(), readout[mask]
    return torch.stack(
        [
            sum(w * r for w, r in zip(order, relevance, strict=True)) + bias
            for order in every_order(weights)
        ]
    )


@pytest.mark.parametrize("side", ["left", "right"])
def test_moments_are_those_of_all_permutations(side):
    rows = by_mask([1, 2, 3, 4, 5], side=side)
    mean, variance = permutation_moments(*rows)
    attention, mask, readout, bias = rows
    for row in range(5):
        logits = every_permutation(attention[row], mask[row], readout[row], bias)
        torch.testing.assert_close(mean[row], logits.mean(0))
        torch.testing.assert_close(variance[row], logits.var(0, correction=0))


def test_one_position_never_varies():
    attention, mask, readout, bias = by_mask([1])
    mean, variance = permutation_moments(attention, mask, readout, bias)
    sampled = permuted_logits(attention, mask, readout, bias, 7, np.random.default_rng(0))
    assert variance.eq(0).all()
    assert torch.equal(sampled, (readout[mask] + bias)[None].expand(1, 7, 2))
    torch.testing.assert_close(mean, readout[mask] + bias)


@settings(max_examples=30, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 8), min_size=1, max_size=6),
    side=st.sampled_from(["left", "right"]),
    seed=st.integers(0, 2**32 - 1),
)
def test_each_sample_is_a_permutation_of_the_real_weights(lengths, side, seed):
    # A read-out of one class a position hands the shuffled weights back.
    attention, mask, _, _ = by_mask(lengths, seed=seed, side=side)
    identity = torch.eye(8, dtype=torch.float64).expand(len(lengths), 8, 8)
    shuffled = permuted_logits(
        attention,
        mask,
        identity,
        torch.zeros(8, dtype=torch.float64),
        5,
        np.random.default_rng(seed),
    )
    assert shuffled.masked_select(~mask[:, None, :]).eq(0).all()
    expected = attention.sort(-1).values[:, None, :].expand_as(shuffled)
    torch.testing.assert_close(shuffled.sort(-1).values, expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize("length", [2, 3, 4])
def test_every_permutation_is_equally_likely(length):
    draws = 24_000
    weights = np.random.default_rng(0).random((1, length))
    sampled = torch.from_numpy(_shuffled(weights, draws, np.random.default_rng(1))[0])
    counts = torch.unique(sampled.argsort(-1), dim=0, return_counts=True)[1]
    expected = draws / torch.arange(1, length + 1).prod()
    assert len(counts) == torch.arange(1, length + 1).prod()
    assert (counts - expected).abs().max() < 5 * expected.sqrt()
    assert (counts - expected).abs().max() > 0


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("permutations", [1, 2, 5, 6, 23, 24, 100])
def test_where_there_are_few_orders_each_comes_once(permutations, side):
    rows = by_mask([1, 2, 3, 4, 7], side=side)
    attention, mask, readout, bias = rows
    found = permuted_logits(*rows, permutations, np.random.default_rng(0))
    counts = orders(mask.sum(-1, keepdim=True))
    assert counts == [1, 2, 6, 24, 5040]
    for row, count in enumerate(counts):
        every = every_permutation(attention[row], mask[row], readout[row], bias)
        if count <= permutations:
            apart = (found[row, :count, None] - every).abs().amax(-1)
            assert ((apart < 1e-12).sum(0) == 1).all(), "each order once"
            assert ((apart < 1e-12).sum(1) == 1).all()
            assert torch.equal(found[row], found[row, torch.arange(permutations) % count])
        else:
            apart = (found[row, :, None] - every).abs().amax(-1)
            assert (apart.amin(-1) < 1e-12).all()


def test_the_first_orders_of_a_short_text_are_not_those_that_leave_its_first_word():
    weights = torch.tensor([[0.1, 0.2, 0.3, 0.4]], dtype=torch.float64)
    first = torch.tensor([[[1.0], [0.0], [0.0], [0.0]]], dtype=torch.float64)
    found = permuted_logits(
        weights,
        torch.ones(1, 4, dtype=torch.bool),
        first,
        torch.zeros(1).double(),
        24,
        np.random.default_rng(0),
    )
    assert len(found[0, :5].unique()) > 2


def test_short_texts_do_not_change_what_is_drawn_for_long_ones():
    attention, mask, readout, bias = by_mask([2, 6, 3, 6])
    found = permuted_logits(attention, mask, readout, bias, 30, np.random.default_rng(7))
    rng = np.random.default_rng(7)
    for rows in ([0], [2], [1, 3]):
        weights = torch.stack([attention[row][mask[row]] for row in rows]).numpy()
        shuffled = torch.from_numpy(_shuffled(weights, 30, rng))
    for row, drawn in zip(rows, shuffled, strict=True):
        torch.testing.assert_close(found[row], drawn @ readout[row][mask[row]] + bias)


@pytest.mark.parametrize("size", [20, 21, 3000])
def test_the_orders_of_a_long_text_are_more_than_can_be_asked_for(size):
    assert orders(torch.tensor([[size, 3]]))[0] > 10**18


def test_rows_of_the_same_length_are_shuffled_independently():
    attention, mask, readout, bias = by_mask([6, 6])
    twins = [x[:1].expand_as(x) for x in (attention, mask, readout)]
    first, second = permuted_logits(*twins, bias, 50, np.random.default_rng(0))
    assert not torch.isclose(first, second).all()
    assert abs(np.corrcoef(first[:, 0], second[:, 0])[0, 1]) < 0.5


def test_sampled_moments_approach_the_closed_form():
    rows = by_mask([2, 3, 5, 8, 8, 1], classes=3, side="right")
    mean, variance = permutation_moments(*rows)
    draws = 20_000
    sampled = permuted_logits(*rows, draws, np.random.default_rng(3))
    error = (sampled.mean(1) - mean).abs()
    assert (error <= 5 * (variance / draws).sqrt() + 1e-12).all()
    torch.testing.assert_close(sampled.var(1), variance, rtol=0.05, atol=1e-12)


def test_the_seed_decides_the_samples():
    rows = by_mask([4, 7, 2])
    same = [permuted_logits(*rows, 9, np.random.default_rng(5)) for _ in range(2)]
    other = permuted_logits(*rows, 9, np.random.default_rng(6))
    assert torch.equal(*same)
    assert not torch.allclose(same[0], other)


def test_a_length_that_needs_more_blocks_than_one_is_shuffled_whole():
    # 60 rows of 100 × 30 entries span two blocks; each row keeps its own weights.
    attention, mask, _, _ = by_mask([30] * 60, positions=30)
    squares = torch.ones(60, 30, 1, dtype=torch.float64)
    scaled = attention * torch.arange(1, 61)[:, None]
    total = permuted_logits(
        scaled, mask, squares, torch.zeros(1, dtype=torch.float64), 100, np.random.default_rng(0)
    )
    torch.testing.assert_close(
        total[..., 0], torch.arange(1.0, 61.0).double()[:, None].expand(60, 100)
    )


def test_no_permutations_is_an_error():
    with refused("1 permutation", "0", kind=ValueError):
        permuted_logits(*by_mask([3]), 0, np.random.default_rng(0))
