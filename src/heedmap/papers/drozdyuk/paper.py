"""Drozdyuk et al., "Is Sparse Attention a Better Explanation?": their interventions, with seeds and controls.

    rows = reproduce(hm.load("reviews"), out="runs/drozdyuk-reviews").rows
    table = intervene(model, tokenizer, corpus)     # the same on a trained classifier

As in the paper, weights explain an output if other weights give another output. Adversaries are trained on
the train split, temperatures fitted on dev, and all rows are of the test split.
"""

import json
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from torch import nn

from heedmap.data.corpus import Corpus, Split
from heedmap.data.load import as_written
from heedmap.data.readers import SPLITS
from heedmap.data.vocabulary import Vocabulary
from heedmap.errors import InputError
from heedmap.files import manifest
from heedmap.papers.drozdyuk.adversaries import ATTACKS
from heedmap.papers.drozdyuk.focus import Focus, focus_for
from heedmap.papers.drozdyuk.interventions import SCHEMA, every_row
from heedmap.papers.drozdyuk.model import (
    Texts,
    new_transformer,
    numbered,
    train_transformer,
    vocabulary_of,
)
from heedmap.papers.drozdyuk.reproduction import Drozdyuk
from heedmap.papers.drozdyuk.result import result
from heedmap.papers.drozdyuk.settings import DrozdyukSettings
from heedmap.papers.drozdyuk.trained import load, subject_of, tokenised
from heedmap.papers.kit.parts import Row, left_out
from heedmap.papers.kit.registry import Paper
from heedmap.papers.kit.reproduction import Cell, Experiment, Modules, check_distinct
from heedmap.runs.run_paths import Out
from heedmap.terminal.progress import portion
from heedmap.training.remote import takes_executor
from heedmap.training.sweep import processes

TABLE, VOCABULARY = "table.parquet", "vocabulary.json"


@dataclass(frozen=True)
class Shared:
    """What all cells have in common; `texts` are train, dev and test as the classifier reads them.

    A classifier of the user's own has no `focus`: its tokens are not the words of the lexicons.
    """

    data: str
    classes: list[str]
    settings: DrozdyukSettings
    texts: list[Texts]
    words: int
    focus: Focus | None = None


def cells(settings: DrozdyukSettings) -> list[Cell]:
    """Return the cells, all classifiers of a seed before the next: a stopped run still compares them."""
    classifiers = [settings.model] if settings.model else settings.transformers
    return [
        Cell(
            f"{'larger-' if classifier == 'larger' else ''}{activation}-{seed}",
            {"model": classifier, "activation": activation, "seed": seed},
        )
        for seed in range(settings.seeds)
        for classifier in classifiers
        for activation in settings.activations
    ]


@takes_executor
def reproduce(
    corpus: Corpus, *, out: Out, overwrite: bool = False, workers: int | None = None, **options: Any
) -> Drozdyuk:
    """Train, change the attention and judge, for each seed and activation. Resumes a stopped run.

    Args:
        corpus: from `heedmap.load`; words are lower-cased, except for a trained `model`.
        out, overwrite, workers: see `Experiment`.
        options: see `DrozdyukSettings`. With `model`, a trained classifier stands in for the small
            transformer: its attention is a softmax, seeds draw adversaries and shuffles only.

    Raises:
        InputError: a setting that does not fit, another reproduction in `out` or another process that writes
            there, a model that cannot be loaded, has other classes or is not on the attention interface.
    """
    processes(workers)
    if options.get("model") is not None:
        options["activations"] = ("softmax",)
        corpus = as_written(corpus)
    settings = DrozdyukSettings.of(
        fingerprint=corpus.fingerprint(), data=corpus.settings, **options
    )
    check_distinct("activations", settings.activations)
    check_distinct("transformers", settings.transformers)
    if settings.model is not None and settings.transformers != ("small",):
        raise InputError(
            "transformers: expected small, the default, beside a trained model, "
            f"got {', '.join(settings.transformers)}"
        )
    splits, notes = sampled(corpus, settings)
    vocabulary: Vocabulary | None = None
    focus: Focus | None = None
    if settings.model is None:
        vocabulary = vocabulary_of(splits["train"], settings)
        texts = [numbered(splits[name], vocabulary, settings) for name in SPLITS]
        focus, left_out_notes = focus_for(corpus, splits["train"], splits["test"], vocabulary)
        notes += left_out_notes
    else:
        subject, tokenizer = load(settings.model, corpus.classes)
        texts = tokenised(corpus, splits, subject.model, tokenizer, settings.max_length)
        notes.append(f"Classifier: {settings.model}, trained already, its attention a softmax.")
    shared = Shared(corpus.name, corpus.classes, settings, texts, len(vocabulary or ()), focus)
    with EXPERIMENT.opened(
        out, settings, overwrite=overwrite, name=corpus.name, notes=notes
    ) as reproduction:
        if vocabulary is not None:
            text = json.dumps(vocabulary.words, ensure_ascii=False)
            manifest.write(reproduction.folder / VOCABULARY, text)
        return EXPERIMENT.run(reproduction, partial(compute, shared=shared), workers=workers)


def sampled(corpus: Corpus, settings: DrozdyukSettings) -> tuple[dict[str, Split], list[str]]:
    """Return the splits, cut to seeded samples if requested (dev like test), and notes about them."""
    limits = {
        "train": settings.train_texts,
        "dev": settings.test_texts,
        "test": settings.test_texts,
    }
    splits, counts = {}, []
    for name, split in corpus.splits.items():
        limit = limits[name]
        if limit is None or limit >= len(split):
            splits[name] = split
            counts.append(f"{name} {len(split)}")
        else:
            rng = np.random.default_rng([corpus.settings.seed, *name.encode()])
            splits[name] = split.take(np.sort(rng.permutation(len(split))[:limit]))
            counts.append(f"{name} {limit} of {len(split)}")
    notes = [f"Texts of {corpus.name}: {', '.join(counts)}."]
    notes += left_out(corpus)
    notes.append(
        f"Seeds: {settings.seeds}. Adversaries learned on the train split; all numbers are of the test split."
    )
    return splits, notes


def compute(cell: Cell, checkpoints: Path, *, shared: Shared) -> tuple[list[Row], Modules]:
    """Train one classifier and its adversaries; return a row per intervention."""
    settings, (train, dev, test) = shared.settings.of_transformer(cell["model"]), shared.texts
    trained: dict[str, nn.Module] = {}
    accuracies: list[float] | None = None
    if settings.model is None:
        subject = new_transformer(
            settings, shared.words, len(shared.classes), cell["activation"], cell["seed"]
        )
        checkpoint = checkpoints / "transformer.safetensors"
        with portion(1 / (1 + len(ATTACKS))):
            accuracies = train_transformer(subject, train, dev, settings, cell["seed"], checkpoint)
        trained["model"] = subject.model
    else:
        subject, _ = load(settings.model, shared.classes)
    with portion(len(ATTACKS) / (1 + len(ATTACKS))):
        rows, adversaries = every_row(
            subject, train, dev, test, settings, cell["seed"], checkpoints, shared.focus
        )
    shared_columns = {
        "data": shared.data,
        "dev_accuracies": accuracies,
    }
    return [{**row, **shared_columns} for row in rows], {**adversaries, **trained}


EXPERIMENT = Experiment(
    DrozdyukSettings, Drozdyuk, cells, SCHEMA, result, files=(TABLE, VOCABULARY), joint=TABLE
)


def read(folder: Path) -> Drozdyuk | None:
    """Read the rows in a folder; return None where there is no reproduction of this paper.

    Raises:
        InputError: the rows are damaged.
    """
    reproduction = EXPERIMENT.read(folder)
    # The name of the data stands in the rows alone.
    return reproduction and replace(reproduction, name=reproduction.rows[0]["data"])


def intervene(
    model: Any, tokenizer: Any, corpus: Corpus, *, seed: int = 0, **options: Any
) -> pa.Table:
    """Return one row per intervention on a trained classifier, which is left unchanged.

    Args:
        model: a sequence classifier of transformers, on the attention interface, of this corpus' classes.
        tokenizer: its tokenizer.
        corpus: adversaries learn on its train split, temperatures on dev, the rows are of the test split.
        seed: of adversaries and shuffles.
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
    implementation = model.config._attn_implementation
    was_training = model.training
    were_trainable = [parameter.requires_grad for parameter in model.parameters()]
    try:
        subject = subject_of(model, corpus.classes)
        rows, _ = every_row(subject, train, dev, test, settings, seed)
    finally:
        model.set_attn_implementation(implementation)
        model.train(was_training)
        for parameter, was_trainable in zip(model.parameters(), were_trainable, strict=True):
            parameter.requires_grad_(was_trainable)
    shared_columns = {
        "data": corpus.name,
        "model": type(model).__name__,
        "activation": "softmax",
        "seed": seed,
    }
    return pa.Table.from_pylist([{**row, **shared_columns} for row in rows], schema=SCHEMA)


PAPER = Paper(read, result)
