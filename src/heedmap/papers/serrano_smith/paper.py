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
from heedmap.files.manifest import remove
from heedmap.files.tables import read_table
from heedmap.papers.kit.parts import ABOUT, left_out, part_path, read_about, reserved, write_about
from heedmap.papers.kit.registry import Paper
from heedmap.papers.kit.render import write
from heedmap.papers.serrano_smith.numbers import Cell, Trial
from heedmap.papers.serrano_smith.result import Reproduction, result
from heedmap.papers.serrano_smith.settings import SerranoSmithSettings
from heedmap.papers.serrano_smith.training import (
    Training,
    dropout,
    new_model,
    texts_for,
    word_vectors,
)
from heedmap.runs.run_paths import Out
from heedmap.settings import AuditSettings
from heedmap.terminal.progress import doing
from heedmap.training.cells import checkpoints_of, run_cells, save_part
from heedmap.training.fit import fit
from heedmap.training.sweep import processes

WORDS, VECTORS = "words.json", "vectors.safetensors"
TABLES = ("instances", "erasure", "flips")
LEFT_OUT = ("tokens", "attention", "probabilities", "word_attention")  # long lists


@dataclass(frozen=True)
class Shared:
    """What all cells have in common; `splits` are train, dev and test, of texts of sentences."""

    classes: list[str]
    settings: SerranoSmithSettings
    splits: tuple[Split, Split, Split]
    folder: Path

    def path(self, cell: Cell) -> Path:
        """Return the path of a cell's table."""
        return part_path(self.folder, str(cell))

    def is_finished(self, cell: Cell) -> bool:
        """Return whether a cell's rows are there."""
        return self.path(cell).exists()

    def vectors(self) -> tuple[list[str], Tensor]:
        """Read the words and their vectors."""
        words = json.loads(manifest.read(self.folder / WORDS))
        return words, load(manifest.read(self.folder / VECTORS))["vectors"]


def cells(settings: SerranoSmithSettings) -> list[Cell]:
    """Return the cells, all models of a seed before the next: a stopped run still compares them."""
    return [Cell(model, seed) for seed in range(settings.seeds) for model in settings.models]


def reproduce(
    corpus: Corpus,
    *,
    out: Out,
    name: str | None = None,
    overwrite: bool = False,
    workers: int | None = None,
    **options: Any,
) -> Reproduction:
    """Train six models per seed and erase the weights of their last attention. Resumes a stopped run.

    Args:
        corpus: from `heedmap.load(..., tokenizer="sentences")`.
        out: the folder; each part is written when it is finished, and the result after each part.
        name: of the data in the result: the corpus's own by default.
        overwrite: replace a reproduction with other settings, and restart unfinished parts.
        workers: how many processes; one per core by default. The numbers do not depend on it.
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
    if len(set(settings.models)) != len(settings.models) or not settings.models:
        raise InputError(f"models: expected each at most once; got {', '.join(settings.models)}")
    splits, notes = _chosen(corpus, settings)
    name = name or corpus.name
    trials: list[Trial] = []
    own = (WORDS, VECTORS, ABOUT)
    with reserved(out, settings, overwrite=overwrite, own=own) as folder:
        shared = Shared(corpus.classes, settings, splits, folder)
        write_about(folder, name, notes)
        if not ((folder / WORDS).exists() and (folder / VECTORS).exists()):
            doing("word vectors")
            words, vectors = word_vectors(splits[:2], settings)
            manifest.write(folder / WORDS, json.dumps(words, ensure_ascii=False))
            manifest.write(folder / VECTORS, save({"vectors": vectors}))

        def so_far() -> Reproduction:
            return Reproduction(name, settings, trials, notes, folder)

        def keep(cell: Cell, table: pa.Table) -> None:
            trials.append(Trial(cell, table))
            write(folder, result(so_far()))

        run_cells(
            cells(settings), partial(run, shared=shared), keep,
            is_finished=shared.is_finished, workers=workers,
        )  # fmt: skip
    return so_far()


def _chosen(
    corpus: Corpus, settings: SerranoSmithSettings
) -> tuple[tuple[Split, Split, Split], list[str]]:
    """Leave long texts out of train and dev, as the paper; return the splits and notes on them."""
    train, dev, test = (corpus.splits[name] for name in ("train", "dev", "test"))
    found = [_short(split, settings) for split in (train, dev)]
    if not all(len(split) for split in found):
        raise InputError(
            f"{corpus.settings.source}: expected texts of at most {settings.most_sentences} sentences of at "
            f"most {settings.most_words} words, got none in the train or the dev split; raise "
            "--most-sentences or --most-words"
        )
    notes = [
        f"Texts of {corpus.name}: train {len(found[0])}, dev {len(found[1])}, test {len(test)}.",
        f"Left out of train and dev, as too long: {len(train) - len(found[0])} and {len(dev) - len(found[1])}.",
    ]
    notes += left_out(corpus)
    notes.append(f"Seeds: {settings.seeds}. All numbers are of the test split.")
    return (found[0], found[1], test), notes


def _short(split: Split, settings: SerranoSmithSettings) -> Split:
    kept = [
        i
        for i, text in enumerate(split.tokens)
        if len(text) <= settings.most_sentences
        and max(len(sentence.split()) for sentence in text) <= settings.most_words
    ]
    return split.take(kept)


def run(cell: Cell, *, shared: Shared) -> pa.Table:
    """Return the texts' table of one cell, read if it is finished."""
    path = shared.path(cell)
    if not path.exists():
        _make(path, cell, shared)
    remove(checkpoints_of(path))
    return _read(path, cell)


def _make(path: Path, cell: Cell, shared: Shared) -> None:
    settings = shared.settings
    words, vectors = shared.vectors()
    model = new_model(cell.model, words, vectors, shared.classes, settings, cell.seed)
    train, dev = (
        model.encoded(texts_for(cell.model, split), split.labels) for split in shared.splits[:2]
    )
    checkpoint = checkpoints_of(path) / "model.safetensors"
    with dropout(model, settings):
        fit(Training(cell.model, model, train, dev, settings, cell.seed), checkpoint)
    doing("erasing")
    save_part(path, erased(cell, model.cpu(), shared.splits[2]), {"model": model})


@torch.no_grad()
def erased(cell: Cell, model: Any, split: Split) -> pa.Table:
    """Return a row per text: what `instances`, `erasure` and `flips` have of it."""
    tokens = [list(text) for text in texts_for(cell.model, split)]
    read = replace(split, tokens=tokens, rationale=None, written=None)
    evidence = AuditContext(model, read, AuditSettings(seed=cell.seed), registered())
    columns: dict[str, Any] = {"model": [cell.model] * len(split), "seed": [cell.seed] * len(split)}
    for name in TABLES:
        table = evidence.table(name)
        columns |= {n: table[n] for n in table.column_names if n not in LEFT_OUT}
    return pa.table(columns)


def _read(path: Path, cell: Cell) -> pa.Table:
    """Read the table of a finished cell.

    Raises:
        InputError: it is damaged, or of another cell.
    """
    table = read_table(path)
    names = {"model", "seed", "label", "predicted", "n_tokens", "js_top", "empty_flips"}
    if not names <= set(table.column_names) or (
        set(table["model"].to_pylist()),
        set(table["seed"].to_pylist()),
    ) != ({cell.model}, {cell.seed}):
        raise InputError(
            f"{path}: not the rows of this part; delete it and run the reproduction again"
        )
    return table


def read(folder: Path) -> Reproduction | None:
    """Read the reproduction in a folder; return None where there is none of this paper.

    Raises:
        InputError: a part is damaged.
    """
    if (about := read_about(folder, SerranoSmithSettings)) is None:
        return None
    settings, name, notes = about
    paths = {cell: part_path(folder, str(cell)) for cell in cells(settings)}
    trials = [Trial(cell, _read(path, cell)) for cell, path in paths.items() if path.exists()]
    return Reproduction(name, settings, trials, notes, folder) if trials else None


PAPER = Paper(read, result)
