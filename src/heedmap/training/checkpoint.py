"""Where training stands after an epoch, in one safetensors file: nothing is ever unpickled."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from heedmap.errors import InputError
from heedmap.storage import write_atomically


@dataclass
class Progress:
    """Epochs done, the dev scores so far, and the best epoch's weights."""

    epochs_done: int = 0
    scores: list[dict[str, float]] = field(default_factory=list)
    best_epoch: int | None = None
    best: dict[str, Tensor] = field(default_factory=dict)


def save_checkpoint(
    path: Path, progress: Progress, model: torch.nn.Module, optimizer: torch.optim.Optimizer
) -> None:
    """Write weights, optimiser state and progress, atomically."""
    tensors = {f"model/{name}": value for name, value in model.state_dict().items()}
    tensors |= {f"best/{name}": value for name, value in progress.best.items()}
    for index, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer/{index}/{name}": value for name, value in state.items()}
    about = {
        "epochs_done": progress.epochs_done,
        "scores": progress.scores,
        "best_epoch": progress.best_epoch,
    }
    # safetensors refuses tensors that share memory: each gets its own.
    tensors = {name: value.detach().cpu().clone().contiguous() for name, value in tensors.items()}
    write_atomically(path, save(tensors, {"progress": json.dumps(about)}))


def load_checkpoint(
    path: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer
) -> Progress:
    """Put weights and optimiser state back; a fresh start where there is no checkpoint.

    Raises:
        InputError: the file is damaged or belongs to another model.
    """
    if not path.exists():
        return Progress()
    parts: dict[str, dict[str, Tensor]] = {"model": {}, "best": {}, "optimizer": {}}
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
        optimizer.load_state_dict(whole)
    except (SafetensorError, KeyError, RuntimeError, ValueError, TypeError) as error:
        raise InputError(
            f"{path}: damaged or of another model; delete it, or start again with --overwrite"
        ) from error
    return Progress(about["epochs_done"], about["scores"], about["best_epoch"], parts["best"])
