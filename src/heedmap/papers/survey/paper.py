"""The open questions of the survey of the debate, asked of models of several kinds of task.

    found = reproduce([hm.load("reviews"), hm.load("babi_qa1")], out="runs/survey")

Each cell is a model of one data set with its audit, or an encoder-decoder of one seed. A model's tables are
those of the audit's questions; nothing is measured here that they measure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from heedmap.data.corpus import Corpus
from heedmap.data.parallel import Parallel
from heedmap.errors import InputError
from heedmap.papers.kit.made_language import made_corpus
from heedmap.papers.kit.parts import ABOUT, left_out, sizes
from heedmap.papers.kit.registry import Paper
from heedmap.papers.kit.reproduction import Cell, Experiment, Modules, check_distinct
from heedmap.papers.survey.cells import TRANSLATION, cells
from heedmap.papers.survey.numbers import model_of
from heedmap.papers.survey.result import result
from heedmap.papers.survey.sequences import sequence_rows
from heedmap.papers.survey.settings import SurveySettings
from heedmap.papers.survey.survey import Survey
from heedmap.papers.survey.texts import text_rows
from heedmap.runs.run_paths import Out
from heedmap.training.remote import takes_executor
from heedmap.training.sweep import processes


@dataclass(frozen=True)
class Shared:
    """What all cells have in common: the data by name."""

    settings: SurveySettings
    texts: Mapping[str, Corpus]
    sequences: Mapping[str, Parallel]


def task_of(corpus: Corpus) -> str:
    """Return the kind of task: pairs are inference if a class is called entailment, else questions."""
    if not corpus.pairs:
        return "classification"
    return "inference" if "entailment" in corpus.classes else "question answering"


@takes_executor
def reproduce(
    corpora: Sequence[Corpus],
    *,
    out: Out,
    pairs: Parallel | None = None,
    overwrite: bool = False,
    workers: int | None = None,
    **options: Any,
) -> Survey:
    """Train and audit the models of every data set. Resumes a stopped call.

    Args:
        corpora: from `heedmap.load`, of texts of words or of pairs of texts.
        out, overwrite, workers: see `Experiment`.
        pairs: sentences in two languages, from `load_parallel`.
        options: see `SurveySettings`.

    Raises:
        InputError: texts of sentences, two data sets of one name, a setting that does not fit, another
            reproduction in `out`, or another process that writes there.
    """
    processes(workers)
    for corpus in corpora:
        if corpus.sentences:
            raise InputError(
                f"{corpus.settings.source}: expected texts of words, got sentences; load it without "
                "tokenizer sentences"
            )
    check_distinct("data", [corpus.name for corpus in corpora])
    settings = SurveySettings.of(
        names=[corpus.name for corpus in corpora],
        fingerprints=[corpus.fingerprint() for corpus in corpora],
        data=[corpus.settings for corpus in corpora],
        pairs="" if pairs is None else pairs.fingerprint(),
        **options,
    )
    for option in ("encoders", "normalisers", "sizes"):
        check_distinct(option, [str(value) for value in getattr(settings, option)])
    sequences = {"copy": made_corpus("copy"), "dictionary": made_corpus("dictionary")}
    if pairs is not None:
        sequences[TRANSLATION] = pairs
    notes = [note for corpus in corpora for note in (sizes(corpus), *left_out(corpus))]
    shared = Shared(settings, {corpus.name: corpus for corpus in corpora}, sequences)
    with EXPERIMENT.opened(
        out, settings, overwrite=overwrite, name="survey", notes=notes
    ) as reproduction:
        return EXPERIMENT.run(reproduction, partial(compute, shared=shared), workers=workers)


def compute(cell: Cell, checkpoints: Path, *, shared: Shared) -> tuple[pa.Table, Modules]:
    """Train one model and return its rows."""
    if "attention" in cell.columns:
        corpus = shared.sequences[cell["data"]]
        return sequence_rows(cell, checkpoints, corpus, shared.settings), {}
    texts = shared.texts[cell["data"]]
    table = text_rows(cell, checkpoints, texts, shared.settings)
    about = {"task": task_of(texts), "classes": len(texts.classes)}
    for name, value in about.items():
        table = table.append_column(name, pa.array([value] * len(table)))
    return table, {}


EXPERIMENT = Experiment(
    SurveySettings,
    Survey,
    cells,
    (),
    result,
    files=(ABOUT,),
    rows_of=model_of,
)
PAPER = Paper(EXPERIMENT.read, result)
