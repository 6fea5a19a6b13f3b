"""Measure distances between distributions and between predictions: pure functions of tensors.

Natural logarithm everywhere, so the Jensen-Shannon divergence is at most ln 2.

How far two predictions are apart is said here alone, of both kinds of models: with logits of several classes
(C ≥ 2) a prediction is their softmax, with one output (C = 1) it is that number itself, in its own unit.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

LN2 = math.log(2.0)
TOP = 0.05  # of the tokens
ROUNDING = 1e-9  # of a share of a count: 0.05 · 20 is 1
ROUNDINGS = (
    4  # in units of ε: the observed difference between two passes over a text in different batches
)


def total_variation(
    p: Float[Tensor, "*batch C"], q: Float[Tensor, "*batch C"]
) -> Float[Tensor, "*batch"]:
    """Return the total variation distance: `½ Σ_c |p_c − q_c|`, in [0, 1] (Jain & Wallace 2019, eq. 1).

    >>> total_variation(torch.tensor([0.9, 0.1]), torch.tensor([0.6, 0.4]))
    tensor(0.3000)
    """
    return 0.5 * (p - q).abs().sum(-1)


def change_in_prediction(
    original: Float[Tensor, "*batch C"], changed: Float[Tensor, "*batch C"]
) -> Float[Tensor, "*batch"]:
    """Return the total variation distance of softmax(original) and softmax(changed), from logits, in float64.

    The change of the most probable class is computed as minus the sum of the others', so that a change of
    1e-12 in a prediction that rounds to 1 is not lost. Of one output it is |original − changed|, in its unit.

    >>> change_in_prediction(torch.tensor([3.5]), torch.tensor([2.0]))
    tensor(1.5000, dtype=torch.float64)
    """
    if original.shape[-1] == 1:
        return (original.double() - changed.double()).squeeze(-1).abs()
    if original.shape[-1] == 2:
        # |σ(x) − σ(y)| = σ(max) σ(−min) (1 − exp(min − max)), each factor accurate by itself.
        x, y = (logits.double().diff(dim=-1).squeeze(-1) for logits in (original, changed))
        high, low = torch.maximum(x, y), torch.minimum(x, y)
        return high.sigmoid() * (-low).sigmoid() * torch.expm1(low - high).abs()  # never −0
    p, q = original.double().softmax(-1), changed.double().softmax(-1)
    top = original.argmax(-1, keepdim=True)
    change = (q - p).scatter(-1, top, 0.0)
    return 0.5 * (change.sum(-1).abs() + change.abs().sum(-1))


def drop_in_probability(
    original: Float[Tensor, "*batch C"], changed: Float[Tensor, "*batch C"], classes: Tensor
) -> Float[Tensor, "*batch"]:
    """Return how much less probable one class is after a change, from logits, in float64: in [−1, 1].

    `classes` has one class per row. As accurate as `change_in_prediction`, which is its size for two classes.
    Of one output it is how much smaller it is after the change, in its unit.
    """
    if original.shape[-1] == 1:
        return (original.double() - changed.double()).squeeze(-1)
    odds = torch.stack([log_odds(logits.double(), classes) for logits in (original, changed)])
    original_pair, changed_pair = torch.stack([torch.zeros_like(odds), odds], dim=-1)
    return change_in_prediction(original_pair, changed_pair).copysign(odds[0] - odds[1])


def predictions(logits: Float[Tensor, "*batch C"]) -> Float[Tensor, "*batch C"]:
    """Return the probabilities of the classes, from logits, or the one output as it is, in float64."""
    return logits.double() if logits.shape[-1] == 1 else logits.double().softmax(-1)


def resolution(
    original: Float[Tensor, "*batch C"],
    changed: Float[Tensor, "*batch J C"],
    precision: torch.dtype,
) -> Float[Tensor, "*batch"]:
    """Return the change of a prediction that rounding of its logits alone can cause. Less is no change.

    A logit has an error of r = 4 ε max(1, |z|), where ε is that of the `precision` it was computed in and z the
    largest logit of a possible class in `original` and `changed`. The 1 is there because a logit near 0 is a
    sum of parts that cancel. To first order, an event of probability q then changes by at most 2r q(1 − q). The
    total variation distance is the change of an event, so it is at most 2r p(1 − p) if the most probable class
    has p ≥ ½ (no event is nearer to ½), else r/2. One output differs by at most 2r.
    """
    logits = torch.cat([original.unsqueeze(-2), changed], dim=-2).double()
    # A logit is −∞, or nearly, for an answer that is ruled out, and NaN for a deletion that is padding.
    possible = logits.log_softmax(-1).exp() > 0
    largest = logits.abs().masked_fill(~possible, 1.0).clamp(min=1.0).flatten(-2).amax(-1)
    rounding = ROUNDINGS * torch.finfo(precision).eps * largest
    if original.shape[-1] == 1:
        return 2 * rounding
    lead = log_odds(original.double(), original.argmax(-1)).clamp(min=0.0)
    return 2 * rounding * lead.sigmoid() * (-lead).sigmoid()


def jensen_shannon(
    p: Float[Tensor, "*batch T"], q: Float[Tensor, "*batch T"]
) -> Float[Tensor, "*batch"]:
    """Return the Jensen-Shannon divergence in nats: ½ KL(p‖m) + ½ KL(q‖m), m = (p+q)/2; in [0, ln 2].

    0 · ln 0 is exactly 0; the released code of Jain & Wallace adds 1e-10 inside the logarithm.

    >>> apart = torch.tensor([[1.0, 0.0], [0.5, 0.5]])
    >>> jensen_shannon(apart, torch.tensor([0.0, 1.0]).expand(2, 2))
    tensor([0.6931, 0.2158])
    """
    m = 0.5 * (p + q)
    half_p = torch.xlogy(p, p) - torch.xlogy(p, m)
    half_q = torch.xlogy(q, q) - torch.xlogy(q, m)
    return (0.5 * (half_p + half_q).sum(-1)).clamp(min=0.0)


def kullback_leibler(
    p: Float[Tensor, "*batch T"], q: Float[Tensor, "*batch T"], floor: float = 1e-10
) -> Float[Tensor, "*batch"]:
    """Return KL(p ‖ q) = Σ p ln(p / q) in nats, each weight at least `floor` inside the logarithm.

    So neither number nor gradient is NaN where a weight is 0, and the divergence is at most −ln `floor`.
    """
    return (p * (p.clamp(min=floor).log() - q.clamp(min=floor).log())).sum(-1).clamp(min=0.0)


def mean_cosine(
    vectors: Float[Tensor, "*batch T D"], mask: Bool[Tensor, "*batch T"]
) -> Float[Tensor, "*batch"]:
    """Return the mean cosine of every two different tokens' vectors; NaN of fewer than two tokens.

    With u_t = v_t / ‖v_t‖ it is (‖Σ u_t‖² − Σ ‖u_t‖²) / n(n − 1). A vector of zeros has cosine 0 with any
    other. Ethayarajh (2019) calls it self-similarity, of one word in several texts.
    """
    directions = functional.normalize(vectors, dim=-1) * mask.unsqueeze(-1)
    count = mask.sum(-1)
    pairs = directions.sum(-2).square().sum(-1) - directions.square().sum((-2, -1))
    return (pairs / (count * (count - 1)).clamp(min=1)).masked_fill(count < 2, torch.nan)


def conicity(
    vectors: Float[Tensor, "*batch T D"], mask: Bool[Tensor, "*batch T"]
) -> Float[Tensor, "*batch"]:
    """Return the mean cosine of the tokens' vectors with their mean; NaN of fewer than two tokens.

    Conicity is 1/n Σ cos(v_t, mean v) (Sharma et al. 2018; of hidden states Mohankumar et al. 2020).
    """
    count = mask.sum(-1)
    real = vectors * mask.unsqueeze(-1)
    center = functional.normalize(real.sum(-2, keepdim=True), dim=-1)
    cosines = (functional.normalize(real, dim=-1) * center).sum(-1)
    return (cosines.sum(-1) / count.clamp(min=1)).masked_fill(count < 2, torch.nan)


def entropy(p: Float[Tensor, "*batch T"]) -> Float[Tensor, "*batch"]:
    """Return the Shannon entropy in nats: −Σ p ln p, in [0, ln T]."""
    return -torch.xlogy(p, p).sum(-1)


def log_odds(logits: Float[Tensor, "*batch C"], classes: int | Tensor) -> Float[Tensor, "*batch"]:
    """Return the log-odds of one class: z_c − ln Σ_{c'≠c} exp z_c'.

    The gradient of the probability p is this gradient times p(1 − p) > 0, so both rank the inputs alike. Where
    the probability rounds to 1 (float32: logit > 16.6), this one does not vanish. `classes` is one class, or
    one per row. Of one output it is that output.
    """
    if logits.shape[-1] == 1:
        return logits.squeeze(-1)
    index = torch.as_tensor(classes, device=logits.device).expand(logits.shape[:-1]).unsqueeze(-1)
    rest = logits.scatter(-1, index, -torch.inf).logsumexp(-1)
    return logits.gather(-1, index).squeeze(-1) - rest


def log_odds_each(logits: Float[Tensor, "*batch C"]) -> Float[Tensor, "*batch C"]:
    """Return the log-odds of every class, as accurate as `log_odds` of one: O(C).

    With ln p_c = z_c − ln Σ exp z they are ln p_c − ln(1 − p_c), but for the largest, whose p may round to 1:
    there the others are added up.
    """
    share = logits.log_softmax(-1)
    top = logits.argmax(-1, keepdim=True)
    odds = share - torch.log1p(-share.exp().scatter(-1, top, 0.0))
    return odds.scatter(-1, top, log_odds(logits, top.squeeze(-1)).unsqueeze(-1))


def levelled(
    values: Float[Tensor, "*batch T"],
    mask: Bool[Tensor, "*#batch T"],
    rounding: Float[Tensor, "*#batch #T"] | None = None,
) -> Float[Tensor, "*batch T"]:
    """Return each text's values with ties: values that differ by no more than rounding can cause are equal.

    Else the ranks of tokens that the model treats alike, such as a word that is repeated, would be those of
    rounding errors, which change with the batch. Ties are transitive, so values that are linked by a chain of
    such differences all become the largest of them. Padding keeps its values, and NaN ties with nothing.

    Args:
        values: one value per token.
        mask: the real tokens.
        rounding: the difference that rounding can cause, in the unit of the values, of a text or of each
            value; of two values the larger one counts. By default it is that of weights of a softmax in
            single precision, ROUNDINGS ε v (1 + ln(max / v)) for a weight v: the error of a score grows with
            the score, and a score is a logarithm of a weight.

    >>> levelled(torch.tensor([0.2, 0.2 + 2e-8, 0.6]), torch.ones(3, dtype=torch.bool)).unique().numel()
    2
    """
    if values.shape[-1] < 2:
        return values
    hidden = values.masked_fill(~mask, -torch.inf)
    ordered, order = hidden.sort(dim=-1, descending=True, stable=True)
    if rounding is None:
        size = values.abs().masked_fill(~mask, 0.0).double()
        top = size.amax(-1, keepdim=True)
        error = ROUNDINGS * torch.finfo(torch.float32).eps * size
        rounding = (error * (1 + (top / size).log().clamp(min=0.0))).nan_to_num()
    errors = rounding.double().expand_as(values).gather(-1, order)
    gaps = ordered[..., :-1].double() - ordered[..., 1:].double()
    is_gap = ~(gaps <= torch.maximum(errors[..., :-1], errors[..., 1:]))
    place = torch.arange(values.shape[-1], device=values.device)
    # Where each chain begins; the first is at 0.
    chain_start = (place[1:] * is_gap).cummax(-1).values
    chain_start = functional.pad(chain_start, (1, 0))
    tied = torch.empty_like(ordered).scatter(-1, order, ordered.gather(-1, chain_start))
    return torch.where(mask, tied, values)


def tied_changes(
    changes: Float[Tensor, "*batch T"],
    mask: Bool[Tensor, "*#batch T"],
    rounding: Float[Tensor, "*#batch #T"],
) -> Float[Tensor, "*batch T"]:
    """Return changes with ties: those within the `rounding` are 0, those that differ by no more are equal.

    >>> tied_changes(torch.tensor([0.1, 0.4, 0.5]), torch.ones(3, dtype=torch.bool), torch.tensor([0.2]))
    tensor([0.0000, 0.5000, 0.5000])
    """
    return levelled(changes.masked_fill(changes.abs() <= rounding, 0.0), mask, rounding)


def rounding_of(sizes: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Return the error of sums in single precision, ROUNDINGS ε times the `sizes` of what is summed."""
    return ROUNDINGS * torch.finfo(torch.float32).eps * sizes.double()


def top_match(
    scores: Float[Tensor, "*batch T"],
    reference: Float[Tensor, "*batch T"],
    mask: Bool[Tensor, "*#batch T"],
    share: float = TOP,
) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "*batch"]]:
    """Return whether the token with the largest of `scores` is among the top of `reference`, and its chance.

    A(u, v) = 1 if #{t : v_t > v_argmax(u)} < k, k = ⌈share · T⌉ of the T tokens in the mask (Snell et al.):
    not symmetric; ties count as a match; of equal u the first token counts. The chance is that of a random
    order of v, exactly: the share of tokens with #{v > v_t} < k. Both are NaN where a number is, or without
    tokens.

    >>> relevance = torch.tensor([0.1, 0.9, 0.3, 0.2])
    >>> top_match(torch.tensor([0.1, 0.6, 0.2, 0.1]), relevance, torch.ones(4, dtype=torch.bool))
    (tensor(1.), tensor(0.2500))
    """
    mask = mask.expand(scores.shape)
    count = mask.sum(-1)
    # #{v > x} < k says that x is at least the k-th largest of v.
    k = (share * count.double() - ROUNDING).ceil().long().clamp(min=1)
    ordered = reference.masked_fill(~mask, -torch.inf).sort(-1, descending=True).values
    edge = ordered.gather(-1, (k - 1).unsqueeze(-1))
    best = scores.masked_fill(~mask, -torch.inf).argmax(-1, keepdim=True)
    is_top = ((reference >= edge) & mask).to(reference.dtype)
    is_defined = (count > 0) & ~((scores.isnan() | reference.isnan()) & mask).any(-1)
    match_and_chance = (is_top.gather(-1, best).squeeze(-1), is_top.sum(-1) / count.clamp(min=1))
    match, chance = (value.masked_fill(~is_defined, torch.nan) for value in match_and_chance)
    return match, chance
