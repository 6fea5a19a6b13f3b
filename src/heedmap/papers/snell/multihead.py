"""Are more heads more lottery tickets? Heads that learn to copy by themselves, and heads that do not, together.

All models start from the same weights but for the attention. A head is the seed of its initial weights; it is
good if it learns alone from each of some draws of sequences, bad if it fails from each. Then several are
trained together, whose contexts are averaged.
"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from heedmap.data.sequences import Sequences
from heedmap.errors import InputError
from heedmap.models.encoder_decoder import EncoderDecoderSettings
from heedmap.papers.kit.parts import Row
from heedmap.papers.kit.reproduction import Cell, Experiment, Modules
from heedmap.papers.snell.copy_task import LOOKS, CopySettings, looks_at
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
from heedmap.training.remote import takes_executor
from heedmap.training.sweep import processes

POOL = 30  # the first heads, from which any are drawn
SCHEMA = pa.schema([("group", pa.string()), ("heads", pa.string()), ("order", pa.int64()), *LOOKS])


@takes_executor
def reproduce(
    *, out: Out, overwrite: bool = False, workers: int | None = None, **options: Any
) -> Multihead:
    """Try single heads, then combinations of them. Resumes a stopped call.

    Args:
        out, overwrite, workers: see `Experiment`.
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
    computing = partial(compute, settings=settings)
    with EXPERIMENT.opened(out, settings, overwrite=overwrite) as nothing_yet:
        multihead = nothing_yet
        # As many heads at a time as are wanted of both kinds: which are tried does not depend on the workers.
        for first_head in range(0, settings.most, 2 * settings.wanted):
            if multihead.has_enough:
                break
            heads = range(first_head, min(first_head + 2 * settings.wanted, settings.most))
            with portion(0.5):
                multihead = EXPERIMENT.run(
                    multihead,
                    computing,
                    cells=singles(settings, heads),
                    workers=workers,
                    more=True,
                )
        return EXPERIMENT.run(multihead, computing, cells=combinations(multihead), workers=workers)


def singles(settings: MultiheadSettings, heads: range) -> list[Cell]:
    """Return the trainings of single heads, each on some draws of sequences."""
    return [
        Cell(
            f"{SINGLE.replace(' ', '-')}-{head}-{order}",
            {"group": SINGLE, "heads": str(head), "order": order},
        )
        for head in heads
        for order in range(settings.orders)
    ]


def _together(group: str, order: int, **heads: str) -> Cell:
    """Return the training of a combination of heads, of which a draw of sequences has one of each kind."""
    return Cell(f"{group.replace(' ', '-')}-{order}", {"group": group, "order": order, **heads})


def combinations(multihead: Multihead) -> list[Cell]:
    """Return the combinations, as far as there are enough heads for them; each has its own sequences.

    Only bad heads; one good head in the place of a bad one; and heads of any kind.
    """
    settings, good, bad = multihead.settings, multihead.good, multihead.bad
    size = settings.heads
    cells = []
    for number in range(settings.combinations):
        rng, order = np.random.default_rng([1, number]), settings.orders + number
        heads = {}
        if len(bad) >= size:
            heads[BAD_HEADS] = rng.choice(bad, size, replace=False)
        if len(bad) >= size - 1 and good:
            rest = rng.choice(bad, size - 1, replace=False)
            heads[ONE_GOOD] = np.array([*rest, rng.choice(good)])
        heads[MIXED] = rng.choice(min(max(POOL, size), multihead.tried), size, replace=False)
        cells += [
            _together(group, order, heads=" ".join(map(str, group_heads)))
            for group, group_heads in heads.items()
        ]
    return cells


def compute(
    cell: Cell, checkpoints: Path, *, settings: MultiheadSettings
) -> tuple[list[Row], Modules]:
    """Train one model and return the looks at it."""
    heads = tuple(map(int, cell["heads"].split()))
    task = CopySettings(
        sequences=Sequences("permutations", settings.length, settings.length),
        model=EncoderDecoderSettings(
            cell="gru", size=settings.size, embedding=settings.size, heads=len(heads), shared=False
        ),
        batch_size=settings.batch_size,
        learning_rate=settings.learning_rate,
        seed=cell["order"],
        heads=heads,
    )
    return looks_at(task, checkpoints), {}


def finished_cells(settings: MultiheadSettings) -> list[Cell]:
    """Return all cells that may be finished: which heads are combined depends on the single ones."""
    orders = range(settings.orders, settings.orders + settings.combinations)
    together = [_together(group, order) for order in orders for group in TOGETHER]
    return [*singles(settings, range(settings.most)), *together]


EXPERIMENT = Experiment(MultiheadSettings, Multihead, finished_cells, SCHEMA, result)
