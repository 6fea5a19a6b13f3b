"""The run folder: what stands in it, whose it is, how far it has come.

    runs/sst/
      settings.toml  vocabulary.json  model.safetensors  training.json
      tables/*.parquet   tables/about.json   findings.json   report.html

Every file is written whole or not at all, and everything after the tables is a function of the tables.
While a model is in training, checkpoint.safetensors stands in its place; a transformer's is the folder model/.
"""

import shutil
from pathlib import Path

from heedmap.errors import InputError
from heedmap.settings import (
    FineTuneSettings,
    RunSettings,
    TrainSettings,
    TransformerSettings,
)
from heedmap.storage import write_atomically

OWN_FILES = (
    "settings.toml",
    "vocabulary.json",
    "model.safetensors",
    "training.json",
    "checkpoint.safetensors",
    "test.json",
    "findings.json",
    "report.html",
)
OWN_FOLDERS = ("tables", "model")


def claim(folder: Path, settings: RunSettings, overwrite: bool) -> bool:
    """Make sure that `folder` is free for this run, or holds this very run.

    True: it holds another run, which is to be cleared before this one is written (only where `overwrite`).
    The same texts may be read from another place than before: the settings there then name the new one.

    Raises:
        InputError: it holds another run (the differences are named), or something else.
    """
    if folder.is_file():
        raise InputError(f"{folder}: expected a run folder, found a file; choose another --out")
    there = folder / "settings.toml"
    if not there.exists():
        if folder.is_dir() and any(folder.iterdir()):
            raise InputError(f"{folder}: holds files that are not a run's; choose another --out")
        return False
    try:
        found = RunSettings.read(there)
    except InputError:
        if overwrite:
            return True
        raise
    wanted = _completed(settings, found)
    moved = found.data.model_copy(update={"source": settings.data.source})
    if found.fingerprint == settings.fingerprint and moved != found.data:
        found = found.model_copy(update={"data": moved})
        if not found.difference(wanted):
            write_atomically(there, found.to_toml())
    changed = found.difference(wanted)
    if changed and not overwrite:
        raise InputError(
            f"{folder}: holds a run with other settings ({'; '.join(changed)}); choose another --out, "
            "or insist with --overwrite"
        )
    return bool(changed)


def _completed(settings: RunSettings, found: RunSettings) -> RunSettings:
    """The settings, with those taken from `found` that only the run itself can tell."""
    model, train = settings.model, settings.train
    if isinstance(train, TrainSettings) and train.vectors is not None:
        # A file of word vectors decides the size, once it is read.
        size = getattr(found.model, "embedding_size", 0)
        model = model.model_copy(update={"embedding_size": size})
        if isinstance(found.train, TrainSettings):
            train = _same_vectors(train, found.train)
    elif isinstance(train, FineTuneSettings) and not getattr(model, "weights", ""):
        # Weights have a hash once they are trained.
        model = model.model_copy(update={"weights": getattr(found.model, "weights", "")})
    return settings.model_copy(update={"audit": found.audit, "model": model, "train": train})


def _same_vectors(train: TrainSettings, found: TrainSettings) -> TrainSettings:
    """Vectors are the same by their hash, wherever they are; by their place where a run has no hash."""
    if found.vectors_hash is None:
        return train.model_copy(update={"vectors_hash": None})
    same = train.vectors_hash == found.vectors_hash
    return train.model_copy(update={"vectors": found.vectors} if same else {})


def clear(folder: Path) -> None:
    """Remove what a run wrote, and nothing else."""
    for name in OWN_FILES:
        (folder / name).unlink(missing_ok=True)
    for name in OWN_FOLDERS:
        shutil.rmtree(folder / name, ignore_errors=True)


def settings_of(folder: Path) -> RunSettings:
    """The settings of the run in a folder.

    Raises:
        InputError: no run there, or its settings cannot be read.
    """
    if not (folder / "settings.toml").exists():
        raise InputError(
            f"{folder}: no run there (no settings.toml); `heedmap list` shows the runs"
        )
    return RunSettings.read(folder / "settings.toml")


def list_runs(root: Path) -> list[Path]:
    """Run folders under `root`, itself included."""
    return sorted(path.parent for path in root.glob("**/settings.toml"))


def describe(folder: Path) -> tuple[str, str, str, str, str]:
    """A line of `heedmap list`: folder, data, model, seed and how far the run has come."""
    try:
        settings = RunSettings.read(folder / "settings.toml")
    except InputError as error:
        return str(folder), "", "", "", f"unreadable ({error})"
    state = "audited" if (folder / "report.html").exists() else "trained"
    weights = (folder / "model.safetensors").exists() or (folder / "model" / "config.json").exists()
    if settings.train is not None and not weights:
        state = "training stopped"
    elif settings.audit is not None and state == "trained":
        state = "audit stopped"
    return (
        str(folder),
        settings.data.source,
        model_name(settings),
        "" if settings.train is None else str(settings.train.seed),
        state,
    )


def model_name(settings: RunSettings) -> str:
    """The model in a few words."""
    model = settings.model
    if isinstance(model, TransformerSettings):
        return f"{Path(model.source).name}, {model.view} of layer {model.layer}"
    return f"{model.encoder} {model.score} {model.normaliser}"
