"""Shuffle attention: the permutation test of Jain & Wallace (2019, section 4.2.1, Algorithm 2).

The read-out is linear in the attention, so a permutation costs one product with the cached
R[t] = W h_t and never runs the encoder.
"""

import math
from itertools import permutations as every_order

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

FACTORIALS = 20  # 20! is above any number of permutations that can be requested
# Entries of one block of random keys: a megabyte, which stays in the processor's cache.
BLOCK = 1 << 17


def orders(sizes: Int[Tensor, "B K"]) -> list[int]:
    """Return Π n! per instance: the joint orders of K rows of n positions (n above 20 counts as 20).

    Where a text has no more orders than permutations are requested, all of them are used: the answer is
    then exact and does not depend on the seed.
    """
    return [math.prod(math.factorial(min(n, FACTORIALS)) for n in row) for row in sizes.tolist()]


def permuted_logits(
    attention: Float[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
    readout: Float[Tensor, "B T C"],
    bias: Float[Tensor, " C"],
    permutations: int,
    rng: np.random.Generator,
) -> Float[Tensor, "B S C"]:
    """Return logits under permutations of the real positions: z = Σ_t α_π(t) R_t + b.

    A row with n! ≤ S gets all n! of them, in an order that is drawn once and for all, repeated up to S
    (`orders`); another gets S independent uniform ones. Computed in float64. The paper draws 100 for every
    row. It permutes only the content tokens and so does this, when the mask is False on padding and on the
    start and end marks.
    """
    if permutations < 1:
        raise ValueError(f"expected at least 1 permutation, got {permutations}")
    lengths = mask.sum(-1).cpu()
    by_length = torch.argsort(lengths, stable=True)
    # Real positions to the front, in their order: a row of length n then occupies columns 0 … n−1.
    packed = torch.argsort(~mask.cpu(), dim=-1, stable=True)
    weights, relevance = attention.cpu(), readout.cpu()

    logits = torch.empty(len(mask), permutations, len(bias), dtype=torch.float64)
    sizes, counts = torch.unique_consecutive(lengths[by_length], return_counts=True)
    for size, group in zip(sizes.tolist(), torch.split(by_length, counts.tolist()), strict=True):
        pick = (group.unsqueeze(1), packed[group, :size])
        group_weights, group_relevance = weights[pick].double().numpy(), relevance[pick].double()
        rows = max(1, BLOCK // (permutations * max(size, 1)))
        exhaustive = math.factorial(min(size, FACTORIALS)) <= permutations
        if exhaustive:
            # The first few of them must not be those that leave the first word where it is.
            drawn_orders = np.random.default_rng(size).permutation(list(every_order(range(size))))
            all_orders = np.resize(drawn_orders, (permutations, size))
        for begin in range(0, len(group), rows):
            block = slice(begin, begin + rows)
            # Drawn even where unused: a text's numbers do not depend on how many short texts there are.
            random_weights = _shuffled(group_weights[block], permutations, rng)
            shuffled = torch.from_numpy(
                group_weights[block][:, all_orders] if exhaustive else random_weights
            )
            logits[group[block]] = torch.bmm(shuffled, group_relevance[block])
    return logits.to(bias.device).add_(bias.double())


def _shuffled(
    weights: Float[np.ndarray, "rows n"], permutations: int, rng: np.random.Generator
) -> Float[np.ndarray, "rows S n"]:
    """Draw independent uniform permutations of each row by sorting random 64-bit keys.

    The low bits of a key hold its position, so the sorted keys are the permutation: numpy sorts
    short rows of integers with vector instructions, in half the time that Generator.permuted
    shuffles them. The remaining bits (53 for n = 2000) tie in a row with probability below n²/2^54.
    """
    rows, size = weights.shape
    position_bits = (1 << size.bit_length()) - 1
    keys = rng.integers(0, 1 << 64, size=(rows, permutations * size), dtype=np.uint64)
    keys &= np.uint64((1 << 64) - 1 - position_bits)
    keys |= np.tile(np.arange(size, dtype=np.uint64), permutations)
    keys.reshape(rows, permutations, size).sort(axis=-1)
    # What is left of a sorted key is the position that it came from.
    keys &= np.uint64(position_bits)
    # One flat take is faster than take_along_axis, which builds the row index first.
    index = keys.view(np.int64)
    index += np.arange(rows)[:, None] * size
    shuffled: np.ndarray = weights.reshape(-1).take(index, mode="clip")
    return shuffled.reshape(rows, permutations, size)


def shuffled(
    values: Float[Tensor, "*batch S"],
    generator: torch.Generator | None,
    real: Bool[Tensor, "*#batch S"] | None = None,
) -> Float[Tensor, "*batch S"]:
    """Return the values of every row in a random order of its own; padding on the right stays there.

    None: torch's global generator, which a training has seeded.
    """
    keys = torch.rand(values.shape, generator=generator).to(values.device)
    if real is not None:
        keys = keys.masked_fill(~real, 2.0)
    return values.gather(-1, keys.argsort(dim=-1, stable=True))
