import numpy as np
import pytest
import torch
from scipy.stats import kendalltau

from heedmap.experiments.methods import kendall
from heedmap.experiments.methods.kendall import kendall_tau, tau_against


@pytest.mark.parametrize("n", [2, 3, 4, 7, 20, 33, 34, 70])
@pytest.mark.parametrize("decimals", [None, 1, 0])
def test_tau_and_p_are_scipys_with_and_without_ties(n, decimals):
    values = np.random.default_rng(n).normal(size=(12, 3, n))
    if decimals is not None:
        values = values.round(decimals)
    values[0, 1] = values[0, 0]  # the same order
    values[1, 1] = -values[1, 0]  # the opposite order
    values[2, 2] = 1.0  # constant: undefined
    result = kendall_tau(torch.from_numpy(values), torch.ones(12, n, dtype=torch.bool))
    for b in range(12):
        for i in range(3):
            for j in range(3):
                expected = kendalltau(values[b, i], values[b, j])
                assert result.tau[b, i, j].item() == pytest.approx(
                    expected.statistic, abs=1e-12, nan_ok=True
                )
                assert result.p[b, i, j].item() == pytest.approx(
                    expected.pvalue, rel=1e-8, abs=1e-14, nan_ok=True
                )


@pytest.mark.parametrize("n", [0, 1])
def test_tau_of_fewer_than_two_tokens_is_undefined(n):
    result = kendall_tau(torch.rand(3, 2, n), torch.ones(3, n, dtype=torch.bool))
    assert result.tau.isnan().all()
    assert result.p.isnan().all()


@pytest.mark.parametrize("left", [False, True])
def test_padding_on_either_side_changes_nothing(left):
    values = torch.rand(4, 2, 9)
    mask = torch.ones(4, 9, dtype=torch.bool)
    alone = kendall_tau(values, mask)
    junk = torch.rand(4, 2, 3)
    hidden = torch.zeros(4, 3, dtype=torch.bool)
    order = 1 if left else -1
    together = kendall_tau(
        torch.cat([values, junk][::-order], -1), torch.cat([mask, hidden][::-order], -1)
    )
    assert torch.equal(together.tau, alone.tau)
    assert torch.equal(together.p, alone.p)


def test_rows_of_different_lengths_in_one_batch_are_each_their_own():
    values = torch.rand(5, 2, 40)
    lengths = torch.tensor([2, 5, 17, 39, 40])
    mask = torch.arange(40) < lengths[:, None]
    result = kendall_tau(values, mask)
    for b, n in enumerate(lengths.tolist()):
        expected = kendalltau(values[b, 0, :n], values[b, 1, :n])
        assert result.tau[b, 0, 1].item() == pytest.approx(expected.statistic, abs=1e-12)
        assert result.p[b, 0, 1].item() == pytest.approx(expected.pvalue, rel=1e-8)


@pytest.mark.parametrize("discordant", [0, 1])
@pytest.mark.parametrize("n", [34, 50])
def test_almost_perfect_order_of_a_long_vector_has_an_exact_p(n, discordant):
    """2/n! and 2n/n!: of all orders, one has no discordant pair and n have at most one."""
    x = np.arange(float(n))
    y = x.copy()
    if discordant:
        y[[3, 4]] = y[[4, 3]]
    result = kendall_tau(torch.tensor(np.stack([x, y]))[None], torch.ones(1, n, dtype=torch.bool))
    expected = kendalltau(x, y).pvalue
    assert 0 < expected < 1e-30
    # Without abs=0 every such p would equal every other: approx allows 1e-12.
    assert result.p[0, 0, 1].item() == pytest.approx(expected, rel=1e-8, abs=0)


@pytest.mark.parametrize("n", [1, 2, 5, 34])
@pytest.mark.parametrize("decimals", [None, 1, 0])
def test_tau_against_some_is_that_of_all_pairs(n, decimals):
    values = np.random.default_rng(n).normal(size=(9, 5, n))
    if decimals is not None:
        values = values.round(decimals)
    values[0, 3] = values[0, 0]
    values[1, 3] = -values[1, 0]
    values[2, 3] = values[3, 0] = 1.0  # constants, on either side
    values = torch.from_numpy(values)
    mask = torch.arange(n) < torch.arange(1, 10).clamp(max=n)[:, None]
    found = tau_against(values[:, :3], values[:, 3:], mask)
    expected = kendall_tau(values, mask).tau[:, :3, 3:]
    assert found.shape == (9, 3, 2)
    assert torch.allclose(found, expected, atol=1e-12, rtol=0, equal_nan=True)
    assert found[2, :, 0].isnan().all()
    assert found[3, 0].isnan().all()
    assert found[0].isnan().all()  # one token is left of it
    if n == 34 and decimals is None:
        assert found[1, 0, 0] == -1
        assert found[4:].isfinite().all()


@pytest.mark.parametrize("n", [1, 2, 5, 34, 200])
@pytest.mark.parametrize("decimals", [None, 1, 0])
def test_long_vectors_are_sorted_to_the_same_bits(monkeypatch, n, decimals):
    values = np.random.default_rng(n).normal(size=(9, 4, n))
    if decimals is not None:
        values = values.round(decimals)
    values[0, 1], values[1, 1], values[2, 1] = values[0, 0], -values[1, 0], 1.0
    values = torch.from_numpy(values)
    mask = torch.arange(n) < torch.arange(1, 10).mul(n // 4 + 1).clamp(max=n)[:, None]

    def numbers():
        every = kendall_tau(values, mask)
        return every.tau, every.p, tau_against(values[:, :1], values[:, 1:], mask)

    by_pairs = numbers()
    monkeypatch.setattr(kendall, "LONG", 0)
    torch.testing.assert_close(numbers(), by_pairs, rtol=0, atol=0, equal_nan=True)
