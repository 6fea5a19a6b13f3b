"""An encoder and a decoder with attention between them, as of Snell et al. (2021).

The decoder reads the target alone, not the contexts before: under teacher forcing its states, the weights and
the outputs of all steps are computed at once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

CELLS = {"lstm": nn.LSTM, "gru": nn.GRU}
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"tanh": torch.tanh, "relu": functional.relu}


@dataclass(frozen=True)
class EncoderDecoderSettings:
    """The parts of an encoder-decoder.

    `attention`: learned; uniform over the source; or none, the decoder alone. `size` is that of the decoder's
    states and of the encoder's in each direction. `shared`: source and target have one embedding.
    """

    cell: Literal["lstm", "gru"] = "lstm"
    size: int = 256
    embedding: int = 256
    bidirectional: bool = False
    heads: int = 1
    attention: Literal["learned", "uniform", "none"] = "learned"
    activation: Literal["tanh", "relu"] = "tanh"
    shared: bool = True


class EncoderDecoder(nn.Module):
    """logits_t = V act(O [d_t; c_t]), c_t = mean_k C_k Σ_s α_kts h_s, α_kt = softmax_s((W_k d_t)·h_s).

    h are the encoder's states, d the decoder's, which starts from the encoder's last (of both directions, by a
    linear map). Source and target have the same symbols.
    """

    def __init__(self, settings: EncoderDecoderSettings, symbols: int) -> None:
        super().__init__()
        self.settings = settings
        size, width = settings.size, settings.size * (2 if settings.bidirectional else 1)
        cell = CELLS[settings.cell]
        self.source = nn.Embedding(symbols, settings.embedding)
        self.target = None if settings.shared else nn.Embedding(symbols, settings.embedding)
        self.encoder = cell(
            settings.embedding, size, batch_first=True, bidirectional=settings.bidirectional
        )
        self.bridge = nn.Linear(width, size) if settings.bidirectional else nn.Identity()
        self.decoder = cell(settings.embedding, size, batch_first=True)
        self.hidden = nn.Linear(2 * size, size)
        self.output = nn.Linear(size, symbols)
        # Last, so that with another attention all other initial weights are the same.
        learned = settings.attention == "learned"
        self.queries = nn.Linear(size, settings.heads * width, bias=False) if learned else None
        self.contexts = nn.ModuleList(nn.Linear(width, size) for _ in range(settings.heads))

    def forward(
        self, source: Int[Tensor, "B S"], inputs: Int[Tensor, "B T"]
    ) -> tuple[Float[Tensor, "B T V"], Float[Tensor, "B K T S"]]:
        """Return the logits of every target step and the weights; `inputs` are the target, one step later."""
        states, last = self.encode(source)
        decoded, _ = self.decoder((self.target or self.source)(inputs), last)
        weights = self.attend(decoded, states)
        return self.emit(decoded, weights @ states.unsqueeze(1)), weights

    def take_heads(self, heads: Sequence["EncoderDecoder"]) -> None:
        """Give each head the query and context weights of another model's first; the rest stays."""
        assert self.queries is not None
        with torch.no_grad():
            own = self.queries.weight.view(self.settings.heads, -1, self.settings.size)
            for mine, context, other in zip(own, self.contexts, heads, strict=True):
                assert other.queries is not None
                mine.copy_(other.queries.weight[: len(mine)])
                context.load_state_dict(other.contexts[0].state_dict())

    def encode(
        self, source: Int[Tensor, "B S"]
    ) -> tuple[Float[Tensor, "B S D"], Tensor | tuple[Tensor, ...]]:
        """Return the encoder's states and what the decoder starts from."""
        states, last = self.encoder(self.source(source))
        if isinstance(last, tuple):
            return states, tuple(self._bridged(one) for one in last)
        return states, self._bridged(last)

    def _bridged(self, last: Float[Tensor, "D B H"]) -> Float[Tensor, "1 B H"]:
        """Join the directions."""
        joined: Tensor = self.bridge(last.transpose(0, 1).flatten(1)).unsqueeze(0)
        return joined.contiguous()

    def attend(
        self, decoded: Float[Tensor, "B T H"], states: Float[Tensor, "B S D"]
    ) -> Float[Tensor, "B K T S"]:
        """Return the weights of each head and target step over the source."""
        if self.queries is None:
            shape = (len(states), self.settings.heads, decoded.shape[1], states.shape[1])
            return states.new_full((), 1 / states.shape[1]).expand(shape)
        heads = self.queries(decoded).unflatten(-1, (self.settings.heads, -1)).transpose(1, 2)
        scores: Tensor = heads @ states.unsqueeze(1).transpose(-1, -2)
        return scores.softmax(-1)

    def emit(
        self, decoded: Float[Tensor, "B T H"], sums: Float[Tensor, "B K T D"]
    ) -> Float[Tensor, "B T V"]:
        """Return the logits from the weighted sums of states."""
        context = torch.zeros_like(decoded)
        if self.settings.attention != "none":
            each = [one(sums[:, head]) for head, one in enumerate(self.contexts)]
            context = torch.stack(each).mean(0)
        act = ACTIVATIONS[self.settings.activation]
        logits: Tensor = self.output(act(self.hidden(torch.cat([decoded, context], -1))))
        return logits
