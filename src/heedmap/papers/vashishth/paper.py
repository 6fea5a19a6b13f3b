"""Vashishth et al.'s comparison of tasks: is attention needed, and do its weights matter once it is trained?

rows = reproduce(single=hm.load("sst"), pair=hm.load("snli"), out="runs/vashishth").rows
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from heedmap.data.corpus import Corpus, Split
from heedmap.data.parallel import Pairs, Parallel
from heedmap.errors import InputError
from heedmap.models.encoder_decoder import EncoderDecoder, EncoderDecoderSettings
from heedmap.papers.kit.parts import ABOUT, Row, left_out, left_out_of
from heedmap.papers.kit.registry import Paper
from heedmap.papers.kit.reproduction import Cell, Experiment, Modules
from heedmap.papers.kit.translators import Encoded, pieces_of, sampled
from heedmap.papers.vashishth.attention import (
    Classification,
    Translating,
    sub_word_accuracy,
    text_accuracy,
    trained,
)
from heedmap.papers.vashishth.result import Vashishth, result
from heedmap.papers.vashishth.settings import ATTENTIONS, TASKS, VashishthSettings
from heedmap.runs.run_paths import Out
from heedmap.settings.models import ModelSettings
from heedmap.settings.run import RunSettings
from heedmap.settings.training import TrainSettings
from heedmap.training.initialisation import init_model, kind_for
from heedmap.training.objective import seeded
from heedmap.training.remote import takes_executor
from heedmap.training.sweep import processes

SCHEMA = pa.schema(
    [
        ("task", pa.string()),
        ("data", pa.string()),
        ("training", pa.string()),
        ("seed", pa.int64()),
        ("test", pa.string()),
        ("accuracy", pa.float64()),
        ("commonest", pa.float64()),
        ("n", pa.int64()),
    ]
)


def cells(settings: VashishthSettings) -> list[Cell]:
    """Return the trainings, all kinds of a seed before the next."""
    return [
        Cell(f"{task}-{kind}-{seed}", {"task": task, "training": kind, "seed": seed})
        for seed in range(settings.seeds)
        for task in settings.tasks
        for kind in ATTENTIONS
    ]


@takes_executor
def reproduce(
    *,
    single: Corpus | None = None,
    pair: Corpus | None = None,
    generation: Parallel | None = None,
    out: Out,
    overwrite: bool = False,
    workers: int | None = None,
    **options: Any,
) -> Vashishth:
    """Train models of each task under each attention, and test them. Resumes a stopped run.

    Args:
        single, pair: from `heedmap.load`, of single texts and of pairs.
        generation: from `load_parallel`.
        out, overwrite, workers: see `Experiment`.
        options: see `VashishthSettings`.

    Raises:
        InputError: no data, or data of another task; a setting that does not fit; another reproduction in
            `out`, or another process that writes there.
    """
    processes(workers)
    corpora = {"single": single, "pair": pair, "generation": generation}
    given: dict[str, Corpus | Parallel] = {
        task: corpus for task, corpus in corpora.items() if corpus is not None
    }
    if not given:
        raise InputError("expected data of at least one task: " + ", ".join(TASKS.values()))
    for task, corpus in given.items():
        if isinstance(corpus, Corpus) and (corpus.sentences or corpus.pairs != (task == "pair")):
            raise InputError(
                f"{corpus.settings.source}: expected data of the task {TASKS[task]}; name the paper's data "
                "set, such as snli, with --pairs-dataset, or load pairs in Python with query="
            )
    settings = VashishthSettings.of(
        **{task: corpus.fingerprint() for task, corpus in given.items()}, **options
    )
    notes: list[str] = []
    data: dict[str, Corpus | Parallel] = {}
    for task, corpus in given.items():
        data[task], corpus_notes = _sampled(corpus, settings)
        notes += [f"{TASKS[task].capitalize()}: {note}" for note in corpus_notes]
    with EXPERIMENT.opened(
        out,
        settings,
        overwrite=overwrite,
        name=", ".join(corpus.name for corpus in given.values()),
        notes=notes,
    ) as reproduction:
        return EXPERIMENT.run(
            reproduction, partial(compute, data=data, settings=settings), workers=workers
        )


def _sampled(
    corpus: Corpus | Parallel, settings: VashishthSettings
) -> tuple[Corpus | Parallel, list[str]]:
    """Return a seeded sample of each split, and notes about it; dev is cut like test."""
    limits = {
        name: settings.train_texts if name == "train" else settings.test_texts
        for name in corpus.splits
    }
    parts: dict[str, Any] = {}
    for name, split in corpus.splits.items():
        if isinstance(split, Pairs):
            parts[name] = sampled(split, limits[name])
        else:
            limit = len(split) if limits[name] is None else limits[name]
            assert isinstance(split, Split)
            parts[name] = split.take(split.drawn(np.random.default_rng(0), int(limit or 0)))
    counts = ", ".join(
        f"{name} {len(part)} of {len(corpus.splits[name])}" for name, part in parts.items()
    )
    notes = [f"{corpus.name}, {counts}."]
    if isinstance(corpus, Corpus):
        cut: Corpus | Parallel = Corpus(corpus.name, corpus.classes, parts, corpus.settings)
        return cut, notes + left_out(corpus)
    return Parallel(corpus.name, parts), notes + left_out_of(corpus.left_out, "Left out")


def compute(
    cell: Cell,
    checkpoints: Path,
    *,
    data: Mapping[str, Corpus | Parallel],
    settings: VashishthSettings,
) -> tuple[list[Row], Modules]:
    """Train one model, and test it under its own attention and, if that is learned, under the others."""
    corpus, kind, seed = data[cell["task"]], cell["training"], cell["seed"]
    checkpoint = checkpoints / "model.safetensors"
    if isinstance(corpus, Corpus):
        model, score, shared = _classifier(corpus, kind, seed, settings, checkpoint)
    else:
        model, score, shared = _translator(corpus, kind, seed, settings, checkpoint)
    rows = []
    for test in ATTENTIONS if kind == "learned" else (kind,):
        draws = settings.draws if test == "permuted" else 1
        accuracy = float(np.mean([score(test, draw) for draw in range(draws)]))
        rows.append({"data": corpus.name, "test": test, "accuracy": accuracy, **shared})
    return rows, {"model": model}


def _classifier(
    corpus: Corpus, kind: str, seed: int, settings: VashishthSettings, checkpoint: Path
) -> tuple[Any, Any, Row]:
    """Return a trained classifier, its accuracy under an attention and a draw, and the commonest class."""
    train = TrainSettings.of(
        seed=seed,
        epochs=settings.epochs,
        batch_size=settings.batch_size,
        learning_rate=settings.learning_rate,
        selection="accuracy",
    )
    model_settings = ModelSettings.of(
        hidden_size=settings.hidden_size, embedding_size=settings.embedding_size
    )
    run_settings = RunSettings(
        fingerprint=corpus.fingerprint(), data=corpus.settings, model=model_settings, train=train
    )
    model, _, _ = init_model(corpus, run_settings, kind_for(corpus, run_settings.model))
    splits = {
        name: model.encoded(split.texts, split.labels) for name, split in corpus.splits.items()
    }
    trained(Classification(model, splits["train"], splits["dev"], train, kind), checkpoint)
    labels = corpus.splits["test"].labels
    shared = {"commonest": float(np.bincount(labels).max() / len(labels)), "n": len(labels)}
    return model, lambda test, draw: text_accuracy(model, splits["test"], test, draw), shared


def _translator(
    corpus: Parallel, kind: str, seed: int, settings: VashishthSettings, checkpoint: Path
) -> tuple[Any, Any, Row]:
    """Return the same of a translator; its answers are target sub-words, the commonest of all is the chance."""
    train = corpus.splits["train"]
    pieces = pieces_of(train, settings.vocabulary)
    splits = {name: Encoded.of(pairs, pieces) for name, pairs in corpus.splits.items()}
    with seeded(seed):
        size = settings.translator_size
        model = EncoderDecoder(
            EncoderDecoderSettings(
                size=size,
                embedding=size,
                bidirectional=True,
                activation="relu",
                shared=False,
                dropout=settings.dropout,
            ),
            len(pieces),
        )
    objective = Translating(
        model,
        splits["train"],
        splits["dev"],
        kind,
        learning_rate=settings.learning_rate,
        epochs=settings.epochs,
        batch_size=settings.batch_size,
        seed=seed,
        made_with={"attention": kind, **settings.model_dump(mode="json")},
    )
    trained(objective, checkpoint)
    answers = np.concatenate(splits["test"].target)
    shared = {"commonest": float(np.bincount(answers).max() / len(answers)), "n": len(answers)}
    return model, lambda test, draw: sub_word_accuracy(model, splits["test"], test, draw), shared


EXPERIMENT = Experiment(VashishthSettings, Vashishth, cells, SCHEMA, result, files=(ABOUT,))
PAPER = Paper(EXPERIMENT.read, result)
