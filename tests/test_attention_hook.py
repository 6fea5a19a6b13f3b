"""The ways into a model: the weights read are those it computes, and imposed weights are used.

With no weights imposed, it answers bit for bit as its own eager attention does.
"""

import copy

import pytest
import torch
from torch.overrides import _get_current_function_mode_stack
from transformers import AlbertConfig, GPTJConfig, GPTJForSequenceClassification
from transformers import AutoModelForSequenceClassification as Classifier
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from wording import refused

from heedmap.huggingface.attention_hook import (
    NAME,
    Call,
    Visitor,
    fusing,
    visiting,
    weighted_sum,
)
from heedmap.huggingface.interception import visiting_softmax
from heedmap.huggingface.logging import quiet
from heedmap.huggingface.measuring import Copying, Spreading, WeightRecorder, answer
from heedmap.huggingface.model_adapter import (
    attach,
    detach,
    eagerly,
    example_inputs,
    is_attached,
    reported,
)
from heedmap.huggingface.zoo import ZOO, architecture

QUICK = ("bert", "distilbert", "gpt2", "llama", "gpt_oss", "t5", "vit", "bloom", "deberta-v2")
REFUSED = ("longformer", "funnel", "fnet", "led")
CLAIMED = [
    pytest.param(row, id=row.name, marks=() if row.name in QUICK else pytest.mark.slow)
    for row in ZOO
    if row.name not in REFUSED
]


@torch.no_grad()
def say(model, inputs):
    return answer(model(**inputs))


def record(adapter, inputs):
    visitor = WeightRecorder()
    with adapter.visiting(visitor) as names:
        said = say(adapter.model, inputs)
    return said, visitor.taken, names


@pytest.mark.parametrize("row", CLAIMED)
def test_entered_a_model_answers_as_eager_and_its_weights_are_those_it_reports(row):
    model, inputs = row.build(), row.tensors()
    with eagerly(model), torch.no_grad():
        output = model(**inputs, output_attentions=True)
    adapter = attach(model, inputs)
    said, taken, names = record(adapter, inputs)
    assert torch.equal(said, answer(output))
    assert len(taken) == len(names) == len(reported(output))
    for weights in taken:
        assert any(
            w.shape == weights.shape and torch.allclose(w, weights, atol=1e-7)
            for w in reported(output)
        )
    for visitor, same in ((Visitor(), True), (Copying(), True), (Spreading(), False)):
        with adapter.visiting(visitor):
            assert torch.equal(say(model, inputs), said) == same
    detach(model)


UNFUSED = ("gpt_oss", "gemma2")  # sinks and soft caps would be lost


@pytest.mark.parametrize("row", CLAIMED)
def test_fused_attention_forms_no_weights_and_gives_the_same_answers(row):
    class Looking(Visitor):
        def attend(self, call, eager):
            output, weights = eager()
            formed.append(weights is not None)
            return output, weights

    model, inputs = row.build(), row.tensors()
    adapter = attach(model, inputs)
    if adapter.kind != "interface":
        return
    said = say(model, inputs)
    formed = []
    with fusing(), adapter.visiting(Looking()):
        assert torch.allclose(say(model, inputs), said, atol=2e-6)
    assert any(formed) == (row.name in UNFUSED)
    formed = []
    with fusing(), torch.enable_grad(), adapter.visiting(Looking()):
        assert torch.equal(answer(model(**inputs)), said)  # gradients go through the model's own
    assert all(formed)


@pytest.mark.parametrize("name", REFUSED)
def test_architectures_without_weights_of_tokens_over_tokens_are_refused(name):
    row = architecture(name)
    model = row.build()
    before = model.config._attn_implementation
    with refused("tokens over tokens", type(model).__name__, "heedmap support"):
        attach(model, row.tensors())
    assert model.config._attn_implementation == before


@pytest.mark.parametrize("row", [r for r in CLAIMED if r.values[0].inputs == "text"])
def test_made_up_tokens_do_to_enter_a_model(row):
    model = row.build()
    adapter = attach(model)
    inputs = example_inputs(model)
    assert torch.isfinite(say(model, inputs)).all()
    assert adapter.kind == (
        "interface" if adapter.model.config._attn_implementation == NAME else "softmax"
    )
    adapter.detach()


# --- the traps --------------------------------------------------------------------------------------------


def test_an_ignored_name_is_found_by_counting_calls():
    row = architecture("bloom")
    with quiet():
        model = Classifier.from_config(row.configuration(), attn_implementation=NAME).eval()
    with visiting(model, Visitor()) as names:
        say(model, row.tensors())
    assert names == []  # it was built with the hook's name, and makes no call
    assert attach(model, row.tensors()).kind == "softmax"


def test_a_name_that_stops_the_model_in_the_middle_of_a_pass():
    row = architecture("gptj")
    model = GPTJForSequenceClassification(GPTJConfig(**row.options, pad_token_id=0, vocab_size=48))
    assert attach(model.eval(), row.tensors()).kind == "softmax"


def test_heads_that_share_keys_and_values():
    row = architecture("llama")
    model, inputs = row.build(), row.tensors()
    shapes = []

    class Looking(Visitor):
        def weights(self, call, weights):
            shapes.append(
                (weights.shape[1], call.query.shape[1], call.key.shape[1], call.value.shape[1])
            )
            return weights.clone()

    with attach(model, inputs).visiting(Visitor()):
        said = say(model, inputs)
    with attach(model, inputs).visiting(Looking()):
        assert torch.equal(say(model, inputs), said)
    assert shapes == [(4, 4, 2, 2)] * 2
    value = torch.randn(1, 2, 5, 3)
    out = weighted_sum(torch.eye(5).expand(1, 4, 5, 5), value)
    assert torch.equal(out[0, :, 1], value[0, 0])  # query heads 0 and 1 share the first
    assert torch.equal(out[0, :, 2], value[0, 1])


def test_layers_that_share_a_module_are_told_apart_by_their_order():
    row = architecture("albert")
    model, inputs = row.build(), row.tensors()
    assert isinstance(model.config, AlbertConfig)

    calls = []

    class Only(Spreading):
        def __init__(self, which):
            self.which = which

        def weights(self, call, weights):
            calls.append((call.index, call.name))
            return super().weights(call, weights) if call.index == self.which else None

    adapter = attach(model, inputs)
    answers = []
    for which in (0, 1, None):
        calls.clear()
        with adapter.visiting(Only(which)):
            answers.append(say(model, inputs))
    assert [index for index, _ in calls] == [0, 1]
    assert len({name for _, name in calls}) == 1
    assert not any(torch.equal(answers[i], answers[j]) for i, j in ((0, 1), (0, 2), (1, 2)))


@pytest.mark.parametrize("name", ["distilbert", "t5"])
def test_layers_without_an_index_or_with_a_repeated_one_have_names(name):
    row = architecture(name)
    model, inputs = row.build(), row.tensors()
    _, _, names = record(attach(model, inputs), inputs)
    modules = dict(model.named_modules())
    assert len(set(names)) == len(names)
    if name == "distilbert":
        assert all(getattr(modules[n], "layer_idx", None) is None for n in names)


def test_softmax_is_named_by_the_module_it_is_in():
    row = architecture("mpnet")
    model, inputs = row.build(), row.tensors()
    _, _, names = record(attach(model, inputs), inputs)
    assert [name.split(".")[3] for name in names] == ["0", "1"]


def test_each_pass_counts_its_calls_anew_and_softmax_outside_a_model_is_let_alone():
    for way, name in ((visiting, "bert"), (visiting_softmax, "mpnet")):
        row = architecture(name)
        model, inputs = row.build(), row.tensors()
        attach(model, inputs)
        indices = []

        class Counting(Visitor):
            def weights(self, call, weights):
                indices.append(call.index)  # noqa: B023

        with way(model, Counting()) as names:
            say(model, inputs)
            torch.randn(1, 1, 3, 3).softmax(-1)
            say(model, inputs)
        assert indices == [0, 1, 0, 1]
        assert len(names) == 4
        detach(model)


def test_sinks_take_their_share_and_survive_an_edit():
    row = architecture("gpt_oss")
    model, inputs = row.build(), row.tensors()
    adapter = attach(model, inputs)
    _, taken, _ = record(adapter, inputs)
    sums = torch.cat([w.sum(-1).flatten() for w in taken])
    assert sums.min() < 0.9
    spread = Spreading().weights(Call(0, "any"), taken[0])
    assert torch.allclose(spread.sum(-1), taken[0].sum(-1), atol=1e-6)


class ByHand(Visitor):
    """The textbook's attention, which forgets what a model adds to it."""

    def attend(self, call, eager):
        _, own = eager()
        shared = call.query.shape[1] // call.key.shape[1]
        key = call.key.repeat_interleave(shared, 1)
        scores = call.query @ key.transpose(-1, -2) / (call.query.shape[-1] ** 0.5)
        weights = scores.masked_fill(own == 0, -torch.inf).softmax(-1).nan_to_num()
        return weighted_sum(weights, call.value), weights


@pytest.mark.parametrize("name", ["t5", "gpt_oss"])
def test_position_biases_and_sinks_are_the_models_own(name):
    row = architecture(name)
    model, inputs = row.build(), row.tensors()
    adapter = attach(model, inputs)
    said, _, _ = record(adapter, inputs)
    with adapter.visiting(ByHand()):
        assert (say(model, inputs) - said).abs().max() > 1e-3
    row = architecture("bert")  # the yardstick is right where there is nothing to forget
    model, inputs = row.build(), row.tensors()
    adapter = attach(model, inputs)
    said, _, _ = record(adapter, inputs)
    with adapter.visiting(ByHand()):
        assert (say(model, inputs) - said).abs().max() < 1e-6


def test_even_weights_do_not_let_a_decoder_see_the_future():
    row = architecture("gpt2")
    model = row.build().transformer
    ids = torch.arange(5, 14)[None]
    changed = ids.clone()
    changed[0, -1] = 40
    adapter = attach(model, {"input_ids": ids})
    with adapter.visiting(Spreading()):
        first, second = say(model, {"input_ids": ids}), say(model, {"input_ids": changed})
    assert torch.equal(first[:, :-1], second[:, :-1])
    assert not torch.equal(first[:, -1], second[:, -1])


def test_checkpointing_calls_every_layer_twice_in_a_training_step():
    row = architecture("bert")
    model, inputs = row.build(), row.tensors()
    attach(model, inputs)
    model.activation_checkpointing_enable()
    model.train().requires_grad_(True)
    with visiting(model, Visitor()) as names:
        model(**inputs).logits.sum().backward()
    assert len(names) == 4
    assert names[:2] == names[:1:-1]  # the second time from the last layer to the first


@pytest.mark.parametrize("name", ["bert", "bloom"])
def test_detaching_restores_the_implementation_and_the_mode(name):
    row = architecture(name)
    model = row.build().train()
    before = model.config._attn_implementation
    adapter = attach(model, row.tensors())
    assert model.training
    assert is_attached(model)
    attach(model, row.tensors())  # a second time
    detach(model)
    assert not is_attached(model)
    assert model.config._attn_implementation == before
    detach(model)
    assert ALL_ATTENTION_FUNCTIONS[NAME]  # registered for good; the name is our own
    assert adapter.model is model


def test_parts_of_a_model_get_back_what_each_had():
    row = architecture("t5")
    model = row.build()
    with quiet():
        model.set_attn_implementation("eager")
    row2 = copy.deepcopy(model)
    attach(model, row.tensors())
    assert model.transformer.encoder.config._attn_implementation == NAME
    detach(model)
    for one, other in zip(model.modules(), row2.modules(), strict=True):
        if hasattr(one, "config"):
            assert one.config._attn_implementation == other.config._attn_implementation == "eager"


def test_a_configuration_that_asks_for_weights_is_entered_too():
    row = architecture("bert")
    model = row.build()
    model.set_attn_implementation("eager")
    model.config.output_attentions = True
    attach(model, row.tensors())
    assert not model.config.output_attentions
    detach(model)
    assert model.config.output_attentions


def test_an_error_in_the_middle_of_a_visit_ends_the_visit():
    row = architecture("mpnet")
    model, inputs = row.build(), row.tensors()
    adapter = attach(model, inputs)

    class Failing(Visitor):
        def weights(self, call, weights):
            raise ZeroDivisionError

    def count_hooks():
        return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())

    said, hooks = say(model, inputs), count_hooks()
    with pytest.raises(ZeroDivisionError), adapter.visiting(Failing()):
        say(model, inputs)
    assert torch.equal(say(model, inputs), said)
    assert count_hooks() == hooks
    adapter.detach()
    assert count_hooks() == 0
    assert not _get_current_function_mode_stack()


def test_a_model_that_only_reports_can_be_read_and_not_replaced(monkeypatch):
    row = architecture("mpnet")
    model, inputs = row.build(), row.tensors()
    monkeypatch.setattr("heedmap.huggingface.interception._SOFTMAXES", ())
    adapter = attach(model, inputs)
    assert adapter.kind == "reading"
    _, taken, names = record(adapter, inputs)
    assert names == ["attentions.0", "attentions.1"]
    assert taken[0].shape == (3, 4, 9, 9)
    with refused(type(model).__name__), adapter.visiting(Copying()):
        say(model, inputs)
