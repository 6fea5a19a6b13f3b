"""The grid: every data set, encoder, score and seed, each cell a run folder with its own audit and report.

A cell that stands is read, not made again; what is written after each cell is a function of those that stand.
"""

import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from heedmap.auditing import audit
from heedmap.data.corpus import Corpus, load
from heedmap.data.named import NAMED
from heedmap.data.vectors import check_there
from heedmap.errors import InputError
from heedmap.locking import whole_command, writing
from heedmap.models.encoders import ENCODERS
from heedmap.models.scores import SCORES
from heedmap.papers.jain_wallace.cells import trained, variants
from heedmap.papers.jain_wallace.measures import Cell, Measured, measured
from heedmap.papers.jain_wallace.results import Result, basis, check_alike
from heedmap.papers.jain_wallace.sizes import how_made, sizes
from heedmap.papers.jain_wallace.sources import check_apart, needed
from heedmap.report.words import vectors_text
from heedmap.settings import AuditSettings, TrainSettings
from heedmap.storage import refuse_file

MOST_SEEDS = 10_000
Report = Callable[[int, int, str], None]


def reproduce(
    names: Sequence[str],
    *,
    data: Path | None = None,
    hub: bool = False,
    encoders: Sequence[str] = ("lstm", "average", "cnn"),
    scores: Sequence[str] = ("additive", "dot"),
    seeds: int = 3,
    rules: str = "paper",
    train_texts: int | None = None,
    test_texts: int | None = None,
    instances: int = 2000,
    vectors: Path | None = None,
    epochs: int | None = None,
    baselines: bool = False,
    out: Path = Path("runs/jain-wallace"),
    overwrite: bool = False,
    report: Report = lambda done, total, text: None,
    after: Callable[[Result], None] = lambda result: None,
) -> list[Result]:
    """Train and audit every cell; one result a data set.

    Args:
        names: data sets (`heedmap.data.named.NAMED`).
        data: one data set's place, or a folder with one folder for each.
        hub: whether what is not there may be read from the Hugging Face Hub.
        encoders, scores: of the grid.
        seeds: 0, 1, ...
        rules: the `paper`'s, or those of its released `code` where they differ.
        train_texts, test_texts: samples, for large sets.
        instances: test texts to audit of each cell.
        vectors: word vectors, for data sets whose recipe has no size of its own.
        epochs: other than the paper's.
        baselines: their variants of attention too, and no attention at all, for single texts of two classes.
        out: a folder for everything; a cell's run is in DATA/ENCODER-SCORE-SEED.
        overwrite: replace cells that other settings made.
        report: called with cells done, cells in all and a text.
        after: called after each cell with what there is of its data set.

    Raises:
        InputError: an unknown name, a data set that is not at hand, models in `out` that were made otherwise,
            another process that works on the same data set there, or what `train` and `audit` raise.
    """
    _check(encoders, scores, seeds, instances, epochs, vectors, out)
    encoders, scores, names = (list(dict.fromkeys(given)) for given in (encoders, scores, names))
    sources = {name: needed(name, data, hub) for name in names}
    check_apart(sources)
    total = len(sources) * seeds * len(encoders) * len(scores)
    # All are read before the first is trained on: what is wrong with one is said at once.
    corpora: dict[str, Corpus] = {}
    for name, source in sources.items():
        report(0, total, f"{name}: reading")
        corpora[name] = load(
            source, dataset=name, rules=rules, train_texts=train_texts, test_texts=test_texts
        )
    results: list[Result] = []
    training: dict[str, dict[str, Any]] = {}
    with ExitStack() as stack:
        for name in corpora:
            stack.enter_context(writing(out / name))
        for name, corpus in corpora.items():
            cells = [
                Cell(name, encoder, score, seed)
                for seed in range(seeds)  # every model once before any twice
                for encoder in encoders
                for score in scores
            ]
            sized = "embedding_size" in NAMED[name].recipe
            options = {"vectors": None if sized else vectors, "epochs": epochs}
            result = Result(name, rules, [], sizes(name, corpus), corpus.left_out, cells)
            result.basis = basis(corpus, options, instances)
            check_alike(out, result, overwrite)
            if baselines and NAMED[name].task != "text":
                warnings.warn(
                    f"{name}: no baselines, which are for single texts of two classes", stacklevel=2
                )
            results.append(result)
            training[name] = options
        at = 0
        for result in results:
            name, corpus, options = (
                result.dataset,
                corpora[result.dataset],
                training[result.dataset],
            )
            for cell in [*result.missing]:
                model = f"{cell.dataset} {cell.encoder} {cell.score}, seed {cell.seed}"
                told = partial(_tell, report, at, total, model)
                numbers, coverage = _run(
                    cell,
                    corpus,
                    out,
                    told,
                    instances=instances,
                    overwrite=overwrite,
                    options=options,
                )
                result.numbers += numbers
                result.made = how_made(corpus, options, instances, coverage)
                result.missing.remove(cell)
                at += 1
                after(result)
            if baselines and NAMED[name].task == "text":
                for seed in range(seeds):
                    cell = Cell(name, "lstm", "additive", seed)
                    told = partial(_tell, report, at, total, f"{name} baselines, seed {seed}")
                    found = variants(corpus, cell, out, told, overwrite, options)
                    result.baselines += found.rows
                    result.log_odds.append(found.texts)
                    after(result)
    report(total, total, "done")
    return results


def _check(
    encoders: Sequence[str],
    scores: Sequence[str],
    seeds: int,
    instances: int,
    epochs: int | None,
    vectors: Path | None,
    out: Path,
) -> None:
    """Raises InputError where an option cannot be; before anything is read."""
    for given, known, what in ((encoders, ENCODERS, "--encoders"), (scores, SCORES, "--scores")):
        if not given or not set(given) <= set(known):
            raise InputError(f"{what}: expected some of {', '.join(known)}, got {', '.join(given)}")
    if not 1 <= seeds <= MOST_SEEDS:
        raise InputError(f"--seeds: expected a number from 1 to {MOST_SEEDS}, got {seeds}")
    AuditSettings.of(instances=instances)
    if epochs is not None:
        TrainSettings.of(epochs=epochs)
    if vectors is not None:
        check_there(vectors)
    refuse_file(out)


def _tell(report: Report, at: int, total: int, what: str, text: str) -> None:
    report(at, total, f"{what}: {text}")


def _run(
    cell: Cell,
    corpus: Corpus,
    out: Path,
    report: Callable[[str], None],
    *,
    instances: int,
    overwrite: bool,
    options: dict[str, Any],
) -> tuple[list[Measured], str | None]:
    with whole_command():  # a cell's folder is held while it is worked on, not those of all cells
        run = trained(cell, corpus, out, report, overwrite, options)
        result = audit(
            run, seed=cell.seed, instances=instances, overwrite=overwrite, announce=report
        )
    return measured(cell, result), vectors_text(result)
