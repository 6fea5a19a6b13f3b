"""A number within a tolerance, read as two classes: the same set of weights, and nearly the exact optimum."""

import pytest
import torch

from heedmap.counterfactual.constrained import search
from heedmap.counterfactual.exact import most_different
from heedmap.counterfactual.number_tolerance import WITHIN, as_two_classes, change_of_number
from heedmap.measures import change_in_prediction, jensen_shannon


@pytest.mark.parametrize("tolerance", [1e-3, 0.02, 5.0])
def test_two_classes_are_the_same_exactly_where_the_number_is_within_the_tolerance(tolerance):
    generator = torch.Generator().manual_seed(0)
    own = 10 * torch.randn(1, 1, generator=generator, dtype=torch.float64)
    off = tolerance * torch.linspace(-2, 2, 400, dtype=torch.float64)
    original = as_two_classes(own, own, tolerance).expand(400, 2)
    tvd = change_in_prediction(
        original, as_two_classes(own + off[:, None, None], own, tolerance)[:, 0]
    )
    assert (tvd <= WITHIN).equal(off.abs() <= tolerance)
    assert torch.allclose(change_of_number(tvd, tolerance), off.abs(), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("size", [1, 2, 3, 9])
def test_a_search_for_a_number_comes_near_the_exact_optimum_and_never_above(size):
    generator = torch.Generator().manual_seed(size)
    attention = (2 * torch.randn(6, size, generator=generator)).double().softmax(-1)
    said = torch.randn(6, size, generator=generator).double()
    mask = torch.ones(6, size, dtype=torch.bool)
    own = (attention * said).sum(-1, keepdim=True)
    tolerance = 0.05

    def predict(weights):
        outputs = torch.einsum("sbkt,bt->sb", weights, said).unsqueeze(-1)
        return as_two_classes(outputs, own, tolerance)

    found = search(
        predict,
        lambda weights: weights.squeeze(2),
        attention.unsqueeze(1),
        mask.unsqueeze(1),
        mask,
        as_two_classes(own, own, tolerance),
        epsilon=WITHIN,
        steps=40,
        generators=[torch.Generator().manual_seed(row) for row in range(6)],
    )
    weights = found.attention[:, 0]
    off = ((weights * said).sum(-1, keepdim=True) - own).abs()[:, 0]
    assert (off <= tolerance * (1 + 1e-6)).all()
    assert torch.allclose(change_of_number(found.tvd, tolerance), off, rtol=1e-5, atol=1e-9)
    lower, upper = own[:, 0] - tolerance, own[:, 0] + tolerance
    best = most_different(attention, said, torch.zeros(6), mask, lower, upper).jsd
    assert (found.jsd <= best + 1e-9).all()
    assert found.jsd.sum() >= 0.9 * best.sum()
    assert torch.allclose(found.jsd, jensen_shannon(weights, attention), atol=1e-6)
