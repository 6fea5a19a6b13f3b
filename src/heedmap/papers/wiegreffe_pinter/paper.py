"""Wiegreffe & Pinter, "Attention is not not Explanation" (2019), on one of their data sets.

    found = reproduce(hm.load("SST", dataset="sst"), out="runs/wiegreffe-pinter-sst")

The folder holds a run (OUT/run) with its audit and the further trainings of `heedmap.runs.retrain`: uniform
weights, seeds, guided models and adversaries. Each is kept when it is trained, and a stopped call goes on.
"""

from pathlib import Path
from typing import Any

from heedmap.data.corpus import Corpus
from heedmap.data.vocabulary import vectors_hash
from heedmap.papers.kit.parts import (
    ABOUT,
    check_single_texts,
    left_out,
    read_about,
    reserved,
    run_folder,
    sizes,
    write_about,
)
from heedmap.papers.kit.registry import Paper
from heedmap.papers.kit.render import write
from heedmap.papers.wiegreffe_pinter.result import WiegreffePinter, result
from heedmap.papers.wiegreffe_pinter.settings import WiegreffePinterSettings
from heedmap.runs.audit import open_audit
from heedmap.runs.retrain import retrain
from heedmap.runs.run_paths import Out
from heedmap.runs.train import train
from heedmap.terminal.progress import portion
from heedmap.training.remote import takes_executor
from heedmap.training.sweep import one_thread, processes

RUN = "run"
MODEL: dict[str, Any] = {"encoder": "lstm", "score": "additive"}
QUESTIONS = ("necessity", "stability", "guidance", "trained_adversary", "adversary_agreement")


@takes_executor
def reproduce(
    corpus: Corpus,
    *,
    out: Out,
    name: str | None = None,
    overwrite: bool = False,
    workers: int | None = None,
    **options: Any,
) -> WiegreffePinter:
    """Train the paper's LSTM, its variants and adversaries, and audit it. Resumes a stopped call.

    Args:
        corpus: from `heedmap.load(..., dataset=...)`, of single texts; the paper has two classes.
        name: of the data in the result: the corpus's own by default.
        out, overwrite, workers: see `Experiment`.
        options: see `WiegreffePinterSettings`.

    Raises:
        InputError: pairs or sentences; a setting that does not fit; another
            reproduction in `out`, or another process that writes there.
    """
    processes(workers)
    check_single_texts(corpus)
    if (vectors := options.get("vectors")) is not None:
        options = {**options, "vectors_hash": vectors_hash(Path(vectors))}
    settings = WiegreffePinterSettings.of(
        fingerprint=corpus.fingerprint(), data=corpus.settings, **options
    )
    files = (RUN, ABOUT)
    with one_thread(), reserved(out, settings, overwrite=overwrite, files=files) as folder:
        write_about(folder, name or corpus.name, [sizes(corpus), *left_out(corpus)])
        with portion(0.05):
            run = train(
                corpus,
                out=run_folder(folder, RUN),
                epochs=settings.epochs,
                vectors=settings.vectors,
                **MODEL,
            )
        with portion(0.95):
            retrain(
                run,
                QUESTIONS,
                seeds=settings.seeds,
                lambdas=settings.lambdas,
                adversary_epochs=settings.adversary_epochs,
                patience=settings.patience,
                instances=settings.test_instances,
                workers=workers,
            )
        reproduction = read(folder)
        assert reproduction is not None
        write(folder, result(reproduction))
    return reproduction


def read(folder: Path) -> WiegreffePinter | None:
    """Read the reproduction in a folder; return None where there is none of this paper.

    Raises:
        InputError: its run is damaged.
    """
    if (data_notes := read_about(folder, WiegreffePinterSettings)) is None:
        return None
    settings, name, notes = data_notes
    if not (folder / RUN).is_dir():
        return None
    audit = open_audit(folder / RUN)
    if not set(QUESTIONS) <= set(audit.tables):
        return None
    return WiegreffePinter(name, settings, notes, folder, audit)


PAPER = Paper(read, result)
