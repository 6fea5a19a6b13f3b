"""Attention that is learned, but pulled towards the words' log-odds ("Reg" in the released code)."""

from copy import deepcopy

from torch import Tensor

from heedmap.data.batches import Batch
from heedmap.measures import jensen_shannon
from heedmap.models.scores import Lexical
from heedmap.papers.jain_wallace.frozen import log_odds_attention
from heedmap.training.attention import Loss

STRENGTH = 5.0
# Where a weight is 0 the slope of the divergence is -inf and that of the softmax 0: their product is NaN.
LEAST = 1e-10


def regularised(base: Loss, scores: Lexical, strength: float = STRENGTH) -> Loss:
    """Return the loss base + strength · mean over the batch of JSD(α, α_log-odds).

    As in the released code, `base` is a sum over the batch: a text's own divergence counts strength / B.
    """
    scores = deepcopy(scores)  # `to` moves a module in place, and the caller's stays where it is

    def objective(outputs: Tensor, attention: Tensor, batch: Batch) -> Tensor:
        target = log_odds_attention(scores.to(attention.device), batch)
        divergence = jensen_shannon(attention.squeeze(1).clamp(min=LEAST), target)
        return base(outputs, attention, batch) + strength * divergence.mean()

    return objective
