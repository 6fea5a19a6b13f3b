"""A decoder that reads its context before each step, against the loop written out."""

import pytest
import torch

from heedmap.models.step_decoder import StepDecoder, StepDecoderSettings

KINDS = ["learned", "uniform", "none"]


def made(attention="learned", seed=0, **settings):
    torch.manual_seed(seed)
    sizes = {"size": 5, "embedding": 4, "dropout": 0.0, **settings}
    model = StepDecoder(StepDecoderSettings(attention=attention, **sizes), 9, 8).double().eval()
    with torch.no_grad():
        for values in model.parameters():
            values.normal_(0, 0.7)
    return model


@torch.no_grad()
def by_hand(model, source, first, steps, given=None, forced=None, blocked=()):
    """Read one source, each weight by itself."""
    settings, size = model.settings, len(source)
    states, last = model.encoder(model.source(torch.tensor([source])))
    state = torch.tanh(model.bridge(torch.cat([last[0], last[1]], -1)))
    symbol, logits, weights = first, [], []
    for step in range(steps):
        if settings.attention == "learned":
            scores = [
                model.score(torch.tanh(model.query(state[0]) + model.key(states[0, s])))
                for s in range(size)
            ]
            row = torch.cat(scores).exp()
            row = row / row.sum()
        elif settings.attention == "uniform":
            row = torch.full((size,), 1 / size, dtype=states.dtype)
        else:
            row = torch.tensor([1.0] + [0.0] * (size - 1), dtype=states.dtype)
        weights.append(row)
        used = [0 if (step, s) in blocked else row[s] for s in range(size)]
        context = sum(used[s] * states[0, s] for s in range(size))[None]
        embedded = model.target(torch.tensor([symbol]))
        state = model.decoder(torch.cat([embedded, context], -1), state)
        logits.append(model.output(torch.cat([state, context, embedded], -1))[0])
        is_given = forced is not None and forced[step]
        symbol = int(given[step] if is_given else logits[-1].argmax())
    return torch.stack(logits), torch.stack(weights)


@pytest.mark.parametrize("attention", KINDS)
@torch.no_grad()
def test_a_batch_is_each_source_by_itself_without_its_padding(attention):
    model = made(attention)
    sources = [[3, 4, 5, 6], [7], [2, 8]]
    lengths = torch.tensor([len(one) for one in sources])
    padded = torch.tensor([one + [1] * (4 - len(one)) for one in sources])
    logits, weights = model(padded, lengths, 0, 3)
    for row, one in enumerate(sources):
        expected, own = by_hand(model, one, 0, 3)
        torch.testing.assert_close(logits[row], expected)
        torch.testing.assert_close(weights[row, :, : len(one)], own)
        assert (weights[row, :, len(one) :] == 0).all()


@torch.no_grad()
def test_forced_steps_are_given_the_right_symbol():
    model = made()
    given = torch.tensor([[6, 2, 7, 3]])
    for forced in ([True] * 4, [True, False, True, False], [False] * 4):
        logits, _ = model(
            torch.tensor([[3, 4]]), torch.tensor([2]), 0, 4, given, torch.tensor(forced)
        )
        expected, _ = by_hand(model, [3, 4], 0, 4, given[0], forced)
        torch.testing.assert_close(logits[0], expected)


@torch.no_grad()
def test_blocked_positions_have_no_weight_and_nothing_takes_it():
    model = made()
    allowed = torch.ones(1, 3, 4, dtype=torch.bool)
    allowed[0, 0, 2] = allowed[0, 2, 1] = False
    logits, weights = model(torch.tensor([[3, 4, 5, 6]]), torch.tensor([4]), 0, 3, allowed=allowed)
    expected, own = by_hand(model, [3, 4, 5, 6], 0, 3, blocked={(0, 2), (2, 1)})
    torch.testing.assert_close(logits[0], expected)
    torch.testing.assert_close(weights[0], own)


def test_other_attention_starts_from_the_same_weights():
    found = []
    for attention in KINDS:
        torch.manual_seed(3)
        model = StepDecoder(StepDecoderSettings(5, 4, 0.0, attention), 9, 8)
        found.append(dict(model.named_parameters()))
    learned, *others = found
    for other in others:
        assert set(other) < set(learned)
        assert all(torch.equal(learned[name], values) for name, values in other.items())


def test_dropout_is_drawn_in_training_alone():
    model = made(dropout=0.5)
    source = torch.tensor([[3, 4]]), torch.tensor([2]), 0, 2
    with torch.no_grad():
        before = model(*source).logits
        assert torch.equal(before, model(*source).logits)
        model.train()
        torch.manual_seed(0)
        assert not torch.allclose(before, model(*source).logits)
