"""Tiny random transformers with one output, a number, and their answers as transformers itself gives them."""

import csv

import numpy as np
import torch
from tiny_transformers import tiny_model, tiny_tokenizer

from heedmap.huggingface.transformer_classifier import TransformerClassifier
from heedmap.settings.models import TransformerSettings

ARCHITECTURES = ["bert", "distilbert", "gpt2", "llama", "bart"]
WORDS = ["a", "film", "great", "bad", "plot", "unwatchable", "the", "is", "films", "."]


def number_model(architecture="bert", **settings):
    """A tiny model on trial that gives a number of stars."""
    wanted = TransformerSettings(source=architecture, **settings)
    model = tiny_model(architecture, 1)
    return TransformerClassifier(model, tiny_tokenizer(architecture), wanted, ["stars"])


def plain_number(architecture, text, model=None):
    """The output for one text as transformers itself gives it."""
    encoding = tiny_tokenizer(architecture)(text, return_tensors="pt")
    inputs = {name: encoding[name] for name in ("input_ids", "attention_mask")}
    with torch.no_grad():
        (number,) = (model or tiny_model(architecture, 1))(**inputs).logits[0].tolist()
    return number


def saved_number_model(folder, **values):
    """Save the tiny BERT with one output in a folder; `values` change its configuration."""
    model = tiny_model("bert", 1)
    for name, value in {"id2label": {0: "LABEL_0"}, **values}.items():
        setattr(model.config, name, value)
    model.save_pretrained(folder)
    tiny_tokenizer("bert").save_pretrained(folder)
    return folder


def rated_texts(count=24, seed=0):
    """Texts, and the number that the tiny BERT gives each one, with a little noise."""
    rng = np.random.default_rng(seed)
    texts = [" ".join(rng.choice(WORDS, n)) for n in rng.integers(2, 9, count)]
    numbers = [plain_number("bert", text) for text in texts]
    return texts, [number + 0.1 * rng.normal() for number in numbers]


def write_ratings(path, texts, labels, column="rating"):
    """Write a CSV file of texts and labels."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", column])
        writer.writerows(zip(texts, labels, strict=True))
    return path
