import pytest
import torch
from making import random_rows
from oracles import distance
from wording import refused

from heedmap.counterfactual import local_search, polytope
from heedmap.counterfactual.bounds import _feasible, bound_adversary
from heedmap.counterfactual.exact import adversary, most_different
from heedmap.counterfactual.null_space_walk import walk
from heedmap.counterfactual.tolerance import Instances, added_divergence
from heedmap.measures import LN2, jensen_shannon, total_variation


@pytest.mark.parametrize("classes", [2, 3, 4, 6])
@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 0.01, 0.1, 1.0])
@pytest.mark.parametrize("scale", [1e-3, 2.0, 60.0])
def test_lower_is_attained_by_a_feasible_weighting_and_below_upper(classes, epsilon, scale):
    rows = random_rows(30, 9, classes, scale=scale)
    bounds = bound_adversary(*rows, epsilon)
    attention, mask = rows[0], rows[3]
    assert (distance(bounds.attention, rows) <= epsilon + 1e-9).all()
    assert (bounds.attention >= 0).all()
    assert bounds.attention[~mask].eq(0).all()
    torch.testing.assert_close(bounds.attention.sum(-1), torch.ones(30, dtype=torch.float64))
    torch.testing.assert_close(
        bounds.lower, jensen_shannon(bounds.attention, attention), rtol=0, atol=1e-12
    )
    assert (bounds.lower <= bounds.upper).all()
    assert (bounds.upper <= LN2 + 1e-12).all()


@pytest.mark.parametrize("classes", [3, 4])
@pytest.mark.parametrize("positions", [3, 6])
@pytest.mark.parametrize("epsilon", [0.01, 0.1])
def test_no_feasible_weighting_exceeds_upper(classes, positions, epsilon):
    rows = random_rows(15, positions, classes, shortest=2)
    attention, readout, bias, mask = rows
    upper = bound_adversary(*rows, epsilon).upper
    generator = torch.Generator().manual_seed(1)
    draws = torch.rand(6000, 15, positions, generator=generator, dtype=torch.float64).log().neg()
    draws = draws.pow(3) * mask
    draws = draws / draws.sum(-1, keepdim=True)
    original = (torch.einsum("bt,btc->bc", attention, readout) + bias).softmax(-1)
    tried = 0
    # Between the original and any weighting there is a feasible one: halve the step until it is.
    for _ in range(10):
        p = (torch.einsum("sbt,btc->sbc", draws, readout) + bias).softmax(-1)
        feasible = total_variation(p, original.expand_as(p)) <= epsilon
        jsd = jensen_shannon(draws, attention.expand_as(draws))
        assert (torch.where(feasible, jsd, 0).amax(0) <= upper + 1e-9).all()
        tried += int(feasible.sum())
        draws = 0.5 * (draws + attention)
    assert tried > 100_000


def test_two_classes_are_exact():
    rows = random_rows(40, 8, 2)
    bounds = bound_adversary(*rows, 0.02)
    exact = adversary(*rows, 0.02)
    assert torch.equal(bounds.lower, exact.jsd)
    assert torch.equal(bounds.upper, exact.jsd)
    assert torch.equal(bounds.attention, exact.dense(8))


@pytest.mark.parametrize("epsilon", [0.0, 0.02, 0.2])
def test_a_third_class_that_never_happens_changes_nothing(epsilon):
    attention, readout, bias, mask = random_rows(40, 8, 2)
    never = torch.full((40, 8, 1), -60.0, dtype=torch.float64)
    bounds = bound_adversary(
        attention, torch.cat([readout, never], -1), torch.cat([bias, bias[:1]]), mask, epsilon
    )
    exact = adversary(attention, readout, bias, mask, epsilon)
    assert (bounds.upper >= exact.jsd - 1e-7).all()
    assert (bounds.lower <= exact.jsd + 1e-7).all()
    assert (exact.jsd - bounds.lower).quantile(0.8) < 1e-6


@pytest.mark.parametrize("epsilon", [0.01, 0.05])
def test_three_classes_are_nearly_solved(epsilon):
    rows = random_rows(100, 20, 3, shortest=12)
    bounds = bound_adversary(*rows, epsilon)
    assert (bounds.upper - bounds.lower).median() < 0.004
    assert bounds.lower.median() > 0.5


def test_vertices_tighten_the_bound_of_one_pair_of_classes():
    rows = random_rows(30, 8, 3, shortest=4)
    together = bound_adversary(*rows, 0.02).upper
    instances = Instances.from_readout(*rows, 0.02)
    torch.testing.assert_close(polytope.vertex_bound(instances).clamp(max=LN2), together)
    for c, other in ((0, 1), (0, 2), (1, 2)):
        slab = most_different(
            rows[0],
            instances.logits[..., c] - instances.logits[..., other],
            torch.zeros(1, dtype=torch.float64),
            rows[3],
            instances.margin(c, other),
            -instances.margin(other, c),
        ).jsd
        assert (together <= slab + 1e-8).all()
        assert (together < slab - 0.01).any()


def test_blocks_do_not_change_the_answer(monkeypatch):
    rows = random_rows(20, 9, 3)
    whole = bound_adversary(*rows, 0.03)
    monkeypatch.setattr(polytope, "BLOCK", 1)
    monkeypatch.setattr(local_search, "BLOCK", 1)
    split = bound_adversary(*rows, 0.03)
    torch.testing.assert_close(split.upper, whole.upper)
    torch.testing.assert_close(split.lower, whole.lower)


def test_a_row_does_not_depend_on_its_batch_or_its_padding():
    attention, readout, bias, mask = random_rows(12, 8, 3)
    together = bound_adversary(attention, readout, bias, mask, 0.05)
    for row in range(12):
        real = mask[row]
        for left, right in ((0, 0), (2, 0), (0, 50)):
            alone = bound_adversary(
                torch.nn.functional.pad(attention[row, real], (left, right))[None],
                torch.nn.functional.pad(readout[row, real], (0, 0, left, right), value=7.0)[None],
                bias,
                torch.nn.functional.pad(real[real], (left, right))[None],
                0.05,
            )
            assert alone.upper[0] == pytest.approx(float(together.upper[row]), abs=1e-9)
            assert alone.lower[0] == pytest.approx(float(together.lower[row]), abs=1e-6)


@pytest.mark.parametrize("classes", [3, 5])
def test_one_position_is_its_own_only_weighting(classes):
    rows = random_rows(5, 1, classes)
    bounds = bound_adversary(*rows, 0.1)
    assert bounds.lower.eq(0).all()
    assert bounds.upper.abs().max() < 1e-12
    assert torch.equal(bounds.attention, rows[0])


def test_two_positions_are_a_segment_that_a_grid_can_search():
    attention, readout, bias, mask = random_rows(20, 2, 3, shortest=2)
    rows = attention, readout, 0.3 * bias, mask
    bounds = bound_adversary(*rows, 0.1)
    best = torch.zeros(20, dtype=torch.float64)
    for w in torch.linspace(0, 1, 2001, dtype=torch.float64):
        weights = torch.stack([1 - w, w]).expand(20, 2).contiguous()
        jsd = jensen_shannon(weights, attention)
        best = torch.where(distance(weights, rows) <= 0.1, torch.maximum(best, jsd), best)
    assert (bounds.lower >= best - 1e-9).all()
    assert (bounds.upper >= best - 1e-9).all()


@pytest.mark.parametrize("classes", [3, 4])
def test_long_rows_are_bounded_too(classes):
    rows = random_rows(4, 70, classes, shortest=60)
    bounds = bound_adversary(*rows, 0.01)
    assert (distance(bounds.attention, rows) <= 0.01 + 1e-9).all()
    assert (bounds.lower > 0.6).all()


def test_walking_keeps_every_probability_and_empties_all_but_c_positions():
    rows = random_rows(30, 12, 4, shortest=8)
    instances = Instances.from_readout(*rows, 0.0)
    moved = walk(instances, instances.attention)
    assert distance(moved, rows).max() < 1e-12
    assert ((moved > 1e-12).sum(-1) <= 4).float().mean() > 0.9
    assert jensen_shannon(moved, instances.attention).median() > 0.3


@pytest.mark.parametrize("epsilon", [1e-3, 0.1])
def test_an_infeasible_start_is_drawn_to_the_edge_of_the_tolerance(epsilon):
    rows = random_rows(40, 6, 4, shortest=2)
    start = torch.zeros_like(rows[0]).scatter(1, rows[0].argmin(1, keepdim=True), 1.0)
    start = torch.where(rows[3], start, 0) + 1e-3 * rows[0]
    start = start / start.sum(-1, keepdim=True)
    outside = distance(start, rows) > epsilon
    assert outside.sum() > 5
    drawn = _feasible(Instances.from_readout(*rows, epsilon), start)
    torch.testing.assert_close(
        distance(drawn, rows)[outside],
        torch.full((int(outside.sum()),), epsilon, dtype=torch.float64),
        rtol=0,
        atol=1e-8,
    )
    assert torch.equal(drawn[~outside], start[~outside])


def test_bisection_ends_at_the_last_feasible_step_and_stays_where_there_is_none():
    rows = random_rows(30, 5, 3, shortest=2)
    instances = Instances.from_readout(*rows, 0.02)
    base = instances.logits_of(instances.attention)
    step = torch.randn(30, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    none, far = torch.zeros(30, dtype=torch.float64), torch.full((30,), 8.0, dtype=torch.float64)
    w = instances.last_feasible(base, step, none, far)
    assert instances.is_feasible(base + w[:, None] * step).all()
    # A step that makes a sure prediction surer is feasible all the way.
    beyond = ~instances.is_feasible(base + far[:, None] * step)
    assert beyond.sum() > 20
    assert not instances.is_feasible(base + (w + 1e-8)[:, None] * step)[beyond].any()
    torch.testing.assert_close(w[~beyond], far[~beyond], rtol=0, atol=1e-8)
    assert instances.last_feasible(base, 1e15 * step, none, far)[beyond].eq(0).all()
    still = instances.last_feasible(base, 0 * step, none, far)
    torch.testing.assert_close(still, far, rtol=0, atol=1e-8)


def test_the_divergence_is_the_sum_of_what_its_positions_add():
    weights, own = random_rows(20, 7, 3)[0], random_rows(20, 7, 3, seed=1)[0]
    weights[0], weights[1] = 0, 0
    weights[0, 0] = weights[1, 1] = 1  # all mass on one position
    parts = added_divergence(weights, own) + 0.5 * (LN2 * own + torch.xlogy(own, own))
    torch.testing.assert_close(parts.sum(-1), jensen_shannon(weights, own), rtol=0, atol=1e-14)


def test_one_class_is_an_error_that_says_what_to_do():
    with refused("2 classes", "1", "logits (0, z)", kind=ValueError):
        bound_adversary(*random_rows(2, 3, 1), 0.1)


def test_a_negative_tolerance_is_an_error():
    with refused("epsilon >= 0", "-0.1", kind=ValueError):
        bound_adversary(*random_rows(2, 3, 3), -0.1)


def a_little_beyond(weights, rows, epsilon):
    """The weights with a little moved to the first position where that is no longer feasible."""
    found = weights
    for position in reversed(range(weights.shape[1])):
        one = torch.zeros_like(weights[0])
        one[position] = 1
        moved = weights + epsilon / 20 * (one - weights)
        beyond = (distance(moved, rows) > epsilon) & rows[3][:, position]
        found = torch.where(beyond.unsqueeze(1), moved, found)
    return found


@pytest.mark.parametrize(
    ("classes", "epsilon", "helped"), [(3, 0.01, 1), (5, 0.01, 3), (5, 0.1, 5)]
)
def test_a_start_that_is_not_feasible_is_drawn_towards_the_own_weights(classes, epsilon, helped):
    rows = random_rows(24, 12, classes, shortest=8)
    own = rows[0]
    alone = bound_adversary(*rows, epsilon, searching=False)
    start = a_little_beyond(bound_adversary(*rows, epsilon).attention, rows, epsilon)
    beyond = distance(start, rows) > epsilon
    assert beyond.sum() >= 20
    told = bound_adversary(*rows, epsilon, starts=[start], searching=False)
    # The farthest feasible point on the way to each start, the slow way: no less was found.
    reached = torch.zeros(24, dtype=torch.float64)
    for part in torch.linspace(0, 1, 501, dtype=torch.float64):
        weights = own + part * (start - own)
        jsd = torch.where(distance(weights, rows) <= epsilon, jensen_shannon(weights, own), 0)
        reached = torch.maximum(reached, jsd)
    assert (told.lower >= reached - 1e-9)[beyond].all()
    assert (distance(told.attention, rows) <= epsilon + 1e-9).all()
    torch.testing.assert_close(told.lower, jensen_shannon(told.attention, own), rtol=0, atol=1e-12)
    # And nothing else finds it: a start thrown away would be seen.
    assert (beyond & (reached > alone.lower + 1e-3)).sum() >= helped


@pytest.mark.parametrize(("positions", "classes"), [(2, 5), (9, 12), (60, 40)])
@pytest.mark.parametrize("scale", [0.05, 1.0, 20.0])
def test_pairs_ruled_out_by_the_likeliest_classes_would_not_have_been_chosen(
    monkeypatch, positions, classes, scale
):
    instances = Instances.from_readout(*random_rows(12, positions, classes, scale=scale), 0.02)
    chosen = []
    for screened in (2, classes):  # some are ruled out at first, or all are judged by every class
        monkeypatch.setattr(local_search, "SCREENED", screened)
        chosen.append(local_search.best_pair(instances))
    torch.testing.assert_close(*chosen, rtol=0, atol=0)
