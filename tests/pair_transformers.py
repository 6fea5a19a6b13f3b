"""Tiny random classifiers of pairs of several architectures, and their tokenizer with pairs' separators."""

import json

import torch
from tiny_transformers import tiny_model, tiny_tokenizer
from tokenizers import processors

from heedmap.data.texts import Pair, TwoTexts
from heedmap.huggingface.transformer_classifier import TransformerClassifier
from heedmap.settings.models import TransformerSettings

ARCHITECTURES = ["bert", "distilbert", "albert", "gpt2", "bart", "xlnet"]
TYPED = ("bert", "albert", "xlnet")  # tokenizers with a type for each side
FIRST = [["A", " great", " film", "."], ["the", " plot"], ["bad"]]
SECOND = [["the", " plot"], ["is", " unwatchable", ",", " a"], ["films", " great"]]


def pair_tokenizer(architecture="bert"):
    """[CLS] first [SEP] second [SEP], with token types where the architecture has them."""
    tokenizer = tiny_tokenizer(architecture)
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    names = ["input_ids", "attention_mask"]
    tokenizer.model_input_names = names + ["token_type_ids"] * (architecture in TYPED)
    tokenizer.init_kwargs["model_input_names"] = tokenizer.model_input_names  # which is saved
    return tokenizer


def pair_classifier(architecture="bert", classes=2, **settings):
    """A tiny model on trial, with the tokenizer of pairs."""
    names = [f"c{i}" for i in range(classes)]
    wanted = TransformerSettings(source=architecture, **settings)
    model = tiny_model(architecture, classes)
    return TransformerClassifier(model, pair_tokenizer(architecture), wanted, names)


def texts_of(side):
    """The same pairs with attention over one side or both: the first given the second, or the reverse."""
    rows = zip(FIRST, SECOND, strict=True)
    if side == "both":
        return [TwoTexts([*first, *second], len(first)) for first, second in rows]
    if side == "first":
        return [Pair(first, second) for first, second in rows]
    return [Pair(second, first, query_first=True) for first, second in rows]


def plainly(architecture, first, second, **options):
    """One pair as transformers itself reads it: its tokens and the model's output, eagerly."""
    model = tiny_model(architecture)
    model.set_attn_implementation("eager")
    tokenizer = pair_tokenizer(architecture)
    # Lists, for an empty second text alone would be taken for none.
    texts = ["".join(first)], ["".join(second)]
    encoding = tokenizer(*texts, return_tensors="pt", return_offsets_mapping=True)
    inputs = {name: encoding[name] for name in tokenizer.model_input_names if name in encoding}
    with torch.no_grad():
        return encoding, model(**inputs, **options)


def save_pair_model(folder, architecture="bert", classes=2, **config):
    """Save a tiny model of pairs; `config` is written into its config.json."""
    model = tiny_model(architecture, classes)
    model.save_pretrained(folder)
    pair_tokenizer(architecture).save_pretrained(folder)
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **config}))
    return folder
