"""A second device for machines without a GPU: tensors that say they are elsewhere, with their values at hand.

They report the device "meta", hold their values on the CPU, and refuse what a GPU's tensors refuse: an
operation with tensors of both devices, and an array of their values.
"""

from contextlib import contextmanager

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

SECOND = torch.device("meta")
aten = torch.ops.aten
# A tensor is moved by these; an index may stay on the CPU.
_MIXED = {
    aten._to_copy.default, aten.to.device, aten.copy_.default, aten.index.Tensor, aten.index_put.default,
    aten.index_put_.default, aten._index_put_impl_.default,
}  # fmt: skip


class Elsewhere(torch.Tensor):
    """A tensor of the second device."""

    @staticmethod
    def __new__(cls, values):
        return torch.Tensor._make_wrapper_subclass(
            cls, values.size(), strides=values.stride(), storage_offset=values.storage_offset(),
            dtype=values.dtype, layout=values.layout, device=SECOND, requires_grad=values.requires_grad,
        )  # fmt: skip

    def __init__(self, values):
        self.values_here = values

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return _run(func, args, kwargs or {})


@torch.inference_mode(False)  # a view of a tensor that is none of that mode's cannot be one
def _run(func, args, kwargs):
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    is_elsewhere = any(isinstance(tensor, Elsewhere) for tensor in tensors)
    here = [t for t in tensors if not isinstance(t, Elsewhere) and t.dim()]
    if is_elsewhere and here and func not in _MIXED:
        raise RuntimeError(f"{func}: expected all tensors on one device")
    devices = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.device)]
    if devices:
        is_elsewhere = devices[0] == SECOND
    here_args, here_kwargs = tree_map(_here, (args, kwargs))
    result = func(*here_args, **here_kwargs)
    changed = [
        i for i, a in enumerate(func._schema.arguments) if a.alias_info and a.alias_info.is_write
    ]
    if changed:  # in place: the very tensor is returned
        return args[changed[0]] if changed[0] < len(args) else result
    if not is_elsewhere:
        return result
    return tree_map(lambda x: Elsewhere(x) if isinstance(x, torch.Tensor) else x, result)


def _here(value):
    if isinstance(value, Elsewhere):
        return value.values_here
    return torch.device("cpu") if value == SECOND and isinstance(value, torch.device) else value


def _indices(index):
    """Make tensors of lists, which torch would make below all modes."""
    if isinstance(index, tuple):
        return tuple(map(_indices, index))
    return torch.tensor(index) if isinstance(index, list) else index


class _Dispatch(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return _run(func, args, kwargs or {})


class _Functions(TorchFunctionMode):
    """Make tensors of Python values here and move them, as torch does below all modes."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if func in (torch.tensor, torch.as_tensor):
            device = kwargs.pop("device", None)
            if device is not None:
                return func(*args, **kwargs).to(device)
        if func is torch.Tensor.new_tensor and isinstance(args[0], Elsewhere):
            kwargs.setdefault("dtype", args[0].dtype)
            return torch.tensor(*args[1:], **kwargs).to(SECOND)
        if func in (torch.Tensor.__getitem__, torch.Tensor.__setitem__):
            args = (args[0], _indices(args[1]), *args[2:])
        if func is torch.Tensor.tolist or (func is torch.Tensor.numpy and kwargs.get("force")):
            return func(args[0].detach().cpu(), *args[1:], **kwargs)
        return func(*args, **kwargs)


@contextmanager
def second_device():
    """Have the second device within the block; models and tensors are moved with `.to(SECOND)`."""
    with _Functions(), _Dispatch():
        yield SECOND
