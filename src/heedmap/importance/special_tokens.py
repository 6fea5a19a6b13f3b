"""Where a head's attention goes by kind of token: words, [CLS], [SEP], punctuation (Clark et al. 2019).

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
    """Mass that a head puts on each kind: the mean over real queries of Σ_{j of the kind} A[i, j].

    `keys` is the kind of each key and `queries` the queries that count: pass some of them for, say, what
    [SEP] itself attends to. In float64; sums to 1 over the kinds where rows do over real keys. NaN
    where no query counts. To be held against `expected`. Clark et al. pool the queries of all texts;
    this is one number per text, so that texts can be compared and drawn again.

    Raises ValueError where a kind is below −1 or not below `kinds`.
    """
    return torch.einsum("bhn,bnk->bhk", _mean(attention, queries), _members(keys, kinds))


def expected(keys: Int[Tensor, "B N"], kinds: int) -> Float[Tensor, "B {kinds}"]:
    """Shares under uniform attention: each kind's part of the real positions; NaN where none is.

    Raises ValueError as `shares` does.
    """
    members = _members(keys, kinds).sum(1)
    return members / members.sum(-1, keepdim=True)


def head_entropy(
    attention: Float[Tensor, "B H Q N"], queries: Bool[Tensor, "B Q"]
) -> Float[Tensor, "B H"]:
    """Mean over real queries of the entropy of a head's rows, in nats; NaN where no query counts.

    0 · ln 0 is 0, where the released code of Clark et al. mixes in a uniform distribution.
    """
    return _mean(entropy(attention).unsqueeze(-1), queries).squeeze(-1)


def _mean(values: Float[Tensor, "B H Q M"], queries: Bool[Tensor, "B Q"]) -> Float[Tensor, "B H M"]:
    """Mean over real queries, in float64; what stands at other queries plays no part, NaN included."""
    kept = torch.where(queries[:, None, :, None], values, 0)
    return kept.sum(2, dtype=torch.float64) / queries.sum(1)[:, None, None]


def _members(keys: Int[Tensor, "B N"], kinds: int) -> Float[Tensor, "B N {kinds}"]:
    """1 where a position is of a kind; rows of padding are 0."""
    if keys.numel() and not -1 <= int(keys.min()) <= int(keys.max()) < kinds:
        low, high = int(keys.min()), int(keys.max())
        raise ValueError(f"kinds must lie between -1 and {kinds - 1}, got {low} to {high}")
    # Padding is counted as a kind before all others, which is then left out.
    return one_hot(keys.long() + 1, kinds + 1)[..., 1:].double()
