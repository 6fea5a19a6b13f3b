"""Measure where a head attends by kind of token: words, [CLS], [SEP], punctuation (Clark et al. 2019).

Kinds are numbered by the caller: 0 a word, 1 and up the special kinds, −1 padding.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import one_hot

from heedmap.measures import entropy


def shares(
    attention: Float[Tensor, "B H Q N"],
    keys: Int[Tensor, "B N"],
    queries: Bool[Tensor, "B Q"],
    kinds: int,
) -> Float[Tensor, "B H {kinds}"]:
    """Return a head's mass on each kind: the mean over real queries of Σ_{j of the kind} A[i, j].

    `keys` is the kind of each key and `queries` the queries that count: pass some of them for, say, what [SEP]
    itself attends to. In float64; sums to 1 over the kinds if rows do over real keys; NaN if no query counts.
    Clark et al. pool the queries of all texts; this is one number per text, so that texts can be compared and
    resampled.

    Raises ValueError if a kind is below −1 or not below `kinds`.
    """
    return torch.einsum("bhn,bnk->bhk", _mean(attention, queries), _members(keys, kinds))


def head_entropy(
    attention: Float[Tensor, "B H Q N"], queries: Bool[Tensor, "B Q"]
) -> Float[Tensor, "B H"]:
    """Return the mean entropy of a head's rows over real queries, in nats; NaN if no query counts.

    0 · ln 0 is 0; the released code of Clark et al. mixes in a uniform distribution instead.
    """
    return _mean(entropy(attention).unsqueeze(-1), queries).squeeze(-1)


def _mean(values: Float[Tensor, "B H Q M"], queries: Bool[Tensor, "B Q"]) -> Float[Tensor, "B H M"]:
    """Return the mean over real queries, in float64; other queries are ignored, even if NaN."""
    selected = torch.where(queries[:, None, :, None], values, 0)
    return selected.sum(2, dtype=torch.float64) / queries.sum(1)[:, None, None]


def _members(keys: Int[Tensor, "B N"], kinds: int) -> Float[Tensor, "B N {kinds}"]:
    """Return 1 where a position is of a kind; rows of padding are 0."""
    if keys.numel() and not -1 <= int(keys.min()) <= int(keys.max()) < kinds:
        low, high = int(keys.min()), int(keys.max())
        raise ValueError(f"kinds must lie between -1 and {kinds - 1}, got {low} to {high}")
    # Padding becomes a first kind, which is then dropped.
    return one_hot(keys.long() + 1, kinds + 1)[..., 1:].double()
