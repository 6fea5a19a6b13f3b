"""Can a model learn to copy? Snell et al.'s sequences, and what becomes of it without parts of the model.

If each sequence is a permutation of all symbols, every symbol occurs beside every other in every example, and
as long as the attention is uniform no gradient says which symbol of the source a symbol of the target is.
"""

from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from heedmap.data.sequences import Sequences
from heedmap.errors import InputError
from heedmap.models.encoder_decoder import EncoderDecoderSettings
from heedmap.papers.kit.parts import Row
from heedmap.papers.kit.reproduction import Cell, Experiment, Modules
from heedmap.papers.snell.copy_task import LOOKS, RELEASED, CopySettings, looks_at
from heedmap.papers.snell.copying_result import Copying, result
from heedmap.papers.snell.settings import KINDS, VARIANTS, CopyingSettings
from heedmap.runs.run_paths import Out
from heedmap.training.remote import takes_executor
from heedmap.training.sweep import processes

SCHEMA = pa.schema(
    [("sequences", pa.string()), ("model", pa.string()), ("seed", pa.int64()), *LOOKS]
)


def cells(settings: CopyingSettings) -> list[Cell]:
    """Return all trainings, those of a seed side by side: what was stopped still compares the sequences."""
    published, *variants = VARIANTS
    seeds = [(published, seed) for seed in range(settings.seeds)]
    seeds += [(variant, seed) for variant in variants for seed in range(settings.variant_seeds)]
    return [
        Cell(
            f"{kind}-{variant.replace(' ', '-')}-{seed}",
            {"sequences": kind, "model": variant, "seed": seed},
        )
        for variant, seed in seeds
        for kind in KINDS
    ]


@takes_executor
def reproduce(
    *, out: Out, overwrite: bool = False, workers: int | None = None, **options: Any
) -> Copying:
    """Train every model on every kind of sequences. Resumes a stopped call.

    Args:
        out, overwrite, workers: see `Experiment`.
        options: see `CopyingSettings`.

    Raises:
        InputError: a setting that does not fit, another reproduction in `out`, or another process that writes
            there.
    """
    processes(workers)
    settings = CopyingSettings.of(**options)
    if settings.symbols <= settings.length:
        raise InputError(
            f"symbols: expected more than the {settings.length} of a sequence, got {settings.symbols}; "
            "subsets are of different symbols out of more"
        )
    with EXPERIMENT.opened(out, settings, overwrite=overwrite) as reproduction:
        return EXPERIMENT.run(reproduction, partial(compute, settings=settings), workers=workers)


def compute(
    cell: Cell, checkpoints: Path, *, settings: CopyingSettings
) -> tuple[list[Row], Modules]:
    """Train one model and return the looks at it."""
    kind, variant = cell["sequences"], cell["model"]
    task = CopySettings(
        sequences=Sequences(
            kind, settings.length, settings.symbols if kind == "subsets" else settings.length
        ),
        model=EncoderDecoderSettings(
            size=settings.size, embedding=settings.size, **VARIANTS[variant]
        ),
        steps=RELEASED if VARIANTS[variant] else settings.steps,
        batch_size=settings.batch_size,
        learning_rate=settings.learning_rate,
        seed=cell["seed"],
    )
    return looks_at(task, checkpoints), {}


EXPERIMENT = Experiment(CopyingSettings, Copying, cells, SCHEMA, result)
