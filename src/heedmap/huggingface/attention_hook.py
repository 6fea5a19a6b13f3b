"""Provide the one attention function that every layer of a model calls, by transformers' interface.

It never computes attention itself. It calls the model file's own eager function, and lets a visitor read
or replace its inputs and outputs. A hand-written softmax(QKᵀ) would be wrong for every model that adds
something to it (position biases, sinks, soft caps). Where nobody reads weights, transformers' fused function
may serve instead (`fusing`).
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
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import eager_mask

from heedmap.errors import InputError

NAME = "heedmap_hook"  # letters and underscores only: transformers takes other names for kernels on the Hub

Output = tuple[Tensor, Tensor | None]


@dataclass(frozen=True)
class Call:
    """One call of an attention layer.

    `index` counts the calls of this forward pass, and tells layers apart that share a module;
    `name` is the module's qualified name. query (B, H, Q, D), key and value (B, H', N, D) with H' ≤ H.
    If a model is read through its softmax (`interception.py`), only `index` and `name` are known.
    `dropout` is the share of weights that the layer drops in this pass; 0 outside training.
    """

    index: int
    name: str
    query: Tensor | None = None
    key: Tensor | None = None
    value: Tensor | None = None
    dropout: float = 0.0


class Visitor:
    """Observe every attention call and change nothing; subclasses override one of the two methods."""

    def weights(
        self, call: Call, weights: Float[Tensor, "B H Q N"]
    ) -> Float[Tensor, "B H Q N"] | None:
        """Return the weights to use instead; None leaves the layer's own output as it is."""
        return None

    def attend(self, call: Call, eager: Callable[..., Output]) -> Output:
        """Return the layer's output (B, Q, H, D) and weights. `eager(key=…)` calls the model's own function.

        In a training pass that function drops weights before it returns them; `eager(dropout=0.0)` does not.
        `eager(allowed=…)`, of shape (B, 1, Q, N), forbids more positions than the layer's own mask.
        """
        output, weights = eager()
        assert weights is not None
        edited = self.weights(call, weights)
        if edited is None:
            return output, weights
        assert call.value is not None
        return weighted_sum(edited, call.value), edited


class Then(Visitor):
    """Combine two visitors: the second sees the result of the first."""

    def __init__(self, earlier: Visitor, later: Visitor) -> None:
        self.earlier, self.later = earlier, later

    def weights(
        self, call: Call, weights: Float[Tensor, "B H Q N"]
    ) -> Float[Tensor, "B H Q N"] | None:
        """Return the weights after both; None if neither changed them."""
        after_earlier = self.earlier.weights(call, weights)
        after_later = self.later.weights(call, weights if after_earlier is None else after_earlier)
        return after_earlier if after_later is None else after_later

    def attend(self, call: Call, eager: Callable[..., Output]) -> Output:
        """Return the second's output, with the first's as the model's own."""
        return self.later.attend(call, lambda: self.earlier.attend(call, eager))


def weighted_sum(
    weights: Float[Tensor, "B H Q N"], value: Float[Tensor, "B Hv N D"]
) -> Float[Tensor, "B Q H D"]:
    """Return weights @ value, laid out as attention functions do; heads may share values (GQA)."""
    shared = weights.shape[1] // value.shape[1]
    repeated = value.repeat_interleave(shared, dim=1)
    # Weights may be edited in single precision while the model computes in half precision.
    return torch.matmul(weights.to(value.dtype), repeated).transpose(1, 2).contiguous()


@dataclass
class _Visit:
    visitor: Visitor
    names: dict[int, str]
    calls: int = 0
    seen: list[str] = field(default_factory=list)


# Of the context and not of the process: a pass in another thread must not meet this visitor.
_current: ContextVar[_Visit | None] = ContextVar("heedmap_visit", default=None)


@contextmanager
def visiting(model: nn.Module, visitor: Visitor) -> Iterator[list[str]]:
    """Let `visitor` see every attention call of `model` within the block; yield the calling layers' names.

    Every forward pass of `model` counts its calls from 0; the names are of all passes.

    A model that does not use the interface makes no calls: check that there are names.
    """
    visit = _Visit(visitor, {id(module): name for name, module in model.named_modules()})

    # Every pass counts anew, because layers that share a module (ALBERT) are told apart by the count alone.
    def start(*_: Any) -> None:
        visit.calls = 0

    hook = model.register_forward_pre_hook(start)
    token = _current.set(visit)
    try:
        yield visit.seen
    finally:
        _current.reset(token)
        hook.remove()


# Of the context, as the visit is.
_is_fusing: ContextVar[bool] = ContextVar("heedmap_fusing", default=False)
# What a fused call takes, or the mask says already. What else a layer gives its function (a soft cap, sinks)
# would be lost in one.
_FUSED_OPTIONS = {
    *("scaling", "dropout", "is_causal", "position_bias"),
    *("position_ids", "sliding_window", "use_cache"),
}


@contextmanager
def fusing() -> Iterator[None]:
    """Let fused kernels (scaled_dot_product_attention) attend within the block, where no gradient is wanted.

    They never form the weights: an eager call then returns None in their place. Layers that give their
    function more than a mask, a scale and a bias are called eagerly, as without the block. Whether a model's
    answers stay the same has to be tried on it (`TransformerClassifier`).
    """
    token = _is_fusing.set(True)
    try:
        yield
    finally:
        _is_fusing.reset(token)


def _fused(options: dict[str, Any]) -> bool:
    """Return whether a call with these options is to be fused."""
    if not _is_fusing.get() or torch.is_grad_enabled():
        return False
    return _FUSED_OPTIONS.issuperset(
        name for name, value in options.items() if value is not None and value is not False
    )


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    **kwargs: Any,
) -> Output:
    """Run one attention call; the function that the interface calls.

    Raises:
        InputError: The model's file has no eager function of the usual name.
    """
    eager_function = _own_eager(type(module))

    dropping = float(kwargs.get("dropout") or 0.0)

    def eager(
        key: Tensor = key, dropout: float = dropping, allowed: Tensor | None = None
    ) -> Output:
        options = kwargs if dropout == dropping else {**kwargs, "dropout": dropout}
        mask = attention_mask if allowed is None else _within(allowed, attention_mask, query.dtype)
        if _fused(options):
            # The mask says it all, as for an eager function: a layer without one is not causal either.
            fused: Output = sdpa_attention_forward(
                module, query, key, value, mask, **{**options, "is_causal": False}
            )
            return fused
        result: Output = eager_function(module, query, key, value, mask, **options)
        return result

    visit = _current.get()
    if visit is None:
        return eager()
    name = visit.names.get(id(module), type(module).__name__)
    call = Call(visit.calls, name, query, key, value, dropping)
    visit.calls += 1
    visit.seen.append(name)
    output, weights = visit.visitor.attend(call, eager)
    return output.contiguous(), weights  # as an eager function's, of which JetMoE takes a view


def _within(allowed: Tensor, mask: Tensor | None, dtype: torch.dtype) -> Tensor:
    """Return an additive mask that forbids what is not allowed, and what `mask` forbids."""
    lowest = torch.finfo(dtype).min
    return torch.where(allowed, 0.0 if mask is None else mask, lowest).to(dtype)


def _own_eager(kind: type[nn.Module]) -> Callable[..., Output]:
    """Return the eager function of the file that defines a module's class or one of its bases."""
    for base in kind.__mro__:
        function = getattr(sys.modules.get(base.__module__), "eager_attention_forward", None)
        if function is not None:
            eager: Callable[..., Output] = function
            return eager
    raise InputError(
        f"expected an eager attention function in {kind.__module__}; it has none of the usual name; "
        "choose another model"
    )


# The mask needs the same name, or the models silently run without one.
AttentionInterface.register(NAME, attend)
AttentionMaskInterface.register(NAME, eager_mask)
