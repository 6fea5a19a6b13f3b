"""Choose the device that a transformer runs on: the one that was asked for, or where its user has put it."""

import re

import torch
from torch import nn
from transformers import PreTrainedModel

from heedmap.errors import InputError
from heedmap.terminal.progress import note


def device_named(name: str) -> torch.device:
    """Return the device of a name: cpu, cuda or cuda:N.

    Raises:
        InputError: no name of a device, or no such device here; those that are here are named.
    """
    if not re.fullmatch(r"cpu|(cuda|mps)(:\d+)?", name):
        raise InputError(f"device {name!r}: expected cpu, cuda or cuda:N, such as cuda:1")
    present = devices()
    if name == "mps" or name.startswith("mps:"):
        raise InputError(
            f"device {name!r}: expected one of {', '.join(present)}; Apple's GPUs have no float64, in which "
            "audits compute; choose cpu"
        )
    chosen = "cuda:0" if name == "cuda" else name
    if chosen not in present:
        raise InputError(
            f"device {name!r}: expected one that is here: {', '.join(present)}{_why_no_gpu()}"
        )
    return torch.device(chosen)


def _why_no_gpu() -> str:
    if torch.version.cuda is None and torch.version.hip is None:
        return "; the PyTorch that is installed is a build for the CPU alone"
    return "" if torch.cuda.device_count() else "; PyTorch finds no GPU"


def devices() -> list[str]:
    """Return the names of the devices that a model can run on here."""
    return ["cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]


def device_of(model: PreTrainedModel) -> str:
    """Return the name of the device that a loaded model is on.

    Raises:
        InputError: it is on several.
    """
    names = sorted({str(parameter.device) for parameter in model.parameters()})
    if len(names) > 1:
        raise InputError(
            f"expected a model on one device, got one on {', '.join(names)}; say with device= where its copy "
            "is to run"
        )
    return names[0]


def placed(model: PreTrainedModel, name: str | None) -> PreTrainedModel:
    """Move a model to a device, and say so; without a name it stays on the CPU, where it was loaded.

    Raises:
        InputError: no such device here, or too little memory there.
    """
    if name is None:
        return model
    device = device_named(name)
    try:
        nn.Module.to(model, device)
    except torch.OutOfMemoryError as error:
        raise InputError(
            f"device {name!r}: expected memory for the model's weights, found too little; choose cpu"
        ) from error
    note(f"running on {described(device)}")
    return model


def described(device: torch.device) -> str:
    """Return a device's name, with the product's of a GPU."""
    return (
        f"{device} ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else str(device)
    )
