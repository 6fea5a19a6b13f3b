"""The output projections that effective attention needs: found in every architecture, and the right ones."""

import numpy as np
import pytest
import torch
from tiny_transformers import TEXTS, tiny_classifier, tiny_model
from torch import nn

from heedmap.huggingface.attention_hook import Visitor
from heedmap.huggingface.model_adapter import attach
from heedmap.huggingface.projections import projections_of
from heedmap.huggingface.zoo import ZOO
from heedmap.models.layered import Map

# Found by name here, and by what they read there.
PROJECTIONS = {
    "bert": lambda m, i: m.bert.encoder.layer[i].attention.output.dense.weight.T,
    "gpt2": lambda m, i: m.transformer.h[i].attn.c_proj.weight,
    "llama": lambda m, i: m.model.layers[i].self_attn.o_proj.weight.T,
}


@pytest.mark.slow
def test_every_architecture_of_the_zoo_on_the_interface_has_its_projections_found():
    missing = []
    tried = 0
    for row in ZOO:
        model, inputs = row.build(), row.tensors()
        try:
            adapter = attach(model, inputs)
        except Exception:  # refused ones are other tests' business
            continue
        if adapter.kind != "interface":
            continue
        tried += 1
        with torch.no_grad(), adapter.visiting(Visitor()) as names:
            model(**inputs)
        if projections_of(model, list(names), inputs).keys() != set(names):
            missing.append(row.name)
    assert tried >= 30
    assert missing == []


class _Values(Visitor):
    def __init__(self):
        self.kept = []

    def weights(self, call, weights):
        self.kept.append((weights.detach().double(), call.value.detach().double()))


@pytest.mark.parametrize("architecture", PROJECTIONS)
def test_effective_attention_is_the_row_less_what_the_heads_output_does_not_hold(architecture):
    model = tiny_classifier(architecture)
    batch = model.batch(TEXTS[1:2], [0])  # 11 positions, heads of 4: much cancels out
    assert Map("effective", 2, None) in model.maps()
    watch = _Values()
    with torch.no_grad(), model.adapter.visiting(watch):
        model.model(**model.inputs(batch))
    row = int(model.read_rows(model.inputs(batch))[0])
    for layer, (weights, value) in enumerate(watch.kept):
        output = PROJECTIONS[architecture](model.model, layer).double()
        share = weights.shape[1] // value.shape[1]
        for head in range(4):
            size = value.shape[-1]
            passed = (value[0, head // share] @ output[head * size : (head + 1) * size]).numpy()
            left, singular, _ = np.linalg.svd(passed)
            null = left[:, (singular > 1e-10 * singular.max()).sum() :]
            own = weights[0, head, row].numpy()
            effective = np.abs(own - own @ null @ null.T)
            words = np.zeros(batch.mask.shape[1])
            for position, word in enumerate(batch.words[0].tolist()):
                if word >= 0:
                    words[word] += effective[position]
            found = model.heat_maps(batch, [Map("effective", layer, head)])[0, 0].numpy()
            assert np.allclose(found, words / words.sum(), atol=1e-6)


class _Halved(nn.Module):
    """A projection of half of what it is given, halved where it lies in memory."""

    def __init__(self, linear):
        super().__init__()
        self.linear = linear

    def forward(self, states):
        return self.linear(states.mul_(0.5))


def test_what_is_changed_on_its_way_to_a_linear_module_has_no_projection():
    model = tiny_model("bert")
    inputs = {
        "input_ids": torch.tensor([[2, 5, 6, 7, 3]]),
        "attention_mask": torch.ones(1, 5).long(),
    }
    adapter = attach(model, inputs)
    with torch.no_grad(), adapter.visiting(Visitor()) as names:
        model(**inputs)
    assert len(projections_of(model, names, inputs)) == 3
    output = model.bert.encoder.layer[1].attention.output
    output.dense = _Halved(output.dense)
    assert projections_of(model, names, inputs) == {}


def test_looking_for_projections_leaves_no_hook_behind():
    model = tiny_model("bert")
    inputs = {"input_ids": torch.tensor([[2, 5, 3]]), "attention_mask": torch.ones(1, 3).long()}
    adapter = attach(model, inputs)
    with torch.no_grad(), adapter.visiting(Visitor()) as names:
        model(**inputs)
    before = sum(len(module._forward_pre_hooks) for module in model.modules())
    assert projections_of(model, names, inputs)
    assert sum(len(module._forward_pre_hooks) for module in model.modules()) == before
