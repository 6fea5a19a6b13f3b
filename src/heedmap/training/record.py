"""training.json: what a finished training says of itself, and which model and settings it is of."""

import json
from dataclasses import asdict
from pathlib import Path

from pydantic import TypeAdapter

from heedmap.errors import InputError
from heedmap.files.storage import write_atomically
from heedmap.training.fit import Trained

FILE = "training.json"


def write_training(folder: Path, trained: Trained, identity: str) -> None:
    """Keep what is to be said of a training that gave a model of this identity."""
    content = {**asdict(trained), "identity": identity}
    write_atomically(folder / FILE, json.dumps(content, indent=1))


def read_training(folder: Path) -> tuple[Trained, str | None]:
    """What was kept, and the model's identity: None in runs from before it was kept.

    Raises:
        InputError: nothing there, or damaged.
    """
    try:
        about = json.loads((folder / FILE).read_text(encoding="utf-8"))
        trained = TypeAdapter(Trained).validate_python(about)
        known = about.get("identity")
        if not 0 <= trained.best_epoch < len(trained.scores) or not isinstance(known, str | None):
            raise ValueError("not what a training writes")
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{folder / FILE}: damaged ({type(error).__name__}); make the run again with the command that "
            "made it and --overwrite"
        ) from error
    return trained, known
