"""Find which part of the attention reaches the output, and how free the rest is: identifiability.

A head outputs A T, with T = V W_O its values through its slice of the output projection, before the
sum over heads. The part of a row of A in the left null space {x : xᵀT = 0} has no effect (Brunner et al.
2019). This is a statement about one head of one layer, not about the prediction;
`same_prediction_dimension` is about the prediction, for a linear read-out.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad


@dataclass(frozen=True)
class Freedom:
    """Ranks of T and of [T, 1] over the real positions of each text: the dimensions that are fixed."""

    rank: Int[Tensor, "*batch"]
    rank_with_ones: Int[Tensor, "*batch"]
    tokens: Int[Tensor, "*batch"]

    @property
    def dimension(self) -> Int[Tensor, "*batch"]:
        """Return the dimension n − rank T of the left null space, in which a row may move."""
        return self.tokens - self.rank

    @property
    def dimension_on_simplex(self) -> Int[Tensor, "*batch"]:
        """Return the same for rows that must still sum to 1: n − rank [T, 1]."""
        return self.tokens - self.rank_with_ones


def narrow(
    values: Float[Tensor, "*#batch N V"], output: Float[Tensor, "*#batch V D"]
) -> Float[Tensor, "*out N R"]:
    """Return T = V W_O up to a rotation of its columns, of which min(V, D) remain; in float64.

    With the QR decomposition W_Oᵀ = Q R, T = (V Rᵀ) Qᵀ: V Rᵀ has the left singular vectors and the
    singular values of T, but d_v columns instead of d. `effective_attention` and `freedom` need float64: the
    rounding of a float32 product alone has full rank.
    """
    upper: Tensor = torch.linalg.qr(output.double().mT, mode="r").R
    return torch.matmul(values.double(), upper.mT)


def effective_attention(
    attention: Float[Tensor, "*batch Q N"],
    transformed: Float[Tensor, "*batch N D"],
    mask: Bool[Tensor, "*batch N"],
) -> Float[Tensor, "*batch Q N"]:
    """Remove from attention its part in the left null space of T: A⊥ = A U_r U_rᵀ, in float64.

    U_r are the left singular vectors of T over real keys with σ > eps · max(n, D) · σ_max, where n is the
    number of real keys and eps that of T's dtype. A⊥ T = A T, and A⊥ has the smallest norm of all rows with
    that property. Padded keys get 0. Not a distribution: rows need not sum to 1 and may be negative.
    Where T has no null space, A⊥ is A to the last bit: rounding would break the ties of a ranking.

    Unlike in the released code of Sun & Marasović 2021, the cut-off is relative to σ_max, and each text
    and head has its own rank.
    """
    directions = kept_directions(transformed, mask)
    keys = mask.unsqueeze(-2)
    rows = torch.where(keys, attention, 0).double()
    has_null_space = directions.any(-2).sum(-1) < mask.sum(-1)
    kept = torch.where(has_null_space[..., None, None], rows @ directions @ directions.mT, rows)
    return torch.where(keys, kept, 0)


def kept_directions(
    transformed: Float[Tensor, "*batch N D"], mask: Bool[Tensor, "*batch N"]
) -> Float[Tensor, "*batch N R"]:
    """Return U_r of `effective_attention`, in float64; columns past r are 0."""
    left_vectors, singular, _ = torch.linalg.svd(_real(transformed, mask), full_matrices=False)
    is_significant: Tensor = singular > _cut_off(singular, transformed, mask).unsqueeze(-1)
    directions: Tensor = left_vectors * is_significant.unsqueeze(-2)
    return directions


def effective_share(
    attention: Float[Tensor, "*batch Q N"], effective: Float[Tensor, "*batch Q N"]
) -> Float[Tensor, "*batch Q"]:
    """Return the effective share of each row: ‖A⊥‖₂ / ‖A‖₂, in [0, 1], in float64.

    It is the cosine of the angle between A and A⊥: 1 if the row is identifiable (has no part in the null
    space), 0 if it lies in the null space. 1 for a row of zeros.
    """
    norm = torch.linalg.vector_norm(attention.double(), dim=-1)
    share = torch.linalg.vector_norm(effective.double(), dim=-1) / norm
    return torch.where(norm > 0, share, 1.0).clamp(max=1.0)


def freedom(transformed: Float[Tensor, "*batch N D"], mask: Bool[Tensor, "*batch N"]) -> Freedom:
    """Return the ranks of T and [T, 1] over real positions, with the cut-off of `effective_attention`.

    rank [T, 1] = 1 + rank of T minus its mean row: in this form the scale of T next to 1 does not matter.
    """
    real = _real(transformed, mask)
    tokens = mask.sum(-1)
    mean = real.sum(-2, keepdim=True) / tokens.clamp(min=1)[..., None, None]
    singular = torch.linalg.svdvals(real)
    centred = torch.linalg.svdvals(_real(real - mean, mask))
    # One cut-off for both: rounding in T is rounding in the centred T too.
    cut_off = _cut_off(singular, transformed, mask).unsqueeze(-1)
    rank, rank_centred = ((values > cut_off).sum(-1) for values in (singular, centred))
    return Freedom(rank, rank_centred + (tokens > 0), tokens)


def same_prediction_dimension(
    relevance: Float[Tensor, "B T C"], mask: Bool[Tensor, "B T"]
) -> Int[Tensor, " B"]:
    """Return the dimension of the weightings with exactly the same prediction: n − 1 − rank of centred D.

    For a single head read out linearly, z(α) = Σ_t α_t R_t + b with R the `relevance`: the weightings
    {α ≥ 0, Σ α = 1, Dᵀα = Dᵀα̂} with the logit differences D = R_c − R_0 of α̂ form a polytope. Usually
    n − 2 for two classes and n − C for C ≤ n; 0 if n is too small for any other weighting.

    This holds for an α̂ without zeros. A zero weight puts α̂ on the boundary: not all directions lead to
    other weightings, and the polytope may be of lower dimension.
    """
    differences = relevance[..., 1:] - relevance[..., :1]
    return freedom(differences, mask).dimension_on_simplex


def _real(values: Float[Tensor, "*batch N D"], mask: Bool[Tensor, "*batch N"]) -> Tensor:
    """Set rows of padding to 0, which changes neither singular values nor the other rows' vectors."""
    return torch.where(mask.unsqueeze(-1), values, 0).double()


def _cut_off(singular: Tensor, transformed: Tensor, mask: Tensor) -> Float[Tensor, "*batch"]:
    """Return the largest singular value that counts as rounding, by the shape without padding."""
    size = mask.sum(-1).clamp(min=transformed.shape[-1])
    largest = pad(singular, (0, 1)).amax(-1)  # a 0 is added, as there may be no singular value
    return torch.finfo(transformed.dtype).eps * size * largest
