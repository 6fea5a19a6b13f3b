"""Check the arrays of instances: weights, what their items say per class, and predictions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedmap.data.foreign_arrays import as_floats, as_numpy, each
from heedmap.errors import InputError

TOLERANCE = 1e-3  # of a probability, between the arrays and what the model predicted
ROUNDED = 1e-5  # by which float32 weights may miss a sum of 1

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Instances:
    """Checked arrays: `attention` (K, T) of sum 1 and `relevance` (K, T, C) per instance, and `bias` (C,).

    `scaled` counts the instances whose weights did not sum to 1. Two classes with one sigmoid output z have the
    logits (0, z). Of a model that gives a number C is 1.
    """

    attention: list[Floats]
    relevance: list[Floats]
    bias: Floats
    scaled: int

    @property
    def rows(self) -> int:
        """Return K, how many rows of weights an instance has."""
        return int(self.attention[0].shape[0])

    def probabilities(self) -> NDArray[np.float64]:
        """Return the predictions (B, C): softmax of Σ_k Σ_t α[k, t] R[k, t] + b, in float64; or that number."""
        logits = np.array(
            [
                np.einsum("kt,ktc->c", a.astype(np.float64), r.astype(np.float64)) + self.bias
                for a, r in zip(self.attention, self.relevance, strict=True)
            ]
        )
        if logits.shape[1] == 1:
            return np.asarray(logits, dtype=np.float64)
        powers = np.exp(logits - logits.max(1, keepdims=True))
        shares: NDArray[np.float64] = powers / powers.sum(1, keepdims=True)
        return shares


def instances_of(
    attention: Any, values: Any, readouts: Any, weight: Any, bias: Any, *, is_number: bool = False
) -> tuple[Instances, NDArray[np.int64]]:
    """Return the checked instances that have items, and their numbers; see `heedmap.from_arrays`.

    `is_number`: the one output is a number, and no sigmoid's.

    Raises:
        InputError: an array does not fit; the line names the instance, what was expected and what came.
    """
    rows = [
        _weights(part, f"attention[{i}]") for i, part in enumerate(each(attention, "attention"))
    ]
    kept = np.array([i for i, row in enumerate(rows) if row.shape[-1]], dtype=np.int64)
    if not len(kept):
        raise InputError("attention: expected at least one instance that has items, got none")
    if (values is None) == (readouts is None):
        raise InputError(
            "expected either values (states, with weight and bias of the linear head) or readouts (what each "
            f"item says per class), got {'neither' if values is None else 'both'}"
        )
    if readouts is not None and weight is not None:
        raise InputError(
            "weight: expected none with readouts, which it is in already; leave it out"
        )
    if values is not None and weight is None:
        raise InputError(
            "weight: expected the linear head (C, D) that reads the values; give it, or readouts"
        )
    name = "values" if readouts is None else "readouts"
    parts = each(values if readouts is None else readouts, name, len(rows))
    head = None if weight is None else as_floats(weight, "weight")
    if head is not None and head.ndim == 1:
        head = head[None]
    if head is not None and head.ndim != 2:
        raise InputError(f"weight: expected the shape (C, D), got {head.shape}")
    first = int(kept[0])
    said = []
    for i in kept.tolist():
        if len(rows[i]) != len(rows[first]):
            raise InputError(
                f"attention[{i}]: expected {len(rows[first])} rows of weights, as attention[{first}] has, got "
                f"{len(rows[i])}"
            )
        of_items = _of_items(parts[i], f"{name}[{i}]", *rows[i].shape)
        said.append(of_items if head is None else _projected(of_items, head, f"values[{i}]"))
        if said[-1].shape[-1] != said[0].shape[-1]:
            raise InputError(
                f"{name}[{i}]: expected {said[0].shape[-1]} classes, as {name}[{first}] has, got "
                f"{said[-1].shape[-1]}"
            )
    outputs = said[0].shape[-1]
    if is_number and outputs != 1:
        raise InputError(
            f"unit: expected one output, a number in this unit, got {outputs}; leave it out"
        )
    offset = (
        np.zeros(outputs, said[0].dtype) if bias is None else np.atleast_1d(as_floats(bias, "bias"))
    )
    if offset.shape != (outputs,):
        raise InputError(
            f"bias: expected the shape ({outputs},), one per output, got {offset.shape}"
        )
    attended = [rows[i] for i in kept.tolist()]
    return _scaled(attended, said, offset, is_number), kept


def _weights(value: Any, name: str) -> Floats:
    """Return weights as (K, T): none below 0, and some above."""
    weights = as_floats(value, name)
    if weights.ndim == 0:
        raise InputError(
            f"{name}: expected the weights of an instance, (T,) or rows of them (K, T), got one number; cut an "
            "array that joins all instances by their lengths: numpy.split(array, numpy.cumsum(lengths)[:-1])"
        )
    if weights.ndim not in (1, 2):
        raise InputError(
            f"{name}: expected weights (T,) or rows of them (K, T), got {weights.shape}"
        )
    weights = weights[None] if weights.ndim == 1 else weights
    if (weights < 0).any():
        raise InputError(
            f"{name}: expected weights of 0 or more, got {weights.min():.3g}; a map with negative numbers is "
            "no attention: the questions ask what other weights of the same sum would do"
        )
    if weights.shape[-1] and not (weights.sum(-1) > 0).all():
        raise InputError(f"{name}: expected a weight above 0 in each row, got none")
    return weights


def _of_items(value: Any, name: str, rows: int, items: int) -> Floats:
    """Return what is known of each item as (K, T, ...), the same for all rows unless each has its own."""
    array = as_floats(value, name)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim == 2:
        array = np.broadcast_to(array, (rows, *array.shape))
    if array.ndim != 3 or array.shape[:2] != (rows, items):
        wanted = f"({items}, ·)" if rows == 1 else f"({items}, ·) or ({rows}, {items}, ·)"
        raise InputError(
            f"{name}: expected the shape {wanted}, as the weights have, got {np.shape(value)}"
        )
    return array


def _projected(values: Floats, head: Floats, name: str) -> Floats:
    """Return R[k, t] = W h[k, t]; where W is (C, K·D), each row of weights has its own D columns."""
    rows, _, size = values.shape
    if head.shape[1] == size:
        said: Floats = values @ head.T
    elif head.shape[1] == rows * size:
        said = values @ head.reshape(len(head), rows, size).transpose(1, 2, 0)
    else:
        raise InputError(
            f"{name}: expected states of size {head.shape[1]}, which weight reads, got {size}"
        )
    return said


def _scaled(
    attention: list[Floats], relevance: list[Floats], bias: Floats, is_number: bool
) -> Instances:
    """Make the sum of each row 1, and what its items say larger by the sum: the logits stay as they are."""
    is_double = all(
        array.dtype == np.float64 for array in (attention[0], relevance[0], np.asarray(bias))
    )
    dtype = np.float64 if is_double else np.float32
    scaled = 0
    logits_of = (lambda outputs: outputs) if is_number else _two_classes
    weights_of: list[Floats] = []
    said_of: list[Floats] = []
    for weights, said in zip(attention, relevance, strict=True):
        mass = weights.sum(-1, keepdims=True, dtype=np.float64)
        is_off = bool((abs(mass - 1) > ROUNDED).any())
        scaled += is_off
        scale = mass if is_off else np.ones_like(mass)
        weights_of.append((weights / scale).astype(dtype))
        said_of.append(logits_of(said * scale[..., None]).astype(dtype))
    return Instances(weights_of, said_of, logits_of(bias).astype(dtype), scaled)


def _two_classes(outputs: Floats) -> Floats:
    """Write one sigmoid output z as the logits (0, z)."""
    if outputs.shape[-1] > 1:
        return outputs
    return np.concatenate([np.zeros_like(outputs), outputs], axis=-1)


def probabilities_of(value: Any, name: str, count: int, classes: int) -> NDArray[np.float64]:
    """Return given probabilities as (B, C); of two classes (B,) or (B, 1) is that of the second one.

    Of one output these are numbers.

    Raises:
        InputError: another shape, or numbers that are no probabilities.
    """
    shares = as_numpy(value, name).astype(np.float64)
    if classes == 1:
        if shares.shape not in ((count,), (count, 1)) or not np.isfinite(shares).all():
            raise InputError(
                f"{name}: expected a number for each of {count} instances, got {shares.shape}"
            )
        return shares.reshape(-1, 1)
    if classes == 2 and shares.shape in ((count,), (count, 1)):
        shares = np.stack([1 - shares.reshape(-1), shares.reshape(-1)], axis=1)
    if shares.shape != (count, classes):
        raise InputError(f"{name}: expected probabilities ({count}, {classes}), got {shares.shape}")
    if (shares < 0).any() or (shares > 1).any() or (abs(shares.sum(1) - 1) > TOLERANCE).any():
        raise InputError(
            f"{name}: expected probabilities, from 0 to 1 with the sum 1, got others; of logits take the "
            "softmax, or the sigmoid of one output"
        )
    return shares


def largest_difference(
    shares: NDArray[np.float64], given: NDArray[np.float64], numbers: Sequence[int], name: str
) -> float:
    """Return the largest difference of two predictions.

    Raises:
        InputError: it is above TOLERANCE; the line names the instance.
    """
    difference = abs(shares - given).max(1)
    worst = int(difference.argmax())
    is_number = shares.shape[1] == 1
    tolerance = TOLERANCE * max(1.0, float(abs(given).max())) if is_number else TOLERANCE
    if difference[worst] > tolerance:
        formula, subject = (
            ("Σ α R + b", "it") if is_number else ("softmax(Σ α R + b)", "a probability")
        )
        raise InputError(
            f"{name}[{numbers[worst]}]: expected the prediction of the arrays, {formula}, within "
            f"{tolerance:g}; {subject} differs by {difference[worst]:.3g}: give the states and the head "
            "that the weighted sum is read with"
        )
    return float(difference[worst])
