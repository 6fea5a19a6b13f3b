"""Keep a variant of a run as a run in a folder of its own, which every command opens."""

from pathlib import Path

from heedmap.runs.folder import RunFolder
from heedmap.runs.occupancy import finished
from heedmap.runs.open import open_own
from heedmap.runs.run import Run
from heedmap.runs.run_paths import Out
from heedmap.runs.saving import save_run


def folder_of(run: Path, variant: str) -> Path:
    """Return the folder that a variant is kept in by default: beside the run's."""
    return run.with_name(f"{run.name}-{variant}")


def keep_variant(run: Run, out: Out, overwrite: bool) -> Run:
    """Save a variant as a run in a folder of its own, unless it is there; return it with its folder.

    Raises:
        InputError: the folder holds another run, without `overwrite`, or cannot be written.
    """
    with RunFolder.locked(out, run.settings) as folder:
        kept = finished(folder, run.settings, overwrite, lambda f, s: open_own(f, s, run.corpus))
        if kept is not None:
            return kept
        folder.begin(run.settings, resume=False)
        return save_run(run, folder)
