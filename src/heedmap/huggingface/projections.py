"""The output projection of each attention layer, found by what it reads, and the heads' values through it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedmap.huggingface.door import Call, Output, Visitor, visiting
from heedmap.importance.effective import narrow


def projections_of(
    model: nn.Module, names: Sequence[str], inputs: Mapping[str, Tensor]
) -> dict[str, nn.Module]:
    """The output projections of the named attention layers; none at all where any is not found.

    It is the linear module inside the layer's block that reads the very memory that the attention
    function gave back (a reshape keeps it); nothing depends on what a model file calls it. One pass of a
    model that was entered by the interface.
    """
    given: dict[int, str] = {}
    found: dict[str, nn.Module] = {}
    alive: list[Tensor] = []  # memory that is given back may be another tensor's

    class Watch(Visitor):
        def attend(self, call: Call, eager: Callable[..., Output]) -> Output:
            output, weights = eager()
            alive.append(output)
            given[output.data_ptr()] = call.name
            return output, weights

    def look(module: nn.Module, args: Any) -> None:
        if args and isinstance(args[0], Tensor) and args[0].data_ptr() in given:
            found.setdefault(given[args[0].data_ptr()], module)

    linear = [module for module in model.modules() if _by_input(module) is not None]
    handles = [module.register_forward_pre_hook(look) for module in linear]
    try:
        with torch.no_grad(), visiting(model, Watch()):
            model(**inputs)
    finally:
        for handle in handles:
            handle.remove()
    return {name: found[name] for name in names} if found.keys() >= set(names) else {}


def transformed_values(call: Call, projection: nn.Module, heads: int) -> Float[Tensor, "B H N K"]:
    """T = V W_O of every head, in K columns with the same left null space (see `effective.narrow`)."""
    by_input = _by_input(projection)
    assert by_input is not None
    assert call.value is not None
    value = call.value.repeat_interleave(heads // call.value.shape[1], dim=1)
    output = by_input.detach().reshape(heads, -1, by_input.shape[1])
    return narrow(value.detach().double(), output.double())


def _by_input(module: nn.Module) -> Float[Tensor, "inputs outputs"] | None:
    """The weight of a linear module, a row an input; None of any other."""
    if isinstance(module, nn.Linear):
        return module.weight.T
    weight = getattr(module, "weight", None)
    # GPT-2's own, which is stored transposed.
    return weight if isinstance(weight, Tensor) and type(module).__name__ == "Conv1D" else None
