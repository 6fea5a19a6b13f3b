"""Are more heads more lottery tickets? Heads that learn to copy by themselves, and heads that do not, together.

All models start from the same weights but for the attention. A head is the seed of its initial weights; it is
good if it learns alone from each of some draws of sequences, bad if it fails from each. Then several are
trained together, whose contexts are averaged.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from heedmap.data.sequences import Sequences
from heedmap.errors import InputError
from heedmap.models.encoder_decoder import EncoderDecoderSettings
from heedmap.papers.kit.parts import Row, part_path, read_reproduction, reserved
from heedmap.papers.kit.render import write
from heedmap.papers.snell.copy_task import LOOKS, CopySettings, trained
from heedmap.papers.snell.multihead_result import (
    BAD_HEADS,
    MIXED,
    ONE_GOOD,
    SINGLE,
    TOGETHER,
    Multihead,
    result,
)
from heedmap.papers.snell.settings import MultiheadSettings
from heedmap.runs.run_paths import Out
from heedmap.terminal.progress import portion
from heedmap.training.cells import run_cells
from heedmap.training.sweep import processes

POOL = 30  # the first heads, from which any are drawn
SCHEMA = pa.schema([("group", pa.string()), ("heads", pa.string()), ("order", pa.int64()), *LOOKS])


@dataclass(frozen=True)
class Cell:
    """One training: some heads, and the draw of sequences."""

    group: str
    heads: tuple[int, ...]
    order: int

    def __str__(self) -> str:
        name = self.group.replace(" ", "-")
        return (
            f"{name}-{self.heads[0]}-{self.order}"
            if self.group == SINGLE
            else f"{name}-{self.order}"
        )


def reproduce(
    *,
    out: Out,
    overwrite: bool = False,
    workers: int | None = None,
    **options: Any,
) -> Multihead:
    """Try single heads, then combinations of them. Resumes a stopped call.

    Args:
        out: the folder; the result is written after each training.
        overwrite: replace a reproduction with other settings.
        workers: how many processes; one per core by default. The numbers do not depend on it.
        options: see `MultiheadSettings`.

    Raises:
        InputError: a setting that does not fit, another reproduction in `out`, or another process that writes
            there.
    """
    processes(workers)
    settings = MultiheadSettings.of(**options)
    if settings.most < settings.heads:
        raise InputError(
            f"most: expected at least the {settings.heads} heads of a combination, got {settings.most}"
        )
    found = Multihead(settings, [], Path())
    with reserved(out, settings, overwrite=overwrite) as folder:

        def go(cells: list[Cell]) -> None:
            run_cells(
                cells, partial(run, settings=settings, folder=folder), keep,
                is_finished=lambda cell: part_path(folder, str(cell)).exists(),
                workers=workers,
            )  # fmt: skip

        def keep(cell: Cell, looks: list[Row]) -> None:
            nonlocal found
            found = Multihead(settings, [*found.rows, *looks], folder)
            write(folder, result(found))

        # As many heads at a time as are wanted of both kinds: which are tried does not depend on the workers.
        for first in range(0, settings.most, 2 * settings.wanted):
            if found.has_enough:
                break
            with portion(0.5):
                go(singles(settings, first, min(first + 2 * settings.wanted, settings.most)))
        go(combinations(found))
    return found


def singles(settings: MultiheadSettings, first: int, end: int) -> list[Cell]:
    """Return the trainings of single heads."""
    return [
        Cell(SINGLE, (head,), order)
        for head in range(first, end)
        for order in range(settings.orders)
    ]


def combinations(found: Multihead) -> list[Cell]:
    """Return the combinations, as far as there are enough heads for them; each has its own sequences.

    Only bad heads; one good head in the place of a bad one; and heads of any kind.
    """
    settings, good, bad = found.settings, found.good, found.bad
    size = settings.heads
    cells = []
    for number in range(settings.combinations):
        rng, order = np.random.default_rng([1, number]), settings.orders + number
        drawn = {}
        if len(bad) >= size:
            drawn[BAD_HEADS] = rng.choice(bad, size, replace=False)
        if len(bad) >= size - 1 and good:
            rest = rng.choice(bad, size - 1, replace=False)
            drawn[ONE_GOOD] = np.array([*rest, rng.choice(good)])
        drawn[MIXED] = rng.choice(min(max(POOL, size), found.tried), size, replace=False)
        cells += [Cell(group, tuple(map(int, heads)), order) for group, heads in drawn.items()]
    return cells


def run(cell: Cell, *, settings: MultiheadSettings, folder: Path) -> list[Row]:
    """Return the looks at one training; read if it is finished."""
    own = {"group": cell.group, "heads": " ".join(map(str, cell.heads)), "order": cell.order}
    return trained(part_path(folder, str(cell)), own, SCHEMA, _training(cell, settings))


def _training(cell: Cell, settings: MultiheadSettings) -> CopySettings:
    return CopySettings(
        sequences=Sequences("permutations", settings.length, settings.length),
        model=EncoderDecoderSettings(
            cell="gru",
            size=settings.size,
            embedding=settings.size,
            heads=len(cell.heads),
            shared=False,
        ),
        batch_size=settings.batch_size,
        learning_rate=settings.learning_rate,
        seed=cell.order,
        heads=cell.heads,
    )


def read(folder: Path) -> Multihead | None:
    """Read the trainings in a folder; return None where there is no reproduction of this part.

    Raises:
        InputError: a part is damaged.
    """

    def names(settings: MultiheadSettings) -> list[str]:
        orders = range(settings.orders, settings.orders + settings.combinations)
        together = [Cell(group, (), order) for order in orders for group in TOGETHER]
        return [str(cell) for cell in (*singles(settings, 0, settings.most), *together)]

    found = read_reproduction(folder, MultiheadSettings, SCHEMA, names)
    return None if found is None else Multihead(*found, folder)
