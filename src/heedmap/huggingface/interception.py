"""Read and replace weights at the softmax, for architectures that do not use the interface.

Every softmax over the last axis of a 4-dimensional tensor inside the model is assumed to be
attention (B, H, Q, N). `model_adapter` compares it with what the model itself reports, and the verification
checks that the output is a weighted sum of it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from heedmap.huggingface.attention_hook import Call, Visitor

_SOFTMAXES = (functional.softmax, torch.softmax, Tensor.softmax, torch.special.softmax)


@contextmanager
def visiting_softmax(model: nn.Module, visitor: Visitor) -> Iterator[list[str]]:
    """Call `visitor.weights` on the result of each attention softmax of `model` within the block.

    As `attention_hook.visiting`, it yields the names of the calling modules, and each forward pass counts its
    calls from 0. `Visitor.attend` is not called: queries, keys and values are not available.
    """
    stack: list[str] = []
    mode = _Interception(visitor, stack)
    hooks = []
    for name, module in model.named_modules():
        hooks.append(module.register_forward_pre_hook(_pushing(stack, name)))
        # Called after an error too, or the stack would keep the module.
        hooks.append(module.register_forward_hook(_popping(stack), always_call=True))
    hooks.append(model.register_forward_pre_hook(mode.start))
    try:
        with mode:
            yield mode.seen
    finally:
        for hook in hooks:
            hook.remove()


class _Interception(TorchFunctionMode):
    def __init__(self, visitor: Visitor, stack: list[str]) -> None:
        super().__init__()
        self.visitor, self.stack = visitor, stack
        self.calls = 0
        self.seen: list[str] = []

    def start(self, *_: Any) -> None:
        self.calls = 0

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        # An empty stack: a softmax outside the model.
        if func not in _SOFTMAXES or not self.stack or not _is_attention(result, args, kwargs):
            return result
        name = self.stack[-1]
        call = Call(self.calls, name)
        self.calls += 1
        self.seen.append(name)
        edited = self.visitor.weights(call, result)
        return result if edited is None else edited.to(result.dtype)


def _is_attention(result: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    axis = kwargs.get("dim", args[1] if len(args) > 1 else None)
    return result.ndim == 4 and axis in (-1, 3)


def _pushing(stack: list[str], name: str) -> Callable[..., None]:
    def push(*_: Any) -> None:
        stack.append(name)

    return push


def _popping(stack: list[str]) -> Callable[..., None]:
    def pop(*_: Any) -> None:
        stack.pop()

    return pop
