import numpy as np
import pytest
import torch

from heedmap.counterfactual.rows import permuted, uniform


def random_weights(shape=(3, 2, 7), seed=0):
    """Rows whose masses differ, on supports of any size; the first row has none at all."""
    generator = torch.Generator().manual_seed(seed)
    support = torch.rand(shape, generator=generator) < 0.6
    support[0, 0] = False
    support[1, 0] = torch.arange(shape[-1]) == 3
    scores = torch.randn(shape, generator=generator, dtype=torch.float64)
    attention = scores.masked_fill(~support, -torch.inf).softmax(-1).nan_to_num()
    return attention * torch.rand(*shape[:2], 1, generator=generator, dtype=torch.float64), support


def test_uniform_spreads_each_rows_mass_over_its_support():
    attention, support = random_weights()
    even = uniform(attention, support)
    torch.testing.assert_close(even.sum(-1), attention.sum(-1))
    assert even[~support].eq(0).all()
    for row, where in zip(even.flatten(0, 1), support.flatten(0, 1), strict=True):
        assert len(row[where].unique()) <= 1


def test_uniform_weights_stay():
    support = torch.tensor([[[True, True, False, True, True]]])
    attention = support / 4
    assert torch.equal(uniform(attention, support), attention)


def test_a_permutation_keeps_each_rows_weights_and_support():
    attention, support = random_weights()
    shuffled = torch.cat(list(permuted(attention, support, 20, np.random.default_rng(0))))
    assert shuffled.shape == (20, *attention.shape)
    assert shuffled[:, ~support].eq(0).all()
    assert torch.equal(shuffled.sort(-1).values, attention.sort(-1).values.expand_as(shuffled))
    assert not torch.equal(shuffled[0], shuffled[1])


@pytest.mark.parametrize("elements", [1, 42, 43, 42 * 3, 42 * 20, 1 << 20])
def test_where_blocks_end_does_not_change_what_is_in_them(elements):
    attention, support = random_weights()
    whole = torch.cat(list(permuted(attention, support, 7, np.random.default_rng(4))))
    blocks = list(permuted(attention, support, 7, np.random.default_rng(4), elements=elements))
    assert torch.equal(torch.cat(blocks), whole)
    assert max(map(len, blocks)) == min(7, max(1, elements // 42))


def test_every_permutation_is_equally_likely():
    attention = torch.tensor([[[0.1, 0.0, 0.2, 0.3, 0.4]]])
    support = torch.tensor([[[True, False, True, True, True]]])
    draws = 24_000
    shuffled = torch.cat(list(permuted(attention, support, draws, np.random.default_rng(1))))
    seen, counts = torch.unique(shuffled[:, 0, 0], dim=0, return_counts=True)
    assert len(seen) == 24
    expected = draws / 24
    # χ² with 23 degrees of freedom exceeds 57 once in ten thousand times.
    assert ((counts - expected) ** 2 / expected).sum() < 57


def test_rows_are_shuffled_independently():
    attention = torch.arange(1.0, 7.0).div(21).expand(2, 2, 6)
    support = torch.ones(2, 2, 6, dtype=torch.bool)
    shuffled = torch.cat(list(permuted(attention, support, 400, np.random.default_rng(2))))
    first = shuffled[..., 0].flatten(1)
    correlation = torch.corrcoef(first.T) - torch.eye(4)
    assert correlation.abs().max() < 0.25


def test_the_seed_decides_the_permutations():
    rows = random_weights()
    drawn = [torch.cat(list(permuted(*rows, 5, np.random.default_rng(s)))) for s in (3, 3, 4)]
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


def test_no_permutations_is_an_error():
    with pytest.raises(ValueError, match="at least 1 permutation, got 0"):
        permuted(*random_weights(), 0, np.random.default_rng(0))
