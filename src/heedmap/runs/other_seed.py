"""The same model from trainings with other seeds: does the answer of an audit hold there, too?"""

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
        other = open_run(folder)
        for one in runs:
            _check(other, folder, one)
        runs.append(other)
    return [other.model for other in runs[1:]]


def _check(other: Run, folder: str, run: Run) -> None:
    found = differences(other.settings, run.settings)
    differ = [text for text in found if text.split(":")[0] not in SAME_MODEL]
    if wrong := [text for text in differ if text.split(":")[0] not in MAY_DIFFER]:
        raise InputError(
            f"--other-seed {folder}: expected a run that differs from {run.name} by its seed alone, got "
            + "; ".join(wrong)
        )
    if not differ:
        raise InputError(
            f"--other-seed {folder}: expected a run with another seed than {run.name}, got the same seed; "
            "train one with another --seed"
        )
