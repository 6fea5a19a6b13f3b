"""Interventions on rows of weights: spread evenly, or dealt out anew.

`permute` reads permutations off a linear read-out; a model that is not linear in its attention
needs the weights themselves. Every row keeps its total mass and stays on its support.
"""

from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor


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
    rng: np.random.Generator,
    *,
    elements: int = 1 << 22,
) -> Iterator[Float[Tensor, "S B K P"]]:
    """Blocks of weightings, S = `permutations` in all, each row shuffled within its own support.

    Independent uniform permutations a row and weighting (sorted random keys). A block has at most
    `elements` numbers, or one weighting; where the blocks end does not change what is in them, for
    the keys come from `rng` in one order.
    """
    if permutations < 1:
        raise ValueError(f"expected at least 1 permutation, got {permutations}")
    size = max(1, elements // max(1, attention.numel()))
    return _blocks(attention, support, permutations, rng, size)


def _blocks(
    attention: Float[Tensor, "B K P"],
    support: Bool[Tensor, "B K P"],
    permutations: int,
    rng: np.random.Generator,
    size: int,
) -> Iterator[Float[Tensor, "S B K P"]]:
    allowed = support.numpy(force=True)
    # Supported positions first, in their order: those that the sorted keys will fill.
    slots = torch.argsort(~support, dim=-1, stable=True)
    original = attention.masked_fill(~support, 0.0)
    for at in range(0, permutations, size):
        count = min(size, permutations - at)
        keys = rng.random((count, *allowed.shape))
        keys[:, ~allowed] = 2.0  # behind every key in [0, 1)
        order = torch.from_numpy(keys.argsort(-1)).to(attention.device)
        source = original.expand(count, -1, -1, -1).gather(-1, order)
        yield torch.zeros_like(source).scatter(-1, slots.expand_as(order), source)
