"""List what is under a folder: runs with their verdicts, calibrations, reproductions."""

from dataclasses import dataclass
from datetime import date
from pathlib import Path

from heedmap.errors import InputError
from heedmap.runs.conclusions import read_findings
from heedmap.runs.folder import SETTINGS, SWEEP, RunFolder
from heedmap.runs.model_files import is_trained
from heedmap.settings.models import ArraysSettings, PoolingSettings, TransformerSettings
from heedmap.settings.run import RunSettings

CALIBRATION, REPRODUCTION = "calibration.md", "result.md"  # each marks a folder as one


@dataclass(frozen=True)
class Entry:
    """A folder of results.

    `state`: audited, audit stopped, trained, training stopped, calibration, reproduction, sweep, or unreadable;
    `why` it is. `answer`: yes, no or cannot tell, of an audited run; `accuracy` on its audited texts.
    `changed`: the day of its latest result. `variants` are the names of the models that `heedmap retrain`
    trained there.
    """

    folder: Path
    state: str
    changed: date
    data: str | None = None
    model: str | None = None
    seed: int | None = None
    answer: str | None = None
    accuracy: float | None = None
    why: str | None = None
    variants: tuple[str, ...] = ()


def list_runs(root: Path) -> list[Path]:
    """Return the folders of runs, calibrations and reproductions under `root`, itself included."""
    marks = (SETTINGS, CALIBRATION, REPRODUCTION)
    return sorted({path.parent for mark in marks for path in root.glob(f"**/{mark}")})


def describe(folder: Path) -> Entry:
    """Return what is known of a folder without opening its model."""
    run = RunFolder(folder)
    if (folder / CALIBRATION).exists():
        return Entry(folder, "calibration", _day(folder / CALIBRATION))
    if run.is_reproduction():
        result = folder / REPRODUCTION
        state = "sweep" if (folder / SWEEP).exists() else "reproduction"
        return Entry(folder, state, _day(result if result.exists() else folder))
    try:
        settings = run.settings()
        findings = read_findings(run)
    except InputError as error:
        return Entry(folder, "unreadable", _day(folder / SETTINGS), why=str(error))
    common = (_day(folder / SETTINGS), settings.data.source, _model_name(settings), _seed(settings))
    variants = tuple(sorted({path.stem for path in run.retrained.glob("*/*.parquet")}))
    if settings.train is not None and not is_trained(run, settings):
        return Entry(folder, "training stopped", *common)
    if findings is None:
        state = "trained" if settings.audit is None else "audit stopped"
        return Entry(folder, state, *common, variants=variants)
    accuracy = {finding["key"]: finding["value"] for finding in findings["findings"]}.get("skill")
    return Entry(
        folder,
        "audited",
        _day(run.report),
        *common[1:],
        answer=findings["bottom_line"]["answer"],
        accuracy=accuracy,
        variants=variants,
    )


def _day(path: Path) -> date:
    return date.fromtimestamp(path.stat().st_mtime)


def _seed(settings: RunSettings) -> int | None:
    return None if settings.train is None else settings.train.seed


def _model_name(settings: RunSettings) -> str:
    """Name the model in a few words."""
    model = settings.model
    if isinstance(model, TransformerSettings):
        return f"{Path(model.source).name}, {model.view} of layer {model.layer}"
    if isinstance(model, ArraysSettings | PoolingSettings):
        return model.description
    name = f"{model.encoder} {model.score} {model.normaliser}"
    if settings.guide is not None:
        name = f"{model.encoder} {settings.guide.description}"
    return name if settings.variant is None else f"{name}, {settings.variant}"
