import numpy as np
import pytest
import torch

from heedmap.importance.effective import (
    effective_attention,
    effective_share,
    freedom,
    narrow,
    same_prediction_dimension,
)


def normal(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def all_real(*shape):
    return torch.ones(*shape, dtype=torch.bool)


def of_rank(rank, n, width, seed=0):
    return normal(n, rank, seed=seed) @ normal(rank, width, seed=seed + 100)


def test_two_tokens_with_the_same_value_share_their_attention():
    attention = torch.tensor([[[0.9, 0.1], [0.5, 0.5]]])
    same = torch.tensor([[[2.0, 1.0], [2.0, 1.0]]])
    effective = effective_attention(attention, same, all_real(1, 2))
    assert torch.allclose(effective, torch.full((1, 2, 2), 0.5, dtype=torch.float64), atol=1e-7)
    share = effective_share(attention, effective)[0]
    assert share.tolist() == pytest.approx([(0.5 / 0.82) ** 0.5, 1], abs=1e-6)


def test_one_token_is_identifiable_unless_its_value_is_zero():
    one = torch.ones(1, 1, 1)
    assert effective_attention(one, torch.full((1, 1, 3), 2.0), all_real(1, 1)).item() == 1
    assert effective_attention(one, torch.zeros(1, 1, 3), all_real(1, 1)).item() == 0


def test_effective_attention_is_attention_less_its_projection_on_the_null_space():
    attention, values = normal(7, 12).softmax(-1), of_rank(4, 12, 9)
    effective = effective_attention(attention[None], values[None], all_real(1, 12))[0]
    left, _, _ = np.linalg.svd(values.numpy())
    null = left[:, 4:]
    expected = attention.numpy() - attention.numpy() @ null @ null.T
    assert np.allclose(effective, expected, atol=1e-12)


def test_effective_attention_puts_out_the_same_and_is_shorter():
    attention, values = normal(2, 3, 5, 20).softmax(-1), normal(2, 3, 20, 6)
    effective = effective_attention(attention, values, all_real(2, 3, 20))
    assert torch.allclose(effective @ values, attention @ values, atol=1e-12)
    share = effective_share(attention, effective)
    assert (share > 0).all()
    assert (share < 1).all()
    again = effective_attention(effective, values, all_real(2, 3, 20))
    assert torch.allclose(again, effective, atol=1e-12)


def test_attention_over_fewer_tokens_than_dimensions_is_identifiable():
    attention, values = normal(1, 5, 5).softmax(-1), normal(1, 5, 8)
    effective = effective_attention(attention, values, all_real(1, 5))
    assert torch.equal(effective, attention.double())
    assert torch.equal(effective_share(attention, effective), torch.ones(1, 5).double())


def test_each_text_of_a_batch_has_its_own_rank():
    values = torch.stack([of_rank(rank, 10, 8, seed=rank) for rank in (1, 3, 8)])
    attention = normal(3, 4, 10).softmax(-1)
    together = effective_attention(attention, values, all_real(3, 10))
    assert freedom(values, all_real(3, 10)).rank.tolist() == [1, 3, 8]
    for b in range(3):
        one = slice(b, b + 1)
        alone = effective_attention(attention[one], values[one], all_real(1, 10))
        assert torch.allclose(together[one], alone, atol=1e-12)


@pytest.mark.parametrize("left", [False, True])
def test_padding_on_either_side_changes_nothing_and_gets_zero(left):
    attention, values = normal(2, 3, 9).softmax(-1), normal(2, 9, 4)
    sides = (3, 0) if left else (0, 3)
    mask = torch.nn.functional.pad(all_real(2, 9), sides)
    wide = torch.nn.functional.pad(attention, sides, value=0.1)
    long = torch.nn.functional.pad(values, (0, 0, *sides), value=torch.nan)
    effective = effective_attention(wide, long, mask)
    alone = effective_attention(attention, values, all_real(2, 9))
    assert torch.allclose(effective, torch.nn.functional.pad(alone, sides), atol=1e-12)
    found = freedom(long, mask)
    assert found.tokens.tolist() == [9, 9]
    assert found.rank.tolist() == [4, 4]
    assert found.rank_with_ones.tolist() == [5, 5]


def test_a_row_of_zeros_has_nothing_to_lose():
    attention = torch.zeros(1, 1, 3)
    effective = effective_attention(attention, normal(1, 3, 1), all_real(1, 3))
    assert effective_share(attention, effective).item() == 1


def test_a_row_in_the_null_space_has_no_effect():
    attention = torch.tensor([[[1.0, -1.0]]])
    effective = effective_attention(attention, torch.ones(1, 2, 1), all_real(1, 2))
    assert effective_share(attention, effective).item() == pytest.approx(0, abs=1e-12)


def test_twenty_tokens_and_six_dimensions_leave_fourteen_thirteen_on_the_simplex():
    values = narrow(normal(1, 20, 6), normal(6, 30))
    found = freedom(values, all_real(1, 20))
    assert found.dimension.tolist() == [14]
    assert found.dimension_on_simplex.tolist() == [13]


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_ranks_do_not_depend_on_the_scale_of_the_values(scale):
    values = torch.stack([of_rank(3, 8, 5), torch.ones(8, 5).double(), torch.zeros(8, 5).double()])
    found = freedom(scale * values, all_real(3, 8))
    assert found.rank.tolist() == [3, 1, 0]
    assert found.rank_with_ones.tolist() == [4, 1, 1]  # the ones may be among the columns already


@pytest.mark.parametrize("n", [0, 1, 2])
def test_no_more_is_fixed_than_there_are_tokens(n):
    mask = torch.arange(3).unsqueeze(0) < n
    found = freedom(normal(1, 3, 4), mask)
    assert found.rank.item() == found.rank_with_ones.item() == found.tokens.item() == n
    assert found.dimension.item() == found.dimension_on_simplex.item() == 0


def test_ranks_are_numpys():
    for seed in range(20):
        rank, n, width = np.random.default_rng(seed).integers(1, 9, 3).tolist()
        values = of_rank(rank, n, width, seed)
        ones = np.ones((n, 1))
        found = freedom(values[None], all_real(1, n))
        assert found.rank.item() == np.linalg.matrix_rank(values.numpy())
        with_ones = np.linalg.matrix_rank(np.hstack([values.numpy(), ones]))
        assert found.rank_with_ones.item() == with_ones


def test_a_narrow_matrix_stands_for_values_through_the_output_projection():
    values, output = normal(2, 3, 12, 4), normal(3, 4, 10, seed=1)
    wide, thin = values @ output, narrow(values, output)
    assert thin.shape == (2, 3, 12, 4)
    assert torch.allclose(torch.linalg.svdvals(thin), torch.linalg.svdvals(wide)[..., :4])
    attention, mask = normal(2, 3, 5, 12).softmax(-1), all_real(2, 3, 12)
    expected = effective_attention(attention, wide, mask)
    assert torch.allclose(effective_attention(attention, thin, mask), expected, atol=1e-12)


def test_a_product_in_single_precision_does_not_hide_the_rank_from_a_narrow_matrix():
    values, output = normal(1, 20, 6).float(), normal(6, 30, seed=1).float()
    product = (values @ output).double()
    assert freedom(product, all_real(1, 20)).rank.item() > 6
    assert freedom(narrow(values, output), all_real(1, 20)).rank.item() == 6
    assert freedom(product.float(), all_real(1, 20)).rank.item() == 6  # the cut-off is float32's


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_the_same_prediction_leaves_tokens_less_classes(classes):
    relevance = normal(6, 8, classes)
    lengths = torch.tensor([1, 2, 3, 5, 7, 8])
    mask = torch.arange(8) < lengths[:, None]
    expected = [max(0, n - classes) for n in lengths.tolist()]
    assert same_prediction_dimension(relevance, mask).tolist() == expected
    assert same_prediction_dimension(relevance.float(), mask).tolist() == expected


def test_tokens_that_all_say_the_same_leave_the_whole_simplex():
    relevance = normal(1, 1, 3).expand(1, 6, 3)
    assert same_prediction_dimension(relevance, all_real(1, 6)).tolist() == [5]
    assert same_prediction_dimension(relevance[..., :1], all_real(1, 6)).tolist() == [5]
    # A number added to all classes alike moves no prediction.
    shifted = relevance + normal(1, 6, 1)
    assert same_prediction_dimension(shifted, all_real(1, 6)).tolist() == [5]


def test_a_move_in_the_counted_dimensions_keeps_the_prediction():
    relevance, weights = normal(7, 3), normal(7, seed=2).softmax(0)
    differences = relevance[:, 1:] - relevance[:, :1]
    fixed = torch.cat([differences, torch.ones(7, 1)], 1)
    left, _, _ = torch.linalg.svd(fixed)
    dimension = same_prediction_dimension(relevance[None], all_real(1, 7)).item()
    moves = left[:, 7 - dimension :]
    other = weights + 1e-3 * moves @ normal(dimension, seed=3)
    assert (other > 0).all()
    assert other.sum().item() == pytest.approx(1)
    before, after = (w @ relevance for w in (weights, other))
    assert torch.allclose(before.softmax(0), after.softmax(0), atol=1e-12)
