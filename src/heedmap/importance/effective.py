"""Identifiability: what of the attention reaches the output, and how free the rest is.

A head puts out A T, with T = V W_O its values through its slice of the output projection, before the
sum over heads. Whatever of a row of A lies in the left null space {x : xᵀT = 0} is lost there
(Brunner et al. 2019). That is a statement about one head of one layer, not about the prediction;
`same_prediction_dimension` makes the statement about predictions, where a read-out is linear.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad


@dataclass(frozen=True)
class Freedom:
    """Ranks of T and of [T, 1] over the real positions of each text; both count what is fixed."""

    rank: Int[Tensor, "*batch"]
    rank_with_ones: Int[Tensor, "*batch"]
    tokens: Int[Tensor, "*batch"]
    head_dim: int  # columns of T: no rank is higher

    @property
    def dimension(self) -> Int[Tensor, "*batch"]:
        """Dimension of the left null space: directions in which a row may move, n − rank T."""
        return self.tokens - self.rank

    @property
    def dimension_on_simplex(self) -> Int[Tensor, "*batch"]:
        """The same for rows that must still sum to 1: n − rank [T, 1]."""
        return self.tokens - self.rank_with_ones


def narrow(
    values: Float[Tensor, "*#batch N V"], output: Float[Tensor, "*#batch V D"]
) -> Float[Tensor, "*out N K"]:
    """T = V W_O up to a rotation of its columns, of which min(V, D) are left; in float64.

    With the QR decomposition W_Oᵀ = Q R, T = (V Rᵀ) Qᵀ: V Rᵀ has the left singular vectors and the
    singular values of T, and d_v columns for the model's d. A product in float32 would not do for
    `effective_attention` and `freedom`: its rounding alone has full rank.
    """
    upper: Tensor = torch.linalg.qr(output.double().mT, mode="r").R
    return torch.matmul(values.double(), upper.mT)


def effective_attention(
    attention: Float[Tensor, "*batch Q N"],
    transformed: Float[Tensor, "*batch N D"],
    mask: Bool[Tensor, "*batch N"],
) -> Float[Tensor, "*batch Q N"]:
    """Attention without its part in the left null space of T: A⊥ = A U_r U_rᵀ, in float64.

    U_r are the left singular vectors of T over real keys with σ > eps · max(n, D) · σ_max, n the real
    keys and eps that of T's dtype, each text with its own rank. A⊥ T = A T, and no other rows with that
    property are shorter. Padded keys take no part and get 0. Not a distribution: rows need not sum
    to 1 and may have negative entries.

    The cut-off is relative to σ_max and the rank never shared between texts or heads, unlike in the
    released code of Sun & Marasović 2021.
    """
    left = kept_directions(transformed, mask)
    keys = mask.unsqueeze(-2)
    rows = torch.where(keys, attention, 0).double()
    return torch.where(keys, rows @ left @ left.mT, 0)


def kept_directions(
    transformed: Float[Tensor, "*batch N D"], mask: Bool[Tensor, "*batch N"]
) -> Float[Tensor, "*batch N R"]:
    """U_r of `effective_attention`, in float64: A U_r U_rᵀ is what is kept of A; columns past r are 0."""
    left, singular, _ = torch.linalg.svd(_real(transformed, mask), full_matrices=False)
    kept: Tensor = singular > _cut_off(singular, transformed, mask).unsqueeze(-1)
    directions: Tensor = left * kept.unsqueeze(-2)
    return directions


def effective_share(
    attention: Float[Tensor, "*batch Q N"], effective: Float[Tensor, "*batch Q N"]
) -> Float[Tensor, "*batch Q"]:
    """How much of each row is effective: ‖A⊥‖₂ / ‖A‖₂, in [0, 1], in float64.

    The cosine of the angle between a row and what is left of it: 1 where the row is identifiable (has
    no part in the null space), 0 where all of it is lost. A row of zeros loses nothing: 1.
    """
    whole = torch.linalg.vector_norm(attention.double(), dim=-1)
    share = torch.linalg.vector_norm(effective.double(), dim=-1) / whole
    return torch.where(whole > 0, share, 1.0).clamp(max=1.0)


def freedom(transformed: Float[Tensor, "*batch N D"], mask: Bool[Tensor, "*batch N"]) -> Freedom:
    """Ranks of T and of [T, 1], over real positions, with the cut-off of `effective_attention`.

    rank [T, 1] = 1 + rank of T less its mean row: written so, the scale of T next to 1 plays no part.
    """
    real = _real(transformed, mask)
    tokens = mask.sum(-1)
    mean = real.sum(-2, keepdim=True) / tokens.clamp(min=1)[..., None, None]
    singular = torch.linalg.svdvals(real)
    centred = torch.linalg.svdvals(_real(real - mean, mask))
    # One cut-off for both: what is rounding in T is rounding in what is left of it.
    cut_off = _cut_off(singular, transformed, mask).unsqueeze(-1)
    rank, rank_centred = ((each > cut_off).sum(-1) for each in (singular, centred))
    return Freedom(rank, rank_centred + (tokens > 0), tokens, transformed.shape[-1])


def same_prediction_dimension(
    relevance: Float[Tensor, "B T C"], mask: Bool[Tensor, "B T"]
) -> Int[Tensor, " B"]:
    """Dimension of the weightings with exactly the same prediction: n − 1 − rank of the centred D.

    For a single head read out linearly, z(α) = Σ_t α_t R_t + b with R the `relevance`: the weightings
    {α ≥ 0, Σ α = 1, Dᵀα = Dᵀα̂} with the logit differences D = R_c − R_0 of α̂ form a polytope. Generally
    n − 2 for two classes and n − C for C ≤ n; 0 where n is too small for any other weighting.

    That is the dimension for an α̂ without zeros. A zero weight puts α̂ on the polytope's boundary: not
    all directions lead from it to other weightings, and the polytope may be of lower dimension.
    """
    differences = relevance[..., 1:] - relevance[..., :1]
    return freedom(differences, mask).dimension_on_simplex


def _real(values: Float[Tensor, "*batch N D"], mask: Bool[Tensor, "*batch N"]) -> Tensor:
    """Rows of padding as zeros, which change neither singular values nor the other rows' vectors."""
    return torch.where(mask.unsqueeze(-1), values, 0).double()


def _cut_off(singular: Tensor, transformed: Tensor, mask: Tensor) -> Float[Tensor, "*batch"]:
    """Up to where a singular value is rounding; from the shape without padding."""
    size = mask.sum(-1).clamp(min=transformed.shape[-1])
    largest = pad(singular, (0, 1)).amax(-1)  # the 0 put in: there may be no singular value at all
    return torch.finfo(transformed.dtype).eps * size * largest
