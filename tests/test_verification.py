"""The verification passes what is exact and catches what is not."""

import json
import math
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from wording import refused

from heedmap.huggingface import attention_hook
from heedmap.huggingface.attention_hook import NAME, Call, Visitor
from heedmap.huggingface.loading import load_classifier
from heedmap.huggingface.measuring import (
    alone,
    difference,
    off_one,
    on_padding,
    other_side,
)
from heedmap.huggingface.model_adapter import attach, detach, is_attached
from heedmap.huggingface.support import support_table, try_out
from heedmap.huggingface.verification import verify, verify_on
from heedmap.huggingface.zoo import architecture

ROOT = Path(__file__).parents[1]


def failed(found):
    return [check.name for check in found.checks if not check.passed]


def verified(name, **changes):
    row = architecture(name)
    model = row.build()
    return verify_on(model, {**row.tensors(), **changes})


@pytest.mark.parametrize("name", ["bert", "roberta", "albert", "llama", "bart", "bloom", "xlnet"])
def test_exact_models_pass(name):
    found = verified(name)
    assert found.ok, found.refusal
    assert found.reads
    assert found.edits
    assert found.refusal is None
    assert found.value("entered as eager") == 0
    assert found.value("same weights, same answer") == 0
    assert found.value("other weights, other answer") > 1e-3
    assert found.value("gradient in every layer") > 1e-3
    assert found.value("same embeddings, same answer") == 0
    assert found.value("gradient from the embeddings") > 1e-3
    assert found.value("padded as unpadded") < 1e-5
    assert found.value("eager as default") < 1e-5
    assert set(found.heads) == {4}


def test_what_it_counts():
    found = verified("bart")
    assert (len(found.calls), found.size) == (6, "6 × 4")
    assert found.value("causal") == 2  # the decoder's own
    assert verified("llama").value("causal") == 2
    assert verified("bert").value("causal") == 0


# --- what is broken is caught ------------------------------------------------------------------------------


@pytest.fixture
def unregistered_mask():
    """The hook's name without a mask of its name: models then go without any mask, and say nothing."""
    own = ALL_MASK_ATTENTION_FUNCTIONS._global_mapping
    kept = own.pop(NAME)
    yield
    own[NAME] = kept


@pytest.mark.parametrize("name", ["bert", "llama", "gpt2"])
def test_a_lost_mask_is_caught(unregistered_mask, name):
    found = verified(name)
    assert not found.ok
    assert not found.reads
    assert {"entered as eager", "no weight on padding"} <= set(failed(found))
    assert "entered as eager" in found.refusal
    assert "\n" not in found.refusal


def test_without_padding_an_encoder_that_lost_its_mask_would_pass(unregistered_mask):
    row = architecture("bert")
    found = verify_on(row.build(), alone(row.tensors(), 0, None))
    assert found.ok
    check = next(check for check in found.checks if check.name == "no weight on padding")
    assert check.explanation.startswith("not tried")  # and says so


def test_an_output_that_does_not_come_of_the_weights_is_caught(monkeypatch):
    def offset(weights, value):
        return hook_sum(weights, value) + 0.01

    hook_sum = attention_hook.weighted_sum
    monkeypatch.setattr(attention_hook, "weighted_sum", offset)
    found = verified("bert")
    assert found.reads
    assert not found.edits
    assert failed(found) == ["same weights, same answer"]


def test_weights_that_are_not_the_models_own_are_caught(monkeypatch):
    def attend(self, call, eager):
        output, weights = eager()
        return output, self.weights(call, weights.flip(-1))

    monkeypatch.setattr(Visitor, "attend", attend)
    found = verified("bert")
    assert "weights as reported" in failed(found)
    assert "no weight on padding" in failed(found)


def test_a_detached_layer_has_no_gradient(monkeypatch):
    def detached(weights, value):
        return hook_sum(weights, value).detach()

    hook_sum = attention_hook.weighted_sum
    monkeypatch.setattr(attention_hook, "weighted_sum", detached)
    found = verified("bert")
    assert failed(found) == ["gradient in every layer"]
    assert math.isnan(found.value("gradient in every layer"))


@pytest.mark.parametrize(
    ("spoilt", "check"),
    [
        (lambda looked_up, put: looked_up, "gradient from the embeddings"),  # never put in place
        (lambda looked_up, put: put * looked_up.new_tensor([1.0, 1.0, 0.0])[:, None, None],
         "gradient from the embeddings"),  # of one text not
        (lambda looked_up, put: put * float("nan"), "gradient from the embeddings"),
        (lambda looked_up, put: put.flip(0), "same embeddings, same answer"),  # in another text's place
    ],
)  # fmt: skip
def test_embeddings_that_are_not_put_in_their_place_are_caught(monkeypatch, spoilt, check):
    @contextmanager
    def embedded_as(model, ids, embedded):
        def hook(module, args, found):
            return spoilt(found, embedded)

        handle = model.get_input_embeddings().register_forward_hook(hook)
        try:
            yield
        finally:
            handle.remove()

    monkeypatch.setattr("heedmap.huggingface.probe.embedded_as", embedded_as)
    found = verified("bert")
    assert found.reads
    assert not found.edits
    assert check in failed(found)
    assert "embeddings" in found.refusal
    assert "\n" not in found.refusal


def test_answers_that_depend_on_the_padding_are_refused():
    found = try_out(architecture("convbert"))
    assert failed(found) == ["padded as unpadded"]
    assert found.edits
    assert "expected" in found.refusal


def test_the_wrong_side_is_refused_and_the_right_one_named():
    row = architecture("gpt2")
    inputs = row.tensors()
    turned, _ = other_side(inputs, inputs["attention_mask"].bool())
    found = verify_on(row.build(), turned)
    assert failed(found) == ["padded as unpadded"]
    assert "padding on the left" in found.refusal
    assert "padding_side" in found.refusal
    assert verify_on(row.build(), inputs).ok


def test_numbers_that_are_none_are_caught():
    row = architecture("bert")
    model = row.build()
    model.classifier.bias.fill_(float("nan"))
    found = verify_on(model, row.tensors())
    assert "finite answer" in failed(found)
    assert "not a number" in found.refusal


def test_no_way_in_is_a_refusal_and_unreadable_inputs_an_error():
    found = verified("longformer")
    assert (found.kind, found.ok, found.reads, found.edits) == ("refused", False, False, False)
    assert "tokens over tokens" in found.refusal
    with refused("BertForSequenceClassification", "IndexError"):
        verified("bert", input_ids=torch.full((3, 9), 4000))


def test_a_model_that_only_reports_is_read_and_refused(monkeypatch):
    monkeypatch.setattr("heedmap.huggingface.interception._SOFTMAXES", ())
    found = verified("mpnet")
    assert (found.kind, found.reads, found.edits, found.ok) == ("reading", True, False, False)
    assert "only reports" in found.refusal


# --- it leaves things as they were -------------------------------------------------------------------------


def test_training_mode_is_left_for_the_verification_and_taken_up_again():
    row = architecture("bert")
    model = row.build().train()
    model.bert.eval()
    attach(model, row.tensors())
    taken = []

    class Looking(Visitor):
        def weights(self, call, weights):
            taken.append(weights)

    model.bert.train()
    with torch.random.fork_rng(), attach(model, row.tensors()).visiting(Looking()):
        torch.manual_seed(0)
        model(**row.tensors())
    assert off_one(taken[0], None) > 0.05  # the trap: weights after dropout
    model.bert.eval()
    found = verify_on(model, row.tensors())
    assert found.ok
    assert found.value("rows sum to one") < 1e-6
    assert model.training
    assert not model.bert.training


def test_checkpointing_does_not_count_a_layer_twice():
    row = architecture("bert")
    model = row.build()
    model.activation_checkpointing_enable()
    found = verify_on(model.train(), row.tensors())
    assert found.ok
    assert len(found.calls) == 2


def test_an_entered_model_stays_entered_and_another_is_left():
    row = architecture("bert")
    model = row.build()
    before = model.config._attn_implementation
    verify_on(model, row.tensors())
    assert model.config._attn_implementation == before
    adapter = attach(model, row.tensors())
    verify_on(model, row.tensors())
    assert is_attached(model)
    with adapter.visiting(Visitor()) as names:
        model(**row.tensors())
    assert len(names) == 2
    detach(model)


def test_sinks_are_noted_and_pass():
    found = verified("gpt_oss")
    assert found.ok
    assert found.value("rows sum to one") > 0.1
    check = next(check for check in found.checks if check.name == "rows sum to one")
    assert "sink" in check.explanation


# --- measuring ----------------------------------------------------------------------------------------------


def test_differences_are_safe_from_what_is_no_number():
    nan, inf = float("nan"), math.inf
    assert difference(torch.tensor([1.0, nan]), torch.tensor([1.5, nan])) == 0.5
    assert difference(torch.tensor([1.0]), torch.tensor([nan])) == inf
    assert difference(torch.tensor([inf]), torch.tensor([inf])) == 0
    assert difference(torch.zeros(2), torch.zeros(3)) == inf


def test_padding_is_told_from_text_on_both_sides():
    real = torch.tensor([[True, True, False], [True, True, True]])
    inputs = {"input_ids": torch.tensor([[7, 8, 0], [4, 5, 6]])}
    turned, mask = other_side(inputs, real)
    assert turned["input_ids"].tolist() == [[0, 7, 8], [4, 5, 6]]
    assert mask.tolist() == [[False, True, True], [True, True, True]]
    assert alone(turned, 0, mask)["input_ids"].tolist() == [[7, 8]]
    back, _ = other_side(turned, mask)
    assert torch.equal(back["input_ids"], inputs["input_ids"])
    weights = torch.zeros(2, 1, 3, 3)
    weights[0, 0, 2, 2] = 0.9  # padding's own row
    assert on_padding(weights, real) == 0
    weights[0, 0, 1, 2] = 0.25
    assert on_padding(weights, real) == 0.25


def test_fully_masked_rows_are_left_out_of_every_number():
    row = architecture("llama")
    taken = []

    class Looking(Visitor):
        def weights(self, call: Call, weights):
            taken.append(weights)

    model = row.build()
    with attach(model, row.tensors()).visiting(Looking()):
        model(**row.tensors())
    assert (taken[0][2, :, 0] > 0.1).all()  # the trap: padding on the left looks everywhere
    found = verify_on(model, row.tensors())
    assert found.value("no weight on padding") == 0
    assert found.value("causal") == 2


# --- a real one, and the page -------------------------------------------------------------------------------


def size_of(folder):
    """Layers × heads, from the classifier's own file."""
    config = json.loads((folder / "config.json").read_text())
    return f"{config['num_hidden_layers']} × {config['num_attention_heads']}"


# PyTorch warns of something else wherever oneDNN is switched off.
@pytest.mark.filterwarnings("ignore:TF32 acceleration")
def test_a_classifier_answers_exactly_as_loaded_if_both_multiply_alike(classifier):
    with torch.backends.mkldnn.flags(enabled=False):
        found = verify(*load_classifier(classifier))
    assert found.ok, found.refusal
    assert found.value("entered as eager") == found.value("same weights, same answer") == 0


def test_a_classifier_passes(classifier):
    found = verify(*load_classifier(classifier))
    assert found.ok, found.refusal
    assert (found.kind, found.size) == ("interface", size_of(classifier))
    # As loaded, the model multiplies by another library (`heedmap.models.kernels`).
    assert found.value("entered as eager") < 1e-5
    assert found.value("same weights, same answer") == 0


@pytest.mark.slow
def test_half_precision_passes(minilm):
    assert verify(*load_classifier(minilm, dtype="bfloat16")).ok


def test_the_check_command(heedmap, classifier, tmp_path):
    ran = heedmap("check", classifier)
    assert ran.code == 0
    assert size_of(classifier) in ran.out
    assert "Verdict: " in ran.out
    ran = heedmap("check", tmp_path)
    assert ran.code == 2
    assert len(ran.err.splitlines()) == 1


def test_the_check_command_refuses_after_the_table(heedmap, classifier, unregistered_mask):
    ran = heedmap("check", classifier)
    assert ran.code == 2
    assert "FAILS" in ran.out
    assert len(ran.err.splitlines()) == 1


@pytest.mark.slow
def test_the_support_page_is_what_is_measured(heedmap, tmp_path):
    page = support_table()
    assert page == (ROOT / "docs" / "support.md").read_text(encoding="utf-8")
    assert "| bert | encoder | interface | exact | exact | 2 × 4 | 0 | passes |" in page
    out = tmp_path / "support.md"
    assert heedmap("support", "--out", out).code == 0
    assert out.read_text(encoding="utf-8") == page
