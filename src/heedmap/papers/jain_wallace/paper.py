"""Jain & Wallace, "Attention is not Explanation" (2019): every data set, encoder, score and seed.

    reproduce(["sst"], data=Path("SST"), encoders=["lstm"], seeds=1, out=Path("runs/jain-wallace"))

    OUT/DATA/ENCODER-SCORE-SEED/   a run with its report
    OUT/DATA/baselines-SEED.json   variants of attention, with `baselines`
    OUT/DATA/numbers.json          the numbers of the data set's cells
    OUT/result.*                   a function of all numbers.json

A finished cell is read, not run again, and stays in the result of later calls for other cells.
"""

import re
from collections.abc import Container, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from heedmap.data.corpus import Corpus
from heedmap.data.load import load
from heedmap.data.vocabulary import check_there
from heedmap.errors import InputError
from heedmap.files.locking import writing
from heedmap.files.manifest import Manifest
from heedmap.files.storage import refuse_file
from heedmap.models.encoders import ENCODERS
from heedmap.models.scores import SCORES
from heedmap.papers.jain_wallace.cells import (
    Baselines,
    CellNumbers,
    Shared,
    Variants,
    is_finished,
    run,
)
from heedmap.papers.jain_wallace.locations import DATASETS, check_apart, needed
from heedmap.papers.jain_wallace.measures import Cell
from heedmap.papers.jain_wallace.numbers import (
    NUMBERS,
    DatasetNumbers,
    basis,
    check_alike,
    read,
    save,
)
from heedmap.papers.jain_wallace.result import result
from heedmap.papers.jain_wallace.settings import RECIPES
from heedmap.papers.jain_wallace.sizes import how_made, sizes
from heedmap.papers.kit.registry import Paper
from heedmap.papers.kit.render import FILES, write
from heedmap.settings.audit import AuditSettings
from heedmap.settings.training import TrainSettings
from heedmap.terminal.output import remark
from heedmap.terminal.progress import track
from heedmap.training.jobs import run_jobs
from heedmap.training.log_odds import has_log_odds
from heedmap.training.remote import takes_executor
from heedmap.training.shards import current_shard
from heedmap.training.sweep import processes

MOST_SEEDS = 10_000
GRID_ENCODERS, GRID_SCORES = ("lstm", "average", "cnn"), ("additive", "dot")
SEEDS, INSTANCES = 3, 2000


@takes_executor
def reproduce(
    names: Sequence[str | Corpus],
    *,
    data: Path | None = None,
    hub: bool = False,
    encoders: Sequence[str] = GRID_ENCODERS,
    scores: Sequence[str] = GRID_SCORES,
    seeds: int = SEEDS,
    rules: str = "paper",
    train_texts: int | None = None,
    test_texts: int | None = None,
    instances: int = INSTANCES,
    vectors: Path | None = None,
    epochs: int | None = None,
    baselines: bool = False,
    out: Path = Path("runs/jain-wallace"),
    overwrite: bool = False,
    workers: int | None = None,
) -> list[DatasetNumbers]:
    """Train and audit every cell; return one result per data set.

    Args:
        names: data sets (`locations.DATASETS`), or corpora from `heedmap.load`. What is loaded as one of the
            data sets (`dataset`) is that one, wherever its files are and whatever they are called; others are
            trained by the paper's default recipe and have no published numbers.
        data: one data set's place, or a folder with one folder for each.
        hub: whether data sets that are not there may be read from the Hugging Face Hub.
        encoders, scores: of the grid.
        seeds: 0, 1, ...
        rules: the `paper`'s, or those of its released `code` where they differ.
        train_texts, test_texts: samples, for large sets.
        instances: test texts to audit of each cell.
        vectors: word vectors, for data sets whose recipe has no size of its own.
        epochs: other than the paper's.
        baselines: also the paper's variants of attention, and none at all, for single texts of two classes.
        out: a folder for everything; a cell's run is in DATA/ENCODER-SCORE-SEED.
        overwrite: replace cells that other settings made.
        workers: how many processes; one per core by default. The numbers do not depend on it.

    Raises:
        InputError: an unknown name, a data set that is not available, models of other settings in `out`,
            another process that works on the same data set there, or what `train` and `audit` raise.
    """
    processes(workers)
    _check(encoders, scores, seeds, instances, epochs, vectors, out)
    encoders, scores = (list(dict.fromkeys(values)) for values in (encoders, scores))
    theirs = dict.fromkeys(name for name in names if isinstance(name, str))
    corpora = _loaded([corpus for corpus in names if isinstance(corpus, Corpus)], theirs)
    sources = {name: needed(name, data, hub) for name in theirs}
    check_apart(sources)
    # Read all before training on the first, so that errors show at once.
    for name, source in sources.items():
        corpora[name] = load(
            source, dataset=name, rules=rules, train_texts=train_texts, test_texts=test_texts
        )
    with ExitStack() as stack:
        for name in corpora:
            stack.enter_context(writing(out / name))
        files = Manifest(out)
        files.refuse_taken([*FILES, *(f"{name}/{NUMBERS}" for name in corpora)])
        files.start()
        shared: dict[str, Shared] = {}
        numbers: dict[str, DatasetNumbers] = {}
        models: list[Cell | Baselines] = []
        variants: list[Cell | Baselines] = []
        for name, corpus in corpora.items():
            sized = "embedding_size" in RECIPES.get(name, {})
            options = {"vectors": None if sized else vectors, "epochs": epochs}
            shared[name] = Shared(corpus, options, out, instances, overwrite)
            missing = cells(name, encoders, scores, seeds)
            numbers[name] = DatasetNumbers(
                name, corpus.settings.rules, [], sizes(name, corpus), corpus.left_out, [*missing],
                basis=basis(corpus, options, instances),
            )  # fmt: skip
            check_alike(out, numbers[name], overwrite)
            models += missing
            if baselines and has_log_odds(corpus):
                variants += [Baselines(name, seed) for seed in range(seeds)]
            elif baselines:
                remark(f"{name}: no baselines, which are for single texts of two classes")

        def keep(job: Cell | Baselines, outcome: CellNumbers | Variants) -> None:
            dataset_numbers, data = numbers[job.dataset], shared[job.dataset]
            if isinstance(outcome, CellNumbers):
                dataset_numbers.numbers += outcome.numbers
                dataset_numbers.made = how_made(
                    data.corpus, data.options, instances, outcome.coverage
                )
                dataset_numbers.missing.remove(outcome.cell)
            else:
                dataset_numbers.baselines += outcome.rows
                dataset_numbers.log_odds.append(outcome.texts)
            if current_shard() is not None:
                return
            # Other processes may run other data sets into this folder: the result is of all so far.
            with writing(out, wait=True):
                write(out, result(save(out, dataset_numbers)))

        run_job, is_done = partial(run, shared=shared), partial(is_finished, shared=shared)
        # Variants need a model of the grid, after it: two workers would want its folder.
        for jobs in track([job_list for job_list in (models, variants) if job_list]):
            run_jobs(
                jobs,
                run_job,
                keep,
                folder=out,
                is_finished=is_done,
                workers=workers,
                more=jobs is models and bool(variants),
            )
        with writing(out, wait=True):
            files.settle()
    return list(numbers.values())


def _loaded(corpora: Sequence[Corpus], taken: Container[str]) -> dict[str, Corpus]:
    """Return loaded corpora by the name of their folder here, none of which is `taken`.

    The name of a data set of the paper, beside which published numbers stand, has only what was loaded as that
    data set: texts in a file that is called so are a user's own.

    Raises:
        InputError: sentences, or two of one name.
    """
    by_name: dict[str, Corpus] = {}
    for corpus in corpora:
        name = corpus.settings.dataset or ""
        if name not in DATASETS:
            name = re.sub(r"[^\w.-]+", "-", corpus.name).strip(".-") or "own"
            name = f"own-{name}" if name in DATASETS else name
        if corpus.sentences:
            raise InputError(
                f"{name}: expected texts of words, got sentences; choose words or spaces"
            )
        if name in by_name or name in taken:
            raise InputError(f"{name}: expected a name of its own for each data set; rename a file")
        by_name[name] = corpus
    return by_name


def cells(dataset: str, encoders: Sequence[str], scores: Sequence[str], seeds: int) -> list[Cell]:
    """Return the grid of a data set: every model once before any twice."""
    return [
        Cell(dataset, encoder, score, seed)
        for seed in range(seeds)
        for encoder in encoders
        for score in scores
    ]


def _check(
    encoders: Sequence[str],
    scores: Sequence[str],
    seeds: int,
    instances: int,
    epochs: int | None,
    vectors: Path | None,
    out: Path,
) -> None:
    """Check the options before anything is read."""
    for names, valid, flag in ((encoders, ENCODERS, "--encoders"), (scores, SCORES, "--scores")):
        if not names or not set(names) <= set(valid):
            raise InputError(f"{flag}: expected some of {', '.join(valid)}, got {', '.join(names)}")
    if not 1 <= seeds <= MOST_SEEDS:
        raise InputError(f"--seeds: expected a number from 1 to {MOST_SEEDS}, got {seeds}")
    AuditSettings.of(instances=instances)
    if epochs is not None:
        TrainSettings.of(epochs=epochs)
    if vectors is not None:
        check_there(vectors)
    refuse_file(out)


def read_if_any(out: Path) -> list[DatasetNumbers] | None:
    """Read the numbers in a folder; return None where there are none.

    Raises:
        InputError: they are damaged.
    """
    return read(out) or None


PAPER = Paper(read_if_any, result)
