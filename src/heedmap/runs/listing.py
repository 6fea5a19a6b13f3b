"""`heedmap list`: the run folders under a folder, and the state of each run."""

from pathlib import Path

from heedmap.errors import InputError
from heedmap.runs.folder import SETTINGS, RunFolder
from heedmap.settings import RunSettings, TransformerSettings


def list_runs(root: Path) -> list[Path]:
    """Return the run folders under `root`, itself included."""
    return sorted(path.parent for path in root.glob(f"**/{SETTINGS}"))


def describe(folder: Path) -> tuple[str, str, str, str, str]:
    """Return a line of `heedmap list`: folder, data, model, seed and state."""
    run = RunFolder(folder)
    if run.is_reproduction():
        return str(folder), "", "", "", "reproduction"
    try:
        settings = run.settings()
    except InputError as error:
        return str(folder), "", "", "", f"unreadable ({error})"
    if settings.train is not None and not run.is_trained(settings):
        state = "training stopped"
    elif run.report.exists():
        state = "audited"
    else:
        state = "trained" if settings.audit is None else "audit stopped"
    return (
        str(folder),
        settings.data.source,
        _model_name(settings),
        "" if settings.train is None else str(settings.train.seed),
        state,
    )


def _model_name(settings: RunSettings) -> str:
    """Name the model in a few words."""
    model = settings.model
    if isinstance(model, TransformerSettings):
        return f"{Path(model.source).name}, {model.view} of layer {model.layer}"
    return f"{model.encoder} {model.score} {model.normaliser}"
