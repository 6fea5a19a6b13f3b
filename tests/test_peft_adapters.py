"""Adapters of peft: merged in memory, compared with peft and transformers alone, and refused in one line."""

import json
import shutil
import sys
from copy import deepcopy

import numpy as np
import peft
import pytest
import torch
from saved_models import refusal
from tiny_transformers import SMALL, tiny_model, tiny_tokenizer
from transformers import AutoModel, AutoModelForSequenceClassification, RobertaConfig
from wording import refused

import heedmap as hm
from heedmap.errors import InputError, KindError
from heedmap.huggingface.configurations import find_model
from heedmap.huggingface.loading import load_classifier, load_for_training
from heedmap.huggingface.logging import quiet
from heedmap.huggingface.opening import fingerprint
from heedmap.huggingface.peft_merging import merge_of
from heedmap.huggingface.verification import verify

# peft asks transformers by an older name.
pytestmark = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning")
TEXTS = ["A great film.", "bad", "the plot is unwatchable , bad films", "A film", "great great"]
ROWS = [{"text": text, "label": str(i % 2)} for i, text in enumerate(TEXTS)]
TARGETS = {
    "bert": ["query", "value", "dense"],
    "distilbert": ["q_lin", "v_lin"],
    "roberta": ["query", "value"],
    "gpt2": ["c_attn", "c_proj"],
}


def configuration(architecture, kind=peft.LoraConfig, **options):
    values = {"task_type": "SEQ_CLS", "target_modules": TARGETS[architecture], **options}
    if kind is peft.LoraConfig:
        values = {"r": 4, "lora_alpha": 8, "fan_in_fan_out": architecture == "gpt2", **values}
    return kind(**values)


def base_model(architecture, classes=2):
    if architecture != "roberta":
        return tiny_model(architecture, classes)
    names = {i: f"class{i}" for i in range(classes)}
    config = RobertaConfig(
        **SMALL, intermediate_size=24, pad_token_id=0, id2label=names, initializer_range=0.3
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return AutoModelForSequenceClassification.from_config(config).eval()


def trained(wrapped):
    """Give all weights that the adapter trains random values: a new LoRA adapter changes nothing."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in wrapped.parameters():
            if parameter.requires_grad:
                parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator))
    return wrapped.eval()


def adapted(folder, architecture="bert", classes=2, **options):
    """Save a base model, its tokenizer and an adapter of it below a folder. Returns the adapter's folder."""
    model, base = base_model(architecture, classes), folder / "base"
    with quiet():
        model.save_pretrained(base)
    tiny_tokenizer(architecture).save_pretrained(base)
    model.name_or_path = str(base)
    with torch.random.fork_rng():
        wrapped = trained(peft.get_peft_model(model, configuration(architecture, **options)))
    wrapped.save_pretrained(folder / "adapter")
    return folder / "adapter"


def unmerged(folder, classes=2):
    """The model as people load it with peft and transformers alone."""
    with quiet(), torch.random.fork_rng():
        model = AutoModelForSequenceClassification.from_pretrained(
            folder.parent / "base", num_labels=classes, ignore_mismatched_sizes=True
        )
        return peft.PeftModel.from_pretrained(model, folder).eval()


def read(model, tokenizer, **options):
    with torch.no_grad():
        names = ("input_ids", "attention_mask")
        texts = [tokenizer(text, return_tensors="pt") for text in TEXTS]
        return [model(**{name: text[name] for name in names}, **options) for text in texts]


def logits(model, tokenizer):
    return torch.cat([output.logits for output in read(model, tokenizer)])


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return adapted(tmp_path_factory.mktemp("bert"))


@pytest.fixture
def folder(saved, tmp_path):
    """Copies to spoil; the adapter's names the copied base model."""
    shutil.copytree(saved.parent, tmp_path / "copies")
    change(
        tmp_path / "copies" / "adapter", base_model_name_or_path=str(tmp_path / "copies" / "base")
    )
    return tmp_path / "copies" / "adapter"


def change(folder, **values):
    path = folder / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


@pytest.mark.parametrize("architecture", TARGETS)
def test_a_merged_adapter_answers_and_attends_as_unmerged(tmp_path, architecture):
    folder = adapted(tmp_path, architecture)
    chance = torch.get_rng_state()
    model, tokenizer = load_classifier(folder)
    assert torch.equal(torch.get_rng_state(), chance)
    wrapped = unmerged(folder)
    plain = base_model(architecture)
    expected = logits(wrapped, tokenizer)
    assert (
        expected - logits(plain, tokenizer)
    ).abs().max() > 0.01  # the adapter changes the answers
    torch.testing.assert_close(logits(model, tokenizer), expected, atol=1e-5, rtol=0)
    assert not any("lora" in name for name in model.state_dict())
    assert not model.training
    assert merge_of(model).gap <= 1e-5
    assert verify(model, tokenizer).value("merged as unmerged") == merge_of(model).gap
    # What the hook reads in padded batches is what the unmerged model reports of itself.
    wrapped.get_base_model().set_attn_implementation("eager")
    run = hm.open_model(folder, ROWS, layer=1, head=2)
    texts = run.corpus.splits["test"].texts
    trace = run.model.trace(run.model.batch(texts, range(len(texts))))
    for i, output in enumerate(read(wrapped, tokenizer, output_attentions=True)):
        row = output.attentions[1][0, 2, -1 if architecture == "gpt2" else 0]
        torch.testing.assert_close(trace.attention[i, 0, : len(row)], row, atol=1e-5, rtol=0)


def test_other_methods_and_short_formats_are_merged_too(tmp_path):
    rows = {"target_modules": ["query"], "task_type": "SEQ_CLS"}
    for kind, options in (
        (peft.IA3Config, {**rows, "feedforward_modules": []}),
        (peft.LoHaConfig, rows),
        (peft.LoKrConfig, rows),
        (peft.LoraConfig, {**rows, "use_dora": True}),
        (peft.LoraConfig, {**rows, "use_rslora": True}),
    ):
        folder = adapted(
            tmp_path / f"{kind.__name__}{len(options)}{'use_dora' in options}", kind=kind, **options
        )
        model, tokenizer = load_classifier(folder)
        expected = logits(unmerged(folder), tokenizer)
        torch.testing.assert_close(logits(model, tokenizer), expected, atol=1e-5, rtol=0)
    assert load_classifier(folder, dtype="bfloat16")[0].dtype == torch.bfloat16


def test_the_saved_head_gives_the_outputs_and_their_names(tmp_path):
    folder = adapted(tmp_path, classes=3)
    body = AutoModel.from_pretrained(tmp_path / "base")
    with quiet():
        body.save_pretrained(tmp_path / "base")  # without a head, as people fine-tune
    config = json.loads((tmp_path / "base" / "config.json").read_text())
    for name in ("id2label", "label2id"):
        del config[name]
    (tmp_path / "base" / "config.json").write_text(json.dumps(config))
    assert find_model(folder).outputs()[0] == ["LABEL_0", "LABEL_1", "LABEL_2"]
    (folder / "config.json").write_text('{"id2label": {"0": "no", "1": "yes", "2": "or"}}')
    assert find_model(folder).outputs()[0] == ["no", "yes", "or"]
    model, tokenizer = load_classifier(folder)
    assert model.config.id2label == {0: "no", 1: "yes", 2: "or"}
    expected = logits(unmerged(folder, classes=3), tokenizer)
    torch.testing.assert_close(logits(model, tokenizer), expected, atol=1e-5, rtol=0)


def test_a_run_of_an_adapter_is_opened_again_and_changes_are_seen(folder, tmp_path):
    run = hm.open_model(folder, ROWS, out=tmp_path / "run")
    assert run.facts["adapter"].startswith("the LORA adapter ")
    again = hm.open_run(tmp_path / "run")
    np.testing.assert_array_equal(again.predict_proba(TEXTS), run.predict_proba(TEXTS))
    assert again.facts == run.facts
    assert hm.explain(folder, TEXTS[0]).answer in ("class0", "class1")
    alpha = json.loads((folder / "adapter_config.json").read_text())["lora_alpha"]
    for values in ({"lora_alpha": 2 * alpha}, {"lora_alpha": alpha}):
        change(folder, **values)
        if values["lora_alpha"] != alpha:
            with refused("is not what it was when the run was made"):
                hm.open_run(tmp_path / "run")
    shutil.move(folder.parent / "base", tmp_path / "moved")
    change(folder, base_model_name_or_path=str(tmp_path / "moved"))
    hm.open_run(tmp_path / "run")  # the same weights in another place


def test_the_hash_is_of_base_model_and_adapter_and_not_of_the_head_that_is_replaced(folder):
    hash_of_merged = fingerprint(load_classifier(folder)[0])
    base = AutoModelForSequenceClassification.from_pretrained(folder.parent / "base")
    for name, other in (("classifier", False), ("bert.embeddings.word_embeddings", True)):
        with torch.no_grad():
            base.get_submodule(name).weight.mul_(1.5)
        base.save_pretrained(folder.parent / "base")
        assert (fingerprint(load_classifier(folder)[0]) != hash_of_merged) is other


def test_a_model_that_peft_has_wrapped_is_opened_as_a_merged_copy(saved, tmp_path):
    wrapped, tokenizer = unmerged(saved), tiny_tokenizer()
    before = deepcopy(wrapped.state_dict())
    expected = logits(wrapped, tokenizer).softmax(-1)
    run = hm.open_model((wrapped, tokenizer), ROWS, out=tmp_path / "run")
    np.testing.assert_allclose(run.predict_proba(TEXTS), expected, atol=1e-5)
    np.testing.assert_array_equal(
        hm.open_run(tmp_path / "run").predict_proba(TEXTS), run.predict_proba(TEXTS)
    )
    assert hm.check((wrapped, tokenizer)).passes
    after = wrapped.state_dict()
    assert after.keys() == before.keys()
    assert all(torch.equal(tensor, before[name]) for name, tensor in after.items())
    inside = tiny_model()
    inside.add_adapter(configuration("bert"))
    with pytest.raises(KindError, match="load_adapter"):
        hm.open_model((inside, tokenizer), ROWS)
    options = peft.PromptTuningConfig(task_type="SEQ_CLS", num_virtual_tokens=2)
    with quiet(), refused("can be merged"):
        hm.open_model((peft.get_peft_model(tiny_model(), options).eval(), tokenizer), ROWS)


def test_a_merge_that_answers_differently_is_refused(folder, monkeypatch):
    def half(self, safe_merge=False, adapter_names=None):
        self.base_layer.weight.data += self.get_delta_weight("default") / 2
        self.merged_adapters.append("default")

    monkeypatch.setattr(peft.tuners.lora.Linear, "merge", half)
    assert "answers the same merged as unmerged" in refusal(folder)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"task_type": "TOKEN_CLS"}, "'TOKEN_CLS'"),
        ({"task_type": None}, "None"),
        ({"peft_type": "PROMPT_TUNING"}, "'PROMPT_TUNING'"),
        ({"peft_type": "ADALORA"}, "'ADALORA'"),
        ({"megatron_config": {}, "megatron_core": "os"}, "megatron_config"),
        ({"base_model_name_or_path": None}, "base_model_name_or_path"),
        ({"base_model_name_or_path": "./nowhere"}, "./nowhere does not exist"),
        ({"base_model_name_or_path": "nobody/nothing"}, "nobody/nothing"),
        ({"revision": "v2"}, "'v2'"),
        ({"r": 5}, "size mismatch"),
        ({"target_modules": ["query"]}, "have no place"),
        ({"target_modules": ["query", "value", "dense", "key"]}, "are missing"),
        ({"target_modules": ["nothing"]}, "peft stops with"),
        ({"modules_to_save": ["pooler"]}, "pooler"),
    ],
)
def test_adapters_that_are_refused(folder, values, said, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    change(folder, **values)
    assert said in refusal(folder)


def test_pickled_weights_are_not_read(folder):
    base = folder.parent / "base"
    for place, safe, pickled in (
        (base, "model.safetensors", "pytorch_model.bin"),
        (folder, "adapter_model.safetensors", "adapter_model.bin"),
    ):
        (place / safe).rename(place / "away")
        (place / pickled).write_bytes(b"a pickle")
        assert "pickled" in refusal(folder)
        (place / pickled).unlink()
        assert "there are none" in (text := refusal(folder)) or "there is none" in text
        (place / "away").rename(place / safe)
    (folder / "adapter_model.safetensors").write_bytes(b"damaged")
    assert "damaged" in refusal(folder)


def test_what_stands_beside_an_adapter_is_not_left_out_in_silence(folder):
    assert "merge it into its model" in refusal(folder, lambda f: load_for_training(f, ["a", "b"]))
    shutil.copy(folder.parent / "base" / "model.safetensors", folder)
    assert "merge it into its model" in refusal(folder)
    (folder / "model.safetensors").unlink()
    shutil.copy(folder / "adapter_config.json", folder.parent / "base")
    assert "it is the base model that" in refusal(folder)


def test_without_peft_its_extra_is_named(folder, monkeypatch):
    monkeypatch.setattr("heedmap.errors.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r'package peft.*pip install "heedmap\[peft\]"'):
        load_classifier(folder)
    monkeypatch.delitem(sys.modules, "peft")
    assert hm.check((tiny_model(), tiny_tokenizer())).passes
