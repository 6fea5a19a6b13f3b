"""How far must the weights be bent? Against linear programs, general solvers, grids and draws."""

import math

import numpy as np
import pytest
import torch
from making import padded_rows, random_rows
from scipy.optimize import linprog, minimize
from wording import refused

from heedmap.counterfactual.exact import adversary
from heedmap.counterfactual.smallest_change import (
    _minimise_divergence,
    largest_divergence,
    smallest_divergence,
    smallest_mass,
)
from heedmap.measures import LN2, jensen_shannon, total_variation

KINDS = [{}, {"sparse": True}, {"tied": True}, {"scale": 15.0}, {"scale": 0.7}]
BOTH = [smallest_mass, smallest_divergence]


def predicted(attention, readout, bias, mask):
    return (torch.einsum("bt,btc->bc", attention, readout) + bias).argmax(-1)


def leads(row, attention, readout, bias, mask, of):
    """α̂ of one row, and per rival the logits of each position alone less those of the predicted class."""
    alone = (readout[row, mask[row]] + bias).numpy()
    own = int(of[row])
    rivals = [c for c in range(len(bias)) if c != own]
    return attention[row, mask[row]].numpy(), [alone[:, c] - alone[:, own] for c in rivals]


def linear_program(q, lead):
    """min ½ Σ u with u ≥ |α − q|, Σ α = 1, α · lead ≥ 0."""
    n = len(q)
    eye = np.eye(n)
    above = np.block([[eye, -eye], [-eye, -eye], [-lead[None, :], np.zeros((1, n))]])
    result = linprog(
        np.r_[np.zeros(n), np.full(n, 0.5)],
        A_ub=above,
        b_ub=np.r_[q, -q, 0.0],
        A_eq=np.r_[np.ones(n), np.zeros(n)][None, :],
        b_eq=[1.0],
        bounds=[(0, None)] * (2 * n),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    return result.fun if result.success else math.inf


def one_row(weights, logits, bias=(0.0, 0.0), of=0):
    """One text of two classes, from the positions' logits of the second class less the first."""
    readout = torch.tensor([[[0.0, x] for x in logits]], dtype=torch.float64)
    return (
        torch.tensor([weights], dtype=torch.float64),
        readout,
        torch.tensor(bias, dtype=torch.float64),
        torch.ones(1, len(weights), dtype=torch.bool),
        torch.tensor([of]),
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_the_least_mass_is_that_of_the_linear_programs(classes, kind):
    rows = random_rows(60, 7, classes, seed=classes, **kind)
    of = predicted(*rows)
    found = smallest_mass(*rows, of)
    for row in range(60):
        q, rivals = leads(row, *rows, of)
        expected = min(linear_program(q, lead / max(1e-9, abs(lead).max())) for lead in rivals)
        assert found.distance[row].item() == pytest.approx(expected, abs=1e-9)
    assert found.distance.isfinite().any()


@pytest.mark.parametrize("least", BOTH)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_the_weighting_is_on_the_simplex_changes_the_class_and_is_as_far_as_it_says(
    least, kind, classes
):
    attention, readout, bias, mask = rows = random_rows(200, 9, classes, seed=7, **kind)
    of = predicted(*rows)
    found = least(*rows, of)
    other = found.attention
    assert (other >= 0).all()
    assert other[~mask].eq(0).all()
    torch.testing.assert_close(other.sum(-1), torch.ones(200, dtype=torch.float64))
    distance = (total_variation if least is smallest_mass else jensen_shannon)(other, attention)
    there = found.distance.isfinite()
    assert there.any()
    torch.testing.assert_close(found.distance[there], distance[there], atol=1e-14, rtol=0)
    logits = torch.einsum("bt,btc->bc", other, readout) + bias
    own = logits.gather(1, of[:, None])[:, 0]
    rival = logits.scatter(1, of[:, None], -torch.inf).amax(1)
    scale = 1e-13 * max(1.0, readout.abs().max())
    assert (rival - own >= -scale)[there].all()
    # Infinity is a proof: every single position keeps the class, and so every mixture for each rival.
    alone = (readout + bias).masked_fill(~mask.unsqueeze(-1), 0.0)
    lead = alone - alone.gather(2, of[:, None, None].expand(200, mask.shape[1], 1))
    for row in (~there).nonzero()[:, 0].tolist():
        rest = [c for c in range(classes) if c != of[row]]
        assert (lead[row, mask[row]][:, rest].amax(0) < 0).all()
        assert torch.equal(other[row], attention[row])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [2, 4])
def test_the_least_divergence_is_certified(classes, kind):
    rows = random_rows(300, 9, classes, seed=2, **kind)
    found = smallest_divergence(*rows, predicted(*rows))
    there = found.distance.isfinite()
    assert (found.lower_bound <= found.distance)[there].all()
    assert (found.distance - found.lower_bound)[there].max() <= 1e-12
    assert torch.equal(there, found.lower_bound.isfinite())
    assert torch.equal(there, smallest_mass(*rows, predicted(*rows)).distance.isfinite())


def test_the_dual_bound_is_what_is_attained():
    """As it comes from the solver, before rounding is cut off at what is attained."""
    rng = np.random.default_rng(0)
    q, a = rng.dirichlet(np.ones(6), 200), rng.random((200, 6))
    a[:, 0] = 0.0
    limit = 0.5 * (q * a).sum(1)
    found, bound = _minimise_divergence(q, a, limit, np.zeros(200, dtype=np.int64))
    attained = jensen_shannon(torch.from_numpy(found), torch.from_numpy(q)).numpy()
    assert np.abs(attained - bound).max() < 1e-9
    assert ((found * a).sum(1) <= limit + 1e-12).all()
    assert np.allclose(found.sum(1), 1)


@pytest.mark.parametrize("kind", [{}, {"sparse": True}, {"tied": True}])
def test_no_general_solver_finds_a_smaller_divergence(kind):
    rows = random_rows(12, 4, 3, seed=4, shortest=2, **kind)
    of = predicted(*rows)
    found = smallest_divergence(*rows, of)
    rng = np.random.default_rng(0)
    reached = []
    for row in range(12):
        q, rivals = leads(row, *rows, of)
        n, best = len(q), math.inf

        def divergence(x, q=q):
            x = np.abs(x) / np.abs(x).sum()
            return jensen_shannon(torch.from_numpy(x), torch.from_numpy(q)).item()

        for lead in rivals:
            if lead.max() < 0:
                continue
            constraints = [
                {"type": "eq", "fun": lambda x: x.sum() - 1},
                {"type": "ineq", "fun": lambda x, lead=lead: x @ lead},
            ]
            for start in (*rng.dirichlet(np.ones(n), 3), np.eye(n)[lead.argmax()] * 0.9 + 0.1 / n):
                result = minimize(
                    divergence, start, method="SLSQP", bounds=[(1e-12, 1)] * n, constraints=constraints,
                    options={"ftol": 1e-13, "maxiter": 300},
                )  # fmt: skip
                x = np.abs(result.x) / np.abs(result.x).sum()
                if x @ lead >= -1e-9:
                    best = min(best, divergence(x))
        if math.isinf(best):
            assert found.distance[row].isinf()
            continue
        assert found.distance[row] <= best + 1e-7
        reached.append(best - found.distance[row].item())
    assert len(reached) > 5
    assert np.median(reached) < 1e-6, "the solver reaches the optimum, so the comparison is one"


@pytest.mark.parametrize("weights", [(0.2, 0.5, 0.3), (0.0, 0.9, 0.1), (0.98, 0.01, 0.01)])
def test_on_three_tokens_the_optima_are_those_of_a_fine_grid(weights):
    row = one_row(weights, (-3.0, 1.0, 2.5), bias=(0.7, 0.0))
    of = predicted(*row[:4])
    if of[0] == 1:
        row = one_row(weights, (3.0, -1.0, -2.5), bias=(0.0, 0.7))
        of = predicted(*row[:4])
    assert of[0] == 0
    steps = torch.linspace(0, 1, 1001, dtype=torch.float64)
    first, second = torch.meshgrid(steps, steps, indexing="ij")
    grid = torch.stack([first, second, 1 - first - second], -1).flatten(0, 1)
    grid = grid[grid[:, 2] >= -1e-12].clamp(min=0)
    logit = (grid @ row[1][0]).diff(dim=-1)[:, 0] + row[2].diff()
    grid = grid[logit >= 0]
    for least, distance in (
        (smallest_mass, total_variation),
        (smallest_divergence, jensen_shannon),
    ):
        best = distance(grid, row[0].expand_as(grid)).min()
        found = least(*row[:4], of).distance[0]
        assert best - 0.01 <= found <= best + 1e-12


def test_a_single_token_can_be_bent_nowhere_unless_it_is_tied():
    for least in BOTH:
        assert least(*one_row((1.0,), (-2.0,))).distance.isinf().all()
        assert least(*one_row((1.0,), (0.0,))).distance.eq(0).all()


def test_two_tokens_have_a_closed_form():
    for share in (1e-12, 0.1, 0.5, 0.9):
        # α₁·(−1) + α₂·3 ≥ 0 where α₂ ≥ ¼.
        row = one_row((1 - share, share), (-1.0, 3.0))
        least = max(0.0, 0.25 - share)
        assert smallest_mass(*row).distance.item() == pytest.approx(least, abs=1e-15)
        other = torch.tensor([[0.75, 0.25]], dtype=torch.float64) if least else row[0]
        expected = jensen_shannon(other, row[0]).item()
        assert smallest_divergence(*row).distance.item() == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("least", BOTH)
def test_a_bias_that_decides_alone_cannot_be_overcome(least):
    found = least(*one_row((0.5, 0.5), (-1.0, 3.0), bias=(3.5, 0.0)))
    assert found.distance.isinf().all()
    assert found.lower_bound.isinf().all()
    # At 3 the second position alone is tied, which counts: all the mass must be on it.
    tied = least(*one_row((0.5, 0.5), (-1.0, 3.0), bias=(3.0, 0.0)))
    torch.testing.assert_close(tied.attention, torch.tensor([[0.0, 1.0]], dtype=torch.float64))
    assert tied.distance.item() == pytest.approx(
        0.5 if least is smallest_mass else 0.311278 * LN2, abs=1e-6
    )


@pytest.mark.parametrize("least", BOTH)
def test_what_is_tied_or_changed_already_is_at_no_distance(least):
    assert least(*one_row((0.5, 0.5), (-1.0, 1.0))).distance.eq(0).all()
    # A shuffled map: the second class is predicted already, and the first was the model's.
    changed = least(*one_row((0.3, 0.7), (-1.0, 1.0), of=0))
    assert changed.distance.eq(0).all()
    assert torch.equal(changed.attention, torch.tensor([[0.3, 0.7]], dtype=torch.float64))


@pytest.mark.parametrize("classes", [2, 4])
def test_the_distance_does_not_depend_on_confidence_as_the_freedom_does(classes):
    """A one-cue model read "pinned down" at gain 4 and "against" at gain 25, with the same weights."""
    attention, readout, bias, mask = rows = random_rows(60, 8, classes, seed=6)
    of = predicted(*rows)
    for least in BOTH:
        once = least(*rows, of).distance
        more = least(attention, 10 * readout, 10 * bias, mask, of).distance
        torch.testing.assert_close(more, once, atol=1e-13, rtol=0)
    if classes == 2:
        calm, sure = (adversary(attention, k * readout, k * bias, mask, 0.01).jsd for k in (1, 10))
        assert (sure - calm).mean() > 0.02


@pytest.mark.parametrize("least", BOTH)
def test_mass_may_go_where_the_map_has_none(least):
    found = least(*one_row((1.0, 0.0, 0.0), (-1.0, 1.0, 1.0)))
    divergence = 0.5 * (0.5 * math.log(2 / 3) + math.log(4 / 3)) + 0.25 * LN2
    expected = 0.5 if least is smallest_mass else divergence
    assert found.distance.item() == pytest.approx(expected, abs=1e-14)
    assert found.attention[0, 0].item() == pytest.approx(0.5)


@pytest.mark.parametrize("least", BOTH)
def test_one_class_has_no_other(least):
    attention, readout, bias, mask = random_rows(5, 4, classes=1)
    assert (
        least(attention, readout, bias, mask, torch.zeros(5, dtype=torch.long))
        .distance.isinf()
        .all()
    )


@pytest.mark.parametrize("least", BOTH)
@pytest.mark.parametrize("classes", [2, 4])
def test_padding_and_the_order_of_the_tokens_change_nothing(least, classes):
    lengths = [1, 2, 3, 5, 8]
    rows = padded_rows(lengths, classes=classes, seed=3)
    of = predicted(*rows)
    found = least(*rows, of)
    attention, readout, bias, mask = rows
    for i, n in enumerate(lengths):
        alone = least(
            attention[i : i + 1, -n:],
            readout[i : i + 1, -n:],
            bias,
            mask[i : i + 1, -n:],
            of[i : i + 1],
        )
        assert alone.distance.item() == pytest.approx(found.distance[i].item(), abs=1e-13)
    back = least(attention.flip(1), readout.flip(1), bias, mask.flip(1), of)
    torch.testing.assert_close(back.distance, found.distance, atol=1e-13, rtol=0)


def test_with_many_classes_every_rival_counts():
    rows = random_rows(15, 6, 12, seed=5)
    of = predicted(*rows)
    attention, readout, bias, mask = rows
    for least in BOTH:
        found = least(*rows, of)
        pairs = []
        for c in range(12):
            two = torch.stack(
                [readout.gather(2, of[:, None, None].expand(15, 6, 1))[..., 0], readout[..., c]], -1
            )
            offset = torch.stack([bias[of], bias[c].expand(15)], -1)
            shifted = two + offset[:, None]
            one = least(
                attention, shifted, torch.zeros(2, dtype=torch.float64), mask, torch.zeros_like(of)
            )
            pairs.append(one.distance.masked_fill(of == c, torch.inf))
        torch.testing.assert_close(found.distance, torch.stack(pairs).amin(0), atol=1e-13, rtol=0)


def test_a_row_without_positions_is_refused():
    attention, readout, bias, mask = random_rows(3, 4)
    for least in BOTH:
        with refused("one real position", kind=ValueError):
            least(attention, readout, bias, mask & False, torch.zeros(3, dtype=torch.long))


def test_the_largest_divergence_is_at_the_least_weight():
    attention, _, _, mask = random_rows(50, 7, seed=1, shortest=2)
    found = largest_divergence(attention, mask)
    for row in range(50):
        q = attention[row, mask[row]]
        corners = jensen_shannon(torch.eye(len(q), dtype=torch.float64), q.expand(len(q), -1))
        assert found[row].item() == pytest.approx(corners.max().item(), abs=1e-15)
    draws = np.random.default_rng(0).dirichlet(np.full(7, 0.2), 20_000)
    full = random_rows(20, 7, seed=2, shortest=7)
    for row in range(20):
        q = full[0][row].expand(20_000, -1)
        assert (
            jensen_shannon(torch.from_numpy(draws), q).max()
            <= largest_divergence(full[0], full[3])[row]
        )


@pytest.mark.parametrize(("n", "share"), [(1, 0.0), (2, 0.311278), (3, 0.459148)])
def test_even_weights_of_short_texts_leave_less_than_ln_2(n, share):
    even = torch.full((1, n), 1 / n, dtype=torch.float64)
    found = largest_divergence(even, torch.ones(1, n, dtype=torch.bool)) / LN2
    assert found.item() == pytest.approx(share, abs=1e-6)
