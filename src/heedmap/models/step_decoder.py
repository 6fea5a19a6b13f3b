"""Build a decoder that reads a context before each step, with additive attention (Bahdanau et al. 2015).

What a step predicts is what the next one reads, unless the right symbol is given to it (teacher forcing), so
that steps are computed one by one.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

SPREAD = 0.01  # of all initial weights, drawn from a normal distribution


@dataclass(frozen=True)
class StepDecoderSettings:
    """The sizes: `size` of the encoder's states in each direction, and of the decoder's.

    `attention`: learned; uniform over the source; or none, the first source state at every step.
    """

    size: int = 512
    embedding: int = 256
    dropout: float = 0.5
    attention: Literal["learned", "uniform", "none"] = "learned"


class Decoded(NamedTuple):
    """Logits and weights of every target step."""

    logits: Float[Tensor, "B T V"]
    weights: Float[Tensor, "B T S"]


class StepDecoder(nn.Module):
    """d_t = GRU([e_t; c_t], d_{t−1}), logits_t = W [d_t; c_t; e_t], c_t = Σ_s α_ts h_s, e_t the last symbol's.

    α_t = softmax_s(v · tanh(A d_{t−1} + B h_s)); h are the states of a GRU in both directions, from whose ends
    d_0 = tanh(linear).
    """

    def __init__(self, settings: StepDecoderSettings, sources: int, targets: int) -> None:
        super().__init__()
        self.settings = settings
        size, width = settings.size, settings.embedding
        self.source = nn.Embedding(sources, width)
        self.target = nn.Embedding(targets, width)
        self.encoder = nn.GRU(width, size, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(2 * size, size)
        self.decoder = nn.GRUCell(width + 2 * size, size)
        self.output = nn.Linear(3 * size + width, targets)
        self.dropout = nn.Dropout(settings.dropout)
        self._draw(self.named_parameters())
        # Last, so that with another attention all other initial weights are the same.
        learned = settings.attention == "learned"
        self.query = nn.Linear(size, size) if learned else None
        self.key = nn.Linear(2 * size, size, bias=False) if learned else None
        self.score = nn.Linear(size, 1, bias=False) if learned else None
        for layer in (self.query, self.key, self.score):
            if layer is not None:
                self._draw(layer.named_parameters())

    @staticmethod
    def _draw(parameters: Iterable[tuple[str, nn.Parameter]]) -> None:
        for name, values in parameters:
            nn.init.zeros_(values) if "bias" in name else nn.init.normal_(values, 0, SPREAD)

    def forward(
        self,
        source: Int[Tensor, "B S"],
        lengths: Int[Tensor, " B"],
        start: int,
        steps: int,
        targets: Int[Tensor, "B T"] | None = None,
        forced: Bool[Tensor, " T"] | None = None,
        allowed: Bool[Tensor, "B T S"] | None = None,
    ) -> Decoded:
        """Return logits and weights of `steps` steps.

        Args:
            source, lengths: the padded source symbols, and their number in each row.
            start: the symbol that the first step reads.
            steps: the number T of steps.
            targets, forced: the right symbols, and after which steps the next one reads them (teacher forcing);
                by default every step reads the likeliest symbol of the step before.
            allowed: other positions have their weights set to 0, and nothing in their place.
        """
        packed = pack_padded_sequence(
            self.dropout(self.source(source)), lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        packed_states, final = self.encoder(packed)
        states, _ = pad_packed_sequence(
            packed_states, batch_first=True, total_length=source.shape[1]
        )
        state = torch.tanh(self.bridge(torch.cat([final[0], final[1]], -1)))
        real = torch.arange(source.shape[1], device=source.device) < lengths[:, None]
        keys = None if self.key is None else self.key(states)
        symbol = source.new_full((len(source),), start)
        logits, weights = [], []
        for step in range(steps):
            embedded = self.dropout(self.target(symbol))
            alpha = self._attend(state, keys, real)
            weights.append(alpha)
            if allowed is not None:
                alpha = alpha * allowed[:, step]
            context = (alpha.unsqueeze(1) @ states).squeeze(1)
            state = self.decoder(torch.cat([embedded, context], -1), state)
            logits.append(self.output(torch.cat([state, context, embedded], -1)))
            is_given = targets is not None and forced is not None and bool(forced[step])
            symbol = targets[:, step] if is_given else logits[-1].argmax(-1)  # type: ignore[index]
        return Decoded(torch.stack(logits, 1), torch.stack(weights, 1))

    def _attend(
        self,
        state: Float[Tensor, "B D"],
        keys: Float[Tensor, "B S D"] | None,
        real: Bool[Tensor, "B S"],
    ) -> Float[Tensor, "B S"]:
        if self.settings.attention == "uniform":
            return (real / real.sum(1, keepdim=True)).to(state.dtype)
        if keys is None or self.query is None or self.score is None:
            return (
                (torch.arange(real.shape[1], device=real.device) == 0)
                .to(state.dtype)
                .expand(real.shape)
            )
        scores = self.score(torch.tanh(self.query(state).unsqueeze(1) + keys)).squeeze(-1)
        weights: Tensor = scores.masked_fill(~real, -torch.inf).softmax(-1)
        return weights
