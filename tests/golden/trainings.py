"""Tiny models that are trained again and again, and planted models of every family.

`RETRAINED` asks every question for which further models are trained. `plants_record` has what is true of each
family, and one plant of it: its texts, its weights and its answers. Plants whose weights are set by hand take
seconds; the others are trained for a moment, which teaches them nothing but takes every step of their making.
"""

import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

import numpy as np
import torch
import transformers as hf
from golden.record import Record
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from torch import nn

import heedmap as hm
from heedmap.calibration.families import Family, draw, families, make
from heedmap.calibration.measure import measure
from heedmap.calibration.plants import Plant
from heedmap.runs.retrain import retrain

SIZES = {"embedding_size": 8, "hidden_size": 8, "min_df": 1, "progress": False}
FURTHER = {
    "seeds": 2, "lambdas": (0.5,), "adversary_epochs": 2, "penalties": (1.0,), "permutations": 5,
    "minutes": "all", "integrated_gradients_instances": 4, "workers": 1, "progress": False,
}  # fmt: skip
FILLERS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta"]
TELLING = ["awful", "lovely"]
PLACES = ["den", "hut", "inn"]


def telling_texts(count: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """Return texts of two sentences with a word that gives the label away, and their labels."""
    rng = np.random.default_rng(seed)
    texts = []
    for i in range(count):
        filler = " ".join(rng.choice(FILLERS, int(rng.integers(1, 5))))
        texts.append(f"{TELLING[i % 2]} {filler}. It {rng.choice(FILLERS)} ended.")
    return texts, [f"c{i % 2}" for i in range(count)]


def asked_texts(count: int, seed: int = 0) -> tuple[list[str], list[str], list[str]]:
    """Return texts that say where two things are, the place of one as the label, and the question for it."""
    rng = np.random.default_rng(seed)
    things = ["ant", "bee"]
    texts, labels, queries = [], [], []
    for i in range(count):
        at = rng.choice(PLACES, 2)
        texts.append(" ".join(f"{thing} in {at[j]}" for j, thing in enumerate(things)))
        labels.append(str(at[i % 2]))
        queries.append(f"where {things[i % 2]}")
    return texts, labels, queries


def untrained_classifier(folder: Path) -> Path:
    """Write an untrained BERT, whose pieces are the commonest words of the reviews, and letters.

    They are not learned: what learns pieces breaks ties differently each time.
    """
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    texts = hm.load("reviews", progress=False).splits["train"].tokens
    counts = Counter(word.lower() for text in texts for word in text)
    common = sorted(counts, key=lambda word: (-counts[word], word))[:150]
    letters = [start + letter for start in ("", "##") for letter in "abcdefghijklmnopqrstuvwxyz"]
    pieces = dict.fromkeys([*special, *letters, *common])
    numbers = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(numbers, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    inputs = ["input_ids", "token_type_ids", "attention_mask"]
    hf.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=64,
        model_input_names=inputs,
        **dict(zip(names, special, strict=True)),
    ).save_pretrained(folder)
    config = hf.BertConfig(
        vocab_size=len(numbers), num_hidden_layers=2, num_attention_heads=4, hidden_size=16,
        intermediate_size=32, max_position_embeddings=64, id2label={0: "neg", 1: "pos"}, initializer_range=0.3,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        hf.BertForSequenceClassification(config).save_pretrained(folder)
    return folder


def of_words() -> hm.Audit:
    """Ask every question of a model of single texts."""
    texts, labels = telling_texts(120)
    corpus = hm.load(texts, labels=labels, progress=False)
    run = hm.train(corpus, encoder="lstm", epochs=2, learning_rate=0.02, **SIZES)
    return retrain(run, forbidden="awful,lovely", **FURTHER)


def of_pairs() -> hm.Audit:
    """Ask what applies to a model of texts with a query."""
    texts, labels, queries = asked_texts(90)
    corpus = hm.load(texts, labels=labels, queries=queries, progress=False)
    return retrain(hm.train(corpus, epochs=2, learning_rate=0.02, **SIZES), **FURTHER)


def of_sentences() -> hm.Audit:
    """Ask what applies to a model of sentences."""
    texts, labels = telling_texts(90)
    corpus = hm.load(texts, labels=labels, tokenizer="sentences", progress=False)
    run = hm.train(corpus, encoder="none", epochs=2, learning_rate=0.02, **SIZES)
    return retrain(run, **FURTHER)


def of_fine_tuned(folder: Path) -> hm.Audit:
    """Ask whether a fine-tuned transformer can be made to hide words."""
    base = untrained_classifier(folder / "base")
    corpus = hm.load("reviews", train_texts=40, test_texts=16, progress=False)
    options = {"epochs": 1, "learning_rate": 1e-3, "progress": False}
    run = hm.fine_tune(base, corpus, out=folder / "run", **options)
    asked = {**FURTHER, "heads": "both", "permutations": 2}
    return retrain(run, ["deception"], forbidden="and,the,was", **asked)


RETRAINED: dict[str, Callable[[Path], hm.Audit]] = {
    "retrained": lambda _: of_words(),
    "retrained-pair": lambda _: of_pairs(),
    "retrained-sentences": lambda _: of_sentences(),
    "retrained-transformer": of_fine_tuned,
}


# Planted models.

How = Literal["by hand", "trained"]
SEED = 200
FEW = 24  # texts on which a plant is checked
STEPS = 64  # training texts of a plant that are read, once
WITHOUT_CONTEXT = ["none", "average"]
BY_HAND = {"word behind the cue attended, no context": WITHOUT_CONTEXT}  # though no name says so
MEASURED = (
    "cue attended", "transformer, cue attended", "bags, deciding items attended", "number, cue attended",
    "pictures, deciding patch attended", "pair transformer, asked cue attended",
)  # fmt: skip
LEARNED = {
    "cue attended": "lstm", "transformer, cue attended": "bert", "pair, asked cue attended": "pair",
    "bags, deciding items attended": "bags of one-hot vectors", "pictures, deciding patch attended": "vit",
}  # fmt: skip
CHOICES = (
    "classes", "margin", "sharpness", "deciding", "opposing", "noise", "length", "texts", "score", "normaliser",
)  # fmt: skip


def plants_record(how: How) -> Record:
    """Return what one plant of each family is, of those that are set `by hand` or of those that are `trained`.

    Beside the latter: the numbers of some that are set by hand, and of some that are trained to the end.
    """
    record: Record = {}
    every = families()  # which imports what is changed for a while
    with few_texts_and_steps():
        for family in every.values():
            for encoder in encoders(family, how):
                record |= record_of_plant(family, encoder)
        if how == "trained":
            for name in MEASURED:
                record |= measured_record(every[name], encoders(every[name], "by hand")[0])
    for name, encoder in LEARNED.items() if how == "trained" else ():
        record |= measured_record(every[name], encoder)
    return record


def encoders(family: Family, how: How) -> list[str]:
    """Return the encoders whose plants are recorded: all that are set by hand, or one that is trained."""
    named = [encoder for encoder in family.makers if "by hand" in encoder]
    named = BY_HAND.get(family.name, named)
    if how == "by hand":
        return named
    # Bags of digits are read quickly, and pictures of them are drawn.
    preferred = ("lstm", "bert", "vit", "pair bert", "bags of one-hot vectors", *family.makers)
    return [one for one in preferred if one in family.makers and one not in named][:1]


def small(family: Family, encoder: str) -> tuple[Plant, Plant]:
    """Return a plant as it is drawn, and one like it of few and, of transformers, short texts."""
    drawn = draw(family, encoder, SEED, "reviews" if family.on_corpora else "")
    plant = replace(drawn, texts=12)
    if any(word in encoder for word in ("transformer", "number", "bert", "pictures", "vit")):
        is_vision = encoder in ("pictures by hand", "vit")
        plant = replace(plant, classes=min(plant.classes, 3), length=9 if is_vision else 6)
    return drawn, plant


def record_of_plant(family: Family, encoder: str) -> Record:
    """Return what is true of a family, and what a plant of it is."""
    drawn, plant = small(family, encoder)
    planted = make(plant, hosts() if plant.host else None)
    split = planted.split
    values: dict[str, Any] = {
        "truth": family.truth,
        "times": family.times,
        "encoders": [*family.makers],
        **{f"choices/{name}": getattr(drawn, name) for name in CHOICES},
        "admitted": planted.admitted,
        "texts/count": len(split),
        "texts/labels": split.labels.tolist(),
        "texts/words": [len(text) for text in split.tokens],
    }
    if split.rationale is not None:
        values["texts/deciding"] = [int(np.sum(marks)) for marks in split.rationale]
    rows = range(min(3, len(split)))
    logits = planted.model.logits(planted.model.batch([split.texts[i] for i in rows], rows))
    values["logits"] = logits.double().flatten().tolist()
    for name, weight in weights_of(planted.model):
        numbers = weight.double()
        squares = float((numbers**2).sum())
        values[f"weights/{name}"] = [list(weight.shape), float(numbers.sum()), squares]
    return as_record(f"{family.name}/{encoder}", values)


def measured_record(family: Family, encoder: str) -> Record:
    """Return the numbers of a plant's texts that thresholds are chosen on."""
    _, plant = small(family, encoder)
    with tempfile.TemporaryDirectory() as folder:
        texts = measure(plant, Path(folder)).texts
    columns = zip(texts.column_names, texts.columns, strict=True)
    return as_record(
        f"{family.name}/{encoder}/measured", {name: col.to_pylist() for name, col in columns}
    )


def as_record(start: str, values: Mapping[str, Any]) -> Record:
    """Return values as lists, by keys that begin alike."""
    return {
        f"{start}/{key}": value if isinstance(value, list) else [value]
        for key, value in values.items()
    }


def hosts() -> dict[str, hm.Corpus]:
    """Return the corpus into whose texts cues are written."""
    return {"reviews": hm.load("reviews", train_texts=300, test_texts=100, progress=False)}


def weights_of(model: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the parameters and buffers of a model, or of the modules that it holds."""
    held = [("", model)] if isinstance(model, nn.Module) else sorted(vars(model).items())
    for name, module in held:
        if isinstance(module, nn.Module):
            start = f"{name}." if name else ""
            for part, weight in chain(module.named_parameters(), module.named_buffers()):
                yield start + part, weight


@contextmanager
def few_texts_and_steps() -> Iterator[None]:
    """Within the block, plants are checked on few texts, and trained on few, once."""
    modules = [module for name, module in sys.modules.items() if "heedmap.calibration." in name]
    with ExitStack() as stack:
        for module in modules:
            if hasattr(module, "DEV"):
                stack.enter_context(patch.object(module, "DEV", FEW))
            for name in {"TRAIN", "MANY"} & {*vars(module)}:
                stack.enter_context(patch.object(module, name, 4 * STEPS))
            if hasattr(module, "fit"):
                stack.enter_context(patch.object(module, "fit", briefly(module.fit)))
        yield


def briefly(fit: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a training that ends after one look at a few texts."""

    def fit_briefly(objective: Any) -> Any:
        objective.epochs, objective.lengths = 1, objective.lengths[:STEPS]
        return fit(objective)

    return fit_briefly
