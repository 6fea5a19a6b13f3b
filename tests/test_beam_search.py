"""Beam search against greedy decoding and against all translations."""

from itertools import product

import pytest
import torch

from heedmap.models.beam_search import translate
from heedmap.models.encoder_decoder import EncoderDecoder, EncoderDecoderSettings

START, END, SYMBOLS = 0, 1, 5


def made(seed, **settings):
    torch.manual_seed(seed)
    model = EncoderDecoder(EncoderDecoderSettings(size=6, embedding=5, **settings), SYMBOLS).eval()
    with torch.no_grad():
        model.output.weight.mul_(4)  # different from step to step
    return model


@torch.no_grad()
def log_probabilities(model, source, target):
    """Return those of a target's symbols, each after the ones before it."""
    logits, _ = model(source[None], torch.tensor([[START, *target[:-1]]]))
    return logits[0].log_softmax(-1)[torch.arange(len(target)), torch.tensor(target)]


@torch.no_grad()
def greedy(model, source, longest):
    found = []
    for _ in range(longest):
        logits, _ = model(source[None], torch.tensor([[START, *found]]))
        best = int(logits[0, -1].argmax())
        if best == END:
            break
        found.append(best)
    return found


@pytest.mark.parametrize("settings", [{}, {"cell": "gru", "layers": 2, "bidirectional": True}])
@pytest.mark.parametrize("seed", range(4))
def test_one_beam_is_greedy(seed, settings):
    model, source = made(seed, **settings), torch.tensor([2, 3, 4])
    found = translate(model, source, start=START, end=END, beams=1, longest=6)
    assert found == greedy(model, source, 6)


@pytest.mark.parametrize("seed", range(4))
def test_beams_for_all_find_the_best_of_all(seed):
    model, source, longest = made(seed), torch.tensor([4, 2]), 3
    others = [symbol for symbol in range(SYMBOLS) if symbol != END]
    every = [[*words, END] for length in range(longest) for words in product(others, repeat=length)]
    best = max(every, key=lambda target: log_probabilities(model, source, target).mean())
    found = translate(model, source, start=START, end=END, beams=SYMBOLS**longest, longest=longest)
    assert found == best[:-1]


def test_what_never_ends_is_cut():
    model = made(0)
    with torch.no_grad():
        model.output.bias[END] = -1e9
    found = translate(model, torch.tensor([2]), start=START, end=END, beams=2, longest=4)
    assert len(found) == 4


def test_a_translation_may_be_empty():
    model = made(0)
    with torch.no_grad():
        model.output.bias[END] = 1e9
    assert translate(model, torch.tensor([2]), start=START, end=END, beams=1) == []
