"""Encode texts: one state per position, padding included.

LSTM, CNN and average are Jain & Wallace's (2019), who mark the start and the end of a text; GRU, small CNN and
none are Serrano & Smith's (2019), who do not. MLP is that of models of bags (Ilse et al. 2018).

All take embeddings (B, L, E) that are 0 at padding, and the number of real positions of each row, and
return states (B, L, size). States at padding are meaningless; the caller masks them. `last` returns one
vector for the whole text: a query's, or the context of a model without attention.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

KERNELS = (1, 3, 5, 7)


def reverse_rows(
    values: Float[Tensor, "B L D"], lengths: Int[Tensor, " B"]
) -> Float[Tensor, "B L D"]:
    """Reverse each row's real positions; padding stays at the end."""
    count, size = values.shape[:2]
    place = torch.arange(size, device=values.device)
    mirrored = lengths[:, None] - 1 - place
    index = torch.where(mirrored >= 0, mirrored, place)
    row_starts = size * torch.arange(count, device=values.device)
    # Whole rows of a flat view: several times faster than `gather`, forward and backward.
    return (
        values.flatten(0, 1)
        .index_select(0, (index + row_starts[:, None]).flatten())
        .view_as(values)
    )


class Encoder(nn.Module, ABC):
    """`size` is that of a state. With `marks` it reads the marks at the ends of a text too."""

    size: int
    marks: bool = True

    @abstractmethod
    def forward(
        self, embedded: Float[Tensor, "B L E"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "B L D"]:
        """Return the states of all positions."""

    @abstractmethod
    def last(
        self, states: Float[Tensor, "B L D"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "B D"]:
        """Return one vector for the whole text."""

    def reads(
        self, embedded: Float[Tensor, "B L E"], lengths: Int[Tensor, " B"]
    ) -> tuple[Float[Tensor, "B _ E"], Int[Tensor, " B"]]:
        """Return what it reads of texts of `lengths` tokens between their marks, and how many positions."""
        if self.marks:
            return embedded, lengths + 2
        place = torch.arange(embedded.shape[1] - 2, device=embedded.device)
        real = (place < lengths[:, None]).unsqueeze(-1)
        return embedded[:, 1:-1].masked_fill(~real, 0.0), lengths

    def tokens(
        self, states: Float[Tensor, "B L D"], lengths: Int[Tensor, " B"]
    ) -> Bool[Tensor, "B L 1"]:
        """Mark the tokens: neither marks nor padding."""
        place = torch.arange(states.shape[1], device=states.device)
        ends = int(self.marks)
        return ((place >= ends) & (place < lengths[:, None] - ends)).unsqueeze(-1)


class LSTM(Encoder):
    """One bidirectional layer; states are [forward; backward], of size 2 × hidden.

    Two LSTMs over padded rows, the second one over the reversed rows: the same numbers as one over packed
    sequences, whose backward pass on a CPU takes time quadratic in the length.
    """

    def __init__(self, embedding_size: int, hidden_size: int) -> None:
        super().__init__()
        self.forward_lstm = nn.LSTM(embedding_size, hidden_size, batch_first=True)
        self.backward_lstm = nn.LSTM(embedding_size, hidden_size, batch_first=True)
        self.size = 2 * hidden_size

    def forward(
        self, embedded: Float[Tensor, "B L E"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "B L D"]:
        """Return the states of all positions."""
        return _both_ways(self.forward_lstm, self.backward_lstm, embedded, lengths)

    def last(
        self, states: Float[Tensor, "B L D"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "B D"]:
        """Return each direction's final state."""
        return _final(states, lengths)


class GRU(Encoder):
    """One bidirectional layer, as `LSTM`."""

    marks = False

    def __init__(self, embedding_size: int, hidden_size: int) -> None:
        super().__init__()
        self.forward_gru = nn.GRU(embedding_size, hidden_size, batch_first=True)
        self.backward_gru = nn.GRU(embedding_size, hidden_size, batch_first=True)
        self.size = 2 * hidden_size

    def forward(
        self, embedded: Float[Tensor, "B L E"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "B L D"]:
        """Return the states of all positions."""
        return _both_ways(self.forward_gru, self.backward_gru, embedded, lengths)

    def last(
        self, states: Float[Tensor, "B L D"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "B D"]:
        """Return each direction's final state."""
        return _final(states, lengths)


def _both_ways(
    forward: nn.Module, backward: nn.Module, embedded: Tensor, lengths: Tensor
) -> Float[Tensor, "B L D"]:
    # Padding stays behind the reversed positions, so that neither pass reads it first.
    reverse = backward(reverse_rows(embedded, lengths))[0]
    return torch.cat([forward(embedded)[0], reverse_rows(reverse, lengths)], dim=-1)


def _final(states: Float[Tensor, "B L D"], lengths: Int[Tensor, " B"]) -> Float[Tensor, "B D"]:
    forward, backward = states.chunk(2, dim=-1)
    rows = torch.arange(len(states), device=states.device)
    # The backward pass ends at the first position.
    return torch.cat([forward[rows, lengths - 1], backward[:, 0]], dim=-1)


class CNN(Encoder):
    """Windows of 1, 3, 5 and 7 positions, hidden // 4 filters each, ReLU."""

    kernels: ClassVar[tuple[int, ...]] = KERNELS

    def __init__(self, embedding_size: int, hidden_size: int) -> None:
        super().__init__()
        filters = hidden_size // len(self.kernels)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(embedding_size, filters, k, padding=k // 2) for k in self.kernels
        )
        self.size = filters * len(self.kernels)

    @property
    def windows(self) -> list[nn.Conv1d]:
        """Return the convolutions, narrowest first."""
        return [c for c in self.convolutions if isinstance(c, nn.Conv1d)]

    def forward(
        self, embedded: Float[Tensor, "B L E"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "B L D"]:
        """Return the states of all positions."""
        channels = embedded.transpose(1, 2)
        states = torch.cat([convolution(channels) for convolution in self.convolutions], dim=1)
        return functional.relu(states).transpose(1, 2)

    def last(
        self, states: Float[Tensor, "B L D"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "B D"]:
        """Return the maximum of each filter over the tokens; the marks count as 0, the minimum of ReLU."""
        return states.masked_fill(~self.tokens(states, lengths), 0.0).amax(1)


class SmallCNN(CNN):
    """Windows of 3 and 5 positions, hidden // 2 filters each, ReLU."""

    marks = False
    kernels = (3, 5)


class _Projection(Encoder):
    """h_t = f(W e_t + b): each position by itself."""

    def __init__(self, embedding_size: int, hidden_size: int) -> None:
        super().__init__()
        self.projection = nn.Linear(embedding_size, hidden_size)
        self.size = hidden_size

    def last(
        self, states: Float[Tensor, "B L D"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "B D"]:
        """Return the mean over the tokens. The released code averages over marks and padding too, and so
        depends on the batch.
        """
        return _mean(self, states, lengths)


class Average(_Projection):
    """h_t = tanh(W e_t + b): each position by itself."""

    def forward(
        self, embedded: Float[Tensor, "B L E"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "B L D"]:
        """Return the states of all positions."""
        states: Tensor = self.projection(embedded)
        return states.tanh()


class MLP(_Projection):
    """h_t = ReLU(W e_t + b): each position by itself, without marks (Ilse et al. 2018, Lu et al. 2021)."""

    marks = False

    def forward(
        self, embedded: Float[Tensor, "B L E"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "B L D"]:
        """Return the states of all positions."""
        return functional.relu(self.projection(embedded))


class NoEncoder(Encoder):
    """h_t = e_t: the attention reads the embeddings; `hidden_size` has no meaning."""

    marks = False

    def __init__(self, embedding_size: int, hidden_size: int) -> None:
        super().__init__()
        self.size = embedding_size

    def forward(
        self, embedded: Float[Tensor, "B L E"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "B L D"]:
        """Return the embeddings."""
        return embedded

    def last(
        self, states: Float[Tensor, "B L D"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "B D"]:
        """Return the mean over the tokens."""
        return _mean(self, states, lengths)


def _mean(
    encoder: Encoder, states: Float[Tensor, "B L D"], lengths: Int[Tensor, " B"]
) -> Float[Tensor, "B D"]:
    tokens = encoder.tokens(states, lengths)
    return states.masked_fill(~tokens, 0.0).sum(1) / tokens.sum(1).clamp(min=1)


ENCODERS: dict[str, type[LSTM | CNN | Average | GRU | MLP | NoEncoder]] = {
    "lstm": LSTM,
    "cnn": CNN,
    "average": Average,
    "gru": GRU,
    "small-cnn": SmallCNN,
    "mlp": MLP,
    "none": NoEncoder,
}
