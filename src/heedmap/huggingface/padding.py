"""Pad batches so that a decoder reads the same row of a text as it does of the text alone.

A decoder classifies a text by its last token. If its configuration names a padding token, that is the last
token that differs from it; if it names none, the last position, and the model refuses several texts at once.
To declare a padding token would change what a text alone gives: a text that ends in this token would be read
one row earlier. So the configuration stays as it was loaded. A batch is padded with a token that none of its
texts has, and this token is declared during the pass alone.
"""

from contextlib import suppress
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel

from heedmap.errors import InputError


def of_text_model(config: PreTrainedConfig, name: str) -> Any:
    """Return a field of the model that reads texts, whose configuration may lie inside; None if it has none."""
    return getattr(config.get_text_config(), name, None)


def padding_token(model: PreTrainedModel) -> int | None:
    """Return the padding token of the model's configuration; None if there is none that it can look up."""
    token = of_text_model(model.config, "pad_token_id")
    size = vocabulary_size(model)
    usable = isinstance(token, int) and token >= 0 and (size is None or token < size)
    return token if usable else None


def vocabulary_size(model: PreTrainedModel) -> int | None:
    """Return how many tokens the model can look up; None if that is unknown.

    Raises:
        InputError: it looks no tokens up (CANINE), or not by a module (Perceiver).
    """
    with suppress(NotImplementedError):
        if isinstance(table := model.get_input_embeddings(), nn.Module):
            return table.num_embeddings if isinstance(table, nn.Embedding) else None
    raise InputError(
        f"expected a model that looks its tokens up in a table of embeddings; {type(model).__name__} has none; "
        "choose another model"
    )


def counts_from_no_padding(model: PreTrainedModel) -> bool:
    """Return whether the model counts positions from its padding token (as RoBERTa) but has no such token."""
    starts: list[Any] = [
        module.padding_idx
        for module in model.modules()
        if hasattr(module, "padding_idx") and hasattr(module, "position_embeddings")
    ]
    return any(start is None or start < 0 for start in starts)


def absent_token(ids: Tensor) -> int:
    """Return the smallest token number that does not occur."""
    present = set(torch.unique(ids).tolist())
    return next(token for token in range(len(present) + 1) if token not in present)


def declare_in_batches(model: PreTrainedModel) -> None:
    """Make a model without a padding token read batches; a text alone is read as before. Once is enough."""
    if padding_token(model) is None and not any(
        isinstance(hook, _Declaration) for hook in model._forward_pre_hooks.values()
    ):
        declaration = _Declaration()
        model.register_forward_pre_hook(declaration, with_kwargs=True)
        model.register_forward_hook(declaration.withdraw, always_call=True)


class _Declaration:
    """Declare a token that no text of a batch has as padding, for one pass. An object, so that it is copied."""

    def __init__(self) -> None:
        self.replaced: list[tuple[PreTrainedConfig, Any]] = []

    def __call__(
        self, model: PreTrainedModel, args: Any, inputs: dict[str, Any]
    ) -> tuple[Any, dict[str, Any]] | None:
        ids, mask = inputs.get("input_ids"), inputs.get("attention_mask")
        self.withdraw()
        if ids is None:
            return None
        real = torch.ones_like(ids, dtype=torch.bool) if mask is None else mask.bool()
        # A text alone is read as the model was loaded: without a declared padding token.
        if len(ids) == 1 and bool(real.all()):
            return None
        padding = torch.unique(ids[~real]).tolist()
        token = padding[0] if len(padding) == 1 else absent_token(ids[real])
        # A text that has this token itself would be read at an earlier row.
        if bool((ids[real] == token).any()):
            token = absent_token(ids[real])
        configs = {id(config): config for config in (model.config, model.config.get_text_config())}
        self.replaced = [(c, getattr(c, "pad_token_id", None)) for c in configs.values()]
        for config in configs.values():
            config.pad_token_id = token
        if padding in ([], [token]):
            return None
        return args, {**inputs, "input_ids": ids.masked_fill(~real, token)}

    def withdraw(self, *_: Any) -> None:
        """Restore the configuration."""
        while self.replaced:
            config, token = self.replaced.pop()
            config.pad_token_id = token
