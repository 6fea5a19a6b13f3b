"""Pruthi et al.'s sequence tasks: copy, reverse, bigram flip and translation, with and without the penalty.

found = reproduce(task="copy", out="runs/pruthi-copy")
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from heedmap.data.parallel import Parallel
from heedmap.errors import InputError, check_installed
from heedmap.files.manifest import remove
from heedmap.models.step_decoder import StepDecoder, StepDecoderSettings
from heedmap.papers.kit.parts import (
    ABOUT,
    Row,
    part_path,
    read_about,
    read_part,
    read_reproduction,
    reserved,
    write_about,
)
from heedmap.papers.kit.render import write
from heedmap.papers.pruthi.sequence_result import SequenceResult, result
from heedmap.papers.pruthi.sequence_task import (
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
from heedmap.training.cells import checkpoints_of, run_cells, save_part
from heedmap.training.fit import fit
from heedmap.training.objective import seeded
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
class Cell:
    """One training."""

    attention: str
    penalty: float
    seed: int

    def __str__(self) -> str:
        return f"{self.attention}-{self.penalty:g}-{self.seed}"


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
        ("learned", 0.0), *(("learned", one) for one in settings.penalties), ("uniform", 0.0), ("none", 0.0)
    ]  # fmt: skip
    return [Cell(*kind, seed) for seed in range(settings.seeds) for kind in kinds]


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
        out: the folder; the result is written after each training.
        overwrite: replace a reproduction with other settings.
        workers: how many processes; one per core by default. The numbers do not depend on it.
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
    rows: list[Row] = []
    name, notes = _about(settings, corpus, data)
    with reserved(out, settings, overwrite=overwrite, own=(ABOUT,)) as folder:
        write_about(folder, name, notes)

        def keep(cell: Cell, found: list[Row]) -> None:
            rows.extend(found)
            write(folder, result(SequenceResult(name, settings, rows, notes, folder)))

        run_cells(
            cells(settings), partial(run, data=data, settings=settings, folder=folder), keep,
            is_finished=lambda cell: part_path(folder, str(cell)).exists(),
            workers=workers,
        )  # fmt: skip
    return SequenceResult(name, settings, rows, notes, folder)


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
    if len(splits["train"]) > settings.pairs:
        rng = np.random.default_rng(0)
        kept = np.sort(rng.choice(len(splits["train"]), settings.pairs, replace=False))
        splits["train"] = splits["train"].take(kept)
    source, target = (
        words_of(side, LEAST) for side in (splits["train"].source, splits["train"].target)
    )
    found = {name: numbered(pairs, source, target) for name, pairs in splits.items()}
    return Data(found, len(source) + SPECIAL, len(target) + SPECIAL, list(target))


def _about(
    settings: SequenceSettings, corpus: Parallel | None, data: Data
) -> tuple[str, list[str]]:
    sizes = ", ".join(f"{name} {len(pairs.source)}" for name, pairs in data.splits.items())
    if corpus is None:
        return settings.task, [
            f"Pairs: {sizes}, of 1 to {settings.longest} independent symbols out of {settings.symbols}."
        ]
    left = "; ".join(f"{reason}: {count}" for reason, count in sorted(corpus.left_out.items()))
    return f"translation of {corpus.name}", [
        f"Pairs of {corpus.name}, {settings.source} to {settings.target}: {sizes}; {data.sources} and "
        f"{data.targets} words, with those that occur once as one.",
        *([f"Left out: {left}."] if left else []),
    ]


def run(cell: Cell, *, data: Data, settings: SequenceSettings, folder: Path) -> list[Row]:
    """Train one model and return its numbers; read if it is finished."""
    path = part_path(folder, str(cell))
    own: dict[str, Any] = {
        "attention": cell.attention,
        "penalty": cell.penalty,
        "seed": cell.seed,
    }
    if not path.exists():
        with seeded(cell.seed):
            sizes = StepDecoderSettings(
                settings.size, settings.embedding, settings.dropout, cell.attention  # type: ignore[arg-type]
            )  # fmt: skip
            model = StepDecoder(sizes, data.sources, data.targets)
        objective = DeceptionObjective(
            model, data.splits["train"], data.splits["dev"],
            penalty=cell.penalty, epochs=settings.epochs, batch_size=settings.batch_size,
            learning_rate=settings.learning_rate, seed=cell.seed,
            made_with={**own, **settings.model_dump(mode="json")},
        )  # fmt: skip
        trained = fit(
            objective,
            checkpoints_of(path) / "model.safetensors",
        )
        model = model.cpu()
        found = evaluate(model, data.splits["test"])
        row = {name: float(np.mean(found[name])) for name in MEASURED}
        row["bleu"] = _bleu(model, data) if data.words else float("nan")
        part = {**own, "epochs": len(trained.scores), **row}
        save_part(path, pa.Table.from_pylist([part], schema=SCHEMA), {"model": model})
    remove(checkpoints_of(path))
    return read_part(path, SCHEMA, **own)


@torch.no_grad()
def _bleu(model: StepDecoder, data: Data) -> float:
    """Return sacrebleu's BLEU of the likeliest words, as they are separated already; unknown ones are one."""
    from sacrebleu import corpus_bleu

    names = ["", "", "<unk>", *data.words]
    pairs = data.splits["test"]
    found = []
    for row in range(len(pairs.source)):
        batch = pairs.batch([row])
        longer = batch._replace(targets=torch.nn.functional.pad(batch.targets, (0, 20)))
        symbols = predicted(model, longer).logits[0].argmax(-1).tolist()
        end = symbols.index(1) if 1 in symbols else len(symbols)
        found.append(" ".join(names[symbol] for symbol in symbols[:end]))
    wanted = [" ".join(names[symbol] for symbol in one) for one in pairs.target]
    return float(corpus_bleu(found, [wanted], tokenize="none", force=True).score)


def read(folder: Path) -> SequenceResult | None:
    """Read the trainings in a folder; return None where there is no reproduction of these tasks.

    Raises:
        InputError: a part is damaged.
    """

    def names(settings: SequenceSettings) -> Iterable[str]:
        return map(str, cells(settings))

    about = read_about(folder, SequenceSettings)
    found = read_reproduction(folder, SequenceSettings, SCHEMA, names)
    if about is None or found is None:
        return None
    return SequenceResult(about[1], *found, about[2], folder)
