"""Where does a classifier's attention come from? Snell et al.'s account, on any texts with labels.

    found = reproduce(hm.load("SST", dataset="sst"), out="runs/snell-classification")

    OUT/models/KIND-SEED/     a run whose training was recorded
    OUT/parts/SEED.parquet    what is read off the models of a seed, beside those of the others

The account: as long as the attention is nearly uniform, the output relevance of words grows as if it always
were, and then draws the attention. So the relevance in a twin that is trained with uniform attention should
foretell the attention of the model itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from heedmap.data.corpus import Corpus
from heedmap.errors import InputError
from heedmap.files.locking import whole_command
from heedmap.files.tables import write_table
from heedmap.papers.kit.parts import (
    ABOUT,
    left_out,
    part_path,
    read_about,
    read_reproduction,
    reserved,
    run_folder,
    sizes,
    write_about,
)
from heedmap.papers.kit.render import write
from heedmap.papers.snell.attraction import rows_of_seed
from heedmap.papers.snell.classification_result import Classification, result
from heedmap.papers.snell.proxies import Logistic
from heedmap.papers.snell.records import Record, padded, record_of
from heedmap.papers.snell.settings import ClassificationSettings
from heedmap.runs.run_paths import Out
from heedmap.runs.train import train
from heedmap.terminal.progress import doing
from heedmap.training.cells import run_cells
from heedmap.training.sweep import processes

MODELS = "models"
KINDS: dict[str, dict[str, Any]] = {
    "learned": {"encoder": "lstm", "score": "additive"},
    "uniform": {"encoder": "lstm", "score": "uniform"},
    # The proxy: the mean of the words' vectors, and a linear layer.
    "bag": {"encoder": "none", "score": "uniform", "embedding_size": 256, "batch_size": 64},
}
SCHEMA = pa.schema(
    [
        ("seed", pa.int64()),
        ("quantity", pa.string()),
        ("choice", pa.string()),
        ("step", pa.float64()),
        ("value", pa.float64()),
        ("chance", pa.float64()),
        ("error", pa.float64()),
        ("tau", pa.float64()),
    ]
)


@dataclass(frozen=True)
class Cell:
    """One training."""

    kind: str
    seed: int

    def __str__(self) -> str:
        return f"{self.kind}-{self.seed}"

    def folder(self, out: Path) -> Path:
        """Return its run's folder."""
        return out / MODELS / str(self)


def cells(settings: ClassificationSettings) -> list[Cell]:
    """Return all trainings."""
    return [Cell("bag", 0)] + [
        Cell(kind, seed) for seed in range(settings.seeds) for kind in ("learned", "uniform")
    ]


def reproduce(
    corpus: Corpus,
    *,
    out: Out,
    overwrite: bool = False,
    workers: int | None = None,
    **options: Any,
) -> Classification:
    """Train models with learned and with uniform attention, and compare their records. Resumes a stopped call.

    Args:
        corpus: from `heedmap.load`, of single texts of words.
        out: the folder.
        overwrite: replace a reproduction with other settings.
        workers: how many processes; one per core by default. The numbers do not depend on it.
        options: see `ClassificationSettings`.

    Raises:
        InputError: pairs or sentences; a setting that does not fit; another reproduction in `out`, or another
            process that writes there.
    """
    processes(workers)
    if corpus.pairs or corpus.sentences:
        raise InputError(
            f"{corpus.settings.source}: expected single texts of words, got "
            f"{'pairs' if corpus.pairs else 'sentences'}"
        )
    settings = ClassificationSettings.of(
        fingerprint=corpus.fingerprint(),
        data=corpus.settings,
        classes=tuple(corpus.classes),
        **options,
    )
    with reserved(out, settings, overwrite=overwrite, own=(MODELS, ABOUT)) as folder:
        write_about(folder, corpus.name, [sizes(corpus), *left_out(corpus)])
        records: dict[str, Record] = {}

        def keep(cell: Cell, found: pa.Table) -> None:
            records[str(cell)] = record_of(found)

        run_cells(
            cells(settings), partial(run, corpus=corpus, settings=settings, folder=folder), keep,
            is_finished=lambda cell: (cell.folder(folder) / "training.json").exists(),
            workers=workers,
        )  # fmt: skip
        _compare(records, corpus, settings, folder)
        found = read(folder)
        assert found is not None
        write(folder, result(found))
    return found


def run(cell: Cell, *, corpus: Corpus, settings: ClassificationSettings, folder: Path) -> pa.Table:
    """Return what was recorded of a training; read if it is finished."""
    own = {
        "hidden_size": settings.hidden_size,
        "embedding_size": settings.embedding_size,
        "batch_size": settings.batch_size,
        "learning_rate": settings.learning_rate,
        **KINDS[cell.kind],
    }
    texts = len(corpus.splits["train"])
    epochs = max(1, round(settings.steps * settings.batch_size / max(1, texts)))
    if cell.kind == "bag":
        own["learning_rate"], epochs = settings.proxy_rate, settings.proxy_epochs
    with whole_command():
        made = train(
            corpus,
            out=run_folder(folder, f"{MODELS}/{cell}"),
            seed=cell.seed,
            epochs=epochs,
            weight_decay=0.0,
            record_dynamics=True,
            **own,
        )
    assert made.dynamics is not None
    return made.dynamics


def _compare(
    records: dict[str, Record],
    corpus: Corpus,
    settings: ClassificationSettings,
    folder: Path,
) -> None:
    """Write what is read off the models of each seed, where it is not there."""
    seeds = range(settings.seeds)
    missing = [seed for seed in seeds if not part_path(folder, str(seed)).exists()]
    if not missing:
        return
    doing("logistic regression")
    regression, bag = Logistic(corpus), records["bag-0"]
    words = [
        regression.relevance(tokens, int(label))
        for tokens, label in zip(bag.tokens, bag.labels, strict=True)
    ]
    proxies = {
        "bag": bag.values["relevance"][bag.best_on_dev],
        "logistic": padded(words, bag.mask),
    }
    learned = [records[f"learned-{seed}"] for seed in seeds]
    for seed in missing:
        doing(f"comparing, seed {seed}")
        rows = rows_of_seed(seed, learned, records[f"uniform-{seed}"], proxies)
        write_table(
            part_path(folder, str(seed)),
            pa.Table.from_pylist([{"seed": seed, **row} for row in rows], schema=SCHEMA),
        )


def read(folder: Path) -> Classification | None:
    """Read the comparisons in a folder; return None where there is no finished reproduction of this part.

    Raises:
        InputError: a part is damaged.
    """
    about = read_about(folder, ClassificationSettings)
    if about is None:
        return None

    def names(settings: ClassificationSettings) -> Sequence[str]:
        return [str(seed) for seed in range(settings.seeds)]

    found = read_reproduction(folder, ClassificationSettings, SCHEMA, names)
    if found is None:
        return None
    settings, rows = found
    example = folder / MODELS / str(Cell("learned", 0))
    return Classification(about[1], settings, rows, about[2], folder, example)
