"""Open a run from its folder, or make one of somebody else's transformer; save it.

The settings of a run name its texts, with a hash of them: they are read again where they are. A transformer
that came from elsewhere stays there, and the settings hold a hash of its weights; one that heedmap fine-tuned
is kept in the run's folder `model/`.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedmap.data.corpus import Corpus, load_corpus
from heedmap.data.vocabulary import Vocabulary
from heedmap.errors import InputError
from heedmap.files.identity import identity, weights_hash
from heedmap.files.naming import DATA, MODEL, name_of
from heedmap.keywords import split, takes
from heedmap.models.attention_classifier import AttentionClassifier
from heedmap.runs.folder import RunFolder
from heedmap.runs.places import Out
from heedmap.runs.run import Run
from heedmap.settings import RAW_TEXTS, DataSettings, RunSettings, TransformerSettings
from heedmap.training.fit import Trained
from heedmap.training.initialisation import build_model, kind_for

if TYPE_CHECKING:
    from heedmap.huggingface.transformer_classifier import TransformerClassifier

UNLIMITED = 1_000_000  # words: the model's own limit rules


def open_run(folder: str | Path) -> Run:
    """A finished run from its folder; the corpus is read again from its source.

    Raises:
        InputError: no run there, not trained to the end, damaged, or its corpus or its model is not what it
            was.
    """
    where = RunFolder(folder)
    settings = where.settings()
    if not isinstance(settings.model, TransformerSettings):
        run = open_own(where, settings)
    elif settings.train is not None:
        run = open_fine_tuned(where, settings)
    else:
        run = _open_elsewhere(where, settings)
    where.check_unchanged(settings)
    return run


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
    with RunFolder.locked(out, known) as folder:
        if folder.holds_another(known, overwrite):
            folder.begin(known, resume=False)
        elif folder.is_begun():
            folder.relocate(known)
        else:
            folder.write_settings(known)
        folder.tidy()
        return replace(run, folder=folder.path)


def open_own(folder: RunFolder, settings: RunSettings, corpus: Corpus | None = None) -> Run:
    """The run of an attention model that was trained in a folder; its corpus, if it is at hand.

    Raises:
        InputError: as `open_run`.
    """
    corpus = _corpus(folder, settings, corpus)
    trained, known = folder.training()
    words, classes, tensors = folder.read_model()
    try:
        model = build_model(settings, Vocabulary(words), classes, kind_for(corpus))
        model.load_state_dict(tensors)
        if classes != corpus.classes:
            raise ValueError(f"expected the classes {corpus.classes}, got {classes}")
        if not all(bool(tensor.isfinite().all()) for tensor in tensors.values()):
            raise ValueError("weights that are not finite")
        if known not in (None, _identity(settings, _hash(model), classes)):
            raise ValueError("not the model that was trained here with these settings")
    except (ValueError, RuntimeError) as error:
        raise folder.damaged(error) from error
    model.eval().requires_grad_(False)
    return own_run(settings, corpus, model, trained, folder.path)


def open_fine_tuned(folder: RunFolder, settings: RunSettings, corpus: Corpus | None = None) -> Run:
    """The run of a transformer that was fine-tuned in a folder; its corpus, if it is at hand.

    Raises:
        InputError: as `open_run`.
    """
    from heedmap.huggingface import opening

    assert isinstance(settings.model, TransformerSettings)
    corpus = _corpus(folder, settings, corpus)
    model, found = opening.open_classifier(settings.model, folder.model)
    trained, known = folder.training()
    here = _identity(settings, settings.model.weights, corpus.classes)
    if (found.weights, model.classes) != (
        settings.model.weights,
        corpus.classes,
    ) or known not in (None, here):
        raise InputError(
            f"{folder.model}: not the model that was trained here; bring it back, or make the run again: "
            f"`heedmap train --model {settings.model.source} --data {settings.data.source} --out "
            f"{folder.path} --overwrite`"
        )
    return fine_tuned_run(settings, corpus, model, trained, folder.path)


def _open_elsewhere(folder: RunFolder, settings: RunSettings) -> Run:
    from heedmap.huggingface import opening

    assert isinstance(settings.model, TransformerSettings)
    model, found = opening.open_classifier(settings.model)
    if settings.model.weights and found.weights != settings.model.weights:
        raise _changed(folder, settings.model.source)
    corpus = opening.corpus_for(model, settings.data)
    if corpus.fingerprint() != settings.fingerprint:
        raise _changed(folder, settings.data.source)
    about = {**opening.facts(model), **opening.notes(model)}
    return Run(settings, corpus, model, None, folder.path, about)


def _corpus(folder: RunFolder, settings: RunSettings, corpus: Corpus | None) -> Corpus:
    """The corpus of a run that was trained to the end."""
    if not folder.is_trained(settings):
        raise InputError(
            f"{folder.path}: not trained to the end; run `heedmap train` again to go on"
        )
    try:
        corpus = corpus or load_corpus(settings.data)
    except InputError as error:
        raise InputError(f"{error} (so say the settings of {folder.path})") from error
    if corpus.fingerprint() != settings.fingerprint:
        raise _changed(folder, settings.data.source)
    return corpus


def _changed(folder: RunFolder, source: str) -> InputError:
    return InputError(
        f"{folder.path}: {source} is not what it was when the run was made; bring it back, or make a new run"
    )


def own_run(
    settings: RunSettings,
    corpus: Corpus,
    model: AttentionClassifier,
    trained: Trained,
    folder: Path | None,
) -> Run:
    """A run of an attention model, with what a report says of it."""
    known = model.vocabulary
    test = corpus.splits["test"]
    tokens = [token for text in [*test.tokens, *(test.queries or [])] for token in text]
    facts: dict[str, object] = {
        "unknown_share": sum(token not in known for token in tokens) / len(tokens),
        "vectors": trained.vectors,
        "words": len(known.words),
        "training": trained.scores,
        "best_epoch": trained.best_epoch,
    }
    return Run(settings, corpus, model, trained, folder, facts)


def fine_tuned_run(
    settings: RunSettings,
    corpus: Corpus,
    model: "TransformerClassifier",
    trained: Trained,
    folder: Path | None,
) -> Run:
    """A run of a transformer that was fine-tuned here, with what a report says of it."""
    from heedmap.huggingface import opening

    corpus = opening.fitted(model, corpus)
    corpus = replace(corpus, left_out={**corpus.left_out, **trained.left_out})
    facts = {
        **opening.facts(model),
        "training": trained.scores,
        "best_epoch": trained.best_epoch,
    }
    return Run(settings, corpus, model, trained, folder, facts)


def save_run(run: Run, folder: RunFolder) -> Run:
    """Write settings, training scores and model; the model last: it says that the run is finished.

    Raises:
        InputError: the place cannot be written, or an attention model that was not trained here.
    """
    own = isinstance(run.model, AttentionClassifier)
    if own and run.training is None:
        raise InputError(
            f"{folder.path}: expected a model that heedmap trained, got one from elsewhere, which has no run "
            "folder; save the report alone, as .html"
        )
    folder.write_settings(run.settings)
    if run.training is not None:
        known = _identity(run.settings, weights_of(run), run.model.classes)
        folder.write_training(run.training, known)
    if isinstance(run.model, AttentionClassifier):
        words, classes = run.model.vocabulary.words, run.model.classes
        folder.write_model(words, classes, run.model.state_dict())
    elif run.training is not None and not folder.model.exists():
        from heedmap.huggingface import opening

        # A model that is in the folder is this one: it is for these very weights.
        opening.save_classifier(run.model, folder.model)
    folder.checkpoint.unlink(missing_ok=True)
    return replace(run, folder=folder.path)


def weights_of(run: Run) -> str:
    """A hash of a run's model."""
    if isinstance(run.model, AttentionClassifier):
        return _hash(run.model)
    return getattr(run.settings.model, "weights", "")


def weights_in(folder: RunFolder, settings: RunSettings) -> str | None:
    """The same of the model in a folder; None where there is none.

    Raises:
        InputError: it is damaged.
    """
    if isinstance(settings.model, TransformerSettings):
        return settings.model.weights
    if not folder.is_trained(settings):
        return None
    words, _, tensors = folder.read_model()
    return weights_hash(tensors, words)


def _hash(model: AttentionClassifier) -> str:
    return weights_hash(model.state_dict(), model.vocabulary.words)


def _identity(settings: RunSettings, weights: str, classes: Sequence[str]) -> str:
    return identity(settings.model_copy(update={"audit": None}), weights, classes)
