"""Serrano & Smith, "Is Attention Interpretable?" (2019): erase what is attended, for six models.

    found = reproduce(hm.load("IMDB", tokenizer="sentences"), out="runs/serrano-smith-imdb")

Each cell is a model: trained, traced once on the test texts, and every erasure computed from the trace.
"""

import json
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch
from safetensors.torch import load, save
from torch import Tensor

from heedmap.data.corpus import Corpus, Split
from heedmap.errors import InputError, check_installed
from heedmap.experiments.context import AuditContext
from heedmap.experiments.registry import registered
from heedmap.files import manifest
from heedmap.papers.kit.parts import ABOUT, left_out
from heedmap.papers.kit.registry import Paper
from heedmap.papers.kit.reproduction import Cell, Experiment, Modules, check_distinct
from heedmap.papers.serrano_smith.numbers import Trial
from heedmap.papers.serrano_smith.result import SerranoSmith, result
from heedmap.papers.serrano_smith.settings import SerranoSmithSettings
from heedmap.papers.serrano_smith.training import (
    Training,
    dropout,
    new_model,
    texts_for,
    word_vectors,
)
from heedmap.runs.run_paths import Out
from heedmap.settings.audit import AuditSettings
from heedmap.terminal.progress import doing
from heedmap.training.fit import fit
from heedmap.training.remote import takes_executor
from heedmap.training.sweep import processes

WORDS, VECTORS = "words.json", "vectors.safetensors"
TABLES = ("instances", "erasure", "decision_flips")
LEFT_OUT = ("tokens", "attention", "probabilities", "word_attention")  # long lists
NEEDED = ("label", "predicted", "n_tokens", "js_top", "empty_flips")


@dataclass(frozen=True)
class Shared:
    """What all cells have in common; `splits` are train, dev and test, of texts of sentences."""

    classes: list[str]
    settings: SerranoSmithSettings
    splits: tuple[Split, Split, Split]
    folder: Path

    def vectors(self) -> tuple[list[str], Tensor]:
        """Read the words and their vectors."""
        words = json.loads(manifest.read(self.folder / WORDS))
        return words, load(manifest.read(self.folder / VECTORS))["vectors"]


def cells(settings: SerranoSmithSettings) -> list[Cell]:
    """Return the cells, all models of a seed before the next: a stopped run still compares them."""
    return [
        Cell(f"{model}-{seed}", {"model": model, "seed": seed})
        for seed in range(settings.seeds)
        for model in settings.models
    ]


@takes_executor
def reproduce(
    corpus: Corpus,
    *,
    out: Out,
    name: str | None = None,
    overwrite: bool = False,
    workers: int | None = None,
    **options: Any,
) -> SerranoSmith:
    """Train six models per seed and erase the weights of their last attention. Resumes a stopped run.

    Args:
        corpus: from `heedmap.load(..., tokenizer="sentences")`.
        name: of the data in the result: the corpus's own by default.
        out, overwrite, workers: see `Experiment`.
        options: see `SerranoSmithSettings`.

    Raises:
        InputError: a corpus that is not of sentences, a setting that does not fit, texts that are all too
            long, another reproduction in `out`, another process that writes there, or no gensim.
    """
    check_installed("gensim", "papers", "word2vec")
    processes(workers)
    if not corpus.sentences or corpus.pairs:
        raise InputError(
            f"{corpus.settings.source}: expected single texts of sentences, got "
            f"{'pairs of texts' if corpus.pairs else 'words'}; load them with tokenizer sentences"
        )
    settings = SerranoSmithSettings.of(
        fingerprint=corpus.fingerprint(), data=corpus.settings, **options
    )
    check_distinct("models", settings.models)
    splits, notes = short_texts(corpus, settings)
    with EXPERIMENT.opened(
        out, settings, overwrite=overwrite, name=name or corpus.name, notes=notes
    ) as reproduction:
        folder = reproduction.folder
        if not ((folder / WORDS).exists() and (folder / VECTORS).exists()):
            doing("word vectors")
            words, vectors = word_vectors(splits[:2], settings)
            manifest.write(folder / WORDS, json.dumps(words, ensure_ascii=False))
            manifest.write(folder / VECTORS, save({"vectors": vectors}))
        shared = Shared(corpus.classes, settings, splits, folder)
        return EXPERIMENT.run(reproduction, partial(compute, shared=shared), workers=workers)


def short_texts(
    corpus: Corpus, settings: SerranoSmithSettings
) -> tuple[tuple[Split, Split, Split], list[str]]:
    """Leave long texts out of train and dev, as the paper; return the splits and notes on them."""
    train, dev, test = (corpus.splits[name] for name in ("train", "dev", "test"))
    short_train, short_dev = (_short(split, settings) for split in (train, dev))
    if not (len(short_train) and len(short_dev)):
        raise InputError(
            f"{corpus.settings.source}: expected texts of at most {settings.most_sentences} sentences of at "
            f"most {settings.most_words} words, got none in the train or the dev split; raise "
            "--most-sentences or --most-words"
        )
    notes = [
        f"Texts of {corpus.name}: train {len(short_train)}, dev {len(short_dev)}, test {len(test)}.",
        f"Left out of train and dev, as too long: {len(train) - len(short_train)} and "
        f"{len(dev) - len(short_dev)}.",
    ]
    notes += left_out(corpus)
    notes.append(f"Seeds: {settings.seeds}. All numbers are of the test split.")
    return (short_train, short_dev, test), notes


def _short(split: Split, settings: SerranoSmithSettings) -> Split:
    rows = [
        i
        for i, text in enumerate(split.tokens)
        if len(text) <= settings.most_sentences
        and max(len(sentence.split()) for sentence in text) <= settings.most_words
    ]
    return split.take(rows)


def compute(cell: Cell, checkpoints: Path, *, shared: Shared) -> tuple[pa.Table, Modules]:
    """Train one model and erase the weights of the test texts."""
    settings, name, seed = shared.settings, cell["model"], cell["seed"]
    words, vectors = shared.vectors()
    model = new_model(name, words, vectors, shared.classes, settings, seed)
    train, dev = (
        model.encoded(texts_for(name, split), split.labels) for split in shared.splits[:2]
    )
    with dropout(model, settings):
        fit(Training(name, model, train, dev, settings, seed), checkpoints / "model.safetensors")
    doing("erasing")
    return erased(cell, model.cpu(), shared.splits[2]), {"model": model}


def readable(model: str, split: Split) -> Split:
    """Return a split as a model reads it: texts of sentences if it is hierarchical, else of words."""
    tokens = [list(text) for text in texts_for(model, split)]
    return replace(split, tokens=tokens, rationale=None, written=None)


@torch.no_grad()
def erased(cell: Cell, model: Any, split: Split) -> pa.Table:
    """Return a row per text: what `instances`, `erasure` and `decision_flips` have of it."""
    texts = readable(cell["model"], split)
    context = AuditContext(model, texts, AuditSettings(seed=cell["seed"]), registered())
    columns: dict[str, Any] = {name: [value] * len(split) for name, value in cell.columns.items()}
    for name in TABLES:
        table = context.table(name)
        columns |= {n: table[n] for n in table.column_names if n not in LEFT_OUT}
    return pa.table(columns)


EXPERIMENT = Experiment(
    SerranoSmithSettings,
    SerranoSmith,
    cells,
    NEEDED,
    result,
    files=(WORDS, VECTORS, ABOUT),
    rows_of=lambda cell, table: [Trial(cell["model"], cell["seed"], table)],
)
PAPER = Paper(EXPERIMENT.read, result)
