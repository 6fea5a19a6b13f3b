"""Read numbers of any framework as NumPy arrays: NumPy, torch, JAX, TensorFlow, or lists; none is imported."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedmap.errors import InputError, KindError
from heedmap.files.naming import kind_of


def as_numpy(value: Any, name: str, *, is_finite: bool = True) -> NDArray[Any]:
    """Return an array of numbers on the CPU; of bfloat16 and the like float32. `name` is for errors.

    Tensors are detached and brought to the CPU by their own methods, and read through `__array__` or
    `__dlpack__`. Where numbers need not be finite, masked arrays may hide some, and stay masked.

    Raises:
        InputError: no numbers, lists of different lengths, or a number that is not finite or is hidden.
    """
    try:
        if hasattr(value, "detach"):
            value = value.detach().cpu()
            if str(value.dtype) == "torch.bfloat16":  # NumPy has no such type
                value = value.float()
        if not hasattr(value, "__array__") and hasattr(value, "__dlpack__"):
            array = np.from_dlpack(value)
        else:
            array = np.asanyarray(value) if np.ma.isMaskedArray(value) else np.asarray(value)
        if array.dtype.kind == "V":  # bfloat16 of other frameworks, which can be cast alone
            array = array.astype(np.float32)
    except (TypeError, ValueError, BufferError) as error:
        message = str(error).splitlines()[0]
        raise InputError(
            f"{name}: expected an array of numbers, got {kind_of(value)} ({message})"
        ) from error
    if array.dtype.kind not in "fiub":
        raise InputError(f"{name}: expected an array of numbers, got {array.dtype} values")
    if is_finite and (np.ma.is_masked(array) or not np.isfinite(array).all()):
        got = "a masked array that hides some" if np.ma.is_masked(array) else "NaN or infinity"
        raise InputError(f"{name}: expected finite numbers, got {got}")
    return np.asarray(array) if is_finite else array


def as_floats(value: Any, name: str) -> NDArray[np.floating[Any]]:
    """Return `as_numpy` in float64 if it is that (or whole numbers), else in float32."""
    array = as_numpy(value, name)
    is_short = array.dtype.kind == "f" and array.dtype.itemsize < 8
    return array.astype(np.float32 if is_short else np.float64)


def each(values: Any, name: str, count: int | None = None) -> list[Any]:
    """Return the parts of a list of arrays, or of an array by its first axis: one per instance.

    Raises:
        InputError: neither of these, or another number of them than `count`.
    """
    if isinstance(values, str | bytes | dict) or not hasattr(values, "__len__"):
        raise KindError(
            f"{name}: expected a list with an array per instance, got {kind_of(values)}"
        )
    is_list = isinstance(values, Sequence)
    parts = list(values) if is_list else list(as_numpy(values, name, is_finite=False))
    if count is not None and len(parts) != count:
        raise InputError(f"{name}: expected one for each of {count} instances, got {len(parts)}")
    return parts
