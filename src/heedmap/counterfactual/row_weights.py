"""Replace rows of weights: by uniform, turned, random, or permuted ones.

`permute` needs a linear read-out and gives logits; other models need the weights themselves. Every row
keeps its total mass and stays on its support.
"""

from collections.abc import Iterator, Sequence
from itertools import permutations as every_order
from itertools import product

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedmap.counterfactual.permute import orders


def uniform(
    attention: Float[Tensor, "*rows P"], support: Bool[Tensor, "*rows P"]
) -> Float[Tensor, "*rows P"]:
    """Spread each row's mass evenly over its support; a row without support is 0."""
    mass = attention.masked_fill(~support, 0.0).sum(-1, keepdim=True)
    return support * (mass / support.sum(-1, keepdim=True).clamp(min=1))


def turned(
    attention: Float[Tensor, "*rows P"], support: Bool[Tensor, "*rows P"]
) -> Float[Tensor, "*rows P"]:
    """Turn the order of each row's weights: the position with the k-th largest gets the k-th smallest.

    >>> weights = torch.tensor([0.7, 0.1, 0.2], dtype=torch.float64)
    >>> turned(weights, weights > 0).tolist()
    [0.1, 0.7, 0.2]
    """
    count = support.sum(-1, keepdim=True)
    order = attention.masked_fill(~support, torch.inf).argsort(dim=-1, stable=True)
    ascending = attention.gather(-1, order)  # positions outside the support come last
    place = torch.arange(attention.shape[-1], device=attention.device).expand_as(order)
    opposite = ascending.gather(-1, (count - 1 - place).clamp(min=0))
    return torch.zeros_like(attention).scatter(-1, order, opposite) * support


def dirichlet(
    attention: Float[Tensor, "B K P"],
    support: Bool[Tensor, "B K P"],
    rngs: Sequence[np.random.Generator],
) -> Float[Tensor, "B K P"]:
    """Draw each row uniformly from the simplex over its support, with its total mass (Dirichlet(1, …, 1)).

    Every instance draws from its own generator, for supported positions in their order, so that padding does
    not matter.
    """
    allowed = support.numpy(force=True)
    samples = np.zeros(allowed.shape)
    for i, rng in enumerate(rngs):
        samples[i][allowed[i]] = rng.standard_exponential(int(allowed[i].sum()))
    weights = torch.from_numpy(samples).to(attention)
    mass = attention.masked_fill(~support, 0.0).sum(-1, keepdim=True)
    return weights / weights.sum(-1, keepdim=True).clamp(min=1e-30) * mass


def permuted(
    attention: Float[Tensor, "B K P"],
    support: Bool[Tensor, "B K P"],
    permutations: int,
    rngs: Sequence[np.random.Generator],
    *,
    elements: int = 1 << 22,
) -> Iterator[Float[Tensor, "S B K P"]]:
    """Yield blocks of weightings, S = `permutations` in all, each row shuffled within its own support.

    An instance whose rows have at most `permutations` joint orders gets all of them, one after the other from a
    drawn one on, repeated (`permute.orders`); two rows of three positions have 36. Otherwise each row and
    weighting is independent and uniform (sorted random keys), from the instance's own generator: its batch
    and padding do not matter. A block has at most `elements` numbers, or one weighting; its size changes no
    weights.
    """
    if permutations < 1:
        raise ValueError(f"expected at least 1 permutation, got {permutations}")
    size = max(1, elements // max(1, attention.numel()))
    return _blocks(attention, support, permutations, rngs, size)


def _blocks(
    attention: Float[Tensor, "B K P"],
    support: Bool[Tensor, "B K P"],
    permutations: int,
    rngs: Sequence[np.random.Generator],
    size: int,
) -> Iterator[Float[Tensor, "S B K P"]]:
    allowed = support.numpy(force=True)
    # Supported positions first, in their order: those that the sorted keys will fill.
    slots = torch.argsort(~support, dim=-1, stable=True)
    original = attention.masked_fill(~support, 0.0)
    enumerated = {}
    for i, count in enumerate(orders(support.sum(-1))):
        if count <= permutations:
            all_orders = _all_orders(allowed[i])
            # Whoever takes fewer than all, or not all equally often, must not always begin with the text's own.
            enumerated[i] = np.roll(all_orders, rngs[i].integers(len(all_orders)), axis=0)
    for begin in range(0, permutations, size):
        count = min(size, permutations - begin)
        keys = np.full((count, *allowed.shape), 2.0)  # behind every key in [0, 1)
        for i, rng in enumerate(rngs):
            if i not in enumerated:
                rows, columns = np.flatnonzero(allowed[i].any(1)), np.flatnonzero(allowed[i].any(0))
                random_keys = rng.random((count, len(rows), len(columns)))
                keys[:, i, rows[:, None], columns] = random_keys
        keys[:, ~allowed] = 2.0
        positions = keys.argsort(-1)
        for i, all_orders in enumerated.items():
            positions[:, i] = all_orders[np.arange(begin, begin + count) % len(all_orders)]
        order = torch.from_numpy(positions).to(attention.device)
        source = original.expand(count, -1, -1, -1).gather(-1, order)
        yield torch.zeros_like(source).scatter(-1, slots.expand_as(order), source)


def _all_orders(allowed: Bool[np.ndarray, "K P"]) -> Int[np.ndarray, "orders K P"]:
    """Return the source position of every position's weight, in each joint order of the rows."""
    rest = [np.flatnonzero(~row) for row in allowed]
    row_orders = (every_order(np.flatnonzero(row).tolist()) for row in allowed)
    positions = [
        [[*order, *unsupported] for order, unsupported in zip(joint, rest, strict=True)]
        for joint in product(*row_orders)
    ]
    return np.array(positions, dtype=np.int64)
