"""The share of the simplex within ε of a prediction: against closed forms and many draws."""

import math

import numpy as np
import pytest
import torch
from making import random_rows
from scipy.interpolate import BSpline

from heedmap.counterfactual import simplex_share
from heedmap.counterfactual.exact import prediction_interval
from heedmap.counterfactual.simplex_share import probability_between, share_drawn, share_within


def between(values, low, high):
    """P(low ≤ Σ α r ≤ high) for one row without padding."""
    r = torch.from_numpy(np.asarray(values, dtype=np.float64)).unsqueeze(0)
    ends = (torch.tensor([x], dtype=torch.float64) for x in (low, high))
    return probability_between(r, torch.ones_like(r, dtype=torch.bool), *ends).item()


def logits_of(attention, readout, bias):
    return torch.einsum("bt,btc->bc", attention, readout) + bias


@pytest.mark.parametrize("kind", [{}, {"tied": True}, {"scale": 15.0}, {"sparse": True}])
def test_the_exact_share_is_that_of_a_million_draws(kind):
    attention, readout, bias, mask = random_rows(10, 9, seed=1, **kind)
    logits = logits_of(attention, readout, bias)
    exact = share_within(logits[None], readout, bias, mask, 0.05)[0]
    lower, upper = prediction_interval(logits.diff(dim=-1)[:, 0], 0.05)
    rng = np.random.default_rng(0)
    for row in range(10):
        own = (readout[row, mask[row]] + bias).diff(dim=-1)[:, 0].numpy()
        drawn = rng.dirichlet(np.ones(len(own)), 1_000_000) @ own
        hit = ((drawn >= lower[row].item()) & (drawn <= upper[row].item())).mean()
        if len(own) == 1:
            assert exact[row] == 1
            continue
        error = math.sqrt(max(exact[row].item(), 1e-6) * (1 - exact[row].item()) / 1e6)
        assert abs(exact[row].item() - hit) <= 4.5 * error + 1e-9


def test_it_is_the_integral_of_the_b_spline():
    rng = np.random.default_rng(3)
    for n in (2, 3, 5, 12, 30):
        knots = np.sort(rng.normal(size=n))
        nodes, factors = np.polynomial.legendre.leggauss(n)
        density = BSpline.basis_element(knots, extrapolate=False)
        scale = (n - 1) / (knots[-1] - knots[0])
        for _ in range(5):
            low, high = np.sort(rng.uniform(knots[0], knots[-1], 2))
            # Gauss-Legendre between the knots, where the density is a polynomial: exact. (BSpline.integrate
            # is FITPACK's, which overruns its buffers above degree 5.)
            ends = np.r_[low, knots[(knots > low) & (knots < high)], high]
            middle, half = 0.5 * (ends[1:] + ends[:-1]), 0.5 * np.diff(ends)
            values = density(middle[:, None] + half[:, None] * nodes)
            expected = scale * float((half[:, None] * factors * values).sum())
            assert between(knots, low, high) == pytest.approx(expected, abs=1e-11)


def test_one_two_and_three_tokens_have_closed_forms():
    assert between([2.0], 2.0, 2.0) == 1
    assert between([2.0], 2.1, 3.0) == 0
    assert between([0.0, 4.0], 1.0, 2.0) == pytest.approx(0.25, abs=1e-15)
    assert between([0.0, 1.0, 1.0], -1.0, 0.5) == pytest.approx(0.25, abs=1e-15)
    assert between([0.0, 0.0, 1.0], -1.0, 0.5) == pytest.approx(0.75, abs=1e-15)
    assert between([1.0, 1.0, 1.0], 1.0, 1.0) == 1, "all read the same: nothing to move"
    assert between([1.0, 1.0, 1.0], 1.1, math.inf) == 0


def test_unbounded_intervals_hold_their_side():
    assert between([0.0, 1.0], -math.inf, math.inf) == 1
    assert between([0.0, 1.0], -math.inf, 0.25) == pytest.approx(0.25, abs=1e-15)
    assert between([0.0, 1.0], 0.25, math.inf) == pytest.approx(0.75, abs=1e-15)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_tiny_share_is_not_lost_to_rounding(sign):
    # With r = (1, 0, …, 0) the mean is one Dirichlet coordinate: P(α ≥ 0.9) = 0.1^(n − 1).
    values = [sign, *([0.0] * 20)]
    low, high = sorted((sign * 0.9, sign * 1.0))
    assert between(values, low, high) == pytest.approx(0.1**20, rel=1e-9, abs=0)


def test_padding_the_order_of_the_tokens_and_other_rows_change_nothing():
    attention, readout, bias, mask = random_rows(30, 8, seed=5)
    logits = logits_of(attention, readout, bias)
    found = share_within(logits[None], readout, bias, mask, 0.02)[0]
    back = share_within(logits[None], readout.flip(1), bias, mask.flip(1), 0.02)[0]
    assert torch.equal(found, back)
    for row in range(30):
        real = mask[row]
        alone = share_within(
            logits[None, row : row + 1], readout[row : row + 1, real], bias, real[real][None], 0.02
        )
        torch.testing.assert_close(alone[0, 0], found[row], atol=1e-13, rtol=1e-9)


def test_the_draws_agree_with_the_exact_share_for_two_classes():
    attention, readout, bias, mask = random_rows(20, 6, seed=2)
    logits = torch.stack(
        [logits_of(w, readout, bias) for w in (attention, attention.flip(0) * mask)]
    )
    exact = share_within(logits, readout, bias, mask, 0.05)
    rngs = [np.random.default_rng(i) for i in range(20)]
    drawn = share_drawn(logits, readout, bias, mask, 0.05, 100_000, rngs)
    error = (exact * (1 - exact) / 1e5).sqrt()
    assert ((drawn - exact).abs() <= 4.5 * error + 1e-4).all()


def test_how_many_weights_are_drawn_at_a_time_changes_nothing(monkeypatch):
    attention, readout, bias, mask = random_rows(4, 6, classes=3, seed=4)
    problem = (logits_of(attention, readout, bias)[None], readout, bias, mask, 0.1, 1001)
    whole = share_drawn(*problem, [np.random.default_rng(i) for i in range(4)])
    monkeypatch.setattr(simplex_share, "ELEMENTS", 300)
    parts = share_drawn(*problem, [np.random.default_rng(i) for i in range(4)])
    assert torch.equal(whole, parts)
    assert (whole > 0).any()


def test_with_three_classes_a_draw_counts_where_its_prediction_is_within_epsilon():
    attention, readout, bias, mask = random_rows(6, 5, classes=3, seed=4)
    logits = logits_of(attention, readout, bias)
    rngs = [np.random.default_rng(i) for i in range(6)]
    found = share_drawn(logits[None], readout, bias, mask, 0.1, 2000, rngs)[0]
    for row in range(6):
        own = (readout[row, mask[row]] + bias).numpy()
        e = np.random.default_rng(row).standard_exponential((2000, len(own)))
        z = torch.from_numpy((e / e.sum(1, keepdims=True)) @ own)
        distance = 0.5 * (z.softmax(-1) - logits[row].softmax(-1)).abs().sum(-1)
        assert found[row] == (distance <= 0.1).double().mean()
    everything = share_drawn(logits[None], readout, bias, mask, 1.0, 50, rngs)
    assert (everything == 1).all()
