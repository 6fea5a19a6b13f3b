"""The state of a training after an epoch, in one safetensors file: nothing is ever unpickled."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from heedmap.errors import InputError
from heedmap.files.identity import PLACES
from heedmap.files.storage import write_atomically
from heedmap.settings import FineTuneSettings, TrainSettings
from heedmap.training.objective import Objective, Progress


def save_checkpoint(path: Path, progress: Progress, objective: Objective) -> None:
    """Write weights, optimiser state, random states and progress, atomically."""
    tensors = {f"model/{name}": value for name, value in objective.model.state_dict().items()}
    tensors |= {f"best/{name}": value for name, value in progress.best.items()}
    tensors |= {f"random/{name}": one.get_state() for name, one in objective.generators.items()}
    for index, state in objective.optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer/{index}/{name}": value for name, value in state.items()}
    about = {
        "epochs_done": progress.epochs_done,
        "scores": progress.scores,
        "best_epoch": progress.best_epoch,
        "threads": progress.threads,
        "settings": objective.made_with,
    }
    # safetensors refuses tensors that share memory: each gets its own.
    tensors = {name: value.detach().cpu().clone().contiguous() for name, value in tensors.items()}
    write_atomically(path, save(tensors, {"progress": json.dumps(about)}))


def load_checkpoint(path: Path, objective: Objective) -> Progress:
    """Put weights, optimiser state and random states back; nothing where there is no checkpoint.

    Raises:
        InputError: the file is damaged or belongs to another model, or to one that is trained otherwise.
    """
    if not path.exists():
        return Progress()
    model, optimizer = objective.model, objective.optimizer
    parts: dict[str, dict[str, Tensor]] = {"model": {}, "best": {}, "optimizer": {}, "random": {}}
    try:
        with safe_open(path, "pt") as file:
            about: dict[str, Any] = json.loads(file.metadata()["progress"])
            for name in file.keys():  # noqa: SIM118 - not a dictionary
                part, rest = name.split("/", 1)
                parts[part][rest] = file.get_tensor(name)
        model.load_state_dict(parts["model"])
        whole = optimizer.state_dict()
        whole["state"] = {}
        for name, value in parts["optimizer"].items():
            index, key = name.split("/")
            whole["state"].setdefault(int(index), {})[key] = value
        progress = Progress(
            about["epochs_done"],
            about["scores"],
            about["best_epoch"],
            parts["best"],
            about["threads"],
        )
        if (
            about["settings"] != objective.made_with
            or parts["random"].keys() != objective.generators.keys()
            or not (_fits(progress, model) and _moments_fit(whole["state"], optimizer))
        ):
            raise ValueError("of another training")
        optimizer.load_state_dict(whole)
        for name, generator in objective.generators.items():
            generator.set_state(parts["random"][name])
    except (SafetensorError, LookupError, RuntimeError, ValueError, TypeError, OSError) as error:
        raise InputError(
            f"{path}: damaged or of another model; delete it, or start again with --overwrite"
        ) from error
    return progress


def made_with(settings: TrainSettings | FineTuneSettings) -> dict[str, Any]:
    """The settings that a training must be resumed with: without the places, which may change."""
    values = settings.model_dump(mode="json")
    return {k: v for k, v in values.items() if f"train.{k}" not in PLACES}


def _fits(progress: Progress, model: torch.nn.Module) -> bool:
    """Whether the best weights are a model of this kind, and so are those that were put into `model`."""
    now = model.state_dict()
    return (
        type(progress.epochs_done) is int
        and 0 < progress.epochs_done == len(progress.scores) == len(progress.threads)
        and all(type(count) is int for count in progress.threads)
        and progress.best_epoch in range(progress.epochs_done)
        and all(scores.keys() & {"accuracy", "loss"} for scores in progress.scores)
        and all(type(score) is float for scores in progress.scores for score in scores.values())
        and {name: value.shape for name, value in progress.best.items()}
        == {name: value.shape for name, value in now.items()}
        and all(bool(value.isfinite().all()) for value in (*progress.best.values(), *now.values()))
    )


def _moments_fit(state: dict[int, dict[str, Tensor]], optimizer: torch.optim.Optimizer) -> bool:
    """Whether they are of the optimiser's parameters: PyTorch does not look at their shapes."""
    shapes = [p.shape for group in optimizer.param_groups for p in group["params"]]
    return (
        bool(state)
        and set(state) <= set(range(len(shapes)))
        and len({tuple(sorted(one)) for one in state.values()}) == 1
        and all(
            (value.ndim == 0 or value.shape == shapes[index]) and bool(value.isfinite().all())
            for index, one in state.items()
            for value in one.values()
        )
    )
