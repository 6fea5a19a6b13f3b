"""A model is read as transformers itself reads it: each text alone, as it is, without padding."""

import shutil

import numpy as np
import pytest
import torch
from saved_models import change, refusal
from tiny_transformers import TEXTS, tiny_model, tiny_tokenizer
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BigBirdConfig,
    BigBirdForSequenceClassification,
    GPT2Config,
    GPT2ForSequenceClassification,
    PreTrainedTokenizerFast,
)
from wording import refused, warned

from heedmap.data.corpus import Split
from heedmap.data.texts import exchanged, shortened
from heedmap.data.tokens import pieces
from heedmap.huggingface.configurations import find_model
from heedmap.huggingface.loading import load_classifier
from heedmap.huggingface.opening import fitted_text, open_classifier
from heedmap.huggingface.sample_texts import SENTENCES, sample_texts, thresholds
from heedmap.huggingface.truncation import truncated
from heedmap.huggingface.verification import verify
from heedmap.settings.models import TransformerSettings

WRITTEN = [
    "A dull plot, and yet I laughed. ", "  two  blanks\t\tand tabs \n", "e\u0301te\u0301 na\u0308ive",
    "zero\u200bwidth\u200d", "one\r\ntwo\r\n", "a", "\u00a0hard space\u00a0", "end <|end|>", "x<br /><br />y",
]  # fmt: skip


def bytes_tokenizer(**options):
    """A byte-level one, to which a blank at the end is a token."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    learner = trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<|end|>"], initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(list(SENTENCES) * 5, learner)
    return PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token="<|end|>", model_max_length=96, **options
    )


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory):
    folder = tmp_path_factory.mktemp("as-loaded") / "gpt2"
    words = bytes_tokenizer()
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(words), n_embd=32, n_layer=2, n_head=4, n_positions=96, eos_token_id=0,
        bos_token_id=0, initializer_range=0.3, id2label={0: "no", 1: "yes"},
    )  # fmt: skip
    GPT2ForSequenceClassification(config).save_pretrained(folder)
    words.save_pretrained(folder)
    return folder


def plainly(folder, text, **options):
    """The ids and probabilities of transformers' own reading."""
    words = AutoTokenizer.from_pretrained(folder)
    encoding = words(text, return_tensors="pt", **options)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    with torch.no_grad():
        return encoding["input_ids"][0], model(input_ids=encoding["input_ids"]).logits[0].softmax(
            -1
        )


def test_texts_are_read_as_they_are_written(gpt2):
    model, _ = open_classifier(TransformerSettings.of(source=str(gpt2)))
    texts = [pieces(text, "words") for text in WRITTEN]
    batch = model.batch(texts, range(len(texts)))
    logits = model.logits(batch)
    for i, text in enumerate(WRITTEN):
        ids, expected = plainly(gpt2, text)
        assert torch.equal(batch.ids[i][batch.real[i]], ids), text
        assert torch.allclose(logits[i].softmax(-1), expected, atol=1e-5), text
        assert torch.allclose(
            model.trace(model.batch(texts, range(len(texts)))).logits[i].softmax(-1),
            expected,
            atol=1e-5,
        )


def test_a_deletion_leaves_every_other_character():
    for text in WRITTEN:
        words = pieces(text, "words")
        assert "".join(words) == text
        end = text[len(text.rstrip()) :]
        for place in range(len(words)) if len(words) > 1 else ():
            start = len("".join(words[:place]))
            length = len(words[place].rstrip())
            without = text[:start] + text[start + length :]
            assert "".join(exchanged(words, place)) == without
            kept = np.arange(len(words)) != place
            assert "".join(shortened(words, kept)) == without
            assert without.endswith(end)


@pytest.mark.parametrize("side", ["right", "left"])
def test_a_long_text_is_cut_where_the_tokenizer_cuts_it(gpt2, tmp_path, side):
    folder = shutil.copytree(gpt2, tmp_path / "model")
    bytes_tokenizer(truncation_side=side).save_pretrained(folder)
    text = " ".join(SENTENCES) * 3 + " "
    ids, expected = plainly(folder, text, truncation=True)
    model, _ = open_classifier(TransformerSettings.of(source=str(folder)))
    whole = Split(["text"], [pieces(text, "words")], np.zeros(1, dtype=np.int64))
    split, notes = fitted_text(model, whole, "cut")
    batch = model.batch(split.tokens, [0])
    assert torch.equal(batch.ids[0], ids)
    assert torch.allclose(model.logits(batch)[0].softmax(-1), expected, atol=1e-5)
    assert ("to its last" if side == "left" else "to its first") in notes[0]
    kept = truncated(model.tokenizer, pieces(text, "words"), 96).text
    assert text.endswith("".join(kept)) if side == "left" else text.startswith("".join(kept))


def test_the_check_compares_texts_of_every_kind(gpt2):
    model, words = load_classifier(gpt2)
    texts, untried = sample_texts(model, words)
    assert untried is None
    sizes = [len(words(text)["input_ids"]) for text in texts.values()]
    assert {1, 2, 64, 95, 96, 97} <= set(sizes)
    assert sizes[:3] == [97, 96, 95]
    assert any(text.endswith("<|end|>") for text in texts.values())
    found = verify(model, words)
    assert found.ok, found.refusal
    assert 0 < found.value("as loaded") < 1e-4


def test_a_changed_model_is_refused_with_the_text_and_by_how_much(monkeypatch):
    model, words = tiny_model("llama"), tiny_tokenizer("llama")
    assert verify(model, words).ok

    def moved(texts, *others):
        words = pieces(texts, *others)
        return [*words[:-1], words[-1].rstrip() + " bad"]

    monkeypatch.setattr("heedmap.huggingface.as_loaded.pieces", moved)
    found = verify(model, words)
    assert [check.name for check in found.checks if not check.passed] == ["as loaded"]
    assert "token ids differ" in found.refusal
    monkeypatch.undo()
    monkeypatch.setattr("heedmap.huggingface.as_loaded._tolerance", lambda *_: (1e-12, 1e-12))
    assert "by " in verify(model, words).refusal


def test_attention_that_changes_with_the_length_is_refused(tmp_path):
    config = BigBirdConfig(
        vocab_size=18, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=24,
        max_position_embeddings=256, block_size=8, num_random_blocks=2, pad_token_id=0,
        attention_type="block_sparse", initializer_range=0.5,
    )  # fmt: skip
    assert 72 in thresholds(config).values()
    torch.manual_seed(0)
    words = tiny_tokenizer()
    words.model_max_length = 128
    with refused("BigBirdForSequenceClassification", "129 positions", "128", "original_full"):
        verify(BigBirdForSequenceClassification(config).eval(), words)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"problem_type": "regression"}, "amounts"),
        ({"problem_type": "ranking"}, "got 'ranking'"),
        ({"function_to_apply": "none"}, "amounts"),
        ({"quantization_config": {"quant_method": "gptq"}}, "quantised by gptq"),
        ({"architectures": ["GPT2ForQuestionAnswering"]}, "marks the answer"),
        ({"n_head": 3}, "divisible"),
        ({"n_positions": 10**400}, "config.json"),
        ({"n_embd": 64}, " is 32 × 96, not 64 × 192"),
    ],
)
def test_what_a_configuration_says_is_the_reason(gpt2, tmp_path, values, said):
    folder = shutil.copytree(gpt2, tmp_path / "model")
    change(folder, **values)
    text = refusal(folder)
    assert said in text
    assert "damaged" not in text


@pytest.mark.parametrize(
    "values",
    [
        {"problem_type": "multi_label_classification"},
        {"function_to_apply": "sigmoid"},
        {"task_specific_params": {"text-classification": {"function_to_apply": "sigmoid"}}},
        {"sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Sigmoid"}},
    ],
)
def test_what_a_configuration_says_of_several_labels_is_found(gpt2, tmp_path, values):
    folder = shutil.copytree(gpt2, tmp_path / "model")
    assert find_model(folder).labels() is None
    change(folder, **values)
    assert len(find_model(folder).labels()) > 1


def test_cross_encoders_of_several_classes_are_classifiers(gpt2, tmp_path):
    folder = shutil.copytree(gpt2, tmp_path / "model")
    change(folder, sbert_ce_default_activation_function="torch.nn.modules.linear.Identity")
    model, _ = load_classifier(folder)
    assert model.config.num_labels == 2


def test_attention_that_is_not_installed_gives_way_to_eager(gpt2, tmp_path):
    folder = shutil.copytree(gpt2, tmp_path / "model")
    change(folder, attn_implementation="flash_attention_2")
    with warned("config.json", "flash_attention_2", "eager"):
        model, words = load_classifier(folder)
    assert verify(model, words).ok


@pytest.mark.parametrize("value", ["x", -3, [5], "1e3"])
def test_a_limit_that_is_no_number_is_refused(gpt2, tmp_path, value):
    folder = shutil.copytree(gpt2, tmp_path / "model")
    words = folder / "tokenizer_config.json"
    shutil.copy(words, tmp_path / "before")
    import json

    words.write_text(json.dumps({**json.loads(words.read_text()), "model_max_length": value}))
    assert "model_max_length" in refusal(folder)


def test_embeddings_that_return_more_than_vectors_are_refused():
    import transformers

    config = transformers.IBertConfig(
        vocab_size=18, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=24,
        pad_token_id=0, max_position_embeddings=40,
    )  # fmt: skip
    model = transformers.IBertForSequenceClassification(config).eval()
    with refused("IBertForSequenceClassification", "a tuple"):
        verify(model, tiny_tokenizer())


def test_texts_of_padding_alone_are_not_read_with_padding_on_the_left():
    from tiny_transformers import tiny_classifier

    model = tiny_classifier("bloom")
    assert model.readable(TEXTS).all()
