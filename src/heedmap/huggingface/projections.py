"""Find each attention layer's output projection by what it reads, and project the heads' values."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedmap.huggingface.attention_hook import Call, Output, Visitor, visiting
from heedmap.importance.effective import narrow


def projections_of(
    model: nn.Module, names: Sequence[str], inputs: Mapping[str, Tensor]
) -> dict[str, nn.Module]:
    """Return the output projections of the named attention layers; empty if any is not found.

    It is the first linear module whose input equals the output of the layer's attention function, whatever
    its name. Values are compared, not memory: if the output is not contiguous (GPT-2), the reshape before
    the projection copies it. A module that reads the heads' output scaled, normed or gated is not their
    projection. Takes one pass of a model that was entered by the interface.
    """
    projections: dict[str, nn.Module] = {}
    # The last call's layer and output, until a module reads them.
    pending: list[tuple[str, Tensor]] = []

    class Watch(Visitor):
        def attend(self, call: Call, eager: Callable[..., Output]) -> Output:
            output, weights = eager()
            # A copy: the output may be changed in place.
            pending[:] = [(call.name, output.detach().flatten(2).clone())]
            return output, weights

    def look(module: nn.Module, args: Any) -> None:
        for name, output in pending:
            if args and isinstance(args[0], Tensor) and _same_rows(args[0], output):
                projections.setdefault(name, module)
                pending.clear()

    linear = [module for module in model.modules() if _by_input(module) is not None]
    handles = [module.register_forward_pre_hook(look) for module in linear]
    try:
        with torch.no_grad(), visiting(model, Watch()):
            model(**inputs)
    finally:
        for handle in handles:
            handle.remove()
    return {name: projections[name] for name in names} if projections.keys() >= set(names) else {}


def _same_rows(features: Tensor, output: Float[Tensor, "B Q V"]) -> bool:
    """Return whether a module reads this output; some models flatten batch and positions first."""
    width = output.shape[-1]
    return features.shape[-1:] == (width,) and torch.equal(
        features.reshape(-1, width), output.reshape(-1, width)
    )


def transformed_values(call: Call, projection: nn.Module, heads: int) -> Float[Tensor, "B H N R"]:
    """Return T = V W_O of every head, in fewer columns (see `effective.narrow`)."""
    by_input = _by_input(projection)
    assert by_input is not None
    assert call.value is not None
    value = call.value.repeat_interleave(heads // call.value.shape[1], dim=1)
    output = by_input.detach().reshape(heads, -1, by_input.shape[1])
    return narrow(value.detach().double(), output.double())


def _by_input(module: nn.Module) -> Float[Tensor, "inputs outputs"] | None:
    """Return the weight of a linear module, one row per input; None for other modules."""
    if isinstance(module, nn.Linear):
        return module.weight.T
    weight = getattr(module, "weight", None)
    # GPT-2's own class stores it transposed.
    return weight if isinstance(weight, Tensor) and type(module).__name__ == "Conv1D" else None
