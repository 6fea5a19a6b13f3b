"""Open a run from its folder, make one from an existing transformer, and save runs.

A run's settings name the source of its texts, from which they are read again, and a hash to check them; texts
that came from memory are in its folder. An
existing transformer stays where it is, and the settings hold a hash of its weights; one that heedmap
fine-tuned is kept in the run's folder `model/`.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedmap.data.corpus import Corpus
from heedmap.data.in_memory import Source, Values, source_of
from heedmap.data.load import load_corpus
from heedmap.data.vocabulary import Vocabulary
from heedmap.errors import InputError
from heedmap.files.identity import identity, weights_hash
from heedmap.files.naming import MODEL, name_of
from heedmap.keywords import split, takes
from heedmap.models.attention_classifier import AttentionClassifier, TextClassifier
from heedmap.models.hierarchical_classifier import HierarchicalClassifier
from heedmap.models.pair_classifier import PairClassifier
from heedmap.models.trace import Model
from heedmap.runs.folder import RunFolder
from heedmap.runs.places import Out
from heedmap.runs.run import Run
from heedmap.settings import RAW_TEXTS, DataSettings, RunSettings, TransformerSettings
from heedmap.terminal.progress import working
from heedmap.training.fit import Trained
from heedmap.training.initialisation import build_model, kind_for

if TYPE_CHECKING:
    from heedmap.huggingface.from_memory import Loaded
    from heedmap.huggingface.transformer_classifier import TransformerClassifier

UNLIMITED = 1_000_000  # words; the model's own limit applies


def open_run(folder: str | Path) -> Run:
    """Open a finished run from its folder; the corpus is read again from its source.

    Raises:
        InputError: no run there, not fully trained, damaged, or its corpus or its model has changed.
    """
    run_folder = RunFolder(folder)
    settings = run_folder.settings(moved=True)
    if not isinstance(settings.model, TransformerSettings):
        run = open_own(run_folder, settings)
    elif settings.train is not None:
        run = open_fine_tuned(run_folder, settings)
    else:
        run = _open_existing(run_folder, settings)
    run_folder.check_unchanged(settings)
    return run


@takes(RAW_TEXTS, TransformerSettings)
def open_model(
    source: "str | Path | Loaded",
    data: Source,
    *,
    labels: Values | None = None,
    out: Out | None = None,
    overwrite: bool = False,
    progress: bool = True,
    **settings: Any,
) -> Run:
    """A Hugging Face sequence classifier and the texts to put it on trial with: a run to `heedmap.audit`.

    Args:
        source: the model's folder, or its name on the Hub; or what transformers has loaded: (model, tokenizer),
            or a pipeline of text classification. These stay as they are: a copy is put on trial, which `out`
            keeps.
        data: as for `heedmap.load`. Its test split is used; a file without splits is used whole. It may do
            without labels: then it cannot be told whether the model predicts well.
        labels: of a list of texts, one for each, if they are known.
        {options}
        out: a run folder to keep the run in.
        overwrite: replace a different run in `out` instead of refusing.
        progress: False to show no progress bar (there is one in a terminal or a notebook, and lines in a log).

    Raises:
        InputError: what was expected, what came and what to do.
        TypeError: a model or data of another kind, or an option that there is not.
    """
    from heedmap.huggingface import opening
    from heedmap.huggingface.from_memory import open_loaded
    from heedmap.huggingface.loading import outputs_of

    if isinstance(data, Corpus):
        raise InputError(
            "expected as data what heedmap.load reads (a file, a folder, a Hub name, a frame ...), got a "
            "Corpus: a transformer reads the raw text"
        )
    name, given = source_of(data, labels, training=False)
    text_options, model_options = split("open_model", settings, RAW_TEXTS, TransformerSettings)
    data_settings = DataSettings.of(
        source=name,
        raw=True,
        training=False,
        **{"max_tokens": UNLIMITED, **text_options},
    )
    with working("opening the model", progress, share=0.0):
        loaded = open_loaded(source, model_options)
        if loaded is None:
            wanted = TransformerSettings.of(source=name_of(source, MODEL), **model_options)
            # The texts come first: what is wrong with them is said before any weights are loaded.
            texts = load_corpus(data_settings, outputs_of(wanted.source), given)
            loaded = opening.open_classifier(wanted)
        else:
            texts = load_corpus(data_settings, loaded[0].classes, given)
        model, model_settings = loaded
        corpus = opening.fitted(model, texts)
        run_settings = RunSettings(
            fingerprint=corpus.fingerprint(), data=corpus.settings, model=model_settings
        )
        about = {**opening.facts(model), **opening.notes(model)}
    corpus.warn()
    run = Run(run_settings, corpus, model, None, None, about)
    if out is None:
        return run
    with RunFolder.locked(out, run_settings) as folder:
        if folder.holds_another(run_settings, overwrite):
            folder.begin(run_settings, resume=False)
        elif folder.is_begun():
            folder.relocate(run_settings)
        else:
            folder.begin(run_settings, resume=False)
        folder.keep_texts(given)
        if model_settings.in_memory and not folder.model.exists():
            opening.save_classifier(model, folder.model)
        folder.tidy()
        return replace(run, folder=folder.path)


def model_in(folder: RunFolder) -> tuple[RunSettings, Model]:
    """Read settings and model of a finished run, without its texts.

    Raises:
        InputError: as `open_run`, but nothing about the corpus.
    """
    settings = folder.settings(moved=True)
    model: Model
    if not isinstance(settings.model, TransformerSettings):
        model, _ = _own_model(folder, settings)
    elif settings.train is not None:
        model, _ = _fine_tuned_model(folder, settings)
    else:
        model = _existing_model(folder, settings)
    folder.check_unchanged(settings)
    return settings, model


def open_own(folder: RunFolder, settings: RunSettings, corpus: Corpus | None = None) -> Run:
    """Open the run of an attention model trained in a folder; `corpus` if it is loaded already.

    Raises:
        InputError: as `open_run`.
    """
    model, trained = _own_model(folder, settings)
    corpus = corpus or _corpus(folder, settings)
    if (model.classes, type(model)) != (corpus.classes, kind_for(corpus)):
        raise folder.damaged(
            ValueError(f"expected the classes {corpus.classes}, got {model.classes}")
        )
    return own_run(settings, corpus, model, trained, folder.path)


def _own_model(folder: RunFolder, settings: RunSettings) -> tuple[AttentionClassifier, Trained]:
    _check_trained(folder, settings)
    trained, stored_identity = folder.training()
    words, classes, tensors = folder.read_model()
    kind: type[AttentionClassifier] = TextClassifier
    if settings.data.tokenizer == "sentences":
        kind = HierarchicalClassifier
    elif any(name.startswith("query.") for name in tensors):
        kind = PairClassifier
    try:
        model = build_model(settings, Vocabulary(words), classes, kind)
        model.load_state_dict(tensors)
        if not all(bool(tensor.isfinite().all()) for tensor in tensors.values()):
            raise ValueError("weights that are not finite")
        if stored_identity not in (None, _identity(settings, _hash(model), classes)):
            raise ValueError("not the model that was trained here with these settings")
    except (ValueError, RuntimeError) as error:
        raise folder.damaged(error) from error
    model.eval().requires_grad_(False)
    return model, trained


def open_fine_tuned(folder: RunFolder, settings: RunSettings, corpus: Corpus | None = None) -> Run:
    """Open the run of a transformer fine-tuned in a folder; `corpus` if it is loaded already.

    Raises:
        InputError: as `open_run`.
    """
    _check_trained(folder, settings)
    corpus = corpus or _corpus(folder, settings)
    model, trained = _fine_tuned_model(folder, settings)
    if model.classes != corpus.classes:
        raise _another_model(folder, settings)
    return fine_tuned_run(settings, corpus, model, trained, folder.path)


def _fine_tuned_model(
    folder: RunFolder, settings: RunSettings
) -> "tuple[TransformerClassifier, Trained]":
    from heedmap.huggingface import opening

    assert isinstance(settings.model, TransformerSettings)
    _check_trained(folder, settings)
    folder.check_model()
    model, found = opening.open_classifier(settings.model, folder.model)
    trained, stored_identity = folder.training()
    expected = _identity(settings, settings.model.weights, model.classes)
    if found.weights != settings.model.weights or stored_identity not in (None, expected):
        raise _another_model(folder, settings)
    return model, trained


def _another_model(folder: RunFolder, settings: RunSettings) -> InputError:
    assert isinstance(settings.model, TransformerSettings)
    return InputError(
        f"{folder.model}: not the model that was trained here; bring it back, or make the run again: "
        f"`heedmap train --model {settings.model.source} --data {settings.data.source} --out "
        f"{folder.path} --overwrite`"
    )


def _open_existing(folder: RunFolder, settings: RunSettings) -> Run:
    from heedmap.huggingface import opening

    model = _existing_model(folder, settings)
    corpus = opening.corpus_for(model, settings.data, folder.kept_texts())
    if corpus.fingerprint() != settings.fingerprint:
        raise _changed(folder, settings.data.source)
    about = {**opening.facts(model), **opening.notes(model)}
    return Run(settings, corpus, model, None, folder.path, about)


def _existing_model(folder: RunFolder, settings: RunSettings) -> "TransformerClassifier":
    from heedmap.huggingface import opening

    assert isinstance(settings.model, TransformerSettings)
    kept = folder.model if settings.model.in_memory else None
    model, found = opening.open_classifier(settings.model, kept)
    if settings.model.weights and found.weights != settings.model.weights:
        raise _changed(folder, settings.model.source)
    return model


def _check_trained(folder: RunFolder, settings: RunSettings) -> None:
    if not folder.is_trained(settings):
        raise InputError(
            f"{folder.path}: not trained to the end; run `heedmap train` again to go on"
        )


def _corpus(folder: RunFolder, settings: RunSettings) -> Corpus:
    """Load and check the corpus of a run."""
    try:
        corpus = load_corpus(settings.data, in_memory=folder.kept_texts())
    except InputError as error:
        raise InputError(
            f"{error} (so say the settings of {folder.path}: if the texts have moved, write where they are "
            f"now as the source in its settings.toml)"
        ) from error
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
    """Make a run of an attention model, with its facts for the report."""
    vocabulary = model.vocabulary
    tokens = [word for text in corpus.words("test") for word in text]
    facts: dict[str, object] = {
        "unknown_share": sum(token not in vocabulary for token in tokens) / len(tokens),
        "vectors": trained.vectors,
        "words": len(vocabulary.words),
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
    """Make a run of a transformer fine-tuned here, with its facts for the report."""
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
    """Write settings, training scores and model. The model comes last: it marks the run as finished.

    Raises:
        InputError: the folder cannot be written, or an attention model was not trained here.
    """
    own = isinstance(run.model, AttentionClassifier)
    if own and run.training is None:
        raise InputError(
            f"{folder.path}: expected a model that heedmap trained, got one from elsewhere, which has no run "
            "folder; save the report alone, as .html"
        )
    if not folder.is_begun():
        folder.manifest.start()
    folder.write_settings(run.settings)
    folder.keep_texts(run.corpus.in_memory)
    if run.training is not None:
        model_identity = _identity(run.settings, weights_of(run), run.model.classes)
        folder.write_training(run.training, model_identity)
    if not isinstance(run.settings.model, TransformerSettings):
        assert isinstance(run.model, AttentionClassifier)
        words, classes = run.model.vocabulary.words, run.model.classes
        folder.write_model(words, classes, run.model.state_dict())
    elif (run.training is not None or run.settings.model.in_memory) and not folder.model.exists():
        from heedmap.huggingface import opening

        # A model in the folder is this one: the folder was claimed for these weights.
        opening.save_classifier(run.model, folder.model)
    if (recorded := run.dynamics) is not None:
        folder.write_dynamics(recorded)
    folder.tidy()
    return replace(run, folder=folder.path, recorded=None)


def weights_of(run: Run) -> str:
    """Return a hash of a run's model."""
    if isinstance(run.model, AttentionClassifier):
        return _hash(run.model)
    return getattr(run.settings.model, "weights", "")


def weights_in(folder: RunFolder, settings: RunSettings) -> str | None:
    """Return a hash of the model in a folder; None if there is none.

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
