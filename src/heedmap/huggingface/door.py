"""One attention function under one name: every layer of a model on the interface calls it.

It never computes attention itself. It asks the model file's own eager function, and lets a visitor read
or replace what comes in and out. A hand-written softmax(QKᵀ) would be wrong for every model that adds
something to it (position biases, sinks, soft caps).
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask

from heedmap.errors import InputError

NAME = "heedmap_door"  # letters and underscores only: other names are taken for kernels of the Hub

Output = tuple[Tensor, Tensor | None]


@dataclass(frozen=True)
class Call:
    """One call of an attention layer.

    `index` counts the calls of this forward pass, which tells layers apart where they share a module;
    `name` is the module's qualified name. query (B, H, Q, D), key and value (B, H', N, D) with H' ≤ H.
    Where a model is read through its softmax (`interception.py`), only `index` and `name` are known.
    `dropout` is the share of weights that the layer drops in this pass: 0 outside training.
    """

    index: int
    name: str
    query: Tensor | None = None
    key: Tensor | None = None
    value: Tensor | None = None
    dropout: float = 0.0


class Visitor:
    """What may be done at the door; this one only looks on. Subclasses override one of the two methods."""

    def weights(
        self, call: Call, weights: Float[Tensor, "B H Q N"]
    ) -> Float[Tensor, "B H Q N"] | None:
        """The weights to use instead of these; None leaves the layer's own output as it is."""
        return None

    def attend(self, call: Call, eager: Callable[..., Output]) -> Output:
        """The layer's output (B, Q, H, D) and weights. `eager(key=…)` asks the model's own function.

        In a training pass that function drops weights before it returns them; `eager(dropout=0.0)` does not.
        """
        output, weights = eager()
        assert weights is not None
        edited = self.weights(call, weights)
        if edited is None:
            return output, weights
        assert call.value is not None
        return weighted_sum(edited, call.value), edited


class Then(Visitor):
    """Two visitors: the second sees what the first left."""

    def __init__(self, first: Visitor, second: Visitor) -> None:
        self.first, self.second = first, second

    def weights(
        self, call: Call, weights: Float[Tensor, "B H Q N"]
    ) -> Float[Tensor, "B H Q N"] | None:
        """What the second leaves; None where neither changed anything."""
        left = self.first.weights(call, weights)
        found = self.second.weights(call, weights if left is None else left)
        return left if found is None else found

    def attend(self, call: Call, eager: Callable[..., Output]) -> Output:
        """The second's output, for which the first's is the model's own."""
        return self.second.attend(call, lambda: self.first.attend(call, eager))


def weighted_sum(
    weights: Float[Tensor, "B H Q N"], value: Float[Tensor, "B Hv N D"]
) -> Float[Tensor, "B Q H D"]:
    """weights @ value, laid out as attention functions return it; heads may share values (GQA)."""
    shared = weights.shape[1] // value.shape[1]
    repeated = value.repeat_interleave(shared, dim=1)
    return torch.matmul(weights.to(value.dtype), repeated).transpose(1, 2).contiguous()


@dataclass
class _Visit:
    visitor: Visitor
    names: dict[int, str]
    calls: int = 0
    seen: list[str] = field(default_factory=list)


_current: ContextVar[_Visit | None] = ContextVar("heedmap_visit", default=None)


@contextmanager
def visiting(model: nn.Module, visitor: Visitor) -> Iterator[list[str]]:
    """While it lasts, `visitor` stands at the door of `model`; gives the names of the layers that called.

    Every forward pass of `model` counts its calls anew, and the names of all of them are kept.

    Raises:
        Nothing by itself. A model that is not on the interface makes no call: count them.
    """
    visit = _Visit(visitor, {id(module): name for name, module in model.named_modules()})

    def start(*_: Any) -> None:
        visit.calls = 0

    hook = model.register_forward_pre_hook(start)
    token = _current.set(visit)
    try:
        yield visit.seen
    finally:
        _current.reset(token)
        hook.remove()


def attend_at_door(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    **kwargs: Any,
) -> Output:
    """What the interface calls.

    Raises:
        InputError: The model's file has no eager function of the usual name to ask.
    """
    own = _own_eager(type(module))

    dropping = float(kwargs.get("dropout") or 0.0)

    def eager(key: Tensor = key, dropout: float = dropping) -> Output:
        options = kwargs if dropout == dropping else {**kwargs, "dropout": dropout}
        result: Output = own(module, query, key, value, attention_mask, **options)
        return result

    visit = _current.get()
    if visit is None:
        return eager()
    name = visit.names.get(id(module), type(module).__name__)
    call = Call(visit.calls, name, query, key, value, dropping)
    visit.calls += 1
    visit.seen.append(name)
    return visit.visitor.attend(call, eager)


def _own_eager(kind: type[nn.Module]) -> Callable[..., Output]:
    """The eager function of the file a module's class, or one of its parents, is written in."""
    for base in kind.__mro__:
        found = getattr(sys.modules.get(base.__module__), "eager_attention_forward", None)
        if found is not None:
            eager: Callable[..., Output] = found
            return eager
    raise InputError(
        f"expected an eager attention function in {kind.__module__}; it has none of the usual name; "
        "choose another model"
    )


# Under one name, or the models silently go without any mask.
AttentionInterface.register(NAME, attend_at_door)
AttentionMaskInterface.register(NAME, eager_mask)
