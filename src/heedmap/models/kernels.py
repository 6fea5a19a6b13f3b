"""Products and activations in single precision, as fast as the processor allows.

PyTorch multiplies matrices by MKL, which gives processors of other makers than its own half of their vector
unit or less. PyTorch also has oneDNN, for its recurrent layers and its compiler, and oneDNN asks the processor
what it can do: on one core of an AMD EPYC with AVX-512 its products run at 244 GFLOP/s, MKL's at 108. In the
same way tanh takes 2.1 ns a number there, and σ .2.
"""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn import functional
from torch.overrides import TorchFunctionMode

LEAST = 1 << 20  # multiplications from which oneDNN's preparation of a product is paid back
NARROW = 16  # columns below which it gains nothing

# What PyTorch's compiler calls. It has no public name, so that a version without it has to do without.
_onednn = (
    getattr(torch.ops.mkldnn, "_linear_pointwise", None)
    if torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")
    else None
)


def tanh_(values: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Replace numbers in place by their tanh = 2 σ(2x) − 1, to an absolute error of the type's ε."""
    return values.mul_(2.0).sigmoid_().mul_(2.0).sub_(1.0)


def product(
    input: Float[Tensor, "*batch K"],
    weight: Float[Tensor, "N K"],
    bias: Float[Tensor, " N"] | None = None,
) -> Float[Tensor, "*batch N"]:
    """Return input @ weightᵀ + bias, differentiable, as `functional.linear` does; by oneDNN where it gains."""
    if not _gains(input, weight):
        return functional.linear(input, weight, bias)
    if torch.is_grad_enabled():
        differentiable: Callable[..., Tensor] = _Product.apply
        return differentiable(input, weight, bias)
    return _by_onednn(input, weight, bias)


def _gains(values: Tensor, weight: Tensor) -> bool:
    return bool(
        _onednn is not None
        and not _is_transformed()
        # A type of its own, such as of quantised weights, multiplies in its own way.
        and {type(values), type(weight)} <= {Tensor, nn.Parameter}
        and values.dtype == weight.dtype == torch.float32
        and values.device.type == weight.device.type == "cpu"
        and weight.ndim == 2
        and values.ndim > 1
        and len(weight) >= NARROW
        and values.numel() * len(weight) >= LEAST
        and torch.backends.mkldnn.enabled
    )


def _is_transformed() -> bool:
    """Return whether a forward-mode derivative or a transform of `torch.func` may be under way.

    oneDNN's operator has no rule for either: it would drop a tangent without an error.
    """
    return forward_ad._current_level >= 0 or torch._C._are_functorch_transforms_active()


def _by_onednn(values: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    assert _onednn is not None
    # Of a bias with gaps between its numbers it may read the wrong ones; values and weights may have any.
    bias = None if bias is None else bias.contiguous()
    products: Tensor = _onednn(values, weight, bias, "none", [], "")
    return products


class _Product(torch.autograd.Function):
    """The product with its gradients, which are products too."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(values, weight)
        return _by_onednn(values, weight, bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        values, weight = ctx.saved_tensors
        of_values, of_weight, of_bias = ctx.needs_input_grad
        (gradient,) = gradients
        rows = gradient.flatten(0, -2)
        return (
            product(gradient, weight.mT) if of_values else None,
            product(rows.mT, values.flatten(0, -2).mT) if of_weight else None,
            rows.sum(0) if of_bias else None,
        )


class FastProducts(TorchFunctionMode):
    """Within this block the linear layers of any model use `product`; it has no state of its own."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Call a function of PyTorch's, or `product` in its place."""
        if func is functional.linear:
            return product(*args, **(kwargs or {}))
        if func is torch.addmm and len(args) == 3 and not kwargs and args[0].ndim == 1:
            bias, values, weight = args  # transformers' Conv1D, whose weight has its inputs first
            return product(values, weight.mT, bias)
        return func(*args, **(kwargs or {}))
