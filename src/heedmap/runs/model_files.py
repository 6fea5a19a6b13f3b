"""Read and write a run's model: its words and weights, how it was trained, and what was recorded of that."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

import pyarrow as pa
from pydantic import TypeAdapter

from heedmap.errors import InputError
from heedmap.files.manifest import ChangedError
from heedmap.runs.folder import RunFolder
from heedmap.settings.models import TransformerSettings
from heedmap.settings.run import RunSettings
from heedmap.training.fit import Trained

if TYPE_CHECKING:
    from torch import Tensor


def is_trained(folder: RunFolder, settings: RunSettings) -> bool:
    """Return whether the model is there: it is written last."""
    transformer = isinstance(settings.model, TransformerSettings)
    model = folder.model if transformer else folder.weights
    names = folder.manifest.load().below([model.name])
    return bool(names) and all((folder.path / name).exists() for name in names)


def check_model(folder: RunFolder) -> None:
    """Check the files of a transformer that was fine-tuned here.

    Raises:
        InputError: one is missing or not as it was written.
    """
    try:
        for name in folder.manifest.load().below([folder.model.name]):
            folder.manifest.check(folder.path / name)
    except OSError as error:
        raise damaged(folder, error) from error


def write_training(folder: RunFolder, trained: Trained, identity: str) -> None:
    """Write a training's scores and the identity of its model."""
    content = {**asdict(trained), "identity": identity}
    folder.manifest.write(folder.training, json.dumps(content, indent=1))


def read_training(folder: RunFolder) -> tuple[Trained, str]:
    """Read the training's scores and the identity of its model.

    Raises:
        InputError: missing or damaged.
    """
    try:
        content = json.loads(folder.manifest.read(folder.training))
        trained = TypeAdapter(Trained).validate_python(content)
        identity = content["identity"]
        if not 0 <= trained.best_epoch < len(trained.scores) or not isinstance(identity, str):
            raise ValueError("not what a training writes")
    except ChangedError:
        raise
    except (OSError, ValueError, LookupError, RecursionError) as error:
        raise InputError(
            f"{folder.training}: damaged ({type(error).__name__}); make the run again with the command that "
            "made it and --overwrite"
        ) from error
    return trained, identity


def write_dynamics(folder: RunFolder, recorded: pa.Table) -> None:
    """Write what was recorded in a training that had no folder, or another."""
    from heedmap.files.tables import parquet

    folder.manifest.write(folder.dynamics / "0000.parquet", parquet(recorded))


def write_model(
    folder: RunFolder, words: list[str], classes: list[str], tensors: "Mapping[str, Tensor]"
) -> None:
    """Write words, classes and weights of an attention model. The weights come last: they mark the end."""
    from safetensors.torch import save

    vocabulary = {"classes": classes, "words": words}
    folder.manifest.write(folder.vocabulary, json.dumps(vocabulary, ensure_ascii=False))
    weights = save({name: tensor.detach().contiguous() for name, tensor in tensors.items()})
    folder.manifest.write(folder.weights, weights)


def read_model(folder: RunFolder) -> "tuple[list[str], list[str], dict[str, Tensor]]":
    """Read words, classes and weights of an attention model that was trained here.

    Raises:
        InputError: it is damaged.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        vocabulary = json.loads(folder.manifest.read(folder.vocabulary))
        words, classes = vocabulary["words"], vocabulary["classes"]
        if not all(isinstance(name, str) for name in (*words, *classes)):
            raise TypeError("expected words and classes")
        return words, classes, load(folder.manifest.read(folder.weights))
    except (
        OSError,
        ValueError,
        LookupError,
        TypeError,
        RecursionError,
        SafetensorError,
    ) as error:
        raise damaged(folder, error) from error


def damaged(folder: RunFolder, error: Exception) -> InputError:
    """Return the error for a model that cannot be read."""
    text = (str(error).splitlines() or [""])[0]
    return InputError(
        f"{folder.path}: the run is damaged ({type(error).__name__}: {text}); make it again with the command "
        "that made it and --overwrite"
    )
