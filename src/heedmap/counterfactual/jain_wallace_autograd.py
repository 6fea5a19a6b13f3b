"""Search for adversarial attention as Jain & Wallace (2019), for a read-out that is not linear.

The loss is that of `jain_wallace_search`, which writes out the gradient for linear read-outs; here autograd
follows the model's own `predict`. For models of one row of weights whose decoder is cheap.
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedmap.counterfactual.jain_wallace_search import LEARNING_RATE, START_SPREAD, TINY
from heedmap.measures import jensen_shannon, total_variation

Predict = Callable[[Tensor], Tensor]


def descend(
    predict: Predict,
    attention: Float[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
    *,
    adversaries: int = 5,
    steps: int = 500,
    penalty: float = 500.0,
    slack: float = 0.01,
    generator: torch.Generator,
) -> Float[Tensor, "S B T"]:
    """Return S weightings per row, pushed away from α̂ and each other by descent; the last iterate.

    loss = Σ_s [−JSD(α_s, α̂) + λ max(0, Σ_c |p_sc − p̂_c| − slack)] − mean_{s,s'} JSD(α_s, α_s') per row, as
    in `jain_wallace_search.search_adversaries`: the same start, optimiser and step. `predict` gives logits
    (S, B, C) of weights (S, B, 1, T), differentiably. The distance of predictions is not halved, as in the
    released code for questions: a slack of .01 is a total variation distance of .005.
    """
    if adversaries < 1:
        raise ValueError(f"expected at least 1 adversary, got {adversaries}")
    noise = torch.randn(adversaries, *mask.shape, generator=generator, dtype=attention.dtype)
    start = START_SPREAD * noise.to(attention.device) - math.log(max(1, mask.shape[1]))
    # Of the weights, as in the released code: a softmax keeps them on the simplex.
    logits = start.requires_grad_()
    optimizer = torch.optim.Adam([logits], lr=LEARNING_RATE, amsgrad=True)
    with torch.no_grad():
        prediction = predict(attention[None, :, None]).softmax(-1)
    original = attention.masked_fill(~mask, 0.0).clamp(min=TINY)  # 0 · ln 0 has no gradient

    def weights() -> Tensor:
        return logits.masked_fill(~mask, -torch.inf).softmax(-1)

    for _ in range(steps):
        candidates = weights().clamp(min=TINY)
        change = 2 * total_variation(
            predict(candidates.unsqueeze(2)).softmax(-1), prediction.expand(adversaries, -1, -1)
        )
        pair_shape = (adversaries, *candidates.shape)
        between = jensen_shannon(*(candidates.unsqueeze(d).expand(pair_shape) for d in (0, 1)))
        loss = (
            penalty * (change - slack).relu()
            - jensen_shannon(candidates, original.expand_as(candidates))
        ).sum() - between.mean((0, 1)).sum()
        (logits.grad,) = torch.autograd.grad(loss, logits)
        optimizer.step()
    return weights().detach()


def best_of(
    predict: Predict,
    candidates: Float[Tensor, "S B T"],
    attention: Float[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
    epsilon: float,
) -> tuple[Float[Tensor, " B"], Bool[Tensor, " B"]]:
    """Return the JSD of the most different candidate with TVD(p, p̂) ≤ ε (else 0), and whether there is one."""
    original = attention.masked_fill(~mask, 0.0)
    with torch.no_grad():
        prediction = predict(original[None, :, None]).softmax(-1)
        candidate_predictions = predict(candidates.unsqueeze(2)).softmax(-1)
    feasible = (
        total_variation(candidate_predictions, prediction.expand_as(candidate_predictions))
        <= epsilon
    )
    jsd = jensen_shannon(candidates.double(), original.double().expand_as(candidates))
    best = jsd.masked_fill(~feasible, 0.0).amax(0).clamp(min=0.0)
    return best, feasible.any(0)
