"""The state of a training after an epoch, in one safetensors file: nothing is ever unpickled."""

import json
import os
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from heedmap.errors import InputError
from heedmap.files import manifest
from heedmap.files.identity import PLACES
from heedmap.settings.training import FineTuneSettings, TrainSettings
from heedmap.training.objective import Objective, Progress


def save_checkpoint(path: Path, progress: Progress, objective: Objective) -> None:
    """Write weights, optimiser state, random states and progress, atomically."""
    tensors = {f"model/{name}": value for name, value in objective.model.state_dict().items()}
    tensors |= {f"best/{name}": value for name, value in progress.best.items()}
    tensors |= {
        f"random/{name}": generator.get_state() for name, generator in objective.generators.items()
    }
    for index, state in objective.optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer/{index}/{name}": value for name, value in state.items()}
    metadata = {
        "epochs_done": progress.epochs_done,
        "scores": progress.scores,
        "best_epoch": progress.best_epoch,
        "threads": progress.threads,
        "settings": objective.made_with,
    }
    # safetensors refuses tensors that share memory, so each is copied.
    tensors = {name: value.detach().cpu().clone().contiguous() for name, value in tensors.items()}
    manifest.write(path, save(tensors, {"progress": json.dumps(metadata)}))


def load_checkpoint(path: Path, objective: Objective) -> Progress:
    """Restore weights, optimiser state and random states, if there is a checkpoint.

    Raises:
        InputError: the file is damaged, or of another model or other training settings.
    """
    if not os.path.lexists(path):
        return Progress()
    model, optimizer = objective.model, objective.optimizer
    parts: dict[str, dict[str, Tensor]] = {"model": {}, "best": {}, "optimizer": {}, "random": {}}
    try:
        manifest.check(path)
        with safe_open(path, "pt") as file:
            metadata: dict[str, Any] = json.loads(file.metadata()["progress"])
            for name in file.keys():  # noqa: SIM118 - not a dictionary
                part, rest = name.split("/", 1)
                parts[part][rest] = file.get_tensor(name)
        model.load_state_dict(parts["model"])
        optimizer_state = optimizer.state_dict()
        optimizer_state["state"] = {}
        for name, value in parts["optimizer"].items():
            index, key = name.split("/")
            optimizer_state["state"].setdefault(int(index), {})[key] = value
        progress = Progress(
            metadata["epochs_done"],
            metadata["scores"],
            metadata["best_epoch"],
            parts["best"],
            metadata["threads"],
        )
        if (
            metadata["settings"] != objective.made_with
            or parts["random"].keys() != objective.generators.keys()
            or not (_fits(progress, model) and _moments_fit(optimizer_state["state"], optimizer))
        ):
            raise ValueError("of another training")
        optimizer.load_state_dict(optimizer_state)
        for name, generator in objective.generators.items():
            generator.set_state(parts["random"][name])
    except (SafetensorError, LookupError, RuntimeError, ValueError, TypeError, OSError) as error:
        raise InputError(
            f"{path}: damaged or of another model; delete it, or start again with --overwrite"
        ) from error
    return progress


def made_with(settings: TrainSettings | FineTuneSettings) -> dict[str, Any]:
    """Return the settings that a resumed training must share: all but paths, which may change."""
    values = settings.model_dump(mode="json")
    return {k: v for k, v in values.items() if f"train.{k}" not in PLACES}


def _fits(progress: Progress, model: torch.nn.Module) -> bool:
    """Return whether progress and weights are complete, finite and of this model's shapes."""
    weights = model.state_dict()
    return (
        type(progress.epochs_done) is int
        and 0 < progress.epochs_done == len(progress.scores) == len(progress.threads)
        and all(type(count) is int for count in progress.threads)
        and progress.best_epoch in range(progress.epochs_done)
        and all(scores.keys() & {"accuracy", "loss"} for scores in progress.scores)
        and all(type(score) is float for scores in progress.scores for score in scores.values())
        and {name: value.shape for name, value in progress.best.items()}
        == {name: value.shape for name, value in weights.items()}
        and all(
            bool(value.isfinite().all()) for value in (*progress.best.values(), *weights.values())
        )
    )


def _moments_fit(state: dict[int, dict[str, Tensor]], optimizer: torch.optim.Optimizer) -> bool:
    """Return whether the state fits the optimiser's parameters: PyTorch does not check shapes."""
    shapes = [p.shape for group in optimizer.param_groups for p in group["params"]]
    return (
        bool(state)
        and set(state) <= set(range(len(shapes)))
        and len({tuple(sorted(slots)) for slots in state.values()}) == 1
        and all(
            (value.ndim == 0 or value.shape == shapes[index]) and bool(value.isfinite().all())
            for index, slots in state.items()
            for value in slots.values()
        )
    )
