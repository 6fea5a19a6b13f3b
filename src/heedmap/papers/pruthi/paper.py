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
    left_out,
    read_about,
    reserved,
    run_folder,
    sizes,
    write_about,
)
from heedmap.papers.kit.registry import Paper
from heedmap.papers.kit.render import write
from heedmap.papers.kit.result import Result
from heedmap.papers.pruthi import result as of_texts
from heedmap.papers.pruthi import sequence_result as of_sequences
from heedmap.papers.pruthi import sequences
from heedmap.papers.pruthi.filler import with_filler
from heedmap.papers.pruthi.result import Reproduction
from heedmap.papers.pruthi.settings import BERT, MODELS, TRAINING, PruthiSettings
from heedmap.runs.audit import open_audit
from heedmap.runs.retrain import retrain
from heedmap.runs.run import Run
from heedmap.runs.run_paths import Out
from heedmap.runs.train import fine_tune, train_as
from heedmap.settings import TrainSettings
from heedmap.terminal.progress import portion, track
from heedmap.training.sweep import one_thread, processes

Found = Reproduction | of_sequences.SequenceResult


def reproduce(
    corpus: Corpus,
    *,
    out: Out,
    name: str | None = None,
    overwrite: bool = False,
    workers: int | None = None,
    **options: Any,
) -> Reproduction:
    """Train each model with and without the penalty, and without the words. Resumes a stopped call.

    Args:
        corpus: of single texts of words; the task "sst-filler" adds its sentences to them.
        out: the folder.
        name: of the data in the result: the corpus's own by default.
        overwrite: replace a reproduction with other settings.
        workers: how many processes; one per core by default. The numbers do not depend on it.
        options: see `PruthiSettings`.

    Raises:
        InputError: pairs or sentences; words that occur nowhere; the model "bert" without `base`; a setting
            that does not fit; another reproduction in `out`, or another process that writes there.
    """
    processes(workers)
    if (base := options.get("base")) is not None:
        options = {**options, "base": name_of(base, MODEL)}
    if corpus.pairs or corpus.sentences:
        raise InputError(
            f"{corpus.settings.source}: expected single texts of words, got "
            f"{'pairs' if corpus.pairs else 'sentences'}"
        )
    settings = PruthiSettings.of(fingerprint=corpus.fingerprint(), data=corpus.settings, **options)
    if len(set(settings.models)) != len(settings.models) or not settings.models:
        raise InputError(f"models: expected each at most once; got {', '.join(settings.models)}")
    if ("bert" in settings.models) != (settings.base is not None):
        raise InputError(
            "--base: expected with the model bert, which is fine-tuned from it, and only then; got the models "
            f"{', '.join(settings.models)} and {'no' if settings.base is None else 'a'} base"
        )
    texts = {name: corpus if name != "bert" else as_written(corpus) for name in settings.models}
    if settings.task == "sst-filler":
        texts = {name: with_filler(some) for name, some in texts.items()}
    for some in texts.values():
        marked_words(settings.forbidden, some)  # refuse before the first training
    own = (*MODELS, "bert", ABOUT)
    with one_thread(), reserved(out, settings, overwrite=overwrite, own=own) as folder:
        write_about(folder, name or corpus.name, [sizes(corpus), *left_out(corpus)])
        for model in track(settings.models):
            with portion(0.1, model):
                run = _trained(model, texts[model], settings, run_folder(folder, model))
            with portion(0.9, model):
                retrain(
                    run,
                    ("deception",),
                    seeds=settings.seeds,
                    forbidden=settings.forbidden,
                    penalties=settings.penalties,
                    heads="both",
                    rule=settings.rule,
                    workers=workers,
                )
            write(folder, of_texts.result(_made(folder)))
        return _made(folder)


def _trained(model: str, corpus: Corpus, settings: PruthiSettings, out: Path) -> Run:
    """Train the run that a model's variants are compared with."""
    if model != "bert":
        how = {**TRAINING, "epochs": settings.epochs, "batch_size": settings.batch_size}
        return train_as(corpus, MODELS[model], TrainSettings.of(**how), out=out)
    assert settings.base is not None
    recipe: dict[str, Any] = {**BERT, "epochs": settings.bert_epochs}
    return fine_tune(settings.base, corpus, out=out, **recipe)


def _made(folder: Path) -> Reproduction:
    found = _read(folder)
    assert found is not None
    return found


def read(folder: Path) -> Found | None:
    """Read what there is of a reproduction in a folder; return None where there is none of this paper.

    Raises:
        InputError: a run, or a part, is damaged.
    """
    return _read(folder) or sequences.read(folder)


def result(found: Found) -> Result:
    """Make the result of either kind of task."""
    if isinstance(found, of_sequences.SequenceResult):
        return of_sequences.result(found)
    return of_texts.result(found)


def _read(folder: Path) -> Reproduction | None:
    if (about := read_about(folder, PruthiSettings)) is None:
        return None
    settings, name, notes = about
    audits: dict[str, AuditResult] = {}
    for model in settings.models:
        if (folder / model / "report.html").exists():
            audit = open_audit(folder / model)
            if "deception" in audit.tables:
                audits[model] = audit
    return Reproduction(name, settings, audits, notes, folder) if audits else None


PAPER: Paper[Found] = Paper(read, result)
