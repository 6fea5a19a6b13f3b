import math

import pytest
import torch
from making import random_rows
from wording import refused

from heedmap.counterfactual import jain_wallace_search as search
from heedmap.counterfactual.bounds import bound_adversary
from heedmap.counterfactual.exact import adversary
from heedmap.counterfactual.jain_wallace_autograd import best_of, descend
from heedmap.counterfactual.jain_wallace_search import best_feasible, search_adversaries
from heedmap.measures import jensen_shannon, total_variation


def literal_loss(logits, attention, readout, bias, mask, penalty, slack):
    """The paper's loss as its code computes it, summed over the batch; logits are (K, B, T)."""
    weights = logits.masked_fill(~mask, -torch.inf).softmax(-1)

    def jsd(p, q):
        p, q = torch.broadcast_tensors(p, q)
        p, q = p[..., mask], q[..., mask]  # ln 0 has no gradient
        m = 0.5 * (p + q)
        terms = torch.zeros(*p.shape[:-1], *mask.shape, dtype=p.dtype)
        terms[..., mask] = 0.5 * (p * (p / m).log() + q * (q / m).log())
        return terms.sum(-1)

    z = torch.einsum("kbt,btc->kbc", weights, readout) + bias
    original = torch.einsum("bt,btc->bc", attention, readout) + bias
    if len(bias) == 2:
        change = (z[..., 1] - z[..., 0]).sigmoid() - (original[..., 1] - original[..., 0]).sigmoid()
        apart = change.abs()
    else:
        apart = (z.softmax(-1) - original.softmax(-1)).abs().sum(-1)
    each = -jsd(weights, attention) + penalty * (apart - slack).relu()
    mutual = jsd(weights[:, None], weights[None]).mean((0, 1))
    return each.sum() - mutual.sum()


def literal_search(logits, rows, steps, penalty=500.0, slack=0.01):
    logits = logits.clone().requires_grad_()
    optimiser = torch.optim.Adam([logits], lr=0.01, amsgrad=True)
    for _ in range(steps):
        optimiser.zero_grad()
        literal_loss(logits, *rows, penalty, slack).backward()
        optimiser.step()
    return logits.detach().masked_fill(~rows[3], -torch.inf).softmax(-1)


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("slack", [0.0, 0.01, 0.2])
def test_the_written_gradient_is_that_of_the_literal_loss(classes, count, slack):
    rows = random_rows(6, 7, classes, shortest=7)
    attention, readout, bias, _ = rows
    generator = torch.Generator().manual_seed(2)
    logits = 3 * torch.randn(count, 6, 7, generator=generator, dtype=torch.float64)
    logits.requires_grad_()
    literal_loss(logits, *rows, 500.0, slack).backward()
    inner = logits.detach().permute(2, 0, 1)
    relative = (readout[..., 1:] - readout[..., :1]).permute(1, 2, 0)
    offset = bias[1:] - bias[:1]
    gradient = search._gradient(
        inner,
        inner.softmax(0),
        attention.T,
        relative,
        offset,
        search._predict(attention.T[:, None], relative, offset),
        500.0,
        slack,
    )
    torch.testing.assert_close(gradient.permute(1, 2, 0), logits.grad, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
def test_a_run_is_that_of_the_literal_loop(classes):
    rows = random_rows(9, 8, classes)
    found = search_adversaries(
        *rows, adversaries=4, steps=20, generator=torch.Generator().manual_seed(3)
    )
    noise = torch.randn(4, 9, 8, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    expected = literal_search(3 * noise + math.log(1 / 8), rows, 20)
    torch.testing.assert_close(found, expected, rtol=1e-7, atol=1e-10)


def test_by_default_the_search_is_the_papers():
    rows = random_rows(4, 6)
    paper = {"adversaries": 5, "steps": 500, "penalty": 500.0, "slack": 0.01}
    given, default = (
        search_adversaries(*rows, **options, generator=torch.Generator().manual_seed(1))
        for options in (paper, {})
    )
    assert torch.equal(given, default)


def test_blocks_do_not_change_the_answer(monkeypatch):
    rows = random_rows(9, 8)
    whole = search_adversaries(*rows, steps=5, generator=torch.Generator().manual_seed(3))
    monkeypatch.setattr(search, "BLOCK", 1)
    split = search_adversaries(*rows, steps=5, generator=torch.Generator().manual_seed(3))
    torch.testing.assert_close(whole, split)


def test_single_precision_ends_where_double_does():
    attention, readout, bias, mask = random_rows(20, 8, shortest=3)
    relative = (readout[..., 1:] - readout[..., :1]).permute(1, 2, 0)
    # A generator draws other numbers in another precision: both start from the same ones.
    start = 3 * torch.randn(8, 5, 20, generator=torch.Generator().manual_seed(3)).double()
    double, single = (
        search._descend(
            start.to(kind),
            attention.T.to(kind),
            relative.to(kind),
            (bias[1:] - bias[:1]).to(kind),
            mask.T,
            200,
            500.0,
            0.01,
        )
        for kind in (torch.float64, torch.float32)
    )
    assert (double.dtype, single.dtype) == (torch.float64, torch.float32)
    # The hinge has a corner: now and then rounding decides on which side of it a step is taken.
    apart = (single - double).abs().amax((0, 1))
    assert (apart < 1e-4).double().mean() >= 0.9
    assert (apart < 0.05).all()
    before = start.masked_fill(~mask.T.unsqueeze(1), -torch.inf).softmax(0)
    assert (double - before).abs().amax((0, 1)).median() > 0.1  # they went somewhere


def test_the_search_runs_in_the_precision_of_the_attention():
    attention, readout, bias, mask = random_rows(20, 8)
    for kind in (torch.float64, torch.float32):
        found = search_adversaries(
            attention.to(kind), readout, bias, mask, steps=3, generator=torch.Generator()
        )
        assert found.dtype == kind


def test_the_found_weightings_are_distributions_over_real_positions():
    rows = random_rows(20, 8)
    found = search_adversaries(*rows, steps=30, generator=torch.Generator().manual_seed(0))
    assert found.shape == (5, 20, 8)
    assert found[:, ~rows[3]].eq(0).all()
    torch.testing.assert_close(found.sum(-1), torch.ones(5, 20, dtype=torch.float64))


def test_the_search_finds_different_attention_but_never_beats_the_optimum():
    rows = random_rows(40, 10, shortest=3)
    found = search_adversaries(*rows, generator=torch.Generator().manual_seed(0))
    jsd, feasible, weights = best_feasible(found, *rows, 0.05)
    optimum = adversary(*rows, 0.05).jsd
    assert (optimum >= jsd - 1e-9).all()
    assert feasible.float().mean() > 0.8
    assert jsd.mean() > 0.5 * optimum.mean()
    assert (optimum - jsd).mean() > 0.005
    torch.testing.assert_close(jsd, jensen_shannon(weights, rows[0]))


def test_with_three_classes_the_search_stays_below_the_upper_bound():
    rows = random_rows(20, 10, classes=3, shortest=4)
    found = search_adversaries(*rows, generator=torch.Generator().manual_seed(0))
    jsd, feasible, _ = best_feasible(found, *rows, 0.05)
    assert (jsd <= bound_adversary(*rows, 0.05).upper + 1e-9).all()
    assert feasible.any()


def test_the_most_different_feasible_candidate_is_chosen():
    attention = torch.tensor([[0.5, 0.5, 0.0]], dtype=torch.float64)
    readout = torch.tensor([[[0.0, 0.0], [0.0, 0.0], [0.0, 9.0]]], dtype=torch.float64)
    bias, mask = torch.zeros(2, dtype=torch.float64), torch.ones(1, 3, dtype=torch.bool)
    candidates = torch.tensor(
        [[[0.6, 0.4, 0.0]], [[1.0, 0.0, 0.0]], [[0.0, 0.0, 1.0]]], dtype=torch.float64
    )
    jsd, found, weights = best_feasible(candidates, attention, readout, bias, mask, 0.01)
    assert found.tolist() == [True]
    assert torch.equal(weights, candidates[1])
    torch.testing.assert_close(jsd, jensen_shannon(candidates[1], attention))


def test_without_a_feasible_candidate_the_original_stands_in():
    rows = random_rows(1, 4, shortest=4)
    attention, readout, bias, _ = rows
    far = 20 * (readout[..., 1] - readout[..., 0])
    candidates = torch.stack([far.softmax(-1), (-far).softmax(-1)])
    moved = (torch.einsum("kbt,btc->kbc", candidates, readout) + bias).softmax(-1)
    original = (torch.einsum("bt,btc->bc", attention, readout) + bias).softmax(-1)
    epsilon = 0.5 * float(total_variation(moved, original.expand_as(moved)).min())
    jsd, found, weights = best_feasible(candidates, *rows, epsilon)
    assert jsd.tolist() == [0.0]
    assert found.tolist() == [False]
    assert torch.equal(weights, attention)


def test_the_seed_decides_the_search():
    rows = random_rows(3, 5)
    runs = [
        search_adversaries(*rows, steps=3, generator=torch.Generator().manual_seed(seed))
        for seed in (0, 0, 1)
    ]
    assert torch.equal(runs[0], runs[1])
    assert not torch.allclose(runs[0], runs[2])


def test_no_adversaries_is_an_error():
    with refused("1 adversary", "0", kind=ValueError):
        search_adversaries(*random_rows(2, 3), adversaries=0, generator=torch.Generator())


def test_descent_through_autograd_ends_where_the_written_gradient_does():
    rows = random_rows(7, 9, classes=3, seed=4)
    attention, readout, bias, mask = rows

    def predict(weights):
        return torch.einsum("kbt,btc->kbc", weights.squeeze(2), readout) + bias

    found = descend(predict, attention, mask, steps=40, generator=torch.Generator().manual_seed(1))
    written = search_adversaries(
        attention, readout, bias, mask, steps=40, generator=torch.Generator().manual_seed(1)
    )
    assert torch.allclose(found, written, atol=1e-6)
    assert (found[:, ~mask] == 0).all()
    jsd, hit = best_of(predict, found, attention, mask, 0.05)
    expected, expected_hit, _ = best_feasible(written, *rows, 0.05)
    assert torch.equal(hit, expected_hit)
    assert 0 < hit.sum() < len(hit)
    assert torch.allclose(jsd, expected, atol=1e-6)
