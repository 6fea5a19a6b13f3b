"""Open the same model from trainings with other seeds: does the answer of an audit hold there, too?"""

from collections.abc import Sequence

from heedmap.errors import InputError
from heedmap.models.trace import Model
from heedmap.runs.comparison import differences
from heedmap.runs.open import open_run
from heedmap.runs.run import Run

# A transformer that was trained elsewhere differs in its source.
MAY_DIFFER = {"data.seed", "train.seed", "model.source", "model.weights", "fingerprint"}
SAME_MODEL = ("train.record_dynamics",)  # changes no weight


def other_seeds(run: Run, folders: Sequence[str]) -> list[Model]:
    """Open the models of runs that differ from this one, and from each other, by their seeds.

    Raises:
        InputError: no run there, or one that differs in anything else, or in nothing.
    """
    runs = [run]
    for folder in folders:
        opened = open_run(folder)
        for earlier in runs:
            _check(opened, folder, earlier)
        runs.append(opened)
    return [opened.model for opened in runs[1:]]


def _check(opened: Run, folder: str, run: Run) -> None:
    all_changes = differences(opened.settings, run.settings)
    changes = [text for text in all_changes if text.split(":")[0] not in SAME_MODEL]
    if unexpected := [text for text in changes if text.split(":")[0] not in MAY_DIFFER]:
        raise InputError(
            f"--other-seed {folder}: expected a run that differs from {run.name} by its seed alone, got "
            + "; ".join(unexpected)
        )
    if not changes:
        raise InputError(
            f"--other-seed {folder}: expected a run with another seed than {run.name}, got the same seed; "
            "train one with another --seed"
        )
