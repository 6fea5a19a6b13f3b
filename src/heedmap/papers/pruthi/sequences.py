"""Pruthi et al.'s sequence tasks: copy, reverse, bigram flip and translation, with and without the penalty.

found = reproduce(task="copy", out="runs/pruthi-copy")
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from heedmap.data.parallel import Parallel
from heedmap.errors import InputError, check_installed
from heedmap.models.step_decoder import StepDecoder, StepDecoderSettings
from heedmap.papers.kit.parts import ABOUT, Row, left_out_of
from heedmap.papers.kit.reproduction import Cell, Experiment, Modules
from heedmap.papers.kit.translators import bleu, sampled
from heedmap.papers.pruthi.sequence_result import SequenceResult, result
from heedmap.papers.pruthi.sequence_task import (
    END,
    SPECIAL,
    DeceptionObjective,
    Linked,
    drawn,
    evaluate,
    numbered,
    predicted,
    words_of,
)
from heedmap.papers.pruthi.settings import SequenceSettings
from heedmap.runs.run_paths import Out
from heedmap.training.fit import fit
from heedmap.training.objective import seeded
from heedmap.training.remote import takes_executor
from heedmap.training.sweep import processes

MEASURED = ("accuracy", "mass", "possible", "uniform", "on", "beside", "blocked")
SCHEMA = pa.schema(
    [
        ("attention", pa.string()), ("penalty", pa.float64()), ("seed", pa.int64()), ("epochs", pa.int64()),
        *((name, pa.float64()) for name in (*MEASURED, "bleu")),
    ]
)  # fmt: skip
LEAST = 2  # times that a word occurs, else it is unknown


@dataclass(frozen=True)
class Data:
    """Pairs by split, how many symbols there are, and the target's words, where it has any."""

    splits: dict[str, Linked]
    sources: int
    targets: int
    words: list[str]


def cells(settings: SequenceSettings) -> list[Cell]:
    """Return all trainings, those of a seed side by side."""
    kinds = [
        ("learned", 0.0), *(("learned", penalty) for penalty in settings.penalties),
        ("uniform", 0.0), ("none", 0.0),
    ]  # fmt: skip
    return [
        Cell(
            f"{attention}-{penalty:g}-{seed}",
            {"attention": attention, "penalty": penalty, "seed": seed},
        )
        for seed in range(settings.seeds)
        for attention, penalty in kinds
    ]


@takes_executor
def reproduce(
    corpus: Parallel | None = None,
    *,
    out: Out,
    overwrite: bool = False,
    workers: int | None = None,
    **options: Any,
) -> SequenceResult:
    """Train models with each attention and each penalty. Resumes a stopped call.

    Args:
        corpus: of the task "translation", with links of the words in every split.
        out, overwrite, workers: see `Experiment`.
        options: see `SequenceSettings`.

    Raises:
        InputError: sentences without links; a setting that does not fit; another reproduction in `out`, or
            another process that writes there; no sacrebleu for a translation.
    """
    processes(workers)
    if corpus is not None:
        check_installed("sacrebleu", "papers", "BLEU")
        options = {**options, "fingerprint": corpus.fingerprint()}
    settings = SequenceSettings.of(**options)
    data = _drawn(settings) if corpus is None else _read(corpus, settings)
    name, notes = _about(settings, corpus, data)
    with EXPERIMENT.opened(
        out, settings, overwrite=overwrite, name=name, notes=notes
    ) as reproduction:
        return EXPERIMENT.run(
            reproduction, partial(compute, data=data, settings=settings), workers=workers
        )


def _drawn(settings: SequenceSettings) -> Data:
    if settings.task == "translation":
        raise InputError("the task translation needs sentences: expected --data")
    sizes = {"train": settings.pairs, "dev": settings.held_out, "test": settings.held_out}
    symbols = settings.symbols + SPECIAL
    splits = {
        name: drawn(
            settings.task, size, settings.symbols, settings.longest, np.random.default_rng([0, part])
        )
        for part, (name, size) in enumerate(sizes.items())
    }  # fmt: skip
    return Data(splits, symbols, symbols, [])


def _read(corpus: Parallel, settings: SequenceSettings) -> Data:
    splits = dict(corpus.splits)
    if any(pairs.sure is None for pairs in splits.values()):
        raise InputError(
            f"{corpus.name}: expected links of the words, which say what tells a target word: --links"
        )
    splits["train"] = sampled(splits["train"], settings.pairs)
    source, target = (
        words_of(side, LEAST) for side in (splits["train"].source, splits["train"].target)
    )
    encoded = {name: numbered(pairs, source, target) for name, pairs in splits.items()}
    return Data(encoded, len(source) + SPECIAL, len(target) + SPECIAL, list(target))


def _about(
    settings: SequenceSettings, corpus: Parallel | None, data: Data
) -> tuple[str, list[str]]:
    sizes = ", ".join(f"{name} {len(pairs.source)}" for name, pairs in data.splits.items())
    if corpus is None:
        return settings.task, [
            f"Pairs: {sizes}, of 1 to {settings.longest} independent symbols out of {settings.symbols}."
        ]
    return f"translation of {corpus.name}", [
        f"Pairs of {corpus.name}, {settings.source} to {settings.target}: {sizes}; {data.sources} and "
        f"{data.targets} words, with those that occur once as one.",
        *left_out_of(corpus.left_out, "Left out"),
    ]


def compute(
    cell: Cell, checkpoints: Path, *, data: Data, settings: SequenceSettings
) -> tuple[list[Row], Modules]:
    """Train one model and return its numbers on the test split."""
    with seeded(cell["seed"]):
        sizes = StepDecoderSettings(
            settings.size, settings.embedding, settings.dropout, cell["attention"]
        )
        model = StepDecoder(sizes, data.sources, data.targets)
    objective = DeceptionObjective(
        model, data.splits["train"], data.splits["dev"],
        penalty=cell["penalty"], epochs=settings.epochs, batch_size=settings.batch_size,
        learning_rate=settings.learning_rate, seed=cell["seed"],
        made_with={**cell.columns, **settings.model_dump(mode="json")},
    )  # fmt: skip
    trained = fit(objective, checkpoints / "model.safetensors")
    model = model.cpu()
    measures = evaluate(model, data.splits["test"])
    row = {
        "epochs": len(trained.scores),
        **{name: float(np.mean(measures[name])) for name in MEASURED},
        "bleu": _bleu(model, data) if data.words else float("nan"),
    }
    return [row], {"model": model}


@torch.no_grad()
def _bleu(model: StepDecoder, data: Data) -> float:
    """Return the BLEU of the likeliest words; unknown ones are one."""
    names = ["", "", "<unk>", *data.words]
    pairs = data.splits["test"]
    translations = []
    for row in range(len(pairs.source)):
        batch = pairs.batch([row])
        longer = batch._replace(targets=torch.nn.functional.pad(batch.targets, (0, 20)))
        symbols = predicted(model, longer).logits[0].argmax(-1).tolist()
        end = symbols.index(END) if END in symbols else len(symbols)
        translations.append([names[symbol] for symbol in symbols[:end]])
    return bleu(translations, [[names[symbol] for symbol in target] for target in pairs.target])


EXPERIMENT = Experiment(SequenceSettings, SequenceResult, cells, SCHEMA, result, files=(ABOUT,))
