import math

import pytest
import torch
from wording import refused

from heedmap.counterfactual.constrained import search
from heedmap.counterfactual.exact import adversary
from heedmap.counterfactual.jain_wallace_search import best_feasible, search_adversaries
from heedmap.measures import LN2, change_in_prediction, jensen_shannon


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def apart(instances, seed=0):
    """A generator for each."""
    return [seeded(1000 * seed + i) for i in range(len(instances))]


def masked_softmax(scores, support):
    return scores.masked_fill(~support, -torch.inf).softmax(-1).nan_to_num()


class Linear:
    """One row per instance and a linear read-out: the case whose optimum is known."""

    def __init__(self, rows, positions, classes=2, seed=0):
        def normal(*shape):
            return torch.randn(*shape, generator=generator, dtype=torch.float64)

        generator = seeded(seed)
        self.attention = (1.5 * normal(rows, positions)).softmax(-1)
        self.readout, self.bias = 2 * normal(rows, positions, classes), normal(classes)
        self.mask = torch.ones(rows, positions, dtype=torch.bool)
        self.support = self.mask.unsqueeze(1)

    def predict(self, weights):
        return torch.einsum("sbkp,bpc->sbc", weights, self.readout) + self.bias

    def to_heatmap(self, weights):
        return weights[:, :, 0]

    def search(self, epsilon=0.01, seed=0, **settings):
        settings = {"steps": 8, **settings}
        attention = self.attention.unsqueeze(1)
        logits = self.predict(attention[None])[0]
        return search(
            self.predict,
            self.to_heatmap,
            attention,
            self.support,
            self.mask,
            logits,
            epsilon=epsilon,
            generators=apart(self.attention, seed),
            **settings,
        )

    def optimum(self, epsilon=0.01):
        return adversary(self.attention, self.readout, self.bias, self.mask, epsilon).jsd


class Curved:
    """Rows of different support (and mass), their values normalised and read by a small network."""

    def __init__(self, support, classes=2, scale=3.0, seed=0, mass=None, dtype=torch.float64):
        def normal(*shape):
            return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)

        generator = seeded(seed)
        rows, heads, positions = support.shape
        self.support = support
        self.attention = masked_softmax(1.5 * normal(*support.shape), support)
        if mass is not None:
            self.attention = self.attention * mass
        self.values = normal(rows, heads, positions, 6)
        self.first = normal(heads * 6, 24) / math.sqrt(heads * 4)
        self.second = scale * normal(24, classes) / math.sqrt(24)
        self.rest = 0.5 * normal(rows, heads * 6)
        self.mask = support.any(1)

    def predict(self, weights):
        read = torch.einsum("sbkp,bkpd->sbkd", weights, self.values).flatten(2) + self.rest
        normed = torch.nn.functional.layer_norm(read, read.shape[-1:])
        return torch.nn.functional.gelu(normed @ self.first) @ self.second

    def to_heatmap(self, weights):
        total = weights.sum(2)
        return total / total.sum(-1, keepdim=True).clamp(min=1e-12)

    def logits(self):
        return self.predict(self.attention[None])[0]

    def search(self, epsilon=0.01, seed=0, **settings):
        return search(
            self.predict,
            self.to_heatmap,
            self.attention,
            self.support,
            self.mask,
            self.logits(),
            epsilon=epsilon,
            generators=apart(self.attention, seed),
            **{"steps": 8, **settings},
        )


def random_support(rows=12, heads=3, positions=9, seed=1):
    support = torch.rand(rows, heads, positions, generator=seeded(seed)) < 0.6
    support[0, 0] = False  # a row masked altogether
    support[1, 1] = torch.arange(positions) == 2  # and one with a single position
    support[2:, :, 0] = True
    support[0, 1:, 0] = True
    return support


def holds(model, found, epsilon=0.01, tolerance=1e-9):
    """What is true of every result, judged from scratch."""
    after = model.predict(found.attention[None])[0]
    change = change_in_prediction(
        model.predict(model.attention.view_as(found.attention)[None])[0], after
    )
    assert found.feasible.all()
    assert (change <= epsilon + tolerance).all()
    torch.testing.assert_close(change, found.tvd, rtol=0, atol=tolerance)
    heat, own = (
        model.to_heatmap(a[None])[0].double()
        for a in (found.attention, model.attention.view_as(found.attention))
    )
    torch.testing.assert_close(found.jsd, jensen_shannon(heat, own), rtol=0, atol=1e-6)
    assert (found.jsd >= 0).all()
    assert (found.jsd <= found.upper).all()
    assert (found.upper <= LN2 + 1e-12).all()
    assert found.attention[~model.support].eq(0).all()
    assert (found.attention >= 0).all()
    mass = model.attention.view_as(found.attention).sum(-1)
    torch.testing.assert_close(found.attention.sum(-1), mass)
    return found


@pytest.mark.parametrize("positions", [2, 5, 20, 50])
def test_a_linear_readouts_optimum_is_almost_reached_and_never_exceeded(positions):
    model = Linear(20, positions, seed=positions)
    found = holds(model, model.search(steps=20))
    optimum = model.optimum()
    assert (found.jsd <= optimum + 1e-9).all()
    assert (optimum <= found.upper + 1e-9).all()
    assert (found.jsd / optimum).mean() > 0.97


def test_it_finds_more_than_the_papers_search_in_a_tenth_of_the_calls():
    model = Linear(30, 10)
    rows = (model.attention, model.readout, model.bias, model.mask)
    candidates = search_adversaries(*rows, generator=seeded())  # 5 × 500
    theirs, _, _ = best_feasible(candidates, *rows, 0.01)
    found = model.search(restarts=4, steps=20)
    assert found.jsd.mean() > 1.1 * theirs.mean()


@pytest.mark.parametrize(("classes", "epsilon"), [(2, 0.01), (3, 0.1), (5, 0.01), (12, 0.1)])
def test_a_network_keeps_its_prediction(classes, epsilon):
    model = Curved(random_support(), classes)
    found = holds(model, model.search(epsilon), epsilon)
    assert (found.jsd > 1e-3).double().mean() > 0.9


def test_it_finds_more_than_random_weights_pulled_back_to_the_prediction():
    model = Curved(random_support(rows=20))
    found, pulled = model.search(), model.search(steps=0)
    assert found.jsd.mean() > 1.5 * pulled.jsd.mean()
    holds(model, pulled)


def test_it_finds_no_less_than_what_it_begins_from():
    model = Curved(random_support())
    far = model.search(steps=10)
    begun = holds(model, model.search(steps=0, seed=1, begin=far.attention))
    assert (begun.jsd >= far.jsd - 1e-12).all()
    assert (begun.jsd > model.search(steps=0, seed=1).jsd + 1e-3).any()


def test_it_finds_no_less_than_what_others_found_and_else_the_same():
    model = Curved(random_support())
    far = model.search(steps=60)
    plain = model.search(steps=0, seed=1)
    drawn = model.search(steps=1, seed=2).attention
    known = torch.stack([far.attention, far.attention.roll(1, 0), drawn])
    told = holds(model, model.search(steps=0, seed=1, candidates=known))
    assert (told.jsd >= torch.maximum(plain.jsd, far.jsd) - 1e-12).all()
    assert (told.jsd > plain.jsd).any(), "nothing was learned from what is known"
    nothing = model.search(steps=0, seed=1, candidates=plain.attention.unsqueeze(0))
    assert torch.equal(nothing.attention, plain.attention)


def test_what_is_known_of_the_maps_reach_bounds_the_result():
    model = Curved(random_support())
    known = torch.full((12,), 0.05, dtype=torch.float64)
    free, bound = model.search(steps=2), model.search(steps=2, reach=known)
    assert torch.equal(bound.upper, torch.minimum(free.upper, known))
    assert torch.equal(model.search(steps=2, reach=torch.full_like(known, LN2)).jsd, free.jsd)


def test_more_steps_never_find_less():
    model = Curved(random_support())
    few, many = model.search(steps=4), model.search(steps=10)
    # The lanes are the same at first; only what was pulled back may differ.
    assert (many.jsd >= few.jsd - 1e-2).all()
    assert many.jsd.mean() > few.jsd.mean()


def test_causal_rows_look_at_what_came_before_only():
    support = torch.ones(9, 9, dtype=torch.bool).tril().expand(6, 9, 9)
    model = Curved(support)
    found = holds(model, model.search())
    assert torch.equal(found.attention[:, 0], model.attention[:, 0])
    assert found.jsd.mean() > 0.05


def test_rows_keep_a_total_mass_that_is_not_one():
    mass = torch.rand(12, 3, 1, generator=seeded(5), dtype=torch.float64)
    model = Curved(random_support(), mass=mass)
    assert holds(model, model.search()).jsd.mean() > 0.05


def test_a_saturated_prediction_leaves_every_weighting_free_that_saturates_too():
    model = Linear(20, 8)
    model.readout[..., 1] += 60
    found = holds(model, model.search(steps=20))
    torch.testing.assert_close(found.jsd, found.upper, rtol=0.01, atol=0)
    assert found.jsd.mean() > 0.6


def test_far_into_saturation_the_way_back_is_found():
    model = Curved(random_support(), scale=60.0)
    assert holds(model, model.search()).jsd.mean() > 0.1


def test_single_precision_is_judged_like_double():
    model = Curved(random_support(), dtype=torch.float32)
    found = holds(model, model.search(), tolerance=1e-5)
    assert found.attention.dtype == torch.float32
    assert found.jsd.mean() > 0.05


def test_one_token_has_one_weighting():
    model = Curved(torch.ones(2, 3, 1, dtype=torch.bool))
    found = holds(model, model.search())
    assert torch.equal(found.attention, model.attention)
    assert found.jsd.tolist() == [0.0, 0.0]
    assert found.upper.tolist() == [0.0, 0.0]


def test_a_text_without_any_weight_stays_as_it_is():
    model = Curved(torch.zeros(2, 3, 4, dtype=torch.bool))
    found = model.search()
    assert found.jsd.tolist() == found.upper.tolist() == [0.0, 0.0]
    assert found.attention.eq(0).all()


def test_without_tolerance_a_lone_minimum_stays():
    model = Linear(6, 2)
    found = holds(model, model.search(epsilon=0.0), epsilon=0.0, tolerance=1e-11)
    assert found.jsd.max() < 1e-9


def test_a_model_that_does_not_repeat_itself_is_not_feasible():
    model = Linear(3, 1)
    found = search(
        model.predict,
        model.to_heatmap,
        model.attention.unsqueeze(1),
        model.support,
        model.mask,
        model.predict(model.attention[None, :, None])[0] + torch.tensor([0.0, 1.0]),
        epsilon=0.01,
        steps=2,
        generators=apart(model.attention),
    )
    assert not found.feasible.any()
    assert found.jsd.eq(0).all()


def test_the_seed_decides_and_no_global_state_moves():
    model = Curved(random_support())
    before = torch.random.get_rng_state()
    first, same, other = (model.search(steps=3, seed=s) for s in (0, 0, 1))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.equal(first.attention, same.attention)
    assert not torch.equal(first.attention, other.attention)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"restarts": 0}, ["1 restart", "0 restarts"]),
        ({"steps": -1}, ["0 steps", "4 restarts", "-1 steps"]),
        ({"epsilon": -0.1}, ["epsilon >= 0", "-0.1"]),
    ],
)
def test_impossible_settings_are_errors(settings, named):
    with refused(*named, kind=ValueError):
        Linear(2, 3).search(**settings)
