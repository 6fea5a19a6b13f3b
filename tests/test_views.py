"""The heat map on trial under other weights: every view is what the edited model itself would show."""

from functools import partial

import pytest
import torch
from tiny_transformers import TEXTS, tiny_classifier

from heedmap.counterfactual.constrained import search
from heedmap.experiments.methods.adversary_search import most_different_met
from heedmap.huggingface.maps import VIEWS
from heedmap.measures import LN2, change_in_prediction, jensen_shannon
from heedmap.settings.audit import AuditSettings

CLOSE = 1e-5  # gradients, in float32, added up in another order

# bert's classifier reads the first row, gpt2's, llama's and bloom's the last, modernbert's (a mean) all of
# them, bart's the last of its cross-attention, through which neither rollout nor flow goes.
READS = {
    "bert": "first",
    "gpt2": "last",
    "llama": "last",
    "bloom": "last",
    "bart": "last",
    "modernbert": "all",
}
ONE_HEAD = ("row", "received", "gradient", "effective")
CASES = [
    (architecture, {"view": view, "layer": layer, "head": head})
    for architecture in READS
    for view in VIEWS
    for layer in (0, -1)
    for head in ("mean", 2)
    if (head == "mean" or view in ONE_HEAD)
    and (architecture, view) not in [("bloom", "effective"), ("bart", "rollout"), ("bart", "flow")]
]


def other_weights(trace, count=2, sharp=2.0, seed=1):
    """Weights on the support, each row with the mass that it has."""
    generator = torch.Generator().manual_seed(seed)
    noise = sharp * torch.randn(count, *trace.attention.shape, generator=generator)
    dealt = noise.masked_fill(~trace.support, -torch.inf).softmax(-1).nan_to_num()
    return dealt * trace.attention.sum(-1, keepdim=True)


def on_trial(architecture, **settings):
    model = tiny_classifier(architecture, **settings)
    batch = model.batch(TEXTS, range(3))
    return model, batch, model.trace(batch)


def slow_map(model, batch, weights):
    """The map on trial as the reader of all maps finds it, in a whole pass with these weights imposed."""
    return model.heat_maps(batch, [model.map_on_trial()], weights)[:, 0]


def draws(trace):
    """A generator per text, as an audit has them."""
    return [torch.Generator().manual_seed(row) for row in range(len(trace.mask))]


@pytest.mark.parametrize("architecture", READS)
def test_the_tiny_models_read_the_first_row_the_last_and_all(architecture):
    assert tiny_classifier(architecture).reads == READS[architecture]


@pytest.mark.parametrize(("architecture", "settings"), CASES)
def test_every_view_is_made_anew_as_the_edited_model_itself_would_show_it(architecture, settings):
    model, batch, trace = on_trial(architecture, **settings)
    own = model.to_heatmap(trace, trace.attention.unsqueeze(0))[0]
    assert torch.allclose(own, trace.heatmap, atol=CLOSE), (
        "the model's own weights give its own map"
    )
    edited = other_weights(trace)
    found = model.to_heatmap(trace, edited)
    for weights, shown in zip(edited, found, strict=True):
        assert torch.allclose(shown, slow_map(model, batch, weights), atol=CLOSE)
    assert not torch.allclose(found[0], found[1], atol=1e-3)


@pytest.mark.parametrize("architecture", ["bert", "llama", "modernbert", "bloom"])
@pytest.mark.parametrize("layer", [0, 1, 2])
def test_no_weights_at_all_move_a_rollout_further_than_its_reach(architecture, layer):
    model, _, trace = on_trial(architecture, view="rollout", layer=layer)
    reach = model.reach(trace)
    assert (reach < LN2).all(), "the residual connection alone keeps a part of the map"
    for sharp in (1.0, 5.0, 1000.0):
        shown = model.to_heatmap(trace, other_weights(trace, 200, sharp)).double()
        assert (
            jensen_shannon(shown, trace.heatmap.double().expand_as(shown)) <= reach + 1e-6
        ).all()


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_a_rollouts_reach_is_reached_by_all_rows_on_one_position(layer):
    model, batch, trace = on_trial("bert", view="rollout", layer=layer)
    positions = trace.attention.shape[-1]
    corners = torch.eye(positions)[:, None, None].expand(-1, *trace.attention.shape)
    shown = model.to_heatmap(trace, corners * trace.attention.sum(-1, keepdim=True)).double()
    moved = jensen_shannon(shown, trace.heatmap.double().expand_as(shown))
    most = moved.masked_fill(~batch.real.T, 0.0).amax(0)
    assert torch.allclose(most, model.reach(trace), atol=1e-7)


@pytest.mark.parametrize("view", ["row", "received", "gradient", "effective"])
def test_less_than_ln_2_is_claimed_of_no_other_view(view):
    model, _, trace = on_trial("bert", view=view)
    assert model.reach(trace).tolist() == [LN2] * 3


@pytest.mark.parametrize("architecture", ["bert", "modernbert"])
@pytest.mark.parametrize("view", ["received", "rollout", "gradient", "effective"])
def test_the_adversary_is_judged_by_the_map_that_the_edited_model_shows(architecture, view):
    model, batch, trace = on_trial(architecture, view=view, layer=1)
    settings = AuditSettings(epsilon=0.05, search_steps=6, search_restarts=2)
    found = most_different_met(model, trace, settings, draws(trace))
    shown = slow_map(model, batch, found.attention).double()
    torch.testing.assert_close(
        found.jsd, jensen_shannon(shown, trace.heatmap.double()), rtol=0, atol=CLOSE
    )
    logits = model.logits_from(model.embed(batch), batch, found.attention)
    tvd = change_in_prediction(trace.logits, logits)
    torch.testing.assert_close(found.tvd, tvd, rtol=0, atol=CLOSE)
    assert (tvd <= 0.05 + CLOSE).all()
    assert (found.jsd <= found.upper).all()
    assert (found.jsd[:2] > 1e-3).all()
    assert found.jsd[2] == 0, "one word: its map is 1, whatever the weights"


@pytest.mark.parametrize("view", ["rollout", "gradient", "effective"])
def test_a_derived_maps_search_finds_no_less_than_the_search_for_its_weights(view):
    model, _, trace = on_trial("bert", view=view)
    settings = AuditSettings(epsilon=0.05, search_steps=4, search_restarts=2)
    found = most_different_met(model, trace, settings, draws(trace))
    predict = partial(model.predict, trace)
    rest = (trace.attention, trace.support, trace.mask, trace.logits)
    plain = search(
        predict, partial(model.plain, trace), *rest, epsilon=0.05, steps=4, restarts=2,
        generators=draws(trace),
    )  # fmt: skip
    shown = model.to_heatmap(trace, plain.attention.unsqueeze(0))[0].double()
    moved = jensen_shannon(shown, trace.heatmap.double())
    assert (found.jsd >= moved - CLOSE).all()
    assert found.jsd.sum() > moved.sum() + 1e-3


@pytest.mark.parametrize("architecture", ["bert", "xlnet", "bloom"])
def test_the_slope_of_the_gradient_view_is_that_of_differences(architecture):
    """It is a second derivative, through the layers above and through whatever multiplies in them."""
    model, _, trace = on_trial(architecture, view="gradient")
    weights = trace.attention.unsqueeze(0)
    generator = torch.Generator().manual_seed(0)
    # In proportion to the weights: below 0 the size of a product would bend.
    direction = weights * torch.randn(weights.shape, generator=generator)
    shares = torch.randn(model.to_heatmap(trace, weights).shape, generator=generator)

    def total(size):
        return (model.to_heatmap(trace, weights + size * direction).double() * shares).sum()

    size = torch.zeros((), requires_grad=True)
    (slope,) = torch.autograd.grad(total(size), size)
    by_difference = (total(1e-3) - total(-1e-3)) / 2e-3
    assert float(slope) == pytest.approx(float(by_difference), rel=1e-2, abs=1e-3)
