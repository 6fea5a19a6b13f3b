"""A transformer's word embeddings: looked up, and other vectors put in their place."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import PreTrainedModel


def look_up(model: PreTrainedModel, ids: Int[Tensor, "B L"]) -> Float[Tensor, "B L E"]:
    """What the model looks up for each position, before positions and norms."""
    found: Tensor = _tables(model)[-1](ids)
    return found


@contextmanager
def embedded_as(
    model: PreTrainedModel, ids: Int[Tensor, "B L"], embedded: Float[Tensor, "B L E"]
) -> Iterator[None]:
    """While it lasts, looking up `ids` gives `embedded`.

    Not `inputs_embeds`: a decoder then cannot see where its text ends. A decoder that reads the same
    text one place later gets it one place later.
    """

    def answer(module: Any, args: Any, found: Tensor) -> Tensor:
        asked = args[0]
        if asked.shape != ids.shape:
            return found
        if torch.equal(asked, ids):
            return embedded
        if torch.equal(asked[:, 1:], ids[:, :-1]):
            return torch.cat([found[:, :1], embedded[:, :-1]], dim=1)
        return found

    handles = [module.register_forward_hook(answer) for module in _tables(model)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _tables(model: PreTrainedModel) -> list[torch.nn.Module]:
    """All modules that look words up: an encoder and a decoder share one table, not one module."""
    table = model.get_input_embeddings()
    tied = [m for m in model.modules() if getattr(m, "weight", None) is table.weight]
    return [m for m in tied if isinstance(m, torch.nn.Embedding)] or [table]
