"""Runs on transformers: somebody else's classifier, or one that heedmap fine-tuned.

The folder is that of any run. A classifier that came from elsewhere stays where it is: the settings name
it, with a hash of its weights. One that heedmap fine-tuned is kept in the run's folder `model/`.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedmap.data.corpus import Corpus, as_written, load_corpus
from heedmap.errors import InputError
from heedmap.files.identity import identity
from heedmap.files.naming import DATA, MODEL, name_of
from heedmap.files.storage import write_atomically
from heedmap.keywords import split, takes
from heedmap.runs.folder import (
    CHECKPOINT,
    SETTINGS,
    claim,
    clear,
    held,
    move,
    standing,
    tidy,
)
from heedmap.runs.places import Out
from heedmap.runs.run import Run
from heedmap.settings import (
    ON_TRIAL,
    RAW_TEXTS,
    RAW_TEXTS_TO_LEARN,
    DataSettings,
    FineTuneSettings,
    RunSettings,
    TransformerSettings,
)
from heedmap.training.checkpoint import load_checkpoint
from heedmap.training.fit import Report, Trained, fit
from heedmap.training.objective import Diverged
from heedmap.training.record import read_training, write_training

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from heedmap.huggingface.transformer_classifier import TransformerClassifier

KEPT = "model"
UNLIMITED = 1_000_000  # words: the model's own limit rules


@takes(RAW_TEXTS, TransformerSettings)
def open_model(
    source: str | Path,
    data: str | Path,
    *,
    out: Out | None = None,
    overwrite: bool = False,
    **settings: Any,
) -> Run:
    """A Hugging Face sequence classifier and the texts to put it on trial with: a run to `heedmap.audit`.

    Args:
        source: the model's folder, or its name on the Hub.
        data: as for `heedmap.load`. Its test split is used; a file without splits is used whole.
        {options}
        out: a run folder to keep the run in.
        overwrite: replace a different run in `out` instead of refusing.

    Raises:
        InputError: what was expected, what came and what to do.
        TypeError: a model or texts that are no path and no name, but the thing itself; or an option that there
            is not.
    """
    from heedmap.huggingface import opening

    if isinstance(data, Corpus):
        raise InputError(
            "expected a file, a folder or a Hub name as data, got a Corpus: a transformer reads the raw text"
        )
    of_texts, of_model = split("open_model", settings, RAW_TEXTS, TransformerSettings)
    wanted = TransformerSettings.of(source=name_of(source, MODEL), **of_model)
    data_settings = DataSettings.of(
        source=name_of(data, DATA),
        raw=True,
        training=False,
        **{"max_tokens": UNLIMITED, **of_texts},
    )
    model, found = opening.open_classifier(wanted)
    corpus = opening.corpus_for(model, data_settings)
    known = RunSettings(fingerprint=corpus.fingerprint(), data=data_settings, model=found)
    about = {**opening.facts(model), **opening.notes(model)}
    run = Run(known, corpus, model, None, None, about)
    if out is None:
        return run
    with held(out, known) as folder:
        if claim(folder, known, overwrite):
            clear(folder, (SETTINGS,))
            write_atomically(folder / SETTINGS, known.to_toml())
        elif (folder / SETTINGS).exists():
            move(folder, known)
        else:
            write_atomically(folder / SETTINGS, known.to_toml())
        tidy(folder)
        return replace(run, folder=folder)


@takes(RAW_TEXTS_TO_LEARN, FineTuneSettings, ON_TRIAL)
def fine_tune_model(
    base: str | Path,
    data: str | Path | Corpus,
    *,
    out: Out | None = None,
    overwrite: bool = False,
    report: Report = lambda done, total, text: None,
    **settings: Any,
) -> Run:
    """Fine-tune a pretrained transformer to classify texts (see `heedmap.training.fine_tune`).

    Longer texts than `max_positions` are cut for the training, and counted; the audit reads them whole.

    Args:
        base: the pretrained model's folder, or its name on the Hub. A head of another size is replaced.
        data: as for `heedmap.load`, or a corpus from there, whose texts are read with their case and spaces.
        {options}
        out: a run folder to keep the run in; where it holds this very run, it is continued.
        overwrite: replace a different run in `out` instead of refusing.
        report: called with steps done, steps in all and a text.

    Raises:
        InputError: what was expected, what came and what to do.
        TypeError: a model or texts that are no path and no name, but the thing itself; or an option that there
            is not.
    """
    from heedmap.huggingface import opening
    from heedmap.huggingface.transformer_classifier import TransformerClassifier
    from heedmap.training.fine_tune import limit_of, new_model

    base = name_of(base, MODEL)
    parts = split("fine_tune_model", settings, RAW_TEXTS_TO_LEARN, FineTuneSettings, ON_TRIAL)
    of_texts, of_training, of_trial = parts
    shown = TransformerSettings.of(source=base, **of_trial)
    train = FineTuneSettings.of(base=base, **of_training)
    corpus = _raw(data, **{"max_tokens": UNLIMITED, **of_texts})
    known = RunSettings(
        fingerprint=corpus.fingerprint(), data=corpus.settings, model=shown, train=train
    )
    with nullcontext() if out is None else held(out, known) as folder:
        run, anew = standing(
            folder,
            known,
            overwrite,
            KEPT,
            lambda where, found: _open_trained(where, found, corpus),
        )
        if run is not None:
            return run
        model, tokenizer = new_model(base, corpus.classes, train.seed)
        # What cannot work is found before the training and before anything is written.
        opening.rehearse(model, tokenizer, shown, corpus.classes)
        limit_of(train, model, tokenizer)
        trained = _fine_tuned(model, tokenizer, corpus, known, folder, report, anew)
        shown = shown.model_copy(update={"weights": opening.fingerprint(model)})
        known = known.model_copy(update={"model": shown})
        entered = TransformerClassifier(model.cpu(), tokenizer, shown, corpus.classes)
        run = _trained_run(known, corpus, entered, trained, None)
        return run if folder is None else save_model_run(run, folder)


def _fine_tuned(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    corpus: Corpus,
    settings: RunSettings,
    folder: Path | None,
    report: Report,
    anew: bool,
) -> Trained:
    """The training itself, with its checkpoints in a folder that is made ready for it."""
    from heedmap.training.fine_tune import FineTuning

    assert isinstance(settings.train, FineTuneSettings)
    train, dev = corpus.splits["train"], corpus.splits["dev"]
    objective = FineTuning(model, tokenizer, train, dev, settings.train)
    if folder is not None:
        if not anew:
            load_checkpoint(folder / CHECKPOINT, objective)
        clear(folder, (SETTINGS,) if anew else (SETTINGS, CHECKPOINT))
        write_atomically(folder / SETTINGS, settings.to_toml())
    try:
        trained = fit(objective, None if folder is None else folder / CHECKPOINT, report)
    except Diverged:
        if folder is not None:
            clear(folder)  # a smaller learning rate begins from nothing
        raise
    return replace(trained, left_out=objective.left_out)


def _raw(data: str | Path | Corpus, **options: Any) -> Corpus:
    """A corpus whose tokens joined are the texts."""
    if not isinstance(data, Corpus):
        return load_corpus(DataSettings.of(source=name_of(data, DATA), raw=True, **options))
    return as_written(data)


def _trained_run(
    settings: RunSettings,
    corpus: Corpus,
    model: "TransformerClassifier",
    trained: Trained,
    folder: Path | None,
) -> Run:
    from heedmap.huggingface import opening

    corpus = opening.fitted(model, corpus)
    corpus = replace(corpus, left_out={**corpus.left_out, **trained.left_out})
    facts = {
        **opening.facts(model),
        "training": trained.scores,
        "best_epoch": trained.best_epoch,
    }
    return Run(settings, corpus, model, trained, folder, facts)


def open_model_run(folder: Path, settings: RunSettings) -> Run:
    """The run of a transformer from its folder (see `heedmap.open_run`).

    Raises:
        InputError: the model or the texts are not there, or not what they were.
    """
    from heedmap.huggingface import opening

    assert isinstance(settings.model, TransformerSettings)
    if settings.train is not None:
        return _open_trained(folder, settings)
    model, found = opening.open_classifier(settings.model)
    if settings.model.weights and found.weights != settings.model.weights:
        raise _changed(folder, settings.model.source)
    corpus = opening.corpus_for(model, settings.data)
    if corpus.fingerprint() != settings.fingerprint:
        raise _changed(folder, settings.data.source)
    about = {**opening.facts(model), **opening.notes(model)}
    return Run(settings, corpus, model, None, folder, about)


def _open_trained(folder: Path, settings: RunSettings, corpus: Corpus | None = None) -> Run:
    """A run that was trained here: it holds texts to train on as well, and a model of its own."""
    from heedmap.huggingface import opening

    assert isinstance(settings.model, TransformerSettings)
    kept = folder / KEPT
    if not kept.exists():
        raise InputError(f"{folder}: not trained to the end; run `heedmap train` again to go on")
    try:
        corpus = corpus or load_corpus(settings.data)
    except InputError as error:
        raise InputError(f"{error} (so say the settings of {folder})") from error
    if corpus.fingerprint() != settings.fingerprint:
        raise _changed(folder, settings.data.source)
    model, found = opening.open_classifier(settings.model, kept)
    trained, known = read_training(folder)
    if (found.weights, model.classes) != (settings.model.weights, corpus.classes) or known not in (
        None,
        _identity(settings, corpus.classes),
    ):
        raise InputError(
            f"{kept}: not the model that was trained here; bring it back, or make the run again: "
            f"`heedmap train --model {settings.model.source} --data {settings.data.source} --out {folder} "
            "--overwrite`"
        )
    return _trained_run(settings, corpus, model, trained, folder)


def _changed(folder: Path, source: str) -> InputError:
    return InputError(
        f"{folder}: {source} is not what it was when the run was made; bring it back, or make a new run"
    )


def _identity(settings: RunSettings, classes: Sequence[str]) -> str:
    assert isinstance(settings.model, TransformerSettings)
    return identity(settings.model_copy(update={"audit": None}), settings.model.weights, classes)


def save_model_run(run: Run, folder: Path) -> Run:
    """The settings; and of a run trained here its scores and, last of all, its model: it says it is done."""
    write_atomically(folder / SETTINGS, run.settings.to_toml())
    if run.settings.train is not None:
        from heedmap.huggingface import opening

        assert run.training is not None
        write_training(folder, run.training, _identity(run.settings, run.model.classes))
        # A folder is claimed for these very weights: a model that stands in it is this one.
        if not (folder / KEPT).exists():
            opening.save_classifier(run.model, folder / KEPT)
        (folder / CHECKPOINT).unlink(missing_ok=True)
    return replace(run, folder=folder)
