"""Describe heads as Clark et al. 2019 do: what they attend to, how broadly, and how far they are apart.

All functions are of the attention of one text without padding; the released code has means of these over
texts.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedmap.measures import entropy

ENTROPY_SMOOTHING = 1e-4
DISTANCE_SMOOTHING = 1e-3


class Marks(NamedTuple):
    """Which positions of a text are [CLS], [SEP], and a full stop or comma."""

    cls: Bool[Tensor, " N"]
    sep: Bool[Tensor, " N"]
    punctuation: Bool[Tensor, " N"]


def smoothed(weights: Float[Tensor, "*lead N"], share: float) -> Float[Tensor, "*lead N"]:
    """Mix weights with uniform ones: ã = (1 − s) a + s / n, in double precision."""
    return (1 - share) * weights.double() + share / weights.shape[-1]


def masses(
    weights: Float[Tensor, "*heads N N"], marks: Marks
) -> dict[str, Float[Tensor, "*heads"]]:
    """Return the mean attention of all n rows to each kind of position, by its name.

    `next` and `previous` are divided by n too, although one row has none, as in the released code.
    `sep_to_sep` is the mean of the rows of [SEP], `others_to_sep` of the other rows: theirs are divided by 2
    and n − 2, since their texts have two [SEP]; ours by how many there are. NaN where a text has no such row,
    or no token that the column is of.
    """
    weights = weights.double()
    n, sep = weights.shape[-1], marks.sep
    to_sep = weights[..., sep].sum(-1)
    return {
        "cls": _if_any(marks.cls, weights[..., marks.cls].sum((-2, -1)) / n),
        "sep": _if_any(sep, to_sep.mean(-1)),
        "punctuation": weights[..., marks.punctuation].sum((-2, -1)) / n,
        "self": weights.diagonal(dim1=-2, dim2=-1).sum(-1) / n,
        "next": weights.diagonal(1, -2, -1).sum(-1) / n,
        "previous": weights.diagonal(-1, -2, -1).sum(-1) / n,
        "sep_to_sep": _if_any(sep, to_sep[..., sep].mean(-1)),
        "others_to_sep": _if_any(sep, to_sep[..., ~sep].mean(-1)),
    }


def _if_any(mark: Bool[Tensor, " N"], values: Float[Tensor, "*heads"]) -> Float[Tensor, "*heads"]:
    return values if bool(mark.any()) else torch.full_like(values, torch.nan)


def row_entropies(weights: Float[Tensor, "*heads N N"]) -> Float[Tensor, "*heads N"]:
    """Return the entropy of each row in nats, of ã = .9999 a + .0001 / n; at most ln n."""
    return entropy(smoothed(weights, ENTROPY_SMOOTHING))


def head_distances(weights: Float[Tensor, "K N N"]) -> Float[Tensor, "K K"]:
    """Return Σ_rows JSD(ã_k ‖ ã_l) of each two heads, of ã = .999 a + .001 / n, in nats.

    By JSD(p, q) = H((p + q) / 2) − (H(p) + H(q)) / 2, one logarithm per pair and weight instead of three.
    """
    rows = smoothed(weights, DISTANCE_SMOOTHING)
    entropies = entropy(rows).sum(-1)
    distances = rows.new_zeros(len(rows), len(rows))
    for k in range(len(rows) - 1):
        mixed = entropy((rows[k] + rows[k + 1 :]) / 2).sum(-1)
        distances[k, k + 1 :] = mixed - (entropies[k] + entropies[k + 1 :]) / 2
    return (distances + distances.T).clamp(min=0.0)
