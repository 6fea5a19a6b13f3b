"""Make the value of a trained run, and save it in its folder."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from heedmap.data.corpus import Corpus
from heedmap.data.vocabulary import Vocabulary
from heedmap.errors import InputError
from heedmap.models.attention_classifier import AttentionClassifier
from heedmap.runs.folder import RunFolder
from heedmap.runs.model_files import write_dynamics, write_model, write_training
from heedmap.runs.run import Run
from heedmap.runs.stored_arrays import write_arrays
from heedmap.runs.stored_models import model_identity, weights_of
from heedmap.settings.models import ArraysSettings, PoolingSettings, TransformerSettings
from heedmap.settings.run import RunSettings
from heedmap.training.fit import Trained

if TYPE_CHECKING:
    from heedmap.huggingface.transformer_classifier import TransformerClassifier


def own_run(
    settings: RunSettings,
    corpus: Corpus,
    model: AttentionClassifier,
    trained: Trained,
    folder: Path | None,
) -> Run:
    """Make a run of an attention model, with its facts for the report."""
    of_words = (
        {} if corpus.vectors is not None else _facts_on_words(model.vocabulary, corpus, trained)
    )
    facts = {**of_words, "training": trained.scores, "best_epoch": trained.best_epoch}
    return Run(settings, corpus, model, trained, folder, facts)


def _facts_on_words(vocabulary: Vocabulary, corpus: Corpus, trained: Trained) -> dict[str, object]:
    tokens = [word for text in corpus.words("test") for word in text]
    return {
        "unknown_share": sum(token not in vocabulary for token in tokens) / len(tokens),
        "vectors": trained.vectors,
        "words": len(vocabulary.words),
    }


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
    if isinstance(run.settings.model, PoolingSettings):
        raise InputError(
            f"{folder.path}: a run of a module is not kept in a folder; save the report (.html), or export the "
            "tables"
        )
    if isinstance(run.model, AttentionClassifier) and run.training is None:
        raise InputError(
            f"{folder.path}: expected a model that heedmap trained, got one from elsewhere, which has no run "
            "folder; save the report alone, as .html"
        )
    if not folder.is_begun():
        folder.manifest.start()
    folder.write_settings(run.settings)
    folder.keep_texts(run.corpus.in_memory)
    if run.training is not None:
        weights = weights_of(run.model, run.settings)
        identity = model_identity(run.settings, weights, run.model.classes)
        write_training(folder, run.training, identity)
    if isinstance(run.settings.model, ArraysSettings):
        write_arrays(folder, run)
    elif not isinstance(run.settings.model, TransformerSettings):
        assert isinstance(run.model, AttentionClassifier)
        words, classes = run.model.vocabulary.words, run.model.classes
        write_model(folder, words, classes, run.model.state_dict())
    elif (run.training is not None or run.settings.model.in_memory) and not folder.model.exists():
        from heedmap.huggingface import opening

        # A model in the folder is this one: the folder was claimed for these weights.
        opening.save_classifier(run.model, folder.model)
    if (recorded := run.dynamics) is not None:
        write_dynamics(folder, recorded)
    folder.tidy()
    return replace(run, folder=folder.path, recorded=None)
