"""A transformer's word embeddings: looked up, and other vectors put in their place."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor
from transformers import PreTrainedModel


def look_up(model: PreTrainedModel, ids: Shaped[Tensor, "B *L"]) -> Float[Tensor, "B N E"]:
    """What the model looks up for each position, before positions and norms.

    `ids` are (B, N), or the pixels of which a model of pictures makes its positions.
    """
    found: Tensor = _tables(model)[-1](ids)
    return found


@contextmanager
def embedded_as(
    model: PreTrainedModel, ids: Shaped[Tensor, "B *L"], embedded: Float[Tensor, "B N E"]
) -> Iterator[None]:
    """While it lasts, looking up `ids` gives `embedded`.

    Not `inputs_embeds`: a decoder then cannot see where its text ends. Who reads the same text one place
    later (a decoder beside an encoder) gets it one place later; who reads it turned over, position by
    position (XLNet), gets it turned over.
    """

    def answer(module: Any, args: Any, found: Tensor) -> Tensor:
        asked = args[0]
        if torch.equal(asked, ids):
            return embedded
        if asked.shape == ids.shape and torch.equal(asked[:, 1:], ids[:, :-1]):
            return torch.cat([found[:, :1], embedded[:, :-1]], dim=1)
        if torch.equal(asked, ids.transpose(0, 1)):
            return embedded.transpose(0, 1)
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
    found = [m for m in model.modules() if isinstance(m, torch.nn.Embedding)]
    return [m for m in found if m.weight is getattr(table, "weight", None)] or [table]
