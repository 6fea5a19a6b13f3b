"""Pruthi et al., "Learning to Deceive with Attention-Based Explanations" (2020): the classification tasks.

    found = reproduce(hm.load("biographies-gender"), out="runs/pruthi", task="pronoun", forbidden="she,he")

Each model is a run (OUT/MODEL) of which `heedmap.runs.retrain` asks `deception`. What is trained is kept, and a
stopped call goes on.
"""

from pathlib import Path
from typing import Any

from heedmap.data.corpus import Corpus
from heedmap.data.load import as_written
from heedmap.data.marks import marked_words
from heedmap.errors import InputError
from heedmap.experiments.findings import AuditResult
from heedmap.files.naming import MODEL, name_of
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
from heedmap.papers.kit.reproduction import check_distinct
from heedmap.papers.kit.result import Result
from heedmap.papers.pruthi import result as of_texts
from heedmap.papers.pruthi import sequence_result as of_sequences
from heedmap.papers.pruthi import sequences
from heedmap.papers.pruthi.filler import with_filler
from heedmap.papers.pruthi.result import Pruthi
from heedmap.papers.pruthi.settings import BERT, MODELS, TRAINING, PruthiSettings
from heedmap.runs.audit import open_audit
from heedmap.runs.retrain import retrain
from heedmap.runs.run import Run
from heedmap.runs.run_paths import Out
from heedmap.runs.train import fine_tune, train_as
from heedmap.settings.training import TrainSettings
from heedmap.terminal.progress import portion, track
from heedmap.training.remote import takes_executor
from heedmap.training.shards import end_shard, independent
from heedmap.training.sweep import one_thread, processes

Found = Pruthi | of_sequences.SequenceResult


@takes_executor
def reproduce(
    corpus: Corpus,
    *,
    out: Out,
    name: str | None = None,
    overwrite: bool = False,
    workers: int | None = None,
    **options: Any,
) -> Pruthi:
    """Train each model with and without the penalty, and without the words. Resumes a stopped call.

    Args:
        corpus: of single texts of words; the task "sst-filler" adds its sentences to them.
        name: of the data in the result: the corpus's own by default.
        out, overwrite, workers: see `Experiment`.
        options: see `PruthiSettings`.

    Raises:
        InputError: pairs or sentences; words that occur nowhere; the model "bert" without `base`; a setting
            that does not fit; another reproduction in `out`, or another process that writes there.
    """
    processes(workers)
    if (base := options.get("base")) is not None:
        options = {**options, "base": name_of(base, MODEL)}
    check_single_texts(corpus)
    settings = PruthiSettings.of(fingerprint=corpus.fingerprint(), data=corpus.settings, **options)
    check_distinct("models", settings.models)
    if ("bert" in settings.models) != (settings.base is not None):
        raise InputError(
            "--base: expected with the model bert, which is fine-tuned from it, and only then; got the models "
            f"{', '.join(settings.models)} and {'no' if settings.base is None else 'a'} base"
        )
    texts = {name: corpus if name != "bert" else as_written(corpus) for name in settings.models}
    if settings.task == "sst-filler":
        texts = {name: with_filler(model_texts) for name, model_texts in texts.items()}
    for model_texts in texts.values():
        marked_words(settings.forbidden, model_texts)  # refuse before the first training
    files = (*MODELS, "bert", ABOUT)
    with one_thread(), reserved(out, settings, overwrite=overwrite, files=files) as folder:
        write_about(folder, name or corpus.name, [sizes(corpus), *left_out(corpus)])
        for model in track(settings.models):
            with portion(0.1, model):
                run = _trained(model, texts[model], settings, run_folder(folder, model))
            with portion(0.9, model), independent():
                retrain(
                    run,
                    ("deception",),
                    seeds=settings.seeds,
                    forbidden=settings.forbidden,
                    penalties=settings.penalties,
                    heads="both",
                    rule=settings.rule,
                    instances=settings.test_instances,
                    workers=workers,
                )
                write(folder, of_texts.result(_finished(folder)))
        end_shard()
        return _finished(folder)


def _finished(folder: Path) -> Pruthi:
    reproduction = _read(folder)
    assert reproduction is not None
    return reproduction


def _trained(model: str, corpus: Corpus, settings: PruthiSettings, out: Path) -> Run:
    """Train the run that a model's variants are compared with."""
    if model != "bert":
        options = {**TRAINING, "epochs": settings.epochs, "batch_size": settings.batch_size}
        return train_as(corpus, MODELS[model], TrainSettings.of(**options), out=out)
    assert settings.base is not None
    recipe: dict[str, Any] = {**BERT, "epochs": settings.bert_epochs}
    return fine_tune(settings.base, corpus, out=out, **recipe)


def read(folder: Path) -> Found | None:
    """Read what there is of a reproduction in a folder; return None where there is none of this paper.

    Raises:
        InputError: a run, or a part, is damaged.
    """
    return _read(folder) or sequences.EXPERIMENT.read(folder)


def result(reproduction: Found) -> Result:
    """Make the result of either kind of task."""
    if isinstance(reproduction, of_sequences.SequenceResult):
        return of_sequences.result(reproduction)
    return of_texts.result(reproduction)


def _read(folder: Path) -> Pruthi | None:
    if (data_notes := read_about(folder, PruthiSettings)) is None:
        return None
    settings, name, notes = data_notes
    audits: dict[str, AuditResult] = {}
    for model in settings.models:
        if (folder / model / "report.html").exists():
            audit = open_audit(folder / model)
            if "deception" in audit.tables:
                audits[model] = audit
    return Pruthi(name, settings, notes, folder, audits) if audits else None


PAPER: Paper[Found] = Paper(read, result)
