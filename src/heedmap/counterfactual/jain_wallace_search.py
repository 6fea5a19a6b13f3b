"""Search for adversarial attention as Jain & Wallace (2019, section 4.2.2, Algorithm 3).

Gradient descent on the logits of S weightings at once, as they ran it, on the cached read-out
instead of the encoder's states, with the gradient written out: no graph, no autograd, one pass per
operation.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedmap.measures import jensen_shannon, total_variation

LEARNING_RATE = 0.01
BETA1, BETA2, EPS = 0.9, 0.999, 1e-8  # Adam's defaults
START_SPREAD = 3.0
BLOCK = 1 << 17  # weights optimised together: about ten such arrays stay in cache
TINY = 1e-30  # stands for a weight of 0, on masked positions: its logarithm is finite
HIDDEN = -1e4  # the logit of a masked position: its exp is 0 and, unlike −∞, 0 times it is 0


def search_adversaries(
    attention: Float[Tensor, "B T"],
    readout: Float[Tensor, "B T C"],
    bias: Float[Tensor, " C"],
    mask: Bool[Tensor, "B T"],
    *,
    adversaries: int = 5,
    steps: int = 500,
    penalty: float = 500.0,
    slack: float = 0.01,
    generator: torch.Generator,
) -> Float[Tensor, "S B T"]:
    """Return S weightings per row, pushed away from α̂ and each other by descent.

    loss = Σ_s [−JSD(α_s, α̂) + λ max(0, d(p_s, p̂) − slack)] − mean_{s,s'} JSD(α_s, α_s'), per row,
    where d = |p_1 − p̂_1| for two classes (the paper's models have one output) and Σ_c |Δp_c| for
    more. Start: ln(1/T) + 3 N(0, 1); Adam(0.01, amsgrad); the last iterate, feasible or not:
    `best_feasible` judges. As in the released code, the mean runs over the S × S pairs with the
    zero diagonal, where the paper has 2/(S(S−1)) Σ_{s<s'} of which this is (S−1)/S. Run in the
    dtype of `attention`.
    """
    if adversaries < 1:
        raise ValueError(f"expected at least 1 adversary, got {adversaries}")
    rows, positions = mask.shape
    dtype = attention.dtype
    noise = torch.randn(adversaries, rows, positions, generator=generator, dtype=dtype)
    logits = START_SPREAD * noise.to(attention.device) - math.log(positions)
    lengths = mask.sum(-1)
    order = torch.argsort(lengths, stable=True)
    # Real positions to the front; blocks of similar lengths have little padding.
    packed = torch.argsort(~mask, dim=-1, stable=True)
    # Only differences of logits matter: class 0 is the origin, and one product fewer.
    relative = (readout[..., 1:] - readout[..., :1]).to(dtype)
    offset = (bias[1:] - bias[:1]).to(dtype)
    result = torch.zeros_like(logits)
    size = max(1, BLOCK // (adversaries * positions))
    for begin in range(0, rows, size):
        block = order[begin : begin + size]
        columns = packed[block, : int(lengths[block].max())]
        pick = (block.unsqueeze(1), columns)
        start = logits[:, *pick].permute(2, 0, 1).contiguous()  # (T, S, b)
        weights = _descend(
            start,
            attention[pick].T.contiguous(),
            relative[pick].permute(1, 2, 0).contiguous(),
            offset,
            mask[pick].T.contiguous(),
            steps,
            penalty,
            slack,
        )
        result[:, *pick] = weights.permute(1, 2, 0)
    return result


def best_feasible(
    candidates: Float[Tensor, "S B T"],
    attention: Float[Tensor, "B T"],
    readout: Float[Tensor, "B T C"],
    bias: Float[Tensor, " C"],
    mask: Bool[Tensor, "B T"],
    epsilon: float,
) -> tuple[Float[Tensor, " B"], Bool[Tensor, " B"], Float[Tensor, "B T"]]:
    """Return JSD, existence and weights of the most different candidate with TVD(p, p̂) ≤ ε.

    ε-max JSD of Jain & Wallace (2019). Where no candidate is feasible, the result is the original with
    a JSD of 0, as in the released code; the second value, which the released code lacks, tells such
    rows from real zeros.
    """
    original = attention.double().masked_fill(~mask, 0.0)
    weights = candidates.double().masked_fill(~mask, 0.0)
    relevance = readout.double().masked_fill(~mask.unsqueeze(-1), 0.0)
    p_original = (torch.einsum("bt,btc->bc", original, relevance) + bias.double()).softmax(-1)
    p = (torch.einsum("sbt,btc->sbc", weights, relevance) + bias.double()).softmax(-1)
    feasible = total_variation(p, p_original.expand_as(p)) <= epsilon
    jsd = jensen_shannon(weights, original.expand_as(weights)).masked_fill(~feasible, -1.0)
    best, index = jsd.max(0)
    best_weights = weights[index, torch.arange(len(index), device=index.device)]
    exists = feasible.any(0)
    return best.clamp(min=0.0), exists, torch.where(exists.unsqueeze(1), best_weights, original)


def _descend(
    logits: Float[Tensor, "T S b"],
    attention: Float[Tensor, "T b"],
    readout: Float[Tensor, "T others b"],
    bias: Float[Tensor, " others"],
    mask: Bool[Tensor, "T b"],
    steps: int,
    penalty: float,
    slack: float,
) -> Float[Tensor, "T S b"]:
    """Descend by Adam with amsgrad (Reddi et al. 2018); positions come first to vectorise sums."""
    original = _predict(attention.unsqueeze(1), readout, bias)
    mean, square, largest = (torch.zeros_like(logits) for _ in range(3))
    scratch = torch.empty_like(logits)
    logits = logits.masked_fill(~mask.unsqueeze(1), HIDDEN)
    for step in range(1, steps + 1):
        weights = logits.softmax(0).clamp_(min=TINY)
        gradient = _gradient(logits, weights, attention, readout, bias, original, penalty, slack)
        mean.lerp_(gradient, 1 - BETA1)
        square.mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
        torch.maximum(largest, square, out=largest)
        torch.sqrt(largest, out=scratch)
        scratch.div_(math.sqrt(1 - BETA2**step)).add_(EPS)
        logits.addcdiv_(mean, scratch, value=-LEARNING_RATE / (1 - BETA1**step))
    return logits.softmax(0)


def _predict(
    weights: Float[Tensor, "T S b"],
    readout: Float[Tensor, "T others b"],
    bias: Float[Tensor, " others"],
) -> Float[Tensor, "S C b"]:
    """Return softmax(0, Σ_t α_t (R_tc − R_t0) + b_c − b_0, …)."""
    z = [
        (weights * r.unsqueeze(1)).sum(0) + b for r, b in zip(readout.unbind(1), bias, strict=True)
    ]
    return torch.stack([torch.zeros_like(z[0]), *z], dim=1).softmax(1)


def _gradient(
    logits: Float[Tensor, "T S b"],
    weights: Float[Tensor, "T S b"],
    attention: Float[Tensor, "T b"],
    readout: Float[Tensor, "T others b"],
    bias: Float[Tensor, " others"],
    original: Float[Tensor, "1 C b"],
    penalty: float,
    slack: float,
) -> Float[Tensor, "T S b"]:
    """Return ∂loss/∂logits of `search_adversaries`, written out.

    ∂JSD(a, q)/∂a_t = ½ ln(2a_t/(a_t + q_t)); through the softmax, a_t (g_t − Σ_u a_u g_u):
    constants in g cancel, and with them ln 2 and the normaliser of ln a_t, so that the logit x_t
    replaces ln a_t:

        g_s = −½ [x_s − ln(a_s + q)] − S⁻² Σ_{s'≠s} [x_s − ln(a_s + a_s')] + λ ∂d/∂a_s
        ∂d/∂a_t = Σ_c p_c (v_c − Σ_c' p_c' v_c') R_tc,  v = sign(Δp) (two classes: of class 1 only)
    """
    count = logits.shape[1]
    pair = 1.0 / count**2
    g = weights + attention.unsqueeze(1)
    g.log_().mul_(0.5)
    g.sub_(logits, alpha=0.5 + (count - 1) * pair)
    for shift in range(1, count):
        # Every unordered pair once: s with s + shift, whose term goes to both.
        term = (weights[:, shift:] + weights[:, :-shift]).log_()
        g[:, shift:].add_(term, alpha=pair)
        g[:, :-shift].add_(term, alpha=pair)

    p = _predict(weights, readout, bias)
    change = p - original
    if p.shape[1] == 2:
        change = torch.cat([torch.zeros_like(change[:, :1]), change[:, 1:]], dim=1)
    sign = change.sign()
    outside = change.abs().sum(1, keepdim=True) > slack
    pull = p * (sign - (p * sign).sum(1, keepdim=True)) * (penalty * outside)
    for c, r in enumerate(readout.unbind(1), start=1):
        g.addcmul_(r.unsqueeze(1), pull[:, c])  # pull sums to 0: class 0 is in the others' R
    g.sub_((weights * g).sum(0))
    return g.mul_(weights)
