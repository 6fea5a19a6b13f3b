"""Drozdyuk et al., "Is Sparse Attention a Better Explanation?": their interventions, with seeds and controls.

    rows = reproduce(hm.load("reviews"), out="runs/drozdyuk-reviews").rows
    table = intervene(model, tokenizer, corpus)     # the same on a trained classifier

As in the paper, weights explain an output if other weights give another output. Adversaries are trained on
the train split, temperatures fitted on dev, and all rows are of the test split.
"""

import json
from dataclasses import dataclass
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
from heedmap.files.manifest import remove
from heedmap.files.tables import write_table
from heedmap.papers.drozdyuk.adversaries import ATTACKS
from heedmap.papers.drozdyuk.interventions import SCHEMA, every_row
from heedmap.papers.drozdyuk.model import (
    Texts,
    new_transformer,
    numbered,
    train_transformer,
    vocabulary_of,
)
from heedmap.papers.drozdyuk.result import Reproduction, result
from heedmap.papers.drozdyuk.settings import DrozdyukSettings
from heedmap.papers.drozdyuk.trained import load, subject_of, tokenised
from heedmap.papers.kit.parts import (
    Row,
    left_out,
    part_path,
    read_part,
    read_reproduction,
    reserved,
)
from heedmap.papers.kit.registry import Paper
from heedmap.papers.kit.render import write
from heedmap.runs.run_paths import Out
from heedmap.terminal.progress import portion
from heedmap.training.cells import checkpoints_of, run_cells, save_part
from heedmap.training.sweep import processes

TABLE, VOCABULARY = "table.parquet", "vocabulary.json"


@dataclass(frozen=True)
class Cell:
    """The classifier of one activation and seed."""

    activation: str
    seed: int

    def __str__(self) -> str:
        return f"{self.activation}-{self.seed}"


@dataclass(frozen=True)
class Shared:
    """What all cells have in common; `texts` are train, dev and test as the classifier reads them."""

    data: str
    classes: list[str]
    settings: DrozdyukSettings
    texts: list[Texts]
    words: int
    folder: Path

    def path(self, cell: Cell) -> Path:
        """Return the path of a cell's table."""
        return part_path(self.folder, str(cell))

    def is_finished(self, cell: Cell) -> bool:
        """Return whether a cell's rows are there."""
        return self.path(cell).exists()


def cells(settings: DrozdyukSettings) -> list[Cell]:
    """Return the cells, all activations of a seed before the next: a stopped run still compares them."""
    return [Cell(a, seed) for seed in range(settings.seeds) for a in settings.activations]


def reproduce(
    corpus: Corpus,
    *,
    out: Out,
    overwrite: bool = False,
    workers: int | None = None,
    **options: Any,
) -> Reproduction:
    """Train, change the attention and judge, for each seed and activation. Resumes a stopped run.

    Args:
        corpus: from `heedmap.load`; words are lower-cased, except for a trained `model`.
        out: the folder; each part is written when it is finished, and the result after each part.
        overwrite: replace a reproduction with other settings, and restart unfinished parts.
        workers: how many processes; one per core by default. The numbers do not depend on it.
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
    if len(set(settings.activations)) != len(settings.activations) or not settings.activations:
        raise InputError(
            f"activations: expected each at most once; got {', '.join(settings.activations)}"
        )
    splits, notes = sampled(corpus, settings)
    vocabulary: Vocabulary | None = None
    if settings.model is None:
        vocabulary = vocabulary_of(splits["train"], settings)
        texts = [numbered(splits[name], vocabulary, settings) for name in SPLITS]
    else:
        subject, tokenizer = load(settings.model, corpus.classes)
        texts = tokenised(corpus, splits, subject.model, tokenizer, settings.max_length)
        notes.append(f"Classifier: {settings.model}, trained already, its attention a softmax.")
    rows: list[Row] = []
    todo = cells(settings)
    with reserved(out, settings, overwrite=overwrite, own=(TABLE, VOCABULARY)) as folder:
        shared = Shared(corpus.name, corpus.classes, settings, texts, len(vocabulary or ()), folder)
        if vocabulary is not None:
            text = json.dumps(vocabulary.words, ensure_ascii=False)
            manifest.write(folder / VOCABULARY, text)

        def so_far() -> Reproduction:
            return Reproduction(corpus.name, settings, rows, notes, folder)

        def keep(cell: Cell, found: list[Row]) -> None:
            rows.extend(found)
            write_table(folder / TABLE, pa.Table.from_pylist(rows, schema=SCHEMA))
            write(folder, result(so_far()))

        run_cells(
            todo, partial(run, shared=shared), keep,
            is_finished=shared.is_finished, workers=workers,
        )  # fmt: skip
    return so_far()


def sampled(corpus: Corpus, settings: DrozdyukSettings) -> tuple[dict[str, Split], list[str]]:
    """Return the splits, cut to seeded samples if requested (dev like test), and notes about them."""
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
    notes += left_out(corpus)
    notes.append(
        f"Seeds: {settings.seeds}. Adversaries learned on the train split; all numbers are of the test split."
    )
    return splits, notes


def run(cell: Cell, *, shared: Shared) -> list[Row]:
    """Return the rows of one cell, read if it is finished."""
    path = shared.path(cell)
    if not path.exists():
        _make(path, cell, shared)
    remove(checkpoints_of(path))
    return read_part(path, SCHEMA, activation=cell.activation, seed=cell.seed)


def _make(path: Path, cell: Cell, shared: Shared) -> None:
    settings, checkpoints = shared.settings, checkpoints_of(path)
    train, dev, test = shared.texts
    trained: dict[str, nn.Module] = {}
    accuracies: list[float] | None = None
    if settings.model is None:
        subject = new_transformer(
            settings, shared.words, len(shared.classes), cell.activation, cell.seed
        )
        at = checkpoints / "transformer.safetensors"
        with portion(1 / (1 + len(ATTACKS))):
            accuracies = train_transformer(subject, train, dev, settings, cell.seed, at)
        trained["model"] = subject.model
    else:
        subject, _ = load(settings.model, shared.classes)
    with portion(len(ATTACKS) / (1 + len(ATTACKS))):
        rows, adversaries = every_row(subject, train, dev, test, settings, cell.seed, checkpoints)
    own = {
        "data": shared.data,
        "model": settings.model or "transformer",
        "activation": cell.activation,
        "seed": cell.seed,
        "dev_accuracies": accuracies,
    }
    table = pa.Table.from_pylist([{**row, **own} for row in rows], schema=SCHEMA)
    save_part(path, table, {**adversaries, **trained})


def read(folder: Path) -> Reproduction | None:
    """Read the rows in a folder; return None where there is no reproduction of this paper.

    Raises:
        InputError: the rows are damaged.
    """
    parts = read_reproduction(
        folder, DrozdyukSettings, SCHEMA, lambda settings: map(str, cells(settings))
    )
    if parts is None:
        return None
    settings, rows = parts
    return Reproduction(rows[0]["data"], settings, rows, [], folder)


def intervene(
    model: Any,
    tokenizer: Any,
    corpus: Corpus,
    *,
    seed: int = 0,
    **options: Any,
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
    before = model.config._attn_implementation
    was_training = model.training
    wanted = [parameter.requires_grad for parameter in model.parameters()]
    try:
        subject = subject_of(model, corpus.classes)
        rows, _ = every_row(subject, train, dev, test, settings, seed)
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


PAPER = Paper(read, result)
