"""Products and activations in single precision, as fast as the processor allows.

PyTorch multiplies matrices by MKL, which gives processors of other makers than its own half of their vector
unit or less. PyTorch also has oneDNN, for its recurrent layers and its compiler, and oneDNN asks the processor
what it can do: on one core of an AMD EPYC with AVX-512 its products run at 244 GFLOP/s, MKL's at 108. On an
Intel Xeon it gains nothing, and MKL multiplies there. In the same way tanh takes 2.1 ns a number on that EPYC,
and σ .2.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn import functional
from torch.overrides import TorchFunctionMode

LEAST = 1 << 20  # multiplications from which oneDNN's preparation of a product is paid back
NARROW = 16  # columns below which it gains nothing


def _onednn_product() -> Any:
    cpu = Path("/proc/cpuinfo")
    if torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512") or not cpu.exists():
        return None
    if "GenuineIntel" in cpu.read_text():
        return None
    # PyTorch's compiler calls it. It has no public name, so that a version without it has to do without.
    return getattr(torch.ops.mkldnn, "_linear_pointwise", None)


onednn = _onednn_product()  # None where it gains nothing


def tanh_(values: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Replace numbers in place by their tanh = 2 σ(2x) − 1, to an absolute error of the type's ε."""
    return values.mul_(2.0).sigmoid_().mul_(2.0).sub_(1.0)


def product(
    input: Float[Tensor, "*batch K"],
    weight: Float[Tensor, "N K"],
    bias: Float[Tensor, " N"] | None = None,
) -> Float[Tensor, "*batch N"]:
    """Return input @ weightᵀ + bias, as `functional.linear` does; by oneDNN where that gains."""
    if not _gains(input, weight):
        return functional.linear(input, weight, bias)
    # Of a bias with gaps between its numbers it may read the wrong ones; values and weights may have any.
    bias = None if bias is None else bias.contiguous()
    products: Tensor = onednn(input, weight, bias, "none", [], "")
    return products


def _gains(values: Tensor, weight: Tensor) -> bool:
    return bool(
        onednn is not None
        and not _is_differentiated()
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


def _is_differentiated() -> bool:
    """Return whether derivatives may be taken, or a transform of `torch.func`.

    oneDNN's operator has a rule for none of them: it would drop a tangent without an error.
    """
    return (
        torch.is_grad_enabled()
        or forward_ad._current_level >= 0
        or torch._C._are_functorch_transforms_active()
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
