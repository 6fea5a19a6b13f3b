"""Open the same model from trainings with other seeds: does the answer of an audit hold there, too?"""

from collections.abc import Sequence

from heedmap.errors import InputError
from heedmap.models.trace import Model
from heedmap.runs.comparison import differences
from heedmap.runs.open import open_run
from heedmap.runs.run import Run
from heedmap.settings.training import FineTuneSettings, TrainSettings

# A transformer that was trained elsewhere differs in its source.
MAY_DIFFER = {"data.seed", "train.seed", "model.source", "model.weights", "fingerprint"}
SAME_MODEL = ("train.record_dynamics",)  # changes no weight


def other_seeds(run: Run, folders: Sequence[str]) -> dict[str, Model]:
    """Open the models of runs that differ from this one, and from each other, by their seeds.

    A model has the name of its seed, `seed_1`. Where seeds do not tell the models apart, as of models that were
    trained elsewhere, it has that of its place, `training_2`.

    Raises:
        InputError: no run there, or one that differs in anything else, or in nothing.
    """
    runs = [run]
    for folder in folders:
        opened = open_run(folder)
        for earlier in runs:
            _check(opened, folder, earlier)
        runs.append(opened)
    names = _names([opened.settings.train for opened in runs])
    return dict(zip(names[1:], (opened.model for opened in runs[1:]), strict=True))


def _names(trainings: Sequence[TrainSettings | FineTuneSettings | None]) -> list[str]:
    seeds = [None if training is None else training.seed for training in trainings]
    if None in seeds or len(set(seeds)) < len(seeds):
        return [f"training_{i + 1}" for i in range(len(seeds))]
    return [f"seed_{seed}" for seed in seeds]


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
