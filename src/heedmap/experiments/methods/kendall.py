"""Compute Kendall's tau-b for many short vectors at once, with two-sided p-values."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from scipy import stats
from torch import Tensor

# Up to this length, and without ties, the p-value is exact; above it, normal. As in scipy's default.
EXACT_UP_TO = 33
ELEMENTS = 1 << 19  # pairwise comparisons held at a time: 4 MB, which stay in the cache
LONG = 4096  # positions from which sorting is faster than comparing all pairs


@dataclass(frozen=True)
class Kendall:
    """tau and p of every pair of measures, NaN where tau is undefined (a constant vector, n < 2)."""

    tau: Float[Tensor, "B M M"]
    p: Float[Tensor, "B M M"]


def kendall_tau(values: Float[Tensor, "B M T"], mask: Bool[Tensor, "B T"]) -> Kendall:
    """Return tau-b between all M measures of each instance, over its unmasked positions.

    With s_m[i, j] = sign(x_mi − x_mj) and ⟨·,·⟩ the sum over i < j, tau_ab = ⟨s_a, s_b⟩ /
    √(⟨s_a, s_a⟩ ⟨s_b, s_b⟩): per instance, one product of a matrix with its transpose gives all pairs. The
    null distribution of the p-value is exact for n ≤ 33 without ties (and where at most one pair is
    discordant), else normal with the tie-corrected variance (Kendall 1970), as in
    `scipy.stats.kendalltau`. Time is quadratic in T, and that of a sort from LONG positions on; memory is
    bounded.

    >>> attention, gradient = [0.5, 0.3, 0.1, 0.1], [0.9, 0.1, 0.4, 0.2]
    >>> one = kendall_tau(torch.tensor([[attention, gradient]]), torch.ones(1, 4, dtype=torch.bool))
    >>> round(one.tau[0, 0, 1].item(), 3), round(one.p[0, 0, 1].item(), 3)
    (0.183, 0.718)
    """
    wide = values.double()
    gram, untied_with = _products(wide, wide, mask)
    untied = gram.diagonal(dim1=1, dim2=2)
    scale = torch.sqrt(untied.unsqueeze(1) * untied.unsqueeze(2))
    tau = torch.where(scale > 0, gram / scale, torch.nan).clamp(-1, 1)

    n = mask.sum(1).double()
    # Sums over tie groups of size c, written as sums over their members: Σ c f(c) / c.
    group = torch.where(mask.unsqueeze(1), n[:, None, None] - untied_with, 1.0)
    triples = ((group - 1) * (group - 2)).sum(-1)
    weights = ((group - 1) * (2 * group + 5)).sum(-1)
    # On the CPU in NumPy, where SciPy has the normal distribution's tail.
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
    """Return tau-b of M measures with R references, without p-values; otherwise as `kendall_tau`."""
    gram, untied_values = _products(values.double(), references.double(), mask)
    _, untied_references = _products(references.double(), references.double()[:, :0], mask)
    scale = (untied_values.sum(-1).unsqueeze(2) * untied_references.sum(-1).unsqueeze(1)).sqrt() / 2
    return torch.where(scale > 0, gram / scale, torch.nan).clamp(-1, 1)


def _products(
    measures: Float[Tensor, "B M T"], references: Float[Tensor, "B R T"], mask: Bool[Tensor, "B T"]
) -> tuple[Float[Tensor, "B M R"], Float[Tensor, "B M T"]]:
    """Return concordant − discordant pairs of any two measures, and the number of untied others per position.

    Computed in blocks of positions. The sums are of integers, and so exact in any order.
    """
    size = measures.shape[2]
    if size >= LONG:
        return _products_by_sorting(measures, references, mask)
    gram = measures.new_zeros(len(measures), measures.shape[1], references.shape[1])
    untied = torch.zeros_like(measures)
    rows = max(
        1, ELEMENTS // max(1, len(measures) * (measures.shape[1] + references.shape[1]) * size)
    )
    for start in range(0, size, rows):
        part = slice(start, start + rows)
        pairs = (mask[:, part, None] & mask[:, None]).unsqueeze(1)

        def signs(values: Tensor, part: slice = part, pairs: Tensor = pairs) -> Tensor:
            sign = torch.sign(values[..., part, None] - values.unsqueeze(-2)) * pairs
            return sign.float()  # exact for integers up to 2^24, more than ELEMENTS

        value_signs = signs(measures)
        reference_signs = value_signs if references is measures else signs(references)
        gram += torch.matmul(value_signs.flatten(-2), reference_signs.flatten(-2).mT) / 2
        untied[..., part] = value_signs.abs().sum(-1)
    return gram, untied


def _products_by_sorting(
    measures: Float[Tensor, "B M T"], references: Float[Tensor, "B R T"], mask: Bool[Tensor, "B T"]
) -> tuple[Float[Tensor, "B M R"], Float[Tensor, "B M T"]]:
    """Return the same in O(T log T), text by text (Knight 1966, in scipy)."""
    gram = np.zeros((len(measures), measures.shape[1], references.shape[1]))
    untied = np.zeros(measures.shape)
    for b, real in enumerate(mask.numpy(force=True)):
        measured, referred = (x[b].numpy(force=True)[:, real] for x in (measures, references))
        n = measured.shape[1]
        scales = []
        for values in (measured, referred):
            groups = [np.unique(row, return_inverse=True, return_counts=True)[1:] for row in values]
            sizes = [counts[inverse] for inverse, counts in groups]
            scales.append([np.sqrt((n - size).sum() / 2) for size in sizes])
            if values is measured:
                untied[b][:, real] = [n - size for size in sizes]
        for i, row in enumerate(measured):
            for j, column in enumerate(referred):
                scale = scales[0][i] * scales[1][j]
                if scale > 0:
                    tau = stats.kendalltau(row, column).statistic
                    # An integer below 2^53: tau has all its digits.
                    gram[b, i, j] = np.rint(tau * scale)
    return torch.from_numpy(gram).to(measures), torch.from_numpy(untied).to(measures)


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
    minority = np.minimum(discordant, total[:, None, None] - discordant)
    exact = untied_pair & ((size <= EXACT_UP_TO) | (minority <= 1)) & (size >= 2)
    for length in np.unique(n[exact.any((1, 2))]):
        rows = exact & (size == length)
        tail = _tail(int(length))
        p[rows] = np.minimum(1.0, 2 * tail[minority[rows].astype(np.int64)])
    return np.asarray(p)


@cache
def _tail(n: int) -> NDArray[np.float64]:
    """Return P(at most k discordant pairs) in a random order of n positions; of a long one, for k = 0 and 1."""
    if n > EXACT_UP_TO:
        # Of n! orders one has no discordant pair, and n − 1 have one. In logarithms, because n! overflows.
        log_permutations = np.sum(np.log(np.arange(1, n + 1)))
        tail: NDArray[np.float64] = np.array([1.0, float(n)]) * np.exp(-log_permutations)
        return tail
    # Permutations by inversions: the product over k = 1..n of (1 + q + ... + q^(k−1)), scaled to sum to 1.
    counts = np.ones(1)
    for k in range(2, n + 1):
        counts = np.convolve(counts, np.ones(k)) / k
    return np.cumsum(counts)
