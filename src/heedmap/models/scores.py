"""Attention scores of positions (Jain & Wallace 2019, section 2)."""

import math

from jaxtyping import Float
from torch import Tensor, nn


class Additive(nn.Module):
    """s_t = v · tanh(W h_t + b), W from D to D // 2 (Bahdanau et al. 2015, without a query)."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(size, size // 2)
        self.vector = nn.Linear(size // 2, 1, bias=False)

    def forward(self, states: Float[Tensor, "*batch D"]) -> Float[Tensor, "*batch"]:
        """Scores of encoder states."""
        scores: Tensor = self.vector(self.hidden(states).tanh())
        return scores.squeeze(-1)


class Dot(nn.Module):
    """s_t = (w · h_t) / √D (Vaswani et al. 2017, with a learned query)."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.vector = nn.Linear(size, 1, bias=False)
        self.scale = 1.0 / math.sqrt(size)

    def forward(self, states: Float[Tensor, "*batch D"]) -> Float[Tensor, "*batch"]:
        """Scores of encoder states."""
        scores: Tensor = self.vector(states)
        return scores.squeeze(-1) * self.scale


SCORES: dict[str, type[Additive] | type[Dot]] = {"additive": Additive, "dot": Dot}
