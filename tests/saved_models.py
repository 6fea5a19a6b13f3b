"""Tiny classifiers in folders, changes of their configuration, and the refusals of what they become."""

import json

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from heedmap.errors import InputError
from heedmap.huggingface.loading import load_classifier
from heedmap.huggingface.logging import quiet
from heedmap.huggingface.zoo import VOCABULARY

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
