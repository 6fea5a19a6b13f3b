"""Hidden token attribution against whole Jacobians, and where its answer is known."""

import copy
from functools import partial

import numpy as np
import pytest
import torch
import transformers as hf
from tiny_transformers import TEXTS, tiny_classifier, tiny_model, tiny_tokenizer

from heedmap.errors import InputError
from heedmap.huggingface.hidden_states import hidden_states, states_from
from heedmap.huggingface.transformer_classifier import TransformerClassifier
from heedmap.importance.hidden_tokens import contributions, random_directions
from heedmap.models import kernels
from heedmap.settings.models import TransformerSettings


def jacobian_shares(states, embedded):
    """The definition: every Jacobian, its Frobenius norm, and the share of each token."""
    layers = len(states(embedded.unsqueeze(0)))
    size = len(embedded)
    shares = torch.zeros(layers, size, size, dtype=torch.float64)
    for layer in range(layers):
        jacobian = torch.autograd.functional.jacobian(
            lambda x, layer=layer: states(x.unsqueeze(0))[layer][0], embedded
        )
        for i in range(size):
            norms = [float(jacobian[i, :, j].double().norm()) for j in range(size)]
            shares[layer, i] = torch.tensor(norms) / sum(norms)
    return shares


def all_directions(width, seed=0):
    return random_directions(width, width, np.random.default_rng(seed))


@pytest.mark.parametrize("architecture", ["bert", "albert", "gpt2", "mpnet"])
@pytest.mark.parametrize("text", [0, 2])
def test_with_all_directions_the_contributions_are_those_of_the_jacobians(architecture, text):
    model = tiny_classifier(architecture)
    batch = model.batch([TEXTS[text]], [0])
    embedded = model.embed(batch)[0]
    read = partial(states_from, model, batch)
    shares = contributions(read, embedded, all_directions(embedded.shape[1]), rows_at_once=7)
    torch.testing.assert_close(shares, jacobian_shares(read, embedded), atol=1e-4, rtol=1e-3)


def test_a_single_direction_is_enough_where_positions_are_mixed_by_numbers_alone():
    rng = torch.Generator().manual_seed(0)
    mix, inner = (torch.randn(size, size, generator=rng) for size in (5, 4))
    directions = random_directions(4, 1, np.random.default_rng(3))
    shares = contributions(lambda x: [mix @ x @ inner], torch.ones(5, 4), directions)[0]
    expected = (mix.abs() / mix.abs().sum(1, keepdim=True)).double()
    torch.testing.assert_close(shares, expected, atol=1e-6, rtol=1e-5)


def test_few_directions_come_near_the_whole():
    model = tiny_classifier("bert")
    batch = model.batch([TEXTS[0]], [0])
    embedded, read = model.embed(batch)[0], partial(states_from, model, batch)
    whole = contributions(read, embedded, all_directions(16))
    draws = [
        contributions(read, embedded, random_directions(16, 4, np.random.default_rng(seed)))
        for seed in range(20)
    ]
    torch.testing.assert_close(torch.stack(draws).mean(0), whole, atol=0.03, rtol=0.1)


def test_directions_are_orthonormal_and_as_many_as_there_can_be():
    for width, count in ((1, 1), (5, 2), (5, 9)):
        directions = random_directions(width, count, np.random.default_rng(0)).double()
        assert directions.shape == (min(count, width), width)
        torch.testing.assert_close(
            directions @ directions.T,
            torch.eye(len(directions)).double(),
            atol=1e-6,
            rtol=0.0,
        )


def test_states_of_their_own_token_of_no_token_and_of_all():
    shares = contributions(lambda x: [x, x * 0 + 1, x.mean(1, keepdim=True).expand_as(x)],
                           torch.randn(3, 2), all_directions(2))  # fmt: skip
    assert torch.equal(shares[0], torch.eye(3).double())
    assert bool(shares[1].isnan().all())
    torch.testing.assert_close(shares[2], torch.full((3, 3), 1 / 3).double(), atol=1e-6, rtol=0.0)


def test_a_text_of_one_position_has_one_contribution():
    shares = contributions(lambda x: [2 * x], torch.ones(1, 3), all_directions(3))
    assert shares.tolist() == [[[1.0]]]


def test_states_are_those_of_the_model_and_do_not_depend_on_the_batch():
    model = tiny_classifier("bert")
    together = hidden_states(model, model.batch(TEXTS, range(3)))
    batch = model.batch([TEXTS[0]], [0])
    alone = hidden_states(model, batch)
    assert len(alone) == 4
    size = alone[0].shape[1]
    again = states_from(model, batch, model.embed(batch).expand(2, -1, -1))
    for whole, one, same in zip(together, alone, again, strict=True):
        torch.testing.assert_close(whole[:1, :size], one, atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(same[1:], one, atol=1e-5, rtol=1e-4)


def test_what_cannot_be_read_is_refused():
    bart = tiny_classifier("bart")
    with pytest.raises(InputError, match=r"one stack of layers.*choose another model"):
        hidden_states(bart, bart.batch(TEXTS[:1], [0]))
    bloom = tiny_classifier("bloom")
    batch = bloom.batch(TEXTS[:1], [0])
    with pytest.raises(InputError, match=r"derivatives can be taken forward.*another model"):
        contributions(partial(states_from, bloom, batch), bloom.embed(batch)[0], all_directions(16))


def shares_by_differences(loaded, ids, directions, step=1e-4):
    """The definition, by central differences of the model as transformers has it, in double precision."""
    embedded = loaded.get_input_embeddings()(ids).detach()
    size = ids.shape[1]
    shares = []
    for j in range(size):
        moves = torch.zeros(len(directions), size, embedded.shape[-1], dtype=torch.float64)
        moves[:, j] = step * directions.double()
        ahead, behind = (
            torch.stack(loaded(inputs_embeds=embedded + x, output_hidden_states=True).hidden_states)
            for x in (moves, -moves)
        )
        shares.append(((ahead - behind) / (2 * step)).square().sum((1, 3)).sqrt())
    norms = torch.stack(shares, -1).detach()
    return norms / norms.sum(-1, keepdim=True)


@pytest.mark.parametrize("threshold", [0, kernels.LEAST])
def test_contributions_at_the_size_of_minilm_are_those_of_the_model_as_loaded(
    threshold, monkeypatch
):
    monkeypatch.setattr(kernels, "LEAST", threshold)
    monkeypatch.setattr(kernels, "onednn", getattr(torch.ops.mkldnn, "_linear_pointwise", None))
    small = tiny_model("bert").config.to_dict()
    size = {"hidden_size": 384, "num_attention_heads": 12, "intermediate_size": 1536}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        loaded = hf.BertForSequenceClassification(
            hf.BertConfig.from_dict({**small, **size, "initializer_range": 0.1})
        ).eval()
    model = TransformerClassifier(
        copy.deepcopy(loaded),
        tiny_tokenizer("bert"),
        TransformerSettings(source="bert"),
        ["a", "b"],
    )
    batch = model.batch([TEXTS[0]], [0])
    directions = random_directions(384, 2, np.random.default_rng(1))
    read = partial(states_from, model, batch)
    shares = contributions(read, model.embed(batch)[0], directions)
    expected = shares_by_differences(loaded.double(), batch.ids, directions)
    torch.testing.assert_close(shares, expected, atol=1e-5, rtol=1e-4)
    assert float(shares[-1].diagonal().max()) < 0.9, "each token has mixed with others"
