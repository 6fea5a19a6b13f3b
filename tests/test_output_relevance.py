"""Output relevance of every source position, against putting all attention there."""

import pytest
import torch

from heedmap.importance import output_relevance as module
from heedmap.importance.output_relevance import linear_relevance, output_relevance
from heedmap.models.encoder_decoder import EncoderDecoder, EncoderDecoderSettings


def read(source_length=4, steps=3, **settings):
    torch.manual_seed(0)
    model = EncoderDecoder(EncoderDecoderSettings(size=6, embedding=5, **settings), 9)
    model = model.double().eval()
    source = torch.randint(9, (2, source_length))
    inputs, targets = torch.randint(9, (2, steps)), torch.randint(9, (2, steps))
    states, last = model.encode(model.source(source))
    decoded, _ = model.decode(inputs, last)
    return model, decoded, states, targets


SETTINGS = [
    {},
    {"bidirectional": True, "activation": "relu", "layers": 2},
    {"heads": 3, "cell": "gru"},
    {"attention": "uniform"},
]


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("sizes", [(1, 1), (4, 3)])
@torch.no_grad()
def test_it_is_the_log_probability_with_all_attention_on_one_position(settings, sizes):
    model, decoded, states, targets = read(*sizes, **settings)
    found = output_relevance(model, decoded, states, targets)
    for position in range(sizes[0]):
        context = states[:, position, None, None].transpose(1, 2)
        sums = context.expand(-1, model.settings.heads, sizes[1], -1)
        share = model.emit(decoded, sums).log_softmax(-1)
        expected = share.gather(-1, targets[..., None])[..., 0]
        torch.testing.assert_close(found[..., position], expected)


@torch.no_grad()
def test_blocks_do_not_change_it(monkeypatch):
    given = read(5, 7)
    whole = output_relevance(*given)
    for block in (1, 100, 200):
        monkeypatch.setattr(module, "BLOCK", block)
        torch.testing.assert_close(output_relevance(*given), whole)


@pytest.mark.parametrize("settings", SETTINGS)
@torch.no_grad()
def test_the_linear_form_is_what_a_state_adds_to_the_logit(settings):
    model, _, states, targets = read(**settings)
    found = linear_relevance(model, states, targets)
    assert found.shape == (2, 3, 4)
    for text in range(2):
        for step in range(3):
            for position in range(4):
                context = sum(one(states[text, position]) for one in model.contexts)
                context = context / model.settings.heads
                hidden = model.hidden.weight[:, model.settings.size :] @ context
                expected = model.output.weight[targets[text, step]] @ hidden
                torch.testing.assert_close(found[text, step, position], expected)
