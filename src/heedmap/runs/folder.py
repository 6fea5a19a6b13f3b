"""The run folder: what stands in it, whose it is, how far it has come.

    runs/sst/
      settings.toml  vocabulary.json  model.safetensors  training.json
      tables/*.parquet   tables/about.json   tables/manifest.json   findings.json   report.html

Every file is written whole or not at all, and everything after the tables is a function of the tables.
While a model is in training, checkpoint.safetensors stands in its place; a transformer's is the folder model/.
One process at a time writes in a folder (`held`). The settings come first and go last: whatever a killed one
leaves, it is known whose it is.
"""

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar

from heedmap.errors import InputError
from heedmap.files.storage import leftovers, refuse_file, remove, write_atomically
from heedmap.runs.places import Out, is_free, taken
from heedmap.settings import (
    FineTuneSettings,
    RunSettings,
    TrainSettings,
    TransformerSettings,
)

CHECKPOINT = "checkpoint.safetensors"
SETTINGS = "settings.toml"
# In the order in which they go: first what says that a run is finished, last whose it is.
OWN = (
    "model.safetensors",
    "model",
    "report.html",
    "findings.json",
    "tables",
    "test.json",
    "training.json",
    "vocabulary.json",
    CHECKPOINT,
    SETTINGS,
)
R = TypeVar("R")


def held(out: Out, settings: RunSettings) -> AbstractContextManager[Path]:
    """The folder for a run, held for writing (see `places.taken`)."""

    def mine(folder: Path) -> bool:
        try:
            return not _changes(RunSettings.read(folder / SETTINGS), settings)
        except InputError:
            return False

    return taken(out, mine, OWN)


def claim(folder: Path, settings: RunSettings, overwrite: bool) -> bool:
    """Make sure that `folder` is free for this run, or holds this very run; nothing is written.

    True: it holds another run, which is to be cleared before this one is written (only where `overwrite`).

    Raises:
        InputError: it holds another run (the differences are named), or something else, or what the new run
            is to be made of.
    """
    refuse_file(folder)
    there = folder / SETTINGS
    if not there.exists():
        if not is_free(folder, OWN):
            raise InputError(f"{folder}: holds files that are not a run's; choose another --out")
        return False
    if overwrite:
        _refuse_own(folder, settings)
    try:
        found = RunSettings.read(there)
    except InputError:
        if overwrite:
            return True
        raise
    changed = _changes(found, settings)
    if changed and not overwrite:
        raise InputError(
            f"{folder}: holds a run with other settings ({'; '.join(changed)}); choose another --out, "
            "or insist with --overwrite"
        )
    return bool(changed)


def _changes(found: RunSettings, settings: RunSettings) -> list[str]:
    """In what a run differs from one that stands."""
    found = relocated(found, settings)
    return found.difference(_completed(settings, found))


def move(folder: Path, settings: RunSettings) -> None:
    """Let the settings of a run that stands name the places of `settings`, if they are others."""
    found = RunSettings.read(folder / SETTINGS)
    if (moved := relocated(found, settings)) != found:
        write_atomically(folder / SETTINGS, moved.to_toml())


def standing(
    folder: Path | None,
    settings: RunSettings,
    overwrite: bool,
    mark: str,
    load: Callable[[Path, RunSettings], R],
) -> tuple[R | None, bool]:
    """The finished run that stands in `folder`, None where there is none; and whether all is begun anew.

    `mark` is what is there only when a run is finished. Anew: nothing of an unfinished or damaged run is
    gone on with, as `overwrite` asks. The same texts and vectors may be read from another place than
    before: the settings there then name it.

    Raises:
        InputError: as `claim`; or the run is damaged.
    """
    if folder is None:
        return None, False
    if not claim(folder, settings, overwrite) and (folder / mark).exists():
        try:
            found = relocated(RunSettings.read(folder / SETTINGS), settings)
            run = load(folder, found)
        except InputError:
            if not overwrite:
                raise
        else:
            move(folder, settings)
            tidy(folder)
            return run, False
    return None, overwrite


def relocated(found: RunSettings, settings: RunSettings) -> RunSettings:
    """`found` with the places of `settings`, where what is there is the same by its hash."""
    if found.fingerprint == settings.fingerprint:
        data = found.data.model_copy(update={"source": settings.data.source})
        found = found.model_copy(update={"data": data})
    old, new = found.train, settings.train
    if (
        isinstance(old, TrainSettings)
        and isinstance(new, TrainSettings)
        and None is not old.vectors_hash == new.vectors_hash
    ):
        found = found.model_copy(update={"train": old.model_copy(update={"vectors": new.vectors})})
    return found


def _completed(settings: RunSettings, found: RunSettings) -> RunSettings:
    """The settings, with those taken from `found` that only the run itself can tell."""
    model, train = settings.model, settings.train
    if isinstance(train, TrainSettings) and train.vectors is not None:
        # A file of word vectors decides the size, once it is read.
        size = getattr(found.model, "embedding_size", 0)
        model = model.model_copy(update={"embedding_size": size})
        if isinstance(found.train, TrainSettings) and found.train.vectors_hash is None:
            train = train.model_copy(update={"vectors_hash": None})  # from before it was kept
    elif isinstance(train, FineTuneSettings) and not getattr(model, "weights", ""):
        # Weights have a hash once they are trained.
        model = model.model_copy(update={"weights": getattr(found.model, "weights", "")})
    return settings.model_copy(update={"audit": found.audit, "model": model, "train": train})


def _refuse_own(folder: Path, settings: RunSettings) -> None:
    """Raises InputError where a run is to be made of what it would delete."""
    own = [folder.resolve() / name for name in OWN]
    for part in (settings.data, settings.model, settings.train):
        for name in ("source", "base", "vectors"):
            path = getattr(part, name, None)
            if path is not None and any(
                one in (p := Path(path).resolve(), *p.parents) for one in own
            ):
                raise InputError(
                    f"{path}: lies in {folder}, where --overwrite would delete it; choose another --out"
                )


def clear(folder: Path, keep: Collection[str] = ()) -> None:
    """Remove what a run wrote, and nothing else; not the files in `keep`."""
    for name in OWN:
        if name not in keep:
            remove(folder / name)
    for path in leftovers(folder, OWN):
        remove(path)


def tidy(folder: Path) -> None:
    """Remove what killed processes left beside a finished run."""
    for path in (*leftovers(folder, OWN), *leftovers(folder / "tables"), folder / CHECKPOINT):
        remove(path)


def settings_of(folder: Path) -> RunSettings:
    """The settings of the run in a folder.

    Raises:
        InputError: no run there, or its settings cannot be read.
    """
    if not (folder / SETTINGS).exists():
        raise InputError(
            f"{folder}: no run there (no settings.toml); `heedmap list` shows the runs"
        )
    return RunSettings.read(folder / SETTINGS)


def still(folder: Path, settings: RunSettings) -> None:
    """Raises InputError where the run that was just read has been replaced meanwhile."""
    if settings_of(folder) != settings:
        raise InputError(f"{folder}: was written anew while it was read; try again")


def list_runs(root: Path) -> list[Path]:
    """Run folders under `root`, itself included."""
    return sorted(path.parent for path in root.glob(f"**/{SETTINGS}"))


def describe(folder: Path) -> tuple[str, str, str, str, str]:
    """A line of `heedmap list`: folder, data, model, seed and how far the run has come."""
    try:
        settings = RunSettings.read(folder / SETTINGS)
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
