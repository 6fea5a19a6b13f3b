"""Watch a model's blocks (whole layers), skip them, or run them on other hidden states."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from heedmap.huggingface.attention_hook import Visitor
from heedmap.huggingface.model_adapter import ModelAdapter

Step = Callable[[nn.Module, Callable[..., Any], Any, Any], Any]


def _above(model: nn.Module, name: str) -> tuple[nn.Module, nn.Module] | None:
    """Return the block that holds a module, and the list that holds the block."""
    parts = name.split(".")
    for end in range(len(parts) - 1, 0, -1):
        parent = model.get_submodule(".".join(parts[: end - 1])) if end > 1 else model
        if isinstance(parent, nn.ModuleList):
            return model.get_submodule(".".join(parts[:end])), parent
    return None


def blocks_of(model: nn.Module, names: Sequence[str]) -> list[nn.Module]:
    """Return the blocks of the named attention layers, each once, in the order of their first call."""
    modules = dict(model.named_modules())
    pairs = [_above(model, name) for name in names if name in modules]
    return list(dict.fromkeys(pair[0] for pair in pairs if pair is not None))


def stack_of(model: nn.Module, block: nn.Module) -> int:
    """Return an id of the list that holds the block: encoder and decoder are two stacks."""
    for module in model.modules():
        if isinstance(module, nn.ModuleList) and any(child is block for child in module):
            return id(module)
    return 0


@contextmanager
def patched(blocks: Sequence[nn.Module], step: Step) -> Iterator[None]:
    """Run `step(block, forward, args, kwargs)` in place of each block's forward within the block."""
    for block in blocks:
        block.forward = _stepping(block, block.forward, step)
    try:
        yield
    finally:
        for block in blocks:
            del block.forward  # uncovers the class's own


def _stepping(block: nn.Module, forward: Callable[..., Any], step: Step) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        return step(block, forward, args, kwargs)

    return run


def entering(args: Any, kwargs: Any) -> Tensor:
    """Return the hidden states that a block was called with."""
    state: Tensor = args[0] if args else kwargs["hidden_states"]
    return state


def replaced(state: Tensor, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Return the arguments with other hidden states."""
    if args:
        return (state, *args[1:]), kwargs
    return args, {**kwargs, "hidden_states": state}


def shape_of(result: Any) -> int | None:
    """Return the length of the tuple that a block returned; None for a bare tensor."""
    return None if isinstance(result, Tensor) else len(result)


def through(shape: int | None, state: Tensor) -> Any:
    """Return the result of a block that changes nothing, in the given shape (see `shape_of`)."""
    return state if shape is None else (state, *[None] * (shape - 1))


def mapped(result: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Apply `change` to every tensor of a block's result."""
    if isinstance(result, Tensor):
        return change(result)
    return tuple(change(part) if isinstance(part, Tensor) else part for part in result)


def repeated(value: Tensor, times: int) -> Tensor:
    """Repeat the batch along the first dimension."""
    return value.repeat(times, *[1] * (value.dim() - 1)) if times != 1 else value


@dataclass(frozen=True)
class Place:
    """Where in a pass one call of the attention happens, counted in runs of the blocks.

    A shared block runs several times. `turn` is the number of the run, −1 if the call is in no block;
    `call_in_block` is the number of the call in that run. `shapes` holds the `shape_of` each run's result, and
    `stack_ends` the last run of each stack before that turn.
    """

    turn: int
    call_in_block: int
    shapes: list[int | None]
    stack_ends: frozenset[int]


def place_of(
    adapter: ModelAdapter, blocks: Sequence[nn.Module], call: int, inputs: Mapping[str, Tensor]
) -> Place:
    """Locate a call by watching one pass."""
    counts: list[tuple[int, int]] = []
    runs: list[nn.Module] = []
    shapes: list[int | None] = []

    def watch(block: nn.Module, forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        runs.append(block)
        first_call = len(calls)
        result = forward(*args, **kwargs)
        counts.append((first_call, len(calls)))
        shapes.append(shape_of(result))
        return result

    with torch.no_grad(), patched(blocks, watch), adapter.visiting(Visitor()) as calls:
        adapter.model(**inputs)
    for turn, (start, end) in enumerate(counts):
        if start <= call < end:
            stack_ends = {stack_of(adapter.model, block): i for i, block in enumerate(runs[:turn])}
            return Place(turn, call - start, shapes, frozenset(stack_ends.values()))
    return Place(-1, 0, shapes, frozenset())
