"""An encoder and a decoder with attention, against the loop over steps; the sequences they copy."""

import numpy as np
import pytest
import torch
from wording import refused

from heedmap.data.sequences import Sequences
from heedmap.models.encoder_decoder import EncoderDecoder, EncoderDecoderSettings

SIZES = {"size": 6, "embedding": 5}


def made(seed=0, symbols=7, **settings):
    torch.manual_seed(seed)
    return EncoderDecoder(EncoderDecoderSettings(**{**SIZES, **settings}), symbols).double().eval()


def step_by_step(model, source, inputs):
    """Decode one step and one head at a time, each weight by itself: the definition."""
    settings = model.settings
    states, state = model.encode(model.source(source))
    logits, weights = [], []
    for step in range(inputs.shape[1]):
        decoded, state = model.decoder(
            (model.target or model.source)(inputs[:, step : step + 1]), state
        )
        contexts, rows = [], []
        for head in range(settings.heads):
            if settings.attention == "learned":
                width = states.shape[2]
                query = decoded[:, 0] @ model.queries.weight[head * width : (head + 1) * width].T
                scores = torch.stack(
                    [(query * states[:, s]).sum(-1) for s in range(states.shape[1])], -1
                )
            else:
                scores = torch.zeros(states.shape[:2], dtype=states.dtype)
            row = scores.exp() / scores.exp().sum(-1, keepdim=True)
            mixed = sum(row[:, s, None] * states[:, s] for s in range(states.shape[1]))
            contexts.append(model.contexts[head](mixed))
            rows.append(row)
        context = sum(contexts) / settings.heads
        if settings.attention == "none":
            context = torch.zeros_like(context)
        joined = model.hidden(torch.cat([decoded[:, 0], context], -1))
        active = joined.tanh() if settings.activation == "tanh" else joined.clamp(min=0)
        logits.append(model.output(active))
        weights.append(torch.stack(rows, 1))
    return torch.stack(logits, 1), torch.stack(weights, 2)


@pytest.mark.parametrize(("source_length", "steps"), [(1, 1), (1, 4), (5, 1), (4, 6)])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"bidirectional": True},
        {"cell": "gru", "heads": 3, "shared": False},
        {"cell": "gru", "bidirectional": True, "heads": 2, "activation": "relu"},
        {"attention": "uniform"},
        {"attention": "none"},
    ],
)
@torch.no_grad()
def test_all_steps_at_once_are_the_steps_one_by_one(settings, source_length, steps):
    model = made(**settings)
    rng = np.random.default_rng(0)
    source, inputs = (
        torch.from_numpy(rng.integers(7, size=(3, n))) for n in (source_length, steps)
    )
    logits, weights = model(source, inputs)
    expected, rows = step_by_step(model, source, inputs)
    torch.testing.assert_close(logits, expected)
    torch.testing.assert_close(weights, rows)


@pytest.mark.parametrize(
    "settings",
    [
        {"bidirectional": True},
        {"cell": "gru", "layers": 2, "heads": 2},
        {"layers": 3, "bidirectional": True, "shared": False},
        {"attention": "uniform", "bidirectional": True},
        {"attention": "none", "layers": 2},
    ],
)
@torch.no_grad()
def test_a_padded_source_is_read_as_it_is_alone(settings):
    model = made(**settings)
    rng = np.random.default_rng(0)
    lengths = torch.tensor([1, 5, 2, 4])
    source, inputs = (torch.from_numpy(rng.integers(7, size=(4, n))) for n in (6, 3))
    logits, weights = model(source, inputs, lengths)
    for row, length in enumerate(lengths.tolist()):
        alone, own = model(source[row : row + 1, :length], inputs[row : row + 1])
        torch.testing.assert_close(logits[row], alone[0])
        torch.testing.assert_close(weights[row, ..., :length], own[0])
        assert (weights[row, ..., length:] == 0).all()


def test_dropout_is_drawn_in_training_alone():
    model = made(dropout=0.5, layers=2)
    source, inputs = torch.arange(5)[None], torch.tensor([[1, 2, 3]])
    first, second = model(source, inputs)[0], model(source, inputs)[0]
    torch.testing.assert_close(first, second)
    model.train()
    torch.manual_seed(0)
    assert not torch.allclose(first, model(source, inputs)[0])


@torch.no_grad()
def test_a_step_sees_the_target_up_to_itself_only():
    model = made()
    source, inputs = torch.arange(5)[None], torch.tensor([[1, 2, 3, 4]])
    changed = torch.tensor([[1, 2, 6, 5]])
    before, after = model(source, inputs)[0], model(source, changed)[0]
    torch.testing.assert_close(before[:, :2], after[:, :2])
    assert not torch.allclose(before[:, 2], after[:, 2])


@torch.no_grad()
def test_without_attention_only_the_encoders_last_state_is_known():
    model = made(attention="none")
    with torch.no_grad():
        model.encoder.weight_hh_l0.zero_()
        model.encoder.bias_ih_l0[
            6:12
        ] = -1e9  # the forget gate: the last state knows the last symbol alone
    inputs = torch.tensor([[1, 2]])
    one, other = (model(torch.tensor([[first, 3]]), inputs)[0] for first in (0, 5))
    torch.testing.assert_close(one, other)


def test_permutations_have_every_symbol_once():
    drawn = Sequences("permutations", 6, 6).draw(200, np.random.default_rng(0))
    assert drawn.shape == (200, 6)
    assert (np.sort(drawn, axis=1) == np.arange(6)).all()
    assert len(np.unique(drawn, axis=0)) > 150
    assert all(len(set(drawn[:, place])) == 6 for place in range(6))


def test_subsets_have_different_symbols_and_use_all():
    drawn = Sequences("subsets", 4, 6).draw(300, np.random.default_rng(0))
    assert all(len(set(row)) == 4 for row in drawn.tolist())
    assert set(drawn.ravel().tolist()) == set(range(6))


def test_repeats_are_independent():
    drawn = Sequences("repeats", 3, 4).draw(4000, np.random.default_rng(0))
    same = (drawn[:, 0] == drawn[:, 1]).mean()
    assert same == pytest.approx(0.25, abs=0.03)
    assert np.bincount(drawn.ravel()).min() > 0.23 * drawn.size


@pytest.mark.parametrize("kind", ["permutations", "repeats"])
def test_the_shortest_sequences_have_one_symbol(kind):
    assert Sequences(kind, 1, 1).draw(3, np.random.default_rng(0)).tolist() == [[0], [0], [0]]


@pytest.mark.parametrize(
    ("kind", "length", "symbols"),
    [("permutations", 4, 5), ("subsets", 4, 4), ("repeats", 0, 3), ("repeats", 2, 0)],
)
def test_sequences_that_cannot_be_are_refused(kind, length, symbols):
    with refused(kind, kind=ValueError):
        Sequences(kind, length, symbols)
