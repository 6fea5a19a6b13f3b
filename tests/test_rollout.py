import pytest
import torch
from oracles import rollout_rows
from wording import refused

from heedmap.importance.rollout import extend, mixed


def random_layers(layers, batch, n, seed=0):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(layers, batch, n, n, generator=generator, dtype=torch.float64)
    return (2 * scores).softmax(-1)


def all_real(batch, n):
    return torch.ones(batch, n, dtype=torch.bool)


def test_attention_and_residual_have_equal_parts_where_rows_sum_to_one():
    layers = random_layers(3, 2, 5)
    expected = (layers + torch.eye(5)) / 2
    assert torch.allclose(mixed(layers, all_real(2, 5)), expected, atol=1e-15)


def test_rows_that_lose_mass_to_padding_are_normalised_over_real_positions():
    layer = torch.tensor([[[0.2, 0.3, 0.5], [0.6, 0.4, 0.0], [0.1, 0.1, 0.8]]])
    mask = torch.tensor([[True, True, False]])
    expected = [[1.2 / 1.5, 0.3 / 1.5, 0], [0.3, 0.7, 0], [0, 0, 1]]
    assert torch.allclose(mixed(layer, mask)[0], torch.tensor(expected))


def test_rows_are_distributions_even_where_padding_is_not_a_number():
    layers = random_layers(2, 3, 6)
    mask = torch.arange(6) < torch.tensor([1, 4, 6])[:, None]
    layers = layers.masked_fill(~mask[None, :, :, None], torch.nan)
    result = mixed(layers, mask)
    assert torch.allclose(result.sum(-1), torch.ones(2, 3, 6, dtype=torch.float64))
    assert (result.masked_select(mask[:, :, None] & ~mask[:, None]) == 0).all()
    assert (result.masked_select(~mask[:, :, None] & mask[:, None]) == 0).all()


def test_two_layers_of_two_tokens_by_hand():
    # From below: the second token reads the first; then the first reads the second.
    below = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    above = torch.tensor([[0.0, 1.0], [0.0, 1.0]])
    layers = torch.stack([below, above]).unsqueeze(1)
    # First at the top: ½ first + ½ second, and the second was ½ first + ½ second.
    rolled = rollout_rows(layers, all_real(1, 2), torch.tensor([[1.0, 0.0]]))
    assert rolled.tolist() == [[0.75, 0.25]]
    assert rollout_rows(layers, all_real(1, 2), torch.tensor([[0.0, 1.0]])).tolist() == [[0.5, 0.5]]


def test_one_token_rolls_out_to_itself_and_no_layers_to_the_start():
    assert rollout_rows(torch.ones(4, 1, 1, 1), all_real(1, 1), torch.ones(1, 1)).tolist() == [[1]]
    start = torch.tensor([[0.25, 0.75]])
    assert rollout_rows(torch.ones(0, 1, 2, 2), all_real(1, 2), start).tolist() == start.tolist()


def test_rows_followed_down_are_rows_of_the_matrix_built_from_below():
    layers = random_layers(4, 3, 6)
    mask = torch.arange(6) < torch.tensor([2, 5, 6])[:, None]
    rolled = torch.eye(6, dtype=torch.float64).expand(3, 6, 6)
    for layer in layers:
        rolled = extend(rolled, layer, mask)
    slow = torch.eye(6, dtype=torch.float64)
    for layer in mixed(layers, mask)[:, 2]:
        slow = layer @ slow
    assert torch.allclose(rolled[2], slow, atol=1e-14)
    for i in range(2):
        start = torch.zeros(3, 6)
        start[:, i] = 1
        assert torch.allclose(rollout_rows(layers, mask, start), rolled[:, i], atol=1e-14)
    uniform = mask / mask.sum(1, keepdim=True)
    expected = torch.einsum("bi,bij->bj", uniform.double(), rolled)
    assert torch.allclose(rollout_rows(layers, mask, uniform), expected, atol=1e-14)


def test_a_rolled_out_distribution_stays_one_and_off_the_padding():
    layers = random_layers(5, 2, 7).float()
    mask = torch.arange(7) < torch.tensor([3, 7])[:, None]
    rolled = rollout_rows(layers, mask, mask / mask.sum(1, keepdim=True))
    assert rolled.sum(1).tolist() == pytest.approx([1, 1], abs=1e-6)
    assert (rolled[~mask] == 0).all()
    assert (rolled[mask] > 0).all()


@pytest.mark.parametrize("left", [False, True])
def test_padding_on_either_side_changes_nothing(left):
    layers, mask = random_layers(3, 2, 5), all_real(2, 5)
    start = torch.eye(5, dtype=torch.float64)[:2]
    alone = rollout_rows(layers, mask, start)
    sides = (2, 0) if left else (0, 2)
    wide = torch.nn.functional.pad(layers, sides * 2, value=torch.nan)
    together = rollout_rows(
        wide, torch.nn.functional.pad(mask, sides), torch.nn.functional.pad(start, sides)
    )
    assert torch.allclose(together, torch.nn.functional.pad(alone, sides), atol=1e-15)


def test_a_start_on_padding_is_refused():
    mask = torch.tensor([[True, False]])
    with refused("padding", kind=ValueError):
        rollout_rows(torch.rand(1, 1, 2, 2), mask, torch.tensor([[0.0, 1.0]]))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_a_layer_of_lower_precision_is_rolled_out_in_that_of_the_rows(dtype):
    layer, mask = random_layers(1, 2, 4)[0].to(dtype), all_real(2, 4)
    assert mixed(layer, mask).dtype == dtype
    rolled = torch.eye(4, dtype=torch.float64).expand(2, 4, 4)
    found = extend(rolled, layer, mask)
    assert torch.equal(found, mixed(layer.double(), mask) @ rolled)
