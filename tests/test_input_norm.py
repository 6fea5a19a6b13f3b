"""Where a norm takes the length of the embeddings away, gradients are taken behind it, or not at all."""

import copy
from unittest.mock import patch

import numpy as np
import pytest
import torch
import transformers as hf
from tiny_transformers import CONFIGS, SMALL, TEXTS, tiny_model, tiny_tokenizer
from torch import nn

import heedmap as hm
from heedmap.experiments.registry import not_asked
from heedmap.huggingface.transformer_classifier import TransformerClassifier
from heedmap.importance.gradients import gradient_importance
from heedmap.importance.integrated_gradients import integrated_gradients
from heedmap.settings.models import TransformerSettings

RELATIVE = {"position_biased_input": False, "type_vocab_size": 0, "relative_attention": True}
DEBERTA = {**SMALL, **RELATIVE, "intermediate_size": 24, "pos_att_type": ["p2c", "c2p"]}
OWN_CONFIGS = {
    "deberta-v3": (hf.DebertaV2Config, DEBERTA),
    "narrow deberta": (hf.DebertaV2Config, {**DEBERTA, "embedding_size": 8}),
}
# The norm by its name in transformers.
NORMS = {
    "deberta-v3": "deberta.embeddings.LayerNorm",
    "modernbert": "model.embeddings.norm",
    "bloom": "transformer.word_embeddings_layernorm",
}


def put_on_trial(architecture):
    """A model, and its copy as transformers made it, with norms that are no plain ones."""
    with patch.dict(CONFIGS, OWN_CONFIGS):
        model = tiny_model(architecture)
    torch.manual_seed(3)
    for name, parameter in model.named_parameters():
        if "norm" in name.lower():
            parameter.add_(0.3 * torch.randn_like(parameter))
    as_loaded = copy.deepcopy(model)
    settings = TransformerSettings(source=architecture)
    return TransformerClassifier(
        model, tiny_tokenizer(architecture), settings, ["a", "b"]
    ), as_loaded


def by_hand(as_loaded, norm, ids, predicted, outputs=None):
    """The log-odds and their gradient by the norm's output, which may be replaced, by autograd alone."""
    kept = []

    def hook(_, __, output):
        kept.append((output if outputs is None else outputs).detach().requires_grad_())
        return kept[0]

    handle = as_loaded.get_submodule(norm).register_forward_hook(hook)
    logits = as_loaded(input_ids=ids, attention_mask=torch.ones_like(ids)).logits
    handle.remove()
    z = logits[:, predicted] - logits[:, 1 - predicted]
    return z.detach(), torch.autograd.grad(z.sum(), kept[0])[0], kept[0].detach()


def on_words(parts, words, size):
    return torch.zeros(size).index_add(0, words[words >= 0], parts[words >= 0]).abs()


@pytest.mark.parametrize("architecture", NORMS)
def test_gradients_are_those_behind_the_norm_by_autograd(architecture):
    model, as_loaded = put_on_trial(architecture)
    text, norm = TEXTS[0], NORMS[architecture]
    batch = model.batch([text], [0])
    trace = model.trace(batch)
    words, ids, predicted = batch.words[0], batch.ids, int(trace.predicted)
    _, gradient, states = by_hand(as_loaded, norm, ids, predicted)
    expected = on_words((gradient * states).sum(-1)[0], words, len(text))
    found = gradient_importance(model, batch, trace, path="open")[0]
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
    assert found.min() > 1e-3 * found.max()  # no rounding errors

    baseline = states.masked_fill((words >= 0)[None, :, None], 0.0)
    root = ((torch.arange(2000) + 0.5) / 2000).view(-1, 1, 1)  # the midpoint rule of √α
    path = baseline + root.square() * (states - baseline)
    _, gradients, _ = by_hand(as_loaded, norm, ids.expand(2000, -1), predicted, path)
    parts = (2 * root * gradients * (states - baseline)).sum(-1).mean(0)
    found, error = integrated_gradients(model, batch, trace, 1024)
    torch.testing.assert_close(found[0], on_words(parts, words, len(text)), rtol=2e-2, atol=1e-2)
    assert error < 1e-2


@pytest.mark.parametrize("architecture", NORMS)
def test_a_text_of_many_reads_as_alone_and_the_answers_stay(architecture):
    model, as_loaded = put_on_trial(architecture)
    batch = model.batch(TEXTS, range(3))
    expected = as_loaded(**model.inputs(batch)).logits
    torch.testing.assert_close(model.logits(batch), expected, atol=1e-5, rtol=0)
    again = model.logits_from(model.embed(batch), batch)
    torch.testing.assert_close(again, expected, atol=1e-5, rtol=0)
    together = gradient_importance(model, batch, model.trace(batch))
    for i, text in enumerate(TEXTS):
        alone = model.batch([text], [0])
        found = gradient_importance(model, alone, model.trace(alone))[0]
        torch.testing.assert_close(together[i, : len(text)], found, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("architecture", ["bert", "llama", "gpt2", "xlnet", "mpnet"])
def test_other_models_embeddings_stay_those_of_the_table(architecture):
    model, as_loaded = put_on_trial(architecture)
    batch = model.batch(TEXTS, range(3))
    looked_up = as_loaded.get_input_embeddings()(batch.ids)
    assert torch.equal(model.embed(batch), looked_up)
    assert "gradients" in model.capabilities


def test_a_measured_drift_leaves_the_norm_where_it_is():
    model, _ = put_on_trial("modernbert")
    batch = model.batch(TEXTS, range(3))
    before = model.embed(batch)
    model.drift()
    assert torch.equal(model.embed(batch), before)


def test_where_the_norm_is_not_the_first_the_questions_of_gradients_are_left_out():
    model, as_loaded = put_on_trial("narrow deberta")
    batch = model.batch(TEXTS[:1], [0])
    embedded = as_loaded.get_input_embeddings()(batch.ids).requires_grad_()
    logits = as_loaded(inputs_embeds=embedded, attention_mask=batch.real.long()).logits
    (gradient,) = torch.autograd.grad(logits[0, 0] - logits[0, 1], embedded)
    parts = (gradient * embedded).sum(-1).abs().max()
    assert parts < 1e-4 * (gradient * embedded).abs().sum(-1).max()  # 0 by construction
    assert "gradients" not in model.capabilities
    split = hm.Split(["a"], TEXTS[:1], np.zeros(1, int))
    assert not_asked(model, split)["gradient"] == ["gradients"]


class Pooling(nn.Module):
    """Attention over items, whose vectors a norm may read first."""

    def __init__(self, first):
        super().__init__()
        self.first, self.score, self.out = first, nn.Linear(6, 1), nn.Linear(6, 2)

    def forward(self, bag):
        states = self.first(bag).tanh()
        return self.out((self.score(states).softmax(0) * states).sum(0))


class Direction(nn.Module):
    def forward(self, bag):
        return nn.functional.normalize(bag, dim=-1)


@pytest.mark.parametrize(
    ("first", "reads_length"),
    [
        (nn.LayerNorm(6), False),
        (Direction(), False),
        (nn.Linear(6, 6), True),
        (nn.Linear(6, 6, bias=False), True),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_module_that_normalises_its_items_first_is_not_asked_of_gradients(first, reads_length):
    torch.manual_seed(0)
    module = Pooling(first).eval()
    rng = np.random.default_rng(0)
    bags = [rng.normal(size=(n, 6)).astype(np.float32) for n in (5, 7, 4)]
    run = hm.open_pooling(module, bags, layer="score")
    bag = torch.from_numpy(bags[0]).requires_grad_()
    (gradient,) = torch.autograd.grad(module(bag)[0], bag)
    relative = (gradient * bag).sum(-1).abs().max() / (gradient * bag).abs().sum(-1).max()
    assert bool(relative > 1e-3) == reads_length
    assert ("gradients" in run.model.capabilities) == reads_length
