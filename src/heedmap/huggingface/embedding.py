"""Look up a transformer's word embeddings, and replace them by other vectors."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook
from torch.utils.hooks import RemovableHandle
from transformers import PreTrainedModel

from heedmap.errors import InputError


def layer_parameters(model: PreTrainedModel) -> int:
    """Count the parameters of a model without those of the word embeddings, which are looked up."""
    parameters = sum(weights.numel() for weights in model.parameters())
    return parameters - sum(w.numel() for w in model.get_input_embeddings().parameters())


def look_up(model: PreTrainedModel, ids: Shaped[Tensor, "B *L"]) -> Float[Tensor, "B N E"]:
    """Return what the model looks up for each position, before positions and most norms (`look_up_with_norm`).

    `ids` are (B, N) token ids, or the pixels from which an image model makes its positions.

    Raises:
        InputError: the embeddings return something else (I-BERT: the scale of its integers too).
    """
    embedded: object = _tables(model)[-1](ids)
    if not isinstance(embedded, Tensor):
        raise InputError(
            f"expected one vector per token from the embeddings; those of {type(model).__name__} return a "
            f"{type(embedded).__name__}, and cannot be replaced; choose another model"
        )
    return embedded


@torch.no_grad()
def look_up_with_norm(
    model: PreTrainedModel, inputs: Mapping[str, Tensor], answer: Callable[[Any], Tensor]
) -> list[RemovableHandle]:
    """Make a norm that alone reads the word embeddings a part of looking them up, until the hooks are removed.

    In DeBERTa-v3, ModernBERT and BLOOM the answer does not depend on the length of the embeddings before such a
    norm (see `is_scale_free`). It is found as the part that they enter as they are, and that gives the same of
    longer ones; that nothing else reads them shows in the same answer. Other models get no hooks.
    """
    tables, norms = _tables(model), list[nn.Module]()
    looked_up = look_up(model, inputs["input_ids"])

    def keep(part: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        is_simple = len(args) == 1 and all(map(torch.is_tensor, (*args, output)))
        if is_simple and not any(part.children()) and torch.equal(args[0], looked_up):
            change = torch.dist(part.forward(2 * looked_up), output) / output.norm()
            norms.extend([part] * bool(change < 0.25))  # a norm's ε may change a little

    with register_module_forward_hook(keep):
        expected = answer(model(**inputs))
    for norm in norms:
        hooks = [norm.register_forward_hook(lambda _, args, __: args[0])]
        for table in tables:
            hooks.append(table.register_forward_hook(lambda _, __, x, n=norm: n.forward(x)))
        if torch.allclose(answer(model(**inputs)), expected):
            return hooks
        for hook in hooks:
            hook.remove()
    return []


@contextmanager
def embedded_as(
    model: PreTrainedModel, ids: Shaped[Tensor, "B *L"], embedded: Float[Tensor, "B N E"]
) -> Iterator[None]:
    """Make looking up `ids` give `embedded` within the block.

    Not by `inputs_embeds`: a decoder then cannot see where its text ends. A decoder that reads the same ids
    shifted by one position gets shifted embeddings; a model that reads them transposed (XLNet) gets
    transposed ones.
    """

    def replace(module: Any, args: Any, output: Tensor) -> Tensor:
        looked_up = args[0]
        # Compared by content: the model may look up its ids several times, or others (of the target) as well.
        if torch.equal(looked_up, ids):
            return embedded.clone()  # CTRL multiplies it in place
        if looked_up.shape == ids.shape and torch.equal(looked_up[:, 1:], ids[:, :-1]):
            return torch.cat([output[:, :1], embedded[:, :-1]], dim=1)
        if torch.equal(looked_up, ids.transpose(0, 1)):
            return embedded.transpose(0, 1).clone()
        return output

    with ExitStack() as hooks:
        for module in _tables(model):
            hooks.enter_context(module.register_forward_hook(replace))
        yield


def _tables(model: PreTrainedModel) -> list[torch.nn.Module]:
    """Return all modules that look words up: encoder and decoder may share a table, but not a module."""
    table = model.get_input_embeddings()
    embeddings = [m for m in model.modules() if isinstance(m, torch.nn.Embedding)]
    return [m for m in embeddings if m.weight is getattr(table, "weight", None)] or [table]
