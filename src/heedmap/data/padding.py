"""Leave padding out of the arrays of instances, and refuse what looks like padding."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedmap.data.foreign_arrays import as_numpy, each
from heedmap.errors import InputError

Mask = NDArray[np.bool_]
ROUNDED = 1e-5  # of the sum of its weights, that an instance may have on padding


def without_padding(
    arrays: Mapping[str, Any], lengths: Any = None, mask: Any = None
) -> tuple[dict[str, list[Any]], list[Mask], list[str]]:
    """Cut padding out of arrays (or None): what lengths or a mask leave out, and what masked arrays hide.

    The first array counts the items, which lie on the last axis of `attention`, else on the last but one.

    Returns:
        The arrays by instance, which items (T,) of each instance are left, and notes.

    Raises:
        InputError: lengths or a mask that do not fit, or most instances seem padded and nothing tells it.
    """
    reference = next(iter(arrays))
    count = len(each(arrays[reference], reference))
    parts: dict[str, list[Any]] = {}
    for name in (name for name, value in arrays.items() if value is not None):
        named = enumerate(each(arrays[name], name, count))
        parts[name] = [as_numpy(part, f"{name}[{i}]", is_finite=False) for i, part in named]
    empty = [_of_items(reference, abs(part) < 1e-38) for part in parts[reference]]
    masks = _told([len(is_empty) for is_empty in empty], lengths, mask)
    is_told = lengths is not None or mask is not None
    for i, is_item in enumerate(masks):
        for name in parts:
            if np.ma.isMaskedArray(part := parts[name][i]):
                is_told, hidden = True, _of_items(name, np.ma.getmaskarray(part))
                is_item[:] &= ~hidden if len(hidden) == len(is_item) else True
        for name in parts if not is_item.all() else ():
            part = parts[name][i]
            axis = part.ndim - (1 if name == "attention" or part.ndim < 2 else 2)
            if part.shape[axis] == len(is_item):
                parts[name][i] = part.compress(is_item, axis)
            if name == "attention" and part.sum() - parts[name][i].sum() > ROUNDED * part.sum():
                raise InputError(
                    f"attention[{i}]: expected weight 0 on padding, got {part[..., ~is_item].max():.3g}; "
                    "lengths count items that come first, and a mask is 1 for each item"
                )
    cut = sum(int((~is_item).sum()) for is_item in masks)
    notes = [f"{cut} of {sum(map(len, masks))} items are padding: left out"] if cut else []
    return parts, masks, notes if is_told else _notes_on_ends(reference, empty)


def _of_items(name: str, is_so: Mask) -> Mask:
    """Return of which items (T,) all numbers are so."""
    of_rows = np.atleast_1d(is_so if name == "attention" or is_so.ndim < 2 else is_so.all(-1))
    return np.asarray(of_rows.all(axis=tuple(range(of_rows.ndim - 1))))


def _told(sizes: Sequence[int], lengths: Any, mask: Any) -> list[Mask]:
    """Return which of so many items of each instance lengths or a mask tell to be items."""
    if lengths is not None and mask is not None:
        raise InputError("expected lengths or mask, got both; leave one out")
    if (name := "lengths" if mask is None else "mask") == "lengths":
        ends = as_numpy(sizes if lengths is None else lengths, name).reshape(-1)
        bounds = zip(sizes, each(ends, name, len(sizes)), strict=True)
        mask = [np.arange(max(size, end)) < end for size, end in bounds]
    masks = [as_numpy(part, name) for part in each(mask, name, len(sizes))]
    for i, (size, part) in enumerate(zip(sizes, masks, strict=True)):
        if part.shape != (size,):
            raise InputError(f"{name}[{i}]: expected up to {size} items, got {part.shape}")
    return [part.astype(bool) for part in masks]


def _notes_on_ends(name: str, empty: Sequence[Mask]) -> list[str]:
    """Return a note if instances begin or end with items of 0, or raise InputError if most of them do."""
    ends = np.array([mask[[0, -1]] for mask in empty if len(mask) > mask.sum()]).reshape(-1, 2)
    said = f"{ends.any(1).sum()} of {len(ends)} instances begin or end with items of 0"
    way_out = "cut it off, or give masked arrays (numpy.ma), which hide what is padding"
    if name == "attention":
        way_out = "give lengths (B,) or a mask (B, T) of the items, of all if none is padding"
    if 2 * ends.sum(0).max() > len(ends):
        raise InputError(f"{name}: expected items alone, but {said}, as padding is; {way_out}")
    return [f"{said}, which count; {way_out}"] if ends.any() else []
