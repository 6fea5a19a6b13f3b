"""Score positions for attention, given a query if there is one (Jain & Wallace 2019, section 2)."""

import math
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

# The score of a word without a coefficient: finite, so that a text of only such words gets uniform weights,
# and so low that beside any other word its weight is 0.
NO_SCORE = -1e4


class Additive(nn.Module):
    """s_t = v · tanh(W h_t + b), W from D to D // 2 (Bahdanau et al. 2015); a v for each of `rows` rows."""

    narrower: ClassVar[int] = 2

    def __init__(self, size: int, rows: int = 1) -> None:
        super().__init__()
        self.hidden = nn.Linear(size, size // self.narrower)
        self.vector = nn.Linear(size // self.narrower, rows, bias=False)

    def each_row(self, states: Float[Tensor, "B T D"]) -> Float[Tensor, "B T K"]:
        """Score encoder states for each row of weights."""
        scores: Tensor = self.vector(self.hidden(states).tanh())
        return scores

    def forward(
        self, states: Float[Tensor, "B T D"], query: Tensor | None = None
    ) -> Float[Tensor, "B T"]:
        """Score encoder states for the only row."""
        return self.each_row(states).squeeze(-1)


class Gated(Additive):
    """s_t = v · (tanh(W h_t + b) ⊙ σ(U h_t + d)), W and U from D to D // 2 (Ilse et al. 2018, eq. 9).

    W and U have biases, as in the released code of CLAM (Lu et al. 2021). A query plays no part.
    """

    def __init__(self, size: int, rows: int = 1) -> None:
        super().__init__(size, rows)
        self.gate = nn.Linear(size, size // self.narrower)

    def each_row(self, states: Float[Tensor, "B T D"]) -> Float[Tensor, "B T K"]:
        """Score encoder states for each row of weights."""
        scores: Tensor = self.vector(self.hidden(states).tanh() * self.gate(states).sigmoid())
        return scores


class WideAdditive(Additive):
    """The same with W from D to D (Yang et al. 2016, Serrano & Smith 2019)."""

    narrower = 1


class PairAdditive(nn.Module):
    """s_t = v · tanh(W h_t + b + W_q q + b_q)."""

    narrower: ClassVar[int] = 2

    def __init__(self, size: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(size, size // self.narrower)
        self.query = nn.Linear(size, size // self.narrower)
        self.vector = nn.Linear(size // self.narrower, 1, bias=False)

    def forward(
        self, states: Float[Tensor, "B T D"], query: Float[Tensor, "B 1 D"]
    ) -> Float[Tensor, "B T"]:
        """Score encoder states, given queries."""
        scores: Tensor = self.vector((self.hidden(states) + self.query(query)).tanh())
        return scores.squeeze(-1)


class Dot(nn.Module):
    """s_t = (w · h_t) / √D (Vaswani et al. 2017, with a learned w); a w for each of `rows` rows."""

    def __init__(self, size: int, rows: int = 1) -> None:
        super().__init__()
        self.vector = nn.Linear(size, rows, bias=False)
        self.scale = 1.0 / math.sqrt(size)

    def each_row(self, states: Float[Tensor, "B T D"]) -> Float[Tensor, "B T K"]:
        """Score encoder states for each row of weights."""
        scores: Tensor = self.vector(states)
        return scores * self.scale

    def forward(
        self, states: Float[Tensor, "B T D"], query: Tensor | None = None
    ) -> Float[Tensor, "B T"]:
        """Score encoder states for the only row."""
        return self.each_row(states).squeeze(-1)


class Linear(Dot):
    """s_t = w · h_t + b, unscaled (Pruthi et al. 2020); of pairs too, whose query plays no part."""

    def __init__(self, size: int, rows: int = 1) -> None:
        nn.Module.__init__(self)
        self.vector = nn.Linear(size, rows)
        self.scale = 1.0


class WidePairAdditive(PairAdditive):
    """The same with W and W_q from D to D."""

    narrower = 1


class PairDot(nn.Module):
    """s_t = (q · h_t) / √D; nothing is learned."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.scale = 1.0 / math.sqrt(size)

    def forward(
        self, states: Float[Tensor, "B T D"], query: Float[Tensor, "B 1 D"]
    ) -> Float[Tensor, "B T"]:
        """Score encoder states, given queries."""
        return (states * query).sum(-1) * self.scale


class Uniform(nn.Module):
    """s_t = 0: every token has the same weight, and nothing is learned (Wiegreffe & Pinter 2019)."""

    def __init__(self, size: int, rows: int = 1) -> None:
        super().__init__()
        self.rows = rows

    def each_row(self, states: Float[Tensor, "B T D"]) -> Float[Tensor, "B T K"]:
        """Return zeros for each row of weights."""
        return states.new_zeros(*states.shape[:2], self.rows)

    def forward(
        self, states: Float[Tensor, "B T D"], query: Tensor | None = None
    ) -> Float[Tensor, "B T"]:
        """Return zeros for the only row."""
        return self.each_row(states).squeeze(-1)


class Lexical(nn.Module):
    """s_t = |b_w|: one fixed number per word, whatever its context; nothing is trained.

    b are the coefficients of a logistic regression in the released code of Jain & Wallace ("logodds"). Words
    without one get no weight; a text of only such words gets uniform weights (there: NaN).
    """

    table: Tensor

    def __init__(self, words: int) -> None:
        super().__init__()
        self.register_buffer("table", torch.full((words,), NO_SCORE))

    def set(self, coefficients: Float[Tensor, " V"]) -> None:
        """Set each word's score to the size of its coefficient; NaN means that it has none."""
        self.table.copy_(torch.where(coefficients.isnan(), NO_SCORE, coefficients.abs()))

    def forward(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B T"]:
        """Return the scores of words by their numbers."""
        return self.table[ids]


SCORES: dict[str, type[Additive] | type[Dot] | type[Uniform]] = {
    "additive": Additive,
    "wide-additive": WideAdditive,
    "gated": Gated,
    "dot": Dot,
    "uniform": Uniform,
    "linear": Linear,
}
PAIR_SCORES: dict[str, type[PairAdditive | PairDot | Uniform | Linear | Gated]] = {
    "additive": PairAdditive,
    "wide-additive": WidePairAdditive,
    "gated": Gated,
    "dot": PairDot,
    "uniform": Uniform,
    "linear": Linear,
}
