"""Classifiers and tokenizers from folders: what is read, and what is refused in one line."""

import json
import shutil

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    AutoModelForMaskedLM,
    BertForSequenceClassification,
    GPT2ForSequenceClassification,
    PreTrainedTokenizerFast,
    ViTModel,
)
from transformers.utils import logging

from heedmap.errors import InputError
from heedmap.huggingface.chatter import quiet
from heedmap.huggingface.loading import UNLIMITED, load_classifier, load_for_training, longest
from heedmap.huggingface.zoo import VOCABULARY, architecture

SPECIAL = {"pad_token": "[PAD]", "unk_token": "[UNK]", "eos_token": "[END]"}


def tokenizer(**options):
    """Words w5 ... w47 and three special tokens, numbered as the zoo numbers them."""
    words = ["[PAD]", "[UNK]", "[END]", *(f"w{i}" for i in range(3, VOCABULARY))]
    made = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=made, **{**SPECIAL, **options})


def save(folder, model, *, words=True, **options):
    with quiet():
        model.save_pretrained(folder)
        if words:
            tokenizer(**options).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return save(tmp_path_factory.mktemp("models") / "bert", architecture("bert").build())


@pytest.fixture
def folder(saved, tmp_path):
    """A copy to spoil."""
    return shutil.copytree(saved, tmp_path / "model")


def change(folder, **values):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def refusal(source, load=load_classifier):
    with pytest.raises(InputError) as error:
        load(source)
    text = str(error.value)
    assert "\n" not in text
    assert text.startswith("expected ")
    assert len(text.replace(str(source), "")) < 400
    return text


def test_a_classifier_is_read_frozen_and_in_eval_mode(saved):
    model, words = load_classifier(saved)
    assert isinstance(model, BertForSequenceClassification)
    assert not model.training
    assert not any(weight.requires_grad for weight in model.parameters())
    assert words.is_fast
    again = architecture("bert").build().state_dict()
    assert all(torch.equal(value, again[name]) for name, value in model.state_dict().items())


def test_it_comes_in_another_dtype(saved):
    assert load_classifier(str(saved), dtype="bfloat16")[0].dtype == torch.bfloat16
    assert "float64" in refusal(saved, lambda source: load_classifier(source, dtype="float64"))


def test_a_folder_is_read_without_the_network_without_noise_and_without_moving_chance(
    saved, monkeypatch, capfd
):
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("went to the network"))
    before = logging.get_verbosity(), logging.is_progress_bar_enabled(), torch.get_rng_state()
    load_classifier(saved)
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before[:2]
    assert torch.equal(torch.get_rng_state(), before[2])
    assert capfd.readouterr() == ("", "")


def test_places_that_hold_no_model(tmp_path, saved, monkeypatch):
    assert "no config.json" in refusal(tmp_path)
    assert "does not exist" in refusal(tmp_path / "nothing")
    assert "does not exist" in refusal("./nothing")
    assert "is a file" in refusal(saved / "config.json")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    text = refusal("nobody/nothing")
    assert "nobody/nothing" in text
    assert "HF_HUB_OFFLINE" in text


@pytest.mark.parametrize("content", ["{spoilt", "{}", '{"model_type": "unheard-of"}', "[]"])
def test_a_spoilt_configuration(folder, content):
    (folder / "config.json").write_text(content)
    assert "config.json" in refusal(folder)


def test_code_that_comes_with_a_model_is_not_run(folder):
    (folder / "evil.py").write_text("raise SystemExit('ran')")
    change(folder, model_type="evil", auto_map={"AutoConfig": "evil.Evil"})
    assert "its own code" in refusal(folder)


def test_a_model_without_a_trained_head_is_named_with_its_remedy(tmp_path):
    with quiet():
        model = AutoModelForMaskedLM.from_config(architecture("bert").configuration())
    text = refusal(save(tmp_path / "mlm", model))
    assert "classifier.weight" in text
    assert "heedmap train --model" in text


def test_an_architecture_without_classification(tmp_path):
    text = refusal(save(tmp_path / "vit", ViTModel(architecture("vit").configuration())))
    assert "vit" in text


@pytest.mark.parametrize(
    ("change_to", "said"),
    [
        ({"id2label": {"0": "score"}, "label2id": {"score": 0}}, "weights"),
        ({"problem_type": "multi_label_classification"}, "several labels"),
    ],
)
def test_heads_that_are_no_classifiers(folder, change_to, said):
    change(folder, **change_to)
    assert said in refusal(folder)


def test_a_regression(tmp_path):
    config = architecture("bert").configuration()
    config.num_labels = 1
    assert "regression" in refusal(save(tmp_path / "one", BertForSequenceClassification(config)))


def test_damaged_and_pickled_weights(folder):
    weights = folder / "model.safetensors"
    content = weights.read_bytes()
    for spoilt in (content[: len(content) // 2], b"garbage" * 100, b""):
        weights.write_bytes(spoilt)
        assert "damaged" in refusal(folder)
    weights.unlink()
    assert "there are none" in refusal(folder)
    torch.save({}, folder / "pytorch_model.bin")
    assert "pickled weights only" in refusal(folder)


def test_no_tokenizer_or_a_slow_one(folder):
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()
    assert "tokenizer" in refusal(folder)  # transformers makes an empty one up
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "ByT5Tokenizer"}')
    assert "fast tokenizer" in refusal(folder)
    (folder / "tokenizer.json").write_text("{spoilt")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    assert "tokenizer" in refusal(folder)


def test_without_a_padding_token_the_end_of_text_pads(tmp_path):
    config = architecture("gpt2").configuration()
    config.pad_token_id = None
    path = save(tmp_path / "gpt2", GPT2ForSequenceClassification(config), pad_token=None)
    model, words = load_classifier(path)
    assert words.pad_token == "[END]"
    assert model.config.pad_token_id == words.pad_token_id == 2
    texts = ["w5 w6 w7 w8", "w9 w9"]
    many = model(**words(texts, padding=True, return_tensors="pt")).logits
    for i, text in enumerate(texts):
        assert torch.allclose(
            model(**words(text, return_tensors="pt")).logits[0], many[i], atol=1e-6
        )


def test_nothing_to_pad_with(tmp_path):
    path = save(tmp_path / "a", architecture("gpt2").build(), pad_token=None, eos_token=None)
    assert "neither a padding nor" in refusal(path)
    path = save(tmp_path / "b", architecture("gpt2").build(), pad_token="[NEW]")
    assert f"{VOCABULARY} tokens" in refusal(path)


def test_training_makes_a_head_where_none_is_or_another_size(tmp_path, saved):
    def same_twice(source, classes):
        heads = []
        for _ in range(2):
            with torch.random.fork_rng():
                torch.manual_seed(1)
                model, _words = load_for_training(source, classes)
            heads.append(model.classifier.weight)
        assert torch.equal(*heads)
        assert model.training
        assert all(weight.requires_grad for weight in model.parameters())
        return model

    with quiet():
        model = AutoModelForMaskedLM.from_config(architecture("bert").configuration())
    bare = save(tmp_path / "mlm", model)
    trained = same_twice(bare, ["no", "yes"])
    assert trained.config.id2label == {0: "no", 1: "yes"}
    assert trained.config.label2id == {"no": 0, "yes": 1}
    assert torch.equal(
        trained.bert.embeddings.word_embeddings.weight, model.bert.embeddings.word_embeddings.weight
    )
    assert same_twice(saved, list("abcd")).classifier.out_features == 4
    kept, _ = load_for_training(saved, list("abc"))
    assert torch.equal(kept.classifier.weight, load_classifier(saved)[0].classifier.weight)
    assert "two classes" in refusal(saved, lambda source: load_for_training(source, ["one"]))


def test_training_refuses_a_body_that_is_not_there(folder):
    change(folder, num_hidden_layers=3)
    text = refusal(folder, lambda source: load_for_training(source, ["no", "yes"]))
    assert "bert.encoder.layer.2" in text


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("bert", 40),
        ("roberta", 38),
        ("gpt2", 40),
        ("opt", 40),
        ("xlnet", UNLIMITED),
        ("bloom", None),
    ],
)
def test_the_longest_text_a_model_reads(name, expected):
    model = architecture(name).build()
    found = longest(model, tokenizer())
    assert found == (expected or UNLIMITED)
    assert longest(model, tokenizer(model_max_length=17)) == 17
