"""Kendall's tau-b of many short vectors at once, with two-sided p-values."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from scipy import stats
from torch import Tensor

# Below this length, and without ties, the p-value is exact; above it, normal. As scipy's default.
EXACT_UP_TO = 33


@dataclass(frozen=True)
class Kendall:
    """tau and p of every pair of measures, NaN where tau is undefined (a constant vector, n < 2)."""

    tau: Float[Tensor, "B M M"]
    p: Float[Tensor, "B M M"]


def kendall_tau(values: Float[Tensor, "B M T"], mask: Bool[Tensor, "B T"]) -> Kendall:
    """Tau-b between all M measures of each instance, over its unmasked positions.

    With S_m[i, j] = sign(x_mi − x_mj) and ⟨·,·⟩ the sum over i < j, tau_ab = ⟨S_a, S_b⟩ /
    √(⟨S_a, S_a⟩ ⟨S_b, S_b⟩): one product of a matrix with its transpose an instance gives all pairs. The
    null distribution of the p-value is exact for n ≤ 33 without ties (and where at most one pair is
    discordant), else normal with the tie-corrected variance (Kendall 1970); the same as
    `scipy.stats.kendalltau`. Time and memory are quadratic in T: bound B × T² by the caller.
    """
    wide = values.double()
    signs = torch.sign(wide.unsqueeze(-1) - wide.unsqueeze(-2))
    pairs = (mask.unsqueeze(-1) & mask.unsqueeze(-2)).unsqueeze(1)
    # float32 holds every whole number up to 2^24: enough for 4096 positions.
    kind = torch.float32 if values.shape[-1] <= 4096 else torch.float64
    flat = (signs * pairs).to(kind).flatten(-2)
    gram = torch.matmul(flat, flat.transpose(1, 2)).double() / 2  # concordant − discordant
    untied = gram.diagonal(dim1=1, dim2=2)
    scale = torch.sqrt(untied.unsqueeze(1) * untied.unsqueeze(2))
    tau = torch.where(scale > 0, gram / scale, torch.nan).clamp(-1, 1)

    n = mask.sum(1).double()
    # Sums over tie groups of size c, written as sums over their members: Σ c f(c) / c.
    group = torch.where(
        mask.unsqueeze(1), n[:, None, None] - flat.abs().view_as(signs).sum(-1), 1.0
    )
    triples = ((group - 1) * (group - 2)).sum(-1)
    weights = ((group - 1) * (2 * group + 5)).sum(-1)
    p = _p_values(
        gram.numpy(force=True),
        n.numpy(force=True),
        untied.numpy(force=True),
        triples.numpy(force=True),
        weights.numpy(force=True),
    )
    defined = scale.gt(0).numpy(force=True)
    return Kendall(tau, torch.from_numpy(np.where(defined, p, np.nan)))


def tau_against(
    values: Float[Tensor, "B M T"], references: Float[Tensor, "B R T"], mask: Bool[Tensor, "B T"]
) -> Float[Tensor, "B M R"]:
    """Tau-b of M measures with R others only; as `kendall_tau`, without p-values."""
    pairs = (mask.unsqueeze(-1) & mask.unsqueeze(-2)).unsqueeze(1)

    def signs(wide: Tensor) -> Tensor:
        found = torch.sign(wide.unsqueeze(-1) - wide.unsqueeze(-2)) * pairs
        return found.flatten(-2).double()

    first, second = signs(values.double()), signs(references.double())
    gram = torch.matmul(first, second.transpose(1, 2))
    sizes = first.square().sum(-1).unsqueeze(2) * second.square().sum(-1).unsqueeze(1)
    scale = sizes.sqrt()
    return torch.where(scale > 0, gram / scale, torch.nan).clamp(-1, 1)


def _p_values(
    difference: NDArray[np.float64],
    n: NDArray[np.float64],
    untied: NDArray[np.float64],
    triples: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> NDArray[np.float64]:
    total = n * (n - 1) / 2
    ties = total[:, None] - untied
    size = n[:, None, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        m = size * (size - 1)
        variance = (m * (2 * size + 5) - weights[:, :, None] - weights[:, None, :]) / 18
        variance = variance + 2 * ties[:, :, None] * ties[:, None, :] / m
        third = triples[:, :, None] * triples[:, None, :] / (9 * m * (size - 2))
        variance = variance + np.where(size > 2, third, 0.0)
        p = 2 * stats.norm.sf(np.abs(difference) / np.sqrt(variance))
    untied_pair = (ties[:, :, None] == 0) & (ties[:, None, :] == 0)
    discordant = (total[:, None, None] - difference) / 2
    few = np.minimum(discordant, total[:, None, None] - discordant)
    exact = untied_pair & ((size <= EXACT_UP_TO) | (few <= 1)) & (size >= 2)
    for length in np.unique(n[exact.any((1, 2))]):
        here = exact & (size == length)
        p[here] = _exact_p(int(length))(few[here])
    return np.asarray(p)


@cache
def _exact_p(n: int) -> "_ExactP":
    return _ExactP(n)


class _ExactP:
    """Two-sided exact p of `few` discordant (or concordant, whichever is smaller) pairs among n."""

    def __init__(self, n: int) -> None:
        # Permutations by inversions: the product over k = 1..n of (1 + q + ... + q^(k−1)).
        counts = np.ones(1)
        for k in range(2, n + 1 if n <= EXACT_UP_TO else 1):
            counts = np.convolve(counts, np.ones(k)) / k
        self.cumulative = np.cumsum(counts) if n <= EXACT_UP_TO else self._first_two(n)

    @staticmethod
    def _first_two(n: int) -> NDArray[np.float64]:
        log_permutations = np.sum(np.log(np.arange(1, n + 1)))
        tail: NDArray[np.float64] = np.array([1.0, float(n)]) * np.exp(-log_permutations)
        return tail

    def __call__(self, few: NDArray[np.float64]) -> NDArray[np.float64]:
        p: NDArray[np.float64] = np.minimum(1.0, 2 * self.cumulative[few.astype(np.int64)])
        return p
