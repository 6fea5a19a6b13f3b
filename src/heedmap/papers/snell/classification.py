"""Where does a classifier's attention come from? Snell et al.'s account, on any texts with labels.

    found = reproduce(hm.load("SST", dataset="sst"), out="runs/snell-classification")

    OUT/models/KIND-SEED/     a run whose training was recorded
    OUT/parts/SEED.parquet    what is read off the models of a seed, beside those of the others

The account: as long as the attention is nearly uniform, the output relevance of words grows as if it always
were, and then draws the attention. So the relevance in a twin that is trained with uniform attention should
foretell the attention of the model itself.
"""

from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from heedmap.data.corpus import Corpus
from heedmap.files.locking import whole_command
from heedmap.papers.kit.parts import ABOUT, Row, check_single_texts, left_out, run_folder, sizes
from heedmap.papers.kit.reproduction import Cell, Experiment, Modules
from heedmap.papers.snell.attraction import MODELS, SCHEMA, rows_of_seed, seed_cells
from heedmap.papers.snell.classification_result import Classification, result
from heedmap.papers.snell.proxies import Logistic
from heedmap.papers.snell.records import Record, padded, record_of
from heedmap.papers.snell.settings import ClassificationSettings
from heedmap.runs.run_paths import Out
from heedmap.runs.train import train
from heedmap.terminal.progress import doing
from heedmap.training.jobs import run_jobs
from heedmap.training.remote import takes_executor
from heedmap.training.sweep import processes

KINDS: dict[str, dict[str, Any]] = {
    "learned": {"encoder": "lstm", "score": "additive"},
    "uniform": {"encoder": "lstm", "score": "uniform"},
    # The proxy: the mean of the words' vectors, and a linear layer.
    "bag": {"encoder": "none", "score": "uniform", "embedding_size": 256, "batch_size": 64},
}


def trainings(settings: ClassificationSettings) -> list[Cell]:
    """Return all trainings."""
    kinds = [("bag", 0)]
    kinds += [(kind, seed) for seed in range(settings.seeds) for kind in ("learned", "uniform")]
    return [Cell(f"{kind}-{seed}", {"kind": kind, "seed": seed}) for kind, seed in kinds]


@takes_executor
def reproduce(
    corpus: Corpus, *, out: Out, overwrite: bool = False, workers: int | None = None, **options: Any
) -> Classification:
    """Train models with learned and with uniform attention, and compare their records. Resumes a stopped call.

    Args:
        corpus: from `heedmap.load`, of single texts of words.
        out, overwrite, workers: see `Experiment`.
        options: see `ClassificationSettings`.

    Raises:
        InputError: pairs or sentences; a setting that does not fit; another reproduction in `out`, or another
            process that writes there.
    """
    processes(workers)
    check_single_texts(corpus)
    settings = ClassificationSettings.of(
        fingerprint=corpus.fingerprint(),
        data=corpus.settings,
        classes=tuple(corpus.classes),
        **options,
    )
    with EXPERIMENT.opened(
        out,
        settings,
        overwrite=overwrite,
        name=corpus.name,
        notes=[sizes(corpus), *left_out(corpus)],
    ) as reproduction:
        folder = reproduction.folder
        records: dict[str, Record] = {}

        def keep(cell: Cell, dynamics: pa.Table) -> None:
            records[str(cell)] = record_of(dynamics)

        run_jobs(
            trainings(settings), partial(run, corpus=corpus, settings=settings, folder=folder), keep,
            folder=folder, is_finished=lambda cell: (folder / MODELS / str(cell) / "training.json").exists(),
            workers=workers,
        )  # fmt: skip
        learned = [records[f"learned-{seed}"] for seed in range(settings.seeds)]
        proxies: dict[str, Any] = {}

        def compare(cell: Cell, checkpoints: Path) -> tuple[list[Row], Modules]:
            if not proxies:  # only if a seed is still to be compared
                proxies.update(_proxies(corpus, records["bag-0"]))
            doing("comparing")
            seed = cell["seed"]
            return rows_of_seed(seed, learned, records[f"uniform-{seed}"], proxies), {}

        return EXPERIMENT.run(reproduction, compare, here=True)


def run(cell: Cell, *, corpus: Corpus, settings: ClassificationSettings, folder: Path) -> pa.Table:
    """Return what was recorded of a training; read if it is finished."""
    with whole_command():
        trained = train(
            corpus, out=run_folder(folder, f"{MODELS}/{cell}"), **recipe(cell, corpus, settings)
        )
    assert trained.dynamics is not None
    return trained.dynamics


def recipe(cell: Cell, corpus: Corpus, settings: ClassificationSettings) -> dict[str, Any]:
    """Return the options of a training."""
    options = {
        "hidden_size": settings.hidden_size,
        "embedding_size": settings.embedding_size,
        "batch_size": settings.batch_size,
        "learning_rate": settings.learning_rate,
        **KINDS[cell["kind"]],
    }
    texts = len(corpus.splits["train"])
    epochs = max(1, round(settings.steps * settings.batch_size / max(1, texts)))
    if cell["kind"] == "bag":
        options["learning_rate"], epochs = settings.proxy_rate, settings.proxy_epochs
    return {
        "seed": cell["seed"],
        "epochs": epochs,
        "weight_decay": 0.0,
        "record_dynamics": True,
        **options,
    }


def _proxies(corpus: Corpus, bag: Record) -> dict[str, Any]:
    """Return the words' relevance in a bag of embeddings, and in a logistic regression."""
    doing("logistic regression")
    regression = Logistic(corpus)
    relevance = [
        regression.relevance(tokens, int(label))
        for tokens, label in zip(bag.tokens, bag.labels, strict=True)
    ]
    return {
        "bag": bag.values["relevance"][bag.best_on_dev],
        "logistic": padded(relevance, bag.mask),
    }


EXPERIMENT = Experiment(
    ClassificationSettings,
    Classification,
    seed_cells,
    SCHEMA,
    result,
    files=(MODELS, ABOUT),
    needs_all=True,
)
