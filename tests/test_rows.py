import math
from itertools import permutations as every_order
from itertools import product

import numpy as np
import pytest
import torch
from wording import refused

from heedmap.counterfactual.permute import orders
from heedmap.counterfactual.row_weights import permuted, uniform


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


def apart(instances, seed=0):
    """A generator for each."""
    return [np.random.default_rng([seed, i]) for i in range(len(instances))]


def test_uniform_weights_stay():
    support = torch.tensor([[[True, True, False, True, True]]])
    attention = support / 4
    assert torch.equal(uniform(attention, support), attention)


def test_a_permutation_keeps_each_rows_weights_and_support():
    attention, support = random_weights()
    shuffled = torch.cat(list(permuted(attention, support, 20, apart(attention))))
    assert shuffled.shape == (20, *attention.shape)
    assert shuffled[:, ~support].eq(0).all()
    assert torch.equal(shuffled.sort(-1).values, attention.sort(-1).values.expand_as(shuffled))
    assert not torch.equal(shuffled[0], shuffled[1])


@pytest.mark.parametrize("elements", [1, 42, 43, 42 * 3, 42 * 20, 1 << 20])
def test_where_blocks_end_does_not_change_what_is_in_them(elements):
    attention, support = random_weights()
    whole = torch.cat(list(permuted(attention, support, 7, apart(attention, 4))))
    blocks = list(permuted(attention, support, 7, apart(attention, 4), elements=elements))
    assert torch.equal(torch.cat(blocks), whole)
    assert max(map(len, blocks)) == min(7, max(1, elements // 42))


def test_every_permutation_is_equally_likely():
    # Beside a row of eight positions there are too many joint orders to take them all.
    attention = torch.tensor([[[0.1, 0.0, 0.2, 0.3, 0.4, 0.0, 0.0, 0.0]]]).repeat(1, 2, 1)
    support = torch.ones(1, 2, 8, dtype=torch.bool)
    support[0, 0] = attention[0, 0] > 0
    attention[0, 1] = 1 / 8
    draws = 24_000
    shuffled = torch.cat(list(permuted(attention, support, draws, apart(attention, 1))))
    seen, counts = torch.unique(shuffled[:, 0, 0], dim=0, return_counts=True)
    assert len(seen) == 24
    expected = draws / 24
    # χ² with 23 degrees of freedom exceeds 57 once in ten thousand times.
    assert ((counts - expected) ** 2 / expected).sum() < 57
    assert ((counts - expected) ** 2 / expected).sum() > 5


@pytest.mark.parametrize(
    "sizes", [(1,), (2,), (3,), (4,), (0, 3), (2, 2), (3, 2), (3, 3), (1, 1, 4)]
)
def test_the_few_orders_of_short_rows_come_once_each(sizes):
    """In an instance of its own, beside one that is drawn, at any place of the row."""
    generator = np.random.default_rng(len(sizes))
    support = torch.ones(2, len(sizes), 6, dtype=torch.bool)
    support[0] = False
    for k, size in enumerate(sizes):
        support[0, k, generator.permutation(6)[:size]] = True
    weights = torch.rand(support.shape, generator=torch.Generator().manual_seed(1)) * support
    shuffled = torch.cat(list(permuted(weights, support, 100, apart(weights), elements=50)))
    (count, more) = orders(support.sum(-1))
    assert count == math.prod(map(math.factorial, sizes)) <= 100 < more
    expected = {
        tuple(joint)
        for joint in product(
            *(every_order(weights[0, k][support[0, k]].tolist()) for k in range(len(sizes)))
        )
    }
    found = [
        tuple(tuple(row[k][support[0, k]].tolist()) for k in range(len(sizes)))
        for row in shuffled[:, 0]
    ]
    assert set(found[:count]) == expected
    assert len(expected) == count
    assert found == [found[i % count] for i in range(100)]
    assert len(torch.unique(shuffled[:, 1].flatten(1), dim=0)) > 80


def test_as_many_orders_as_are_asked_for_come_once_each():
    """3! = 6; of five shuffles each is drawn."""
    weights = torch.tensor([[[0.2, 0.3, 0.5]]]).expand(30, -1, -1)
    support = torch.ones_like(weights, dtype=torch.bool)
    shuffled = torch.cat(list(permuted(weights, support, 6, apart(weights))))[:, :, 0]
    assert all(len(torch.unique(shuffled[:, i], dim=0)) == 6 for i in range(30))
    drawn = torch.cat(list(permuted(weights, support, 5, apart(weights))))[:, :, 0]
    assert any(len(torch.unique(drawn[:, i], dim=0)) < 5 for i in range(30))


def test_neither_the_batch_nor_its_padding_changes_an_instances_permutations():
    attention, support = random_weights()
    together = torch.cat(list(permuted(attention, support, 9, apart(attention))))
    for i in range(len(attention)):
        for left, right in ((0, 0), (3, 0), (0, 4)):
            alone, real = (
                torch.nn.functional.pad(x[[i]], (left, right)) for x in (attention, support)
            )
            found = torch.cat(list(permuted(alone, real, 9, apart(attention)[i : i + 1])))
            width = attention.shape[-1]
            assert torch.equal(found[:, 0, :, left : left + width], together[:, i])


def test_rows_are_shuffled_independently():
    attention = torch.arange(1.0, 7.0).div(21).expand(2, 2, 6)
    support = torch.ones(2, 2, 6, dtype=torch.bool)
    shuffled = torch.cat(list(permuted(attention, support, 400, apart(attention, 2))))
    first = shuffled[..., 0].flatten(1)
    correlation = torch.corrcoef(first.T) - torch.eye(4)
    assert correlation.abs().max() < 0.25


def test_the_seed_decides_the_permutations():
    rows = random_weights()
    drawn = [torch.cat(list(permuted(*rows, 5, apart(rows[0], s)))) for s in (3, 3, 4)]
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


def test_no_permutations_is_an_error():
    with refused("1 permutation", "0", kind=ValueError):
        permuted(*random_weights(), 0, [])
