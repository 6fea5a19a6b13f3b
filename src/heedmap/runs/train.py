"""Train a run: an attention model from scratch, or a transformer that is fine-tuned."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from heedmap.data.corpus import Corpus
from heedmap.data.in_memory import Source, source_of
from heedmap.data.load import as_written, load_corpus
from heedmap.data.vocabulary import vectors_hash
from heedmap.errors import InputError, ModelError, running_model
from heedmap.files.naming import MODEL, is_there, kind_of, name_of
from heedmap.keywords import split, takes
from heedmap.runs.defaults import defaults_for
from heedmap.runs.folder import RunFolder
from heedmap.runs.occupancy import finished
from heedmap.runs.open import open_fine_tuned, open_own
from heedmap.runs.run import Run
from heedmap.runs.run_paths import Out
from heedmap.runs.saving import fine_tuned_run, own_run, save_run
from heedmap.settings.data import RAW_TEXTS_TO_LEARN, DataSettings
from heedmap.settings.models import ON_TRIAL, UNLIMITED_WORDS, ModelSettings, TransformerSettings
from heedmap.settings.run import RunSettings
from heedmap.settings.training import FineTuneSettings, TrainSettings
from heedmap.terminal.progress import working
from heedmap.training.attention import AttentionObjective
from heedmap.training.checkpoint import load_checkpoint
from heedmap.training.dynamics import ClassifierRecorder
from heedmap.training.fit import Trained, fit
from heedmap.training.initialisation import init_model, kind_for
from heedmap.training.objective import Diverged, Objective

PAIRS = {"epochs": 25, "batch_size": 100}  # defaults for pairs of texts
BAGS = {"encoder": "mlp", "score": "gated"}  # for bags of vectors, as Ilse et al. (2018)
BAGS_TRAINING = {"epochs": 25}


@takes(ModelSettings, TrainSettings)
def train(
    corpus: Corpus,
    *,
    out: Out | None = None,
    overwrite: bool = False,
    progress: bool = True,
    **settings: Any,
) -> Run:
    """Train an attention classifier on a corpus (see `AttentionObjective` for the protocol).

    What is not given is as a paper has it that trains on this data set (`heedmap.runs.defaults`), if there is
    one.

    >>> import heedmap as hm
    >>> run = hm.train(hm.load("reviews"), encoder="average", epochs=1, progress=False)
    >>> run.name, run.training.best_epoch, round(run.training.scores[0]["accuracy"], 1)
    ('reviews', 0, 0.8)

    Args:
        corpus: from `heedmap.load`.
        {options}
        out: a run folder to keep the run in; where it holds this very run, that is resumed.
        overwrite: replace a different run in `out` instead of refusing.
        progress: False to show no progress bar (there is one in a terminal or a notebook, and lines in a log).

    Raises:
        InputError: a setting that does not fit, another run in `out`, or another process that writes there.
        TypeError: no corpus, or an option that there is not.
    """
    if not isinstance(corpus, Corpus):
        raise TypeError(
            f"expected a corpus, got {kind_of(corpus)}; read it with `heedmap.load` first: "
            "heedmap.train(heedmap.load(data))"
        )
    model_options, training_options = split("train", settings, ModelSettings, TrainSettings)
    data = corpus.settings
    defaults = {**(PAIRS if corpus.pairs else {}), **defaults_for(data, TrainSettings)}
    if (vectors := training_options.get("vectors")) is not None:
        hashed = vectors_hash(Path(vectors))
        training_options |= {"vectors": str(vectors), "vectors_hash": hashed}
    if corpus.vectors is not None:
        _check_bags(corpus, model_options, training_options, out)
        defaults = BAGS_TRAINING
    return train_as(
        corpus,
        model_settings(corpus, model_options),
        TrainSettings.of(**{**defaults, **training_options}),
        out=out,
        overwrite=overwrite,
        progress=progress,
    )


def model_settings(corpus: Corpus, options: dict[str, Any]) -> ModelSettings:
    """Return the settings of a model for a corpus: what is not given is as its data set or kind has it."""
    defaults = defaults_for(corpus.settings, ModelSettings)
    if corpus.vectors is not None:
        defaults = BAGS | {"embedding_size": corpus.vectors.width}
    return ModelSettings.of(**{**defaults, **options})


def _check_bags(
    corpus: Corpus, model: dict[str, Any], training: dict[str, Any], out: Out | None
) -> None:
    """Raise InputError where words are asked for of bags, a folder could not read them again, or they are no
    finite numbers.
    """
    for name in ("embedding_size", "vectors", "min_df"):
        if name in model or name in training:
            raise InputError(
                f"--{name.replace('_', '-')}: an option of texts of words, got bags, whose items have vectors "
                "of their own; leave it out"
            )
    if model.get("score") == "log_odds":
        raise InputError(
            "--score log_odds: expected texts of words, whose log-odds are the scores, got bags; choose gated, "
            "additive or dot"
        )
    assert corpus.vectors is not None
    if out is not None and corpus.vectors.in_memory:
        raise InputError(
            f"{corpus.settings.source}: expected bags in files for a run that a folder keeps; write each with "
            "numpy.save beside a labels.csv (bag_id,label) and load their folder, or train without out"
        )
    for part in corpus.splits.values():  # before a folder is begun
        corpus.vectors.check(tokens[0] for tokens in part.tokens)


def train_as(
    corpus: Corpus,
    model_settings: ModelSettings,
    train_settings: TrainSettings,
    *,
    out: Out | None = None,
    overwrite: bool = False,
    progress: bool = True,
) -> Run:
    """Train by whole settings, those that are no options included: as `train` otherwise."""
    if model_settings.score == "log_odds":
        from heedmap.training.log_odds import check_suitable

        check_suitable(corpus)
    run_settings = RunSettings(
        fingerprint=corpus.fingerprint(),
        data=corpus.settings,
        model=model_settings,
        train=train_settings,
    )

    def make(folder: RunFolder | None) -> Run:
        model, sized, with_vectors = init_model(
            corpus, run_settings, kind_for(corpus, model_settings)
        )
        assert isinstance(sized.train, TrainSettings)
        texts, dev = corpus.splits["train"], corpus.splits["dev"]
        objective = AttentionObjective(
            model,
            model.encoded(texts.texts, texts.labels),
            model.encoded(dev.texts, dev.labels),
            sized.train,
        )
        if sized.train.record_dynamics:
            parts = None if folder is None else folder.dynamics
            objective.recorder = ClassifierRecorder(
                model, corpus.splits["test"], dev, parts, sized.data.seed
            )
        trained = replace(_fit(objective, folder, sized, overwrite), vectors=with_vectors)
        run = own_run(sized, corpus, model.cpu(), trained, None)
        if folder is None and objective.recorder is not None:
            run = replace(run, recorded=pa.concat_tables(objective.recorder.parts))
        return run

    with working("training", progress):
        return _find_or_make(out, run_settings, overwrite, partial(open_own, corpus=corpus), make)


@takes(RAW_TEXTS_TO_LEARN, FineTuneSettings, ON_TRIAL)
def fine_tune(
    base: str | Path,
    data: Source | Corpus,
    *,
    out: Out | None = None,
    overwrite: bool = False,
    progress: bool = True,
    **settings: Any,
) -> Run:
    """Fine-tune a pretrained transformer to classify texts (see `heedmap.training.fine_tune`).

    Longer texts than `max_positions` are cut for the training, and counted; the audit reads them whole.

    Args:
        base: the pretrained model's folder, or its name on the Hub. A head of another size is replaced.
        data: as for `heedmap.load`, or a corpus from there, whose texts are read with their case and spaces.
        {options}
        out: a run folder to keep the run in; where it holds this very run, that is resumed.
        overwrite: replace a different run in `out` instead of refusing.
        progress: False to show no progress bar (there is one in a terminal or a notebook, and lines in a log).

    Raises:
        InputError: what was expected, what came and what to do.
        TypeError: a model that is no path and no name, but the thing itself; data of another kind; or an option
            that there is not.
    """
    from heedmap.huggingface import opening
    from heedmap.huggingface.configurations import refuse_word_classes
    from heedmap.huggingface.transformer_classifier import TransformerClassifier
    from heedmap.training.fine_tune import FineTuning, limit_of, new_model

    base = name_of(base, MODEL)
    if is_there(base):  # one on the Hub is refused after the texts are read (`load_for_training`)
        refuse_word_classes(base)
    parts = split("fine_tune", settings, RAW_TEXTS_TO_LEARN, FineTuneSettings, ON_TRIAL)
    text_options, training_options, trial_options = parts
    trial_settings = TransformerSettings.of(source=base, **trial_options)
    train = FineTuneSettings.of(base=base, **training_options)
    corpus = _raw(data, **{"max_tokens": UNLIMITED_WORDS, **text_options})
    run_settings = RunSettings(
        fingerprint=corpus.fingerprint(), data=corpus.settings, model=trial_settings, train=train
    )

    def make(folder: RunFolder | None) -> Run:
        model, tokenizer = new_model(base, corpus.classes, train.seed)
        # Fail before the training, and before anything is written.
        opening.rehearse(model, tokenizer, trial_settings, corpus.classes, pairs=corpus.pairs)
        limit_of(train, model, tokenizer)
        texts, dev = corpus.splits["train"], corpus.splits["dev"]
        objective = FineTuning(model, tokenizer, texts, dev, train)
        trained = _fit(objective, folder, run_settings, overwrite)
        trained = replace(trained, left_out=objective.left_out)
        model_settings = trial_settings.model_copy(update={"weights": opening.fingerprint(model)})
        classifier = TransformerClassifier(model.cpu(), tokenizer, model_settings, corpus.classes)
        tuned_settings = run_settings.model_copy(update={"model": model_settings})
        return fine_tuned_run(tuned_settings, corpus, classifier, trained, None)

    with working("fine-tuning", progress), running_model(base, "fine-tuning"):
        return _find_or_make(
            out, run_settings, overwrite, partial(open_fine_tuned, corpus=corpus), make
        )


def _raw(data: Source | Corpus, **options: Any) -> Corpus:
    """Load a corpus whose tokens, joined, are the raw texts."""
    if isinstance(data, Corpus):
        return as_written(data)
    name, in_memory = source_of(data)
    corpus = load_corpus(DataSettings.of(source=name, raw=True, **options), in_memory=in_memory)
    corpus.warn()
    return corpus


def _find_or_make(
    out: Out | None,
    settings: RunSettings,
    overwrite: bool,
    load: Callable[[RunFolder, RunSettings], Run],
    make: Callable[[RunFolder | None], Run],
) -> Run:
    """Load the finished run from its folder, or make and save it; without a folder make it only."""
    if out is None:
        return make(None)
    with RunFolder.locked(out, settings) as folder:
        run = finished(folder, settings, overwrite, load) or save_run(make(folder), folder)
        folder.keep_texts(run.corpus.in_memory)  # of a finished run too, which may have lost them
        return run


def _fit(
    objective: Objective,
    folder: RunFolder | None,
    settings: RunSettings,
    overwrite: bool,
) -> Trained:
    """Train in a prepared folder; a stopped training there is resumed or overwritten.

    Raises:
        Diverged: the loss or the scores are not finite. The folder is emptied.
        InputError: the checkpoint is damaged or of another training. Nothing is changed.
    """
    if folder is None:
        return fit(objective)
    if not overwrite:
        load_checkpoint(folder.checkpoint, objective)
    folder.begin(settings, resume=not overwrite)
    try:
        with running_model(settings.model, "training"):
            return fit(objective, folder.checkpoint)
    except (Diverged, ModelError):
        folder.clear()  # a smaller learning rate, or another model, starts afresh
        raise
