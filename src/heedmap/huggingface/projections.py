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

    It is the first linear module to read, number for number, what the layer's attention function gave
    back; nothing depends on what a model file calls it. By number and not by memory: where the output is
    not contiguous (GPT-2) the reshape before the projection copies it. What is scaled, normed or gated on
    its way is not the heads' output, and no projection of it. One pass of a model that was entered by the
    interface.
    """
    found: dict[str, nn.Module] = {}
    given: list[tuple[str, Tensor]] = []  # the last call's layer and output, until they are read

    class Watch(Visitor):
        def attend(self, call: Call, eager: Callable[..., Output]) -> Output:
            output, weights = eager()
            # A copy: what changes the output in place is not to change this.
            given[:] = [(call.name, output.detach().flatten(2).clone())]
            return output, weights

    def look(module: nn.Module, args: Any) -> None:
        for name, output in given:
            if args and isinstance(args[0], Tensor) and _same_rows(args[0], output):
                found.setdefault(name, module)
                given.clear()

    linear = [module for module in model.modules() if _by_input(module) is not None]
    handles = [module.register_forward_pre_hook(look) for module in linear]
    try:
        with torch.no_grad(), visiting(model, Watch()):
            model(**inputs)
    finally:
        for handle in handles:
            handle.remove()
    return {name: found[name] for name in names} if found.keys() >= set(names) else {}


def _same_rows(read: Tensor, output: Float[Tensor, "B Q V"]) -> bool:
    """Whether a module reads this output; some models flatten batch and positions first."""
    width = output.shape[-1]
    return read.shape[-1:] == (width,) and torch.equal(
        read.reshape(-1, width), output.reshape(-1, width)
    )


def transformed_values(call: Call, projection: nn.Module, heads: int) -> Float[Tensor, "B H N K"]:
    """T = V W_O of every head, in K columns with the same left null space (see `effective.narrow`)."""
    by_input = _by_input(projection)
    assert by_input is not None
    assert call.value is not None
    value = call.value.repeat_interleave(heads // call.value.shape[1], dim=1)
    output = by_input.detach().reshape(heads, -1, by_input.shape[1])
    return narrow(value.detach().double(), output.double())


def _by_input(module: nn.Module) -> Float[Tensor, "inputs outputs"] | None:
    """The weight of a linear module, one row per input; None of any other."""
    if isinstance(module, nn.Linear):
        return module.weight.T
    weight = getattr(module, "weight", None)
    # GPT-2's own, which is stored transposed.
    return weight if isinstance(weight, Tensor) and type(module).__name__ == "Conv1D" else None
