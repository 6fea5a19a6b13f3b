"""Attribute hidden states to input tokens by their derivatives: hidden token attribution.

Brunner et al. 2020, "On Identifiability in Transformers". Token j contributes to the state h_i
c_ij = ‖∂h_i / ∂x_j‖ / Σ_k ‖∂h_i / ∂x_k‖, with x_j the embedding of token j. A model that adds position and
segment embeddings to the word's has the same derivative by either.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd import forward_ad

from heedmap.errors import InputError

States = Callable[[Float[Tensor, "B N E"]], Sequence[Float[Tensor, "B N D"]]]
"""Reads embeddings, and returns the hidden states of every layer."""


def random_directions(width: int, count: int, rng: np.random.Generator) -> Float[Tensor, "K E"]:
    """Draw at most `width` orthonormal directions, uniformly (the Q of Gaussian vectors)."""
    vectors = rng.standard_normal((width, min(count, width)))
    orthonormal, upper = np.linalg.qr(vectors)
    # Without the signs of R's diagonal, Q would not be uniform: LAPACK fixes them by a rule of its own.
    return torch.from_numpy((orthonormal * np.sign(np.diag(upper))).T.astype(np.float32))


@torch.no_grad()
def contributions(
    states: States,
    embedded: Float[Tensor, "N E"],
    directions: Float[Tensor, "K E"],
    rows_at_once: int = 256,
) -> Float[Tensor, "L N N"]:
    """Return c_ij of every layer in float64: entry [l, i, j] is what token j contributes to the state h_i.

    ‖J‖ is the Frobenius norm, which the paper's ‖·‖₂ of a matrix may stand for. For orthonormal u its square is
    Σ_k ‖J u_k‖² if they span all E dimensions, and E/K times that on average for K random ones; the factor
    drops out. Each J u_k is exact: a forward-mode derivative along u_k at token j, of all layers and
    positions at once, where the paper goes backward from every component of every state. Rows of states that
    depend on no token are NaN.

    Raises:
        InputError: a part of the model has no forward-mode derivative.
    """
    tokens, count = len(embedded), len(directions)
    places = torch.arange(tokens).repeat_interleave(count)  # the token of each pass
    squares: Tensor | None = None
    for start in range(0, len(places), rows_at_once):
        part = places[start : start + rows_at_once]
        chosen = torch.arange(start, start + len(part)) % count
        tangent = embedded.new_zeros(len(part), *embedded.shape)
        tangent[torch.arange(len(part)), part] = directions[chosen].to(tangent)
        moved = _derivatives(states, embedded.expand(len(part), -1, -1).clone(), tangent)
        if squares is None:
            squares = moved.new_zeros(len(moved), tokens, tokens)
        squares.index_add_(2, part.to(moved.device), moved.permute(0, 2, 1))
    assert squares is not None
    norms = squares.sqrt()
    return norms / norms.sum(-1, keepdim=True)


def _derivatives(
    states: States, embedded: Float[Tensor, "B N E"], tangent: Float[Tensor, "B N E"]
) -> Float[Tensor, "L B N"]:
    """Return ‖J u‖² at every layer, pass and position."""
    with forward_ad.dual_level():
        try:
            layers = states(forward_ad.make_dual(embedded, tangent))  # type: ignore[no-untyped-call]
        except NotImplementedError as error:
            raise InputError(
                "expected a model whose derivatives can be taken forward; a part of this one has a backward "
                "rule alone; choose another model"
            ) from error
        unpacked = [forward_ad.unpack_dual(layer) for layer in layers]  # type: ignore[no-untyped-call]
        return torch.stack(
            [
                layer.new_zeros(layer.shape[:2]).double()
                if dual.tangent is None
                else dual.tangent.double().square().sum(-1)
                for layer, dual in zip(layers, unpacked, strict=True)
            ]
        )
