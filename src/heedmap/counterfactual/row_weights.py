"""Interventions on rows of weights: uniform, or permuted.

`permute` reads permutations off a linear read-out; a model that is not linear in its attention
needs the weights themselves. Every row keeps its total mass and stays on its support.
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
    """Each row's mass spread evenly over its support; a row without support is 0."""
    mass = attention.masked_fill(~support, 0.0).sum(-1, keepdim=True)
    return support * (mass / support.sum(-1, keepdim=True).clamp(min=1))


def permuted(
    attention: Float[Tensor, "B K P"],
    support: Bool[Tensor, "B K P"],
    permutations: int,
    rngs: Sequence[np.random.Generator],
    *,
    elements: int = 1 << 22,
) -> Iterator[Float[Tensor, "S B K P"]]:
    """Blocks of weightings, S = `permutations` in all, each row shuffled within its own support.

    Of an instance whose rows have at most `permutations` joint orders, the first weightings are all of
    them (`permute.orders`), which the others repeat: two rows of three positions have 36. Else they are
    independent and uniform for every row and weighting (sorted random keys), from the instance's own
    generator, so that they depend neither on its batch nor on its padding. A block has at most
    `elements` numbers, or one weighting; where the blocks end does not change what is in them.
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
    few = {
        i: _all_orders(allowed[i])
        for i, count in enumerate(orders(support.sum(-1)))
        if count <= permutations
    }
    for at in range(0, permutations, size):
        count = min(size, permutations - at)
        keys = np.full((count, *allowed.shape), 2.0)  # behind every key in [0, 1)
        for i, rng in enumerate(rngs):
            if i not in few:
                lines, places = np.flatnonzero(allowed[i].any(1)), np.flatnonzero(allowed[i].any(0))
                drawn = rng.random((count, len(lines), len(places)))
                keys[:, i, lines[:, None], places] = drawn
        keys[:, ~allowed] = 2.0
        found = keys.argsort(-1)
        for i, every in few.items():
            found[:, i] = every[np.arange(at, at + count) % len(every)]
        order = torch.from_numpy(found).to(attention.device)
        source = original.expand(count, -1, -1, -1).gather(-1, order)
        yield torch.zeros_like(source).scatter(-1, slots.expand_as(order), source)


def _all_orders(allowed: Bool[np.ndarray, "K P"]) -> Int[np.ndarray, "orders K P"]:
    """The source position of every position's weight, in each joint order of the rows."""
    rest = [np.flatnonzero(~row) for row in allowed]
    each = (every_order(np.flatnonzero(row).tolist()) for row in allowed)
    found = [
        [[*order, *others] for order, others in zip(joint, rest, strict=True)]
        for joint in product(*each)
    ]
    return np.array(found, dtype=np.int64)
