"""The bounds of many classes: what is left out or computed for many rows at once is what the slow way gives."""

from itertools import combinations

import pytest
import torch
from making import random_rows

from heedmap.counterfactual import linearised_problem
from heedmap.counterfactual.bounds import _slab_bound, bound_adversary
from heedmap.counterfactual.exact import most_different
from heedmap.counterfactual.null_space_walk import _base, _independent
from heedmap.counterfactual.tolerance import Instances
from heedmap.measures import LN2


@pytest.mark.parametrize("classes", [3, 7, 12])
@pytest.mark.parametrize("epsilon", [0.0, 0.01, 0.2])
def test_pairs_of_classes_that_are_left_out_do_not_bound(classes, epsilon):
    instances = Instances.from_readout(*random_rows(12, 15, classes, scale=2.0), epsilon)
    least = torch.full((12,), LN2, dtype=torch.float64)
    for c, rival in combinations(range(classes), 2):
        optimum = most_different(
            instances.attention,
            instances.logits[..., c] - instances.logits[..., rival],
            torch.zeros(12, dtype=torch.float64),
            instances.mask,
            instances.margin(c, rival),
            -instances.margin(rival, c),
        )
        least = torch.minimum(least, optimum.jsd)
    assert torch.equal(_slab_bound(instances), least)


@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize(("classes", "positions"), [(3, 4), (5, 12), (10, 30)])
def test_the_base_of_a_walk_is_the_one_of_gram_schmidt(repeated, classes, positions):
    generator = torch.Generator().manual_seed(0)
    columns = torch.randn(20, classes, positions, generator=generator, dtype=torch.float64)
    order = torch.rand(20, positions, generator=generator, dtype=torch.float64)
    order[:, ::3] = 0.0  # positions without weight tie
    real = torch.rand(20, positions, generator=generator) < 0.9
    real[0, 2:] = False  # fewer positions than classes
    if repeated:
        columns[::2, :, 1] = columns[::2, :, 0]
        columns[::2, :, 3] = 2 * columns[::2, :, 2] - columns[::2, :, 0]
    base, exists = _base(order, real, columns)
    slow_base, slow_exists = _independent(order, real, columns)
    assert torch.equal(exists, slow_exists)
    assert torch.equal(base[exists], slow_base[exists])
    assert exists.all(1).any()
    assert not exists.all(1).all()


def test_lanes_that_are_done_do_not_change_the_others(monkeypatch):
    rows = random_rows(12, 9, 5, scale=2.0)
    found = bound_adversary(*rows, 0.01)
    monkeypatch.setattr(linearised_problem, "FEWER", 0)  # all lanes are kept to the end
    slow = bound_adversary(*rows, 0.01)
    for name in ("lower", "upper", "attention"):
        assert torch.equal(getattr(found, name), getattr(slow, name))
