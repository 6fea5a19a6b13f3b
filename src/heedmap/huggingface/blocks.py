"""A model's blocks (its layers, attention and all): watched, skipped, or entered with another state."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

Step = Callable[[nn.Module, Callable[..., Any], Any, Any], Any]


def _above(model: nn.Module, name: str) -> tuple[nn.Module, nn.Module] | None:
    """The block that holds a module, and the list that holds the block."""
    parts = name.split(".")
    for end in range(len(parts) - 1, 0, -1):
        parent = model.get_submodule(".".join(parts[: end - 1])) if end > 1 else model
        if isinstance(parent, nn.ModuleList):
            return model.get_submodule(".".join(parts[:end])), parent
    return None


def blocks_of(model: nn.Module, names: Sequence[str]) -> list[nn.Module]:
    """The blocks of some attention layers, each once, in the order of their first call."""
    modules = dict(model.named_modules())
    found = [_above(model, name) for name in names if name in modules]
    return list(dict.fromkeys(pair[0] for pair in found if pair is not None))


def stack_of(model: nn.Module, block: nn.Module) -> int:
    """A number for the list that holds the block: encoder and decoder are two stacks."""
    for module in model.modules():
        if isinstance(module, nn.ModuleList) and any(child is block for child in module):
            return id(module)
    return 0


@contextmanager
def patched(blocks: Sequence[nn.Module], step: Step) -> Iterator[None]:
    """While it lasts, `step(block, forward, args, kwargs)` runs in place of each block's forward."""
    for block in blocks:
        block.forward = _stepping(block, block.forward, step)
    try:
        yield
    finally:
        for block in blocks:
            del block.forward  # the class's own shows again


def _stepping(block: nn.Module, forward: Callable[..., Any], step: Step) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        return step(block, forward, args, kwargs)

    return run


def entering(args: Any, kwargs: Any) -> Tensor:
    """The hidden states that a block was given."""
    state: Tensor = args[0] if args else kwargs["hidden_states"]
    return state


def replaced(state: Tensor, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """The arguments with other hidden states."""
    if args:
        return (state, *args[1:]), kwargs
    return args, {**kwargs, "hidden_states": state}


def shape_of(result: Any) -> int | None:
    """None for a bare tensor, else the length of the tuple that a block gave."""
    return None if isinstance(result, Tensor) else len(result)


def through(shape: int | None, state: Tensor) -> Any:
    """What a block of that shape of result gives when it does nothing."""
    return state if shape is None else (state, *[None] * (shape - 1))


def mapped(result: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """A block's result with every tensor changed."""
    if isinstance(result, Tensor):
        return change(result)
    return tuple(change(part) if isinstance(part, Tensor) else part for part in result)


def repeated(value: Tensor, times: int) -> Tensor:
    """The batch again and again along the first dimension."""
    return value.repeat(times, *[1] * (value.dim() - 1)) if times != 1 else value


def projection_of(
    model: nn.Module, run: Callable[[], object], names: Sequence[str]
) -> dict[str, nn.Module]:
    """The output projection of each attention layer, by the layer's name.

    It is the linear module inside the layer's block that reads the very memory that the attention
    function gave back (a reshape keeps it); nothing depends on what a model file calls it.
    """
    from heedmap.huggingface.door import Call, Output, Visitor, visiting

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

    linear = [
        m for m in model.modules() if getattr(m, "weight", None) is not None and _is_linear(m)
    ]
    handles = [m.register_forward_pre_hook(partial(look)) for m in linear]
    try:
        with torch.no_grad(), visiting(model, Watch()):
            run()
    finally:
        for handle in handles:
            handle.remove()
    return {name: found[name] for name in names if name in found}


def _is_linear(module: nn.Module) -> bool:
    return isinstance(module, nn.Linear) or type(module).__name__ == "Conv1D"  # GPT-2's, transposed
