"""Drozdyuk et al., "Is Sparse Attention a Better Explanation?": their interventions, with seeds and controls.

    rows = reproduce(hm.load("reviews"), out="runs/drozdyuk-reviews").rows
    table = intervene(model, tokenizer, corpus)     # the same on a trained classifier

An explanation is understood as the paper does: weights explain an output if other weights give another
output. The judge is the test split; adversaries see the train split, temperatures the dev split.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from heedmap.data.corpus import Corpus, Split, as_written
from heedmap.data.files import SPLITS
from heedmap.data.labels import match
from heedmap.errors import InputError
from heedmap.huggingface.door import NAME
from heedmap.papers.drozdyuk_claims import Claim, claims
from heedmap.papers.drozdyuk_files import (
    SCHEMA,
    claim,
    held,
    part_path,
    read_rows,
    save_part,
    tensors_of,
)
from heedmap.papers.drozdyuk_model import (
    Subject,
    Texts,
    new_transformer,
    numbered,
    train_transformer,
    vocabulary_of,
)
from heedmap.papers.drozdyuk_rows import Row, every_row
from heedmap.papers.drozdyuk_settings import DrozdyukSettings
from heedmap.papers.drozdyuk_tables import csv_text, markdown, told
from heedmap.places import Out
from heedmap.storage import write_atomically
from heedmap.tables import write_table
from heedmap.terminal import cell, show
from heedmap.training.fit import Report


@dataclass(frozen=True)
class Reproduction:
    """All rows of all parts, what the claims became, and what was read."""

    settings: DrozdyukSettings
    rows: list[Row]
    notes: list[str]
    folder: Path

    @cached_property
    def claims(self) -> list[Claim]:
        """The paper's two claims; none for a trained model, which has one activation only."""
        return claims(self.rows)

    def show(self) -> None:
        """Print Table 1 beside ours and the claims."""
        show(*map(cell, self.notes), *told(self.rows, self.claims), width=160)


def reproduce(
    corpus: Corpus,
    *,
    out: Out,
    overwrite: bool = False,
    report: Report = lambda done, total, text: None,
    **options: Any,
) -> Reproduction:
    """Train, change the attention, judge: for each seed and activation; goes on where it was stopped.

    Args:
        corpus: from `heedmap.load`; words are read in lower case, by a trained `model` as they are written.
        out: the folder; each part is written when it is done, the result anew after each.
        overwrite: replace a reproduction with other settings.
        report: called with steps done, steps in all and a text.
        options: see `DrozdyukSettings`. With `model`, a trained classifier stands in for the small
            transformer: its attention is a softmax, seeds draw adversaries and shuffles only.

    Raises:
        InputError: a setting that does not fit, another reproduction in `out` or another process that writes
            there, a model that cannot be loaded, has other classes or is not on the attention interface.
    """
    if options.get("model") is not None:
        options["activations"] = ("softmax",)
        corpus = as_written(corpus)
    settings = DrozdyukSettings.of(
        fingerprint=corpus.fingerprint(), data=corpus.settings, **options
    )
    if len(set(settings.activations)) != len(settings.activations) or not settings.activations:
        raise InputError(
            f"activations: expected each at most once; got {', '.join(settings.activations)}"
        )
    splits, notes = sampled(corpus, settings)
    if settings.model is not None:
        _given(settings.model, corpus, splits, settings)  # before anything is written
        notes.append(f"Classifier: {settings.model}, trained already, its attention a softmax.")
    rows: list[Row] = []
    with held(out, settings) as folder:
        claim(folder, settings, overwrite)
        # All activations of a seed before the next seed: a run cut short still compares them.
        for seed in range(settings.seeds):
            for activation in settings.activations:
                path = part_path(folder, activation, seed)
                if not path.exists():
                    _part(path, corpus, splits, settings, activation, seed, report)
                rows += read_rows(path, activation, seed)
                _write(Reproduction(settings, rows, notes, folder))
    return Reproduction(settings, rows, notes, folder)


def _given(
    model: str, corpus: Corpus, splits: dict[str, Split], settings: DrozdyukSettings
) -> tuple[Subject, list[Texts]]:
    """A trained classifier, and train, dev and test in its tokens."""
    from heedmap.huggingface.loading import load_classifier

    loaded, tokenizer = load_classifier(model)
    subject = subject_of(loaded, corpus.classes)
    return subject, tokenised(corpus, splits, loaded, tokenizer, settings.max_length)


def sampled(corpus: Corpus, settings: DrozdyukSettings) -> tuple[dict[str, Split], list[str]]:
    """The splits, cut to seeded samples where asked (dev as test), and what is to be said about it."""
    most = {"train": settings.train_texts, "dev": settings.test_texts, "test": settings.test_texts}
    splits, counts = {}, []
    for name, split in corpus.splits.items():
        limit = most[name]
        if limit is None or limit >= len(split):
            splits[name] = split
            counts.append(f"{name} {len(split)}")
        else:
            rng = np.random.default_rng([corpus.settings.seed, *name.encode()])
            splits[name] = split.take(np.sort(rng.permutation(len(split))[:limit]))
            counts.append(f"{name} {limit} of {len(split)}")
    notes = [f"Texts of {corpus.name}: {', '.join(counts)}."]
    if corpus.left_out:
        gone = "; ".join(f"{reason}: {count}" for reason, count in sorted(corpus.left_out.items()))
        notes.append(f"Left out or cut: {gone}.")
    notes.append(
        f"Seeds: {settings.seeds}. Adversaries learned on the train split; all numbers are of the test split."
    )
    return splits, notes


def _part(
    path: Path,
    corpus: Corpus,
    splits: dict[str, Split],
    settings: DrozdyukSettings,
    activation: str,
    seed: int,
    report: Report,
) -> None:
    accuracies: list[float] | None = None
    words = None
    if settings.model is None:
        vocabulary = vocabulary_of(splits["train"], settings)
        words = vocabulary.words
        train, dev, test = (
            numbered(splits[name], vocabulary, settings) for name in ("train", "dev", "test")
        )
        subject = new_transformer(settings, len(vocabulary), len(corpus.classes), activation, seed)
        accuracies = train_transformer(subject, train, dev, settings, seed, report)
    else:
        subject, (train, dev, test) = _given(settings.model, corpus, splits, settings)
    rows, adversaries = every_row(subject, train, dev, test, settings, seed, report)
    own = {
        "data": corpus.name,
        "model": settings.model or "transformer",
        "activation": activation,
        "seed": seed,
        "dev_accuracies": accuracies,
    }
    tensors = tensors_of(subject, adversaries, with_model=settings.model is None)
    save_part(path, [{**row, **own} for row in rows], tensors, words)


def _write(so_far: Reproduction) -> None:
    settings, folder = so_far.settings, so_far.folder
    parts = len({(row["activation"], row["seed"]) for row in so_far.rows})
    notes = list(so_far.notes)
    if (missing := settings.seeds * len(settings.activations) - parts) > 0:
        notes.append(f"Not finished: {missing} of {parts + missing} parts are still to be run.")
    name = so_far.rows[0]["data"]
    text = markdown(f"Drozdyuk et al. on {name}", notes, so_far.rows, so_far.claims)
    write_table(folder / "table.parquet", pa.Table.from_pylist(so_far.rows, schema=SCHEMA))
    write_atomically(folder / "result.csv", csv_text(so_far.rows))
    write_atomically(folder / "result.md", text)


def intervene(
    model: Any,
    tokenizer: Any,
    corpus: Corpus,
    *,
    seed: int = 0,
    report: Report = lambda done, total, text: None,
    **options: Any,
) -> pa.Table:
    """Every intervention on a trained classifier, one row each; the model is as before afterwards.

    Args:
        model: a sequence classifier of transformers, on the attention interface, of this corpus' classes.
        tokenizer: its tokenizer.
        corpus: adversaries learn on its train split, temperatures on dev, the rows are of the test split.
        seed: of adversaries and shuffles.
        report: called with steps done, steps in all and a text.
        options: see `DrozdyukSettings`.

    Raises:
        InputError: a setting that does not fit, other classes, a model that is not on the interface.
    """
    corpus = as_written(corpus)
    settings = DrozdyukSettings.of(
        fingerprint=corpus.fingerprint(), data=corpus.settings, **options
    )
    splits, _ = sampled(corpus, settings)
    train, dev, test = tokenised(corpus, splits, model, tokenizer, settings.max_length)
    before = model.config._attn_implementation
    was_training = model.training
    wanted = [parameter.requires_grad for parameter in model.parameters()]
    try:
        subject = subject_of(model, corpus.classes)
        rows, _ = every_row(subject, train, dev, test, settings, seed, report)
    finally:
        model.set_attn_implementation(before)
        model.train(was_training)
        for parameter, needed in zip(model.parameters(), wanted, strict=True):
            parameter.requires_grad_(needed)
    own = {
        "data": corpus.name,
        "model": type(model).__name__,
        "activation": "softmax",
        "seed": seed,
    }
    return pa.Table.from_pylist([{**row, **own} for row in rows], schema=SCHEMA)


def subject_of(model: Any, classes: Sequence[str]) -> Subject:
    """A trained classifier with its attention at the door, frozen and in eval mode.

    Raises:
        InputError: it has another number of classes.
    """
    if model.config.num_labels != len(classes):
        raise InputError(
            f"expected a classifier of {len(classes)} classes ({', '.join(classes)}), got one of "
            f"{model.config.num_labels}; choose another --model or --data"
        )
    model.eval().requires_grad_(False)
    model.set_attn_implementation(NAME)
    return Subject(model, "softmax", len(classes))


def tokenised(
    corpus: Corpus, splits: Mapping[str, Split], model: Any, tokenizer: Any, max_length: int
) -> list[Texts]:
    """Train, dev and test in a trained model's own tokens, labels in the order of its classes.

    The corpus is as it was written (`as_written`): its tokens joined are the text.

    Raises:
        InputError: its labels are neither the model's classes nor their numbers.
    """
    from heedmap.huggingface.loading import longest

    names = {int(i): str(name) for i, name in (model.config.id2label or {}).items()}
    number = match(
        corpus.settings.source,
        corpus.classes,
        [names[i] for i in sorted(names)],
        remedy="change the labels in the data to these names or numbers, or choose another model",
    )
    order = np.array([number[name] for name in corpus.classes], dtype=np.int64)
    limit = min(max_length, longest(model, tokenizer))
    texts = []
    for split in (splits[name] for name in SPLITS):
        joined = ["".join(tokens) for tokens in split.tokens]
        encoded = tokenizer(joined, truncation=True, max_length=limit)["input_ids"]
        ids = [np.array(text, dtype=np.int64) for text in encoded]
        texts.append(Texts(ids, order[split.labels], int(tokenizer.pad_token_id or 0)))
    return texts
