"""What is read together gives the numbers that each reading by itself gives."""

import numpy as np
import pytest
import torch
from conftest import random_texts, small_model
from tiny_transformers import TEXTS, tiny_classifier

from heedmap.data.corpus import Split
from heedmap.experiments.context import AuditContext
from heedmap.experiments.questions.baselines import importance_under
from heedmap.experiments.registry import registered
from heedmap.settings.audit import AuditSettings

EDGES = [*TEXTS, ["A", " film"]]  # of 4, 7, 1 and 2 words


def evidence_of(model, texts):
    split = Split([str(i) for i in range(len(texts))], texts, np.zeros(len(texts), dtype=np.int64))
    settings = AuditSettings(integrated_gradients_steps=2, gradient_path="closed")
    return AuditContext(model, split, settings, registered())


def drawn_weights(trace, count=3):
    draws = torch.rand(
        count, *trace.attention.shape, generator=torch.Generator().manual_seed(0)
    ).masked_fill(~trace.support, 0.0)
    return draws / draws.sum(-1, keepdim=True).clamp(min=1e-9)


@pytest.mark.parametrize("model", ["lstm", "average", "bert", "gpt2", "llama", "bart"])
def test_weights_imposed_together_give_what_each_gives_alone(model):
    own = model in ("lstm", "average")
    texts = random_texts((1, 2, 3, 7)) if own else EDGES
    model = small_model(model) if own else tiny_classifier(model)
    evidence = evidence_of(model, texts)
    batch = model.batch(texts, range(len(texts)))
    trace = model.trace(batch)
    weights = drawn_weights(trace)
    arguments = model, evidence.settings, batch, trace, texts
    together = {name: values for name, *values in importance_under(*arguments, weights, slow=True)}
    assert list(together) == ["gradient", "leave_one_out", "integrated_gradients"]
    for place in range(len(weights)):
        alone = importance_under(*arguments, weights[[place]], slow=place == 0)
        for name, importance, signed in alone:
            assert torch.allclose(
                together[name][0][place], importance[0], atol=1e-6, equal_nan=True
            )
            if signed is not None:
                assert torch.allclose(
                    together[name][1][place], signed[0], atol=1e-6, equal_nan=True
                )


# The twin's shortened texts are read from the deletion on where a model is causal: in no batch of whole texts.
@pytest.mark.parametrize(("architecture", "times"), [("bert", 2), ("gpt2", 1)])
def test_chance_reads_each_shortened_text_once_for_all_weights_and_once_for_the_twin(
    architecture, times, monkeypatch
):
    model = tiny_classifier(architecture)
    evidence = evidence_of(model, EDGES)
    for name in ("gradient", "leave_one_out", "integrated_gradients"):
        evidence.table(name)
    read = []
    make_batch = model.batch
    monkeypatch.setattr(
        model, "batch", lambda texts, rows: read.extend(map(len, texts)) or make_batch(texts, rows)
    )
    evidence.table("baselines")
    shortened = sum(len(text) for text in EDGES if len(text) > 1)
    assert len(read) == times * shortened + 2 * len(EDGES)


@pytest.mark.parametrize("architecture", ["bert", "distilbert", "albert", "gpt2", "llama", "bart"])
@pytest.mark.parametrize("settings", [{}, {"layer": 1}, {"head": 1}, {"view": "received"}])
def test_gradients_without_the_unread_rows_are_those_of_the_whole_model(architecture, settings):
    model = tiny_classifier(architecture, **settings)
    assert model.quick is not None
    batch = model.batch(EDGES, range(len(EDGES)))
    weights = drawn_weights(model.trace(batch), 1)[0]
    embedded = (model.embed(batch) * 0.9).requires_grad_()
    sides = []
    for quick in (model.quick, None):
        model.quick = quick
        for imposed in (None, weights):
            logits = model.logits_from(embedded, batch, imposed)
            (gradient,) = torch.autograd.grad((logits * torch.arange(1, 3)).sum(), embedded)
            sides += [logits.detach(), gradient]
    assert not torch.allclose(sides[0], sides[2], atol=1e-3)  # imposed weights make a difference
    for ours, whole in zip(sides[:4], sides[4:], strict=True):
        assert torch.allclose(ours, whole, atol=1e-5 * float(whole.abs().max()))
