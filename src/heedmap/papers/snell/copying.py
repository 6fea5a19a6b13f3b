"""Can a model learn to copy? Snell et al.'s sequences, and what becomes of it without parts of the model.

If each sequence is a permutation of all symbols, every symbol occurs beside every other in every example, and
as long as the attention is uniform no gradient says which symbol of the source a symbol of the target is.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from heedmap.data.sequences import Kind, Sequences
from heedmap.errors import InputError
from heedmap.models.encoder_decoder import EncoderDecoderSettings
from heedmap.papers.kit.parts import Row, part_path, read_reproduction, reserved
from heedmap.papers.kit.render import write
from heedmap.papers.snell.copy_task import LOOKS, RELEASED, CopySettings, trained
from heedmap.papers.snell.copying_result import Copying, result
from heedmap.papers.snell.settings import KINDS, VARIANTS, CopyingSettings
from heedmap.runs.run_paths import Out
from heedmap.training.cells import run_cells
from heedmap.training.sweep import processes

SCHEMA = pa.schema(
    [("sequences", pa.string()), ("model", pa.string()), ("seed", pa.int64()), *LOOKS]
)


@dataclass(frozen=True)
class Cell:
    """One training."""

    kind: Kind
    variant: str
    seed: int

    def __str__(self) -> str:
        return f"{self.kind}-{self.variant.replace(' ', '-')}-{self.seed}"


def cells(settings: CopyingSettings) -> list[Cell]:
    """Return all trainings, those of a seed side by side: what was stopped still compares the sequences."""
    own, *others = VARIANTS
    return [
        *(Cell(kind, own, seed) for seed in range(settings.seeds) for kind in KINDS),
        *(
            Cell(kind, variant, seed)
            for variant in others
            for seed in range(settings.variant_seeds)
            for kind in KINDS
        ),
    ]


def reproduce(
    *,
    out: Out,
    overwrite: bool = False,
    workers: int | None = None,
    **options: Any,
) -> Copying:
    """Train every model on every kind of sequences. Resumes a stopped call.

    Args:
        out: the folder; the result is written after each training.
        overwrite: replace a reproduction with other settings.
        workers: how many processes; one per core by default. The numbers do not depend on it.
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
    rows: list[Row] = []
    with reserved(out, settings, overwrite=overwrite) as folder:

        def keep(cell: Cell, found: list[Row]) -> None:
            rows.extend(found)
            write(folder, result(Copying(settings, rows, folder)))

        run_cells(
            cells(settings), partial(run, settings=settings, folder=folder), keep,
            is_finished=lambda cell: part_path(folder, str(cell)).exists(),
            workers=workers,
        )  # fmt: skip
    return Copying(settings, rows, folder)


def run(cell: Cell, *, settings: CopyingSettings, folder: Path) -> list[Row]:
    """Return the looks at one training; read if it is finished."""
    own = {"sequences": cell.kind, "model": cell.variant, "seed": cell.seed}
    return trained(part_path(folder, str(cell)), own, SCHEMA, _training(cell, settings))


def _training(cell: Cell, settings: CopyingSettings) -> CopySettings:
    is_published = not VARIANTS[cell.variant]
    return CopySettings(
        sequences=Sequences(
            cell.kind,
            settings.length,
            settings.symbols if cell.kind == "subsets" else settings.length,
        ),
        model=EncoderDecoderSettings(
            size=settings.size, embedding=settings.size, **VARIANTS[cell.variant]
        ),
        steps=settings.steps if is_published else RELEASED,
        batch_size=settings.batch_size,
        learning_rate=settings.learning_rate,
        seed=cell.seed,
    )


def read(folder: Path) -> Copying | None:
    """Read the trainings in a folder; return None where there is no reproduction of this part.

    Raises:
        InputError: a part is damaged.
    """

    def names(settings: CopyingSettings) -> Iterable[str]:
        return map(str, cells(settings))

    found = read_reproduction(folder, CopyingSettings, SCHEMA, names)
    return None if found is None else Copying(*found, folder)
