"""Open the model of a finished run without its texts, and check that it is the one that was trained there."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from heedmap.data.vocabulary import Vocabulary
from heedmap.errors import InputError
from heedmap.files.identity import identity, weights_hash
from heedmap.files.naming import found_from, is_there
from heedmap.models.attention_classifier import AttentionClassifier, TextClassifier
from heedmap.models.hierarchical_classifier import HierarchicalClassifier
from heedmap.models.pair_classifier import PairClassifier
from heedmap.models.per_class_classifier import PerClassClassifier
from heedmap.models.trace import Model
from heedmap.runs.folder import RunFolder
from heedmap.runs.model_files import check_model, damaged, is_trained, read_model, read_training
from heedmap.settings.models import ArraysSettings, ModelSettings, TransformerSettings
from heedmap.settings.run import RunSettings
from heedmap.training.fit import Trained
from heedmap.training.initialisation import build_model

if TYPE_CHECKING:
    from heedmap.huggingface.transformer_classifier import TransformerClassifier

Device = str | int | torch.device


def model_in(folder: RunFolder, device: str | None = None) -> tuple[RunSettings, Model]:
    """Read settings and model of a finished run, without its texts.

    Raises:
        InputError: as `open_run`, but nothing about the corpus.
    """
    settings = folder.settings(moved=True)
    model: Model
    if isinstance(settings.model, ArraysSettings):
        raise InputError(
            f"{folder.path}: expected a run of a model that reads texts, got arrays; call their model itself"
        )
    if not isinstance(settings.model, TransformerSettings):
        check_on_cpu(device)
        model, _ = attention_model(folder, settings)
    elif settings.train is not None:
        model, _ = fine_tuned_model(folder, settings, device)
    else:
        model = existing_model(folder, settings, device)
    folder.check_unchanged(settings)
    return settings, model


def device_name(device: Device | None) -> str | None:
    """Return a device as the command names it; of a GPU, as in transformers, the number will do.

    >>> device_name(0), device_name(torch.device("cpu")), device_name(None)
    ('cuda:0', 'cpu', None)
    """
    if device is None or isinstance(device, str):
        return device
    return str(device if isinstance(device, torch.device) else f"cuda:{device}")


def check_on_cpu(device: str | None) -> None:
    """Raise InputError if a model of heedmap's own is to run elsewhere than on the CPU."""
    if device not in (None, "cpu"):
        raise InputError(
            f"device {device!r}: expected cpu, on which models of heedmap's own run; leave it out"
        )


def attention_model(
    folder: RunFolder, settings: RunSettings
) -> tuple[AttentionClassifier, Trained]:
    """Read an attention model that was trained in a folder, and how it was trained.

    Raises:
        InputError: it is not fully trained, or damaged.
    """
    check_trained(folder, settings)
    trained, stored_identity = read_training(folder)
    words, classes, tensors = read_model(folder)
    kind: type[AttentionClassifier] = TextClassifier
    if settings.data.tokenizer == "sentences":
        kind = HierarchicalClassifier
    elif any(name.startswith("query.") for name in tensors):
        kind = PairClassifier
    elif isinstance(settings.model, ModelSettings) and settings.model.maps == "per-class":
        kind = PerClassClassifier
    try:
        if settings.guide is None:
            model = build_model(settings, Vocabulary(words), classes, kind)
        else:
            from heedmap.retraining.guides import guided_model  # imports questions

            model = guided_model(settings, Vocabulary(words), classes)
        model.load_state_dict(tensors)
        if not all(bool(tensor.isfinite().all()) for tensor in tensors.values()):
            raise ValueError("weights that are not finite")
        if stored_identity != model_identity(settings, _hash(model), classes):
            raise ValueError("not the model that was trained here with these settings")
    except (ValueError, RuntimeError) as error:
        raise damaged(folder, error) from error
    model.eval().requires_grad_(False)
    return model, trained


def fine_tuned_model(
    folder: RunFolder, settings: RunSettings, device: str | None = None
) -> "tuple[TransformerClassifier, Trained]":
    """Read a transformer that was fine-tuned in a folder, and how it was trained.

    Raises:
        InputError: it is not fully trained, damaged, or another one.
    """
    from heedmap.huggingface import opening

    assert isinstance(settings.model, TransformerSettings)
    check_trained(folder, settings)
    check_model(folder)  # by their hashes, before transformers reads the files
    model, opened_settings = opening.open_classifier(
        settings.model, folder.model, device, pairs=settings.data.query is not None
    )
    trained, stored_identity = read_training(folder)
    expected = model_identity(settings, settings.model.weights, model.classes)
    if opened_settings.weights != settings.model.weights or stored_identity != expected:
        raise another_model(folder, settings)
    return model, trained


def another_model(folder: RunFolder, settings: RunSettings) -> InputError:
    """Return the error for a folder whose transformer is not the one that was trained there."""
    assert isinstance(settings.model, TransformerSettings)
    return InputError(
        f"{folder.model}: not the model that was trained here; bring it back, or make the run again: "
        f"`heedmap train --model {settings.model.source} --data {settings.data.source} --out "
        f"{folder.path} --overwrite`"
    )


def existing_model(
    folder: RunFolder, settings: RunSettings, device: str | None = None
) -> "TransformerClassifier":
    """Open the transformer that a run was made with, which was trained elsewhere.

    Raises:
        InputError: it cannot be loaded, or has changed.
    """
    from heedmap.huggingface import opening

    assert isinstance(settings.model, TransformerSettings)
    source = settings.model.source
    source_here = found_from(folder.path, source)
    saved = None if source_here == source else Path(source_here)
    if settings.model.in_memory:
        saved = folder.model
    try:
        model, opened_settings = opening.open_classifier(
            settings.model, saved, device, pairs=settings.data.query is not None
        )
    except InputError as error:
        if saved is not None or is_there(source) or Path(source).is_absolute():
            raise
        raise InputError(
            f"{error} (so say the settings of {folder.path}: if {source} was a folder, go to where the run was "
            "made, or write where the model is now as its source in settings.toml)"
        ) from error
    if settings.model.weights and opened_settings.weights != settings.model.weights:
        raise changed(folder, settings.model.source)
    return model


def check_trained(folder: RunFolder, settings: RunSettings) -> None:
    """Raise InputError unless a folder holds a fully trained model."""
    if not is_trained(folder, settings):
        raise InputError(
            f"{folder.path}: not trained to the end; run `heedmap train` again to resume"
        )


def changed(folder: RunFolder, source: str) -> InputError:
    """Return the error for texts or a model that a run was not made with."""
    return InputError(
        f"{folder.path}: {source} is not what it was when the run was made; bring it back, or make a new run"
    )


def weights_of(model: Model, settings: RunSettings) -> str:
    """Return a hash of a run's model."""
    if isinstance(model, AttentionClassifier):
        return _hash(model)
    return getattr(settings.model, "weights", "")


def weights_in(folder: RunFolder, settings: RunSettings) -> str | None:
    """Return a hash of the model in a folder; None if there is none.

    Raises:
        InputError: it is damaged.
    """
    if isinstance(settings.model, TransformerSettings | ArraysSettings):
        return settings.model.weights
    if not is_trained(folder, settings):
        return None
    words, _, tensors = read_model(folder)
    return weights_hash(tensors, words)


def _hash(model: AttentionClassifier) -> str:
    return weights_hash(model.state_dict(), model.vocabulary.words)


def model_identity(settings: RunSettings, weights: str, classes: Sequence[str]) -> str:
    """Return a hash of a run's model, its texts and its settings without the audit's."""
    return identity(settings.model_copy(update={"audit": None}), weights, classes)
