"""Tell whether a folder holds this very run, another one, or none: whether it may be resumed or replaced."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from heedmap.errors import InputError
from heedmap.files.storage import refuse_file
from heedmap.runs.comparison import differences, relocated
from heedmap.runs.folder import RUN_FILES, RunFolder
from heedmap.runs.model_files import is_trained
from heedmap.runs.run_paths import is_free
from heedmap.settings.run import RunSettings

R = TypeVar("R")


def holds_another(folder: RunFolder, settings: RunSettings, overwrite: bool) -> bool:
    """Return whether another run is there, to be cleared first; True only with `overwrite`. Write nothing.

    Raises:
        InputError: another run without `overwrite` (the differences are named), files that are not a run's or
            are not listed, or the new run's own input.
    """
    refuse_file(folder.path)
    if not folder.is_begun():
        if not is_free(folder.path, RUN_FILES):
            raise InputError(
                f"{folder.path}: holds files that are not a run's; choose another --out"
            )
        return False
    if overwrite:
        _check_input(folder, settings)
    changes = _changes(folder, settings, overwrite)
    folder.require_manifest()
    if changes and not overwrite:
        raise InputError(
            f"{folder.path}: holds a run with other settings ({'; '.join(changes)}); choose another --out, or "
            "pass --overwrite to replace it (in Python overwrite=True)"
        )
    if changes:
        folder.refuse_other_files()
    return bool(changes)


def _changes(folder: RunFolder, settings: RunSettings, overwrite: bool) -> list[str]:
    """Return the differences of the settings there; of unreadable ones only with `overwrite`."""
    try:
        return differences(RunSettings.read(folder.settings_file), settings)
    except InputError as error:
        if not folder.manifest.exists:
            raise InputError(
                f"{folder.path}: holds files that are not a run's (its settings.toml is another program's, or "
                "damaged); choose another --out"
            ) from error
        if overwrite:
            return ["unreadable"]
        raise


def _check_input(folder: RunFolder, settings: RunSettings) -> None:
    """Raise InputError if overwriting would delete the run's own input."""
    removed = [folder.path.resolve() / name for name in RUN_FILES]
    for part in (settings.data, settings.model, settings.train):
        for name in ("source", "base", "vectors"):
            path = getattr(part, name, None)
            if path is None:
                continue
            resolved = Path(path).resolve()
            if any(file in (resolved, *resolved.parents) for file in removed):
                raise InputError(
                    f"{path}: lies in {folder.path}, where --overwrite would delete it; choose another --out"
                )


def finished(
    folder: RunFolder,
    settings: RunSettings,
    overwrite: bool,
    load: Callable[[RunFolder, RunSettings], R],
) -> R | None:
    """Return the run with these settings if it is there and fully trained, else None.

    If texts or vectors have moved, the settings are updated.

    Raises:
        InputError: as `holds_another`, or the run is damaged and not to be overwritten.
    """
    if holds_another(folder, settings, overwrite) or not is_trained(folder, settings):
        return None
    try:
        run = load(folder, relocated(RunSettings.read(folder.settings_file), settings))
    except InputError:
        if not overwrite:
            raise
        return None
    relocate(folder, settings)
    folder.tidy()
    return run


def relocate(folder: RunFolder, settings: RunSettings) -> None:
    """Update the paths in a finished run's settings to those of `settings`."""
    stored = RunSettings.read(folder.settings_file)
    if (moved := relocated(stored, settings)) != stored:
        folder.write_settings(moved)
