import math

import pytest
import torch

from heedmap.measures import (
    LN2,
    change_in_prediction,
    drop_in_probability,
    entropy,
    jensen_shannon,
    levelled,
    log_odds,
    resolution,
    top_match,
    total_variation,
)


def test_total_variation_of_disjoint_distributions_is_one():
    p, q = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])
    assert total_variation(p, q) == 1
    assert total_variation(p, p) == 0


def test_jensen_shannon_is_ln_2_for_disjoint_and_0_for_equal_distributions():
    p = torch.tensor([0.5, 0.5, 0.0, 0.0], dtype=torch.float64)
    assert jensen_shannon(p, p.flip(0)).item() == pytest.approx(LN2, abs=1e-15)
    assert jensen_shannon(p, p) == 0


def test_jensen_shannon_equals_the_sum_written_out():
    p, q = torch.tensor([[0.7, 0.2, 0.1]]).double(), torch.tensor([[0.1, 0.1, 0.8]]).double()
    expected = 0.0
    for a, b in zip(p[0].tolist(), q[0].tolist(), strict=True):
        m = (a + b) / 2
        expected += 0.5 * a * math.log(a / m) + 0.5 * b * math.log(b / m)
    assert jensen_shannon(p, q).item() == pytest.approx(expected, abs=1e-14)


def test_entropy_of_uniform_weights_is_ln_n_and_of_a_single_one_0():
    assert entropy(torch.full((5,), 0.2)).item() == pytest.approx(math.log(5), abs=1e-6)
    assert entropy(torch.tensor([0.0, 1.0])) == 0


def test_log_odds_of_two_classes_is_the_difference_of_logits():
    logits = torch.tensor([[0.0, 1.7], [2.0, -1.0]])
    assert torch.allclose(log_odds(logits, 1), torch.tensor([1.7, -3.0]))
    assert torch.allclose(log_odds(logits, torch.tensor([1, 0])), torch.tensor([1.7, 3.0]))


def test_log_odds_has_the_gradient_of_the_probability_up_to_p_times_1_minus_p():
    logits = torch.randn(4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    logits.requires_grad_()
    p = logits.softmax(-1)[2]
    (of_p,) = torch.autograd.grad(p, logits)
    (of_odds,) = torch.autograd.grad(log_odds(logits, 2), logits)
    assert torch.allclose(of_p, of_odds * (p * (1 - p)).detach())


def test_log_odds_keeps_its_gradient_where_the_probability_rounds_to_one():
    logits = torch.tensor([0.0, 40.0], requires_grad=True)
    assert logits.softmax(-1)[1] == 1.0
    (gradient,) = torch.autograd.grad(log_odds(logits, 1), logits)
    assert gradient.tolist() == [-1.0, 1.0]


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_change_in_prediction_is_the_total_variation_of_the_softmaxes(classes):
    before, after = torch.randn(2, 50, classes, dtype=torch.float64)
    expected = total_variation(before.softmax(-1), after.softmax(-1))
    assert torch.allclose(change_in_prediction(before, after), expected, atol=1e-12)
    assert not change_in_prediction(before, before).signbit().any()


def test_change_in_prediction_tells_saturated_predictions_apart():
    before = torch.tensor([0.0, 60.0], dtype=torch.float64)
    one = change_in_prediction(before, torch.tensor([0.0, 61.0], dtype=torch.float64))
    two = change_in_prediction(before, torch.tensor([0.0, 62.0], dtype=torch.float64))
    assert 0 < one < two
    assert one.item() == pytest.approx(math.exp(-60) - math.exp(-61), rel=1e-6)


def spread_predictions(classes):
    """Logits of all sizes, saturated ones among them."""
    generator = torch.Generator().manual_seed(classes)
    scale = torch.logspace(-1, 2, 200).unsqueeze(1)
    return scale * torch.randn(200, classes, generator=generator).double()


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16, torch.float16])
def test_logits_that_are_rounded_change_by_less_than_the_resolution(classes, precision):
    before = spread_predictions(classes)
    rounded = before.to(precision).double()
    noise = resolution(before, rounded.unsqueeze(1), precision)
    change = change_in_prediction(before, rounded)
    assert (change <= noise).all()
    assert (change > noise / 100).double().mean() > 0.3  # it is not far from what rounding does


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_no_rounding_of_each_logit_exceeds_the_resolution(classes):
    before = spread_predictions(classes).repeat(50, 1)
    sides = torch.randint(0, 2, before.shape, generator=torch.Generator().manual_seed(1)) * 2 - 1
    off = 4 * torch.finfo(torch.float32).eps * before.abs().amax(-1, keepdim=True).clamp(min=1)
    after = before + sides * off
    noise = resolution(before, before.unsqueeze(1), torch.float32)
    ratio = change_in_prediction(before, after) / noise
    assert ratio.max() <= 1 + 1e-4
    assert ratio.max() > 0.95  # and some reach it


def test_the_resolution_is_that_of_the_largest_logit_of_a_possible_class():
    before = torch.tensor([[0.0, 0.5], [0.0, 0.5]])
    after = torch.tensor([[[0.0, 0.4], [0.0, 0.1]], [[0.0, -8.0], [torch.nan, torch.nan]]])
    small, large = resolution(before, after, torch.float32).tolist()
    assert large == pytest.approx(8 * small)
    ruled_out = torch.tensor([[0.0, 0.5, -1e30], [0.0, 0.5, -torch.inf]])
    assert resolution(ruled_out, ruled_out.unsqueeze(1), torch.float32) == pytest.approx(
        [small, small]
    )


def test_without_any_deletion_the_resolution_is_that_of_the_prediction():
    before = torch.tensor([0.0, 2.0])
    p = before.double().softmax(-1)
    expected = 8 * 2**-23 * 2 * p.prod().item()
    assert resolution(before, before[:0].view(0, 2), torch.float32).item() == pytest.approx(
        expected
    )


def test_entropy_is_taken_of_each_row():
    rows = torch.tensor([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])
    assert entropy(rows).tolist() == pytest.approx([math.log(2), 0])


def test_distributions_that_differ_by_rounding_have_no_negative_divergence():
    generator = torch.Generator().manual_seed(0)
    p = torch.randn(500, 9, generator=generator).softmax(-1)
    q = p * (1 + 1e-7 * torch.randn(500, 9, generator=generator))
    halves = 0.5 * (torch.xlogy(p, p / (0.5 * (p + q))) + torch.xlogy(q, q / (0.5 * (p + q))))
    assert (halves.sum(-1) < 0).any()  # written out, it falls below 0
    assert (jensen_shannon(p, q) >= 0).all()


def test_a_change_of_two_classes_far_below_rounding_has_its_digits():
    """To first order it is p(1 − p) times the change of the log-odds; a difference of softmaxes loses it."""
    before = torch.tensor([0.0, 0.3], dtype=torch.float64)
    after = before + torch.tensor([0.0, 1e-13], dtype=torch.float64)
    p = before.softmax(-1)
    expected = p.prod() * (after - before)[1]
    assert change_in_prediction(before, after).item() == pytest.approx(
        expected.item(), rel=1e-9, abs=0
    )


def test_one_output_is_a_number_and_no_probability():
    before, after = torch.tensor([[0.5], [2.0]]), torch.tensor([[0.75], [-4.0]])
    assert change_in_prediction(before, after).tolist() == [0.25, 6.0]


def test_the_resolution_counts_a_class_as_possible_by_its_probability_and_not_by_its_logit():
    """All logits far below 0 are still a choice between two classes, and are rounded coarsely."""
    low = torch.tensor([[-1000.0, -999.5]])
    near = torch.tensor([[0.0, 0.5]])
    far, close = (resolution(x, x.unsqueeze(1), torch.float32) for x in (low, near))
    assert far.item() == pytest.approx(1000 * close.item())


@pytest.mark.parametrize("classes", [2, 3])
def test_a_drop_is_positive_where_the_class_loses_probability(classes):
    before = torch.zeros(2, classes, dtype=torch.float64)
    after = before.clone()
    after[0, 1], after[1, 1] = -1.0, 1.0
    drop = drop_in_probability(before, after, torch.tensor([1, 1]))
    expected = before.softmax(-1)[:, 1] - after.softmax(-1)[:, 1]
    assert drop.tolist() == pytest.approx(expected.tolist(), rel=1e-12)
    assert drop[0] > 0 > drop[1]


def brute_force_levels(values, rounding):
    """Link any two values that rounding can make of one, and give each linked set its largest."""
    groups = list(range(len(values)))
    for i, a in enumerate(values):
        for j, b in enumerate(values):
            if a == b or abs(a - b) <= rounding:
                old, new = groups[i], groups[j]
                groups = [new if group == old else group for group in groups]
    members = {g: [v for v, of in zip(values, groups, strict=True) if of == g] for g in groups}
    return [v if math.isnan(v) else max(members[g]) for v, g in zip(values, groups, strict=True)]


@pytest.mark.parametrize("size", [0, 1, 2, 3, 17])
def test_values_that_a_chain_of_rounding_links_are_equal(size):
    generator = torch.Generator().manual_seed(size)
    values = torch.rand(40, size, dtype=torch.float64, generator=generator) * 2 - 1
    values[:, : size // 2] = values[:, size - size // 2 :].flip(-1) + 1e-9
    values[torch.rand(values.shape, generator=generator) < 0.1] = torch.nan
    mask = torch.rand(values.shape, generator=generator) < 0.8
    rounding = torch.full((40, 1), 0.05, dtype=torch.float64)
    levels = levelled(values, mask, rounding)
    for row, level, real in zip(values, levels, mask, strict=True):
        torch.testing.assert_close(level[~real], row[~real], rtol=0, atol=0, equal_nan=True)
        expected = brute_force_levels(row[real].tolist(), 0.05)
        assert level[real].tolist() == pytest.approx(expected, nan_ok=True, abs=0)


def test_small_weights_keep_their_order_and_errors_of_large_scores_do_not_count():
    mask = torch.ones(4, dtype=torch.bool)
    small = torch.tensor([0.9, 3e-9, 2e-9, 0.0])
    assert levelled(small, mask).equal(small)
    scores = torch.tensor([0.0, -12.0, -12.0, -13.0])
    noisy = scores * torch.tensor([1.0, 1.0, 1 + 2**-23, 1.0])  # a score's last bit
    weights = noisy.softmax(-1)
    assert weights[1] != weights[2]
    level = levelled(weights, mask)
    assert level[1] == level[2]
    assert level[3] < level[2] < level[0]


def test_each_value_may_have_a_rounding_of_its_own():
    mask = torch.ones(4, dtype=torch.bool)
    values = torch.tensor([1.0, 0.9, 0.2, 0.1], dtype=torch.float64)
    rounding = torch.tensor([0.2, 0.0, 0.0, 0.0], dtype=torch.float64)
    assert levelled(values, mask, rounding).tolist() == [1.0, 1.0, 0.2, 0.1]
    assert levelled(values, mask, rounding.flip(0)).tolist() == [1.0, 0.9, 0.2, 0.2]


def test_a_map_is_levelled_where_rounding_can_make_its_differences_and_nowhere_else():
    """Four ε of single precision: a spread of 4.8e-7 of the largest weight."""
    spread = 4 * torch.finfo(torch.float32).eps
    mask = torch.tensor([[True, True, True, False]]).expand(4, -1)
    heat = torch.tensor([[0.3, 0.3, 0.3, 0.0]], dtype=torch.float64).repeat(4, 1)
    heat[0, 1] += 0.3 * 0.9 * spread
    heat[1, 1] += 0.3 * 1.1 * spread
    heat[2, 1] = 0.1
    level = levelled(heat, mask)
    assert level[0].tolist() == [heat[0, 1], heat[0, 1], heat[0, 1], 0.0]
    assert torch.equal(level[1:], heat[1:])


def matched(u, v, share=0.05):
    """A(u, v) and its mean over all orders of v, by the definition."""
    k = math.ceil(round(share * len(u), 6))
    best = u.index(max(u))
    match = float(sum(x > v[best] for x in v) < k)
    return match, sum(sum(x > y for x in v) < k for y in v) / len(v)


@pytest.mark.parametrize("size", [1, 2, 3, 19, 20, 21, 40, 41])
@pytest.mark.parametrize("ties", [False, True])
def test_the_top_match_is_its_definition(size, ties):
    generator = torch.Generator().manual_seed(size)
    rows = torch.randn(30, 2, size, generator=generator, dtype=torch.float64)
    rows = rows.round() if ties else rows
    mask = torch.ones(30, size, dtype=torch.bool)
    found, chance = top_match(rows[:, 0], rows[:, 1], mask)
    for i, (u, v) in enumerate(rows.tolist()):
        assert (found[i].item(), chance[i].item()) == pytest.approx(matched(u, v))


def test_padding_is_no_part_of_a_top_match():
    u, v = torch.tensor([[1.0, 3.0, 9.0]]), torch.tensor([[5.0, 6.0, 9.0]])
    found, chance = top_match(u, v, torch.tensor([[True, True, False]]))
    assert (found.item(), chance.item()) == (1, 0.5)


def test_a_shuffled_map_reaches_the_chance_of_a_top_match():
    generator = torch.Generator().manual_seed(0)
    u, v = torch.rand(1, 33, generator=generator), torch.rand(1, 33, generator=generator)
    orders = torch.rand(20_000, 33, generator=generator).argsort(-1)
    mask = torch.ones(1, 33, dtype=torch.bool)
    shuffled = top_match(u.expand(20_000, -1), v[0][orders], mask)[0].mean()
    assert shuffled.item() == pytest.approx(top_match(u, v, mask)[1].item(), abs=0.006)


def test_a_map_matches_itself_and_the_match_is_not_symmetric():
    u = torch.tensor([[0.1, 0.9, 0.2, 0.3]])
    v = torch.tensor([[0.5, 0.5, 0.1, 0.1]])
    mask = torch.ones(1, 4, dtype=torch.bool)
    assert top_match(u, u, mask)[0] == 1
    assert top_match(u, v, mask)[0] == 1
    assert top_match(v, u, mask)[0] == 0


def test_without_tokens_or_with_a_number_missing_there_is_no_top_match():
    u = torch.tensor([[1.0, 2.0], [torch.nan, 2.0], [1.0, 2.0]])
    mask = torch.tensor([[False, False], [True, True], [True, True]])
    found, chance = top_match(u, torch.ones(3, 2), mask)
    assert found.isnan().tolist() == chance.isnan().tolist() == [True, True, False]
