"""Build an encoder and a decoder with attention between them, as Snell et al. (2021).

The decoder reads the target alone, not the contexts before: under teacher forcing its states, the weights and
the outputs of all steps are computed at once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

CELLS = {"lstm": nn.LSTM, "gru": nn.GRU}
State = Tensor | tuple[Tensor, ...]  # of the decoder
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"tanh": torch.tanh, "relu": functional.relu}


@dataclass(frozen=True)
class EncoderDecoderSettings:
    """The parts of an encoder-decoder.

    `attention`: learned; uniform over the source; or none, the decoder alone. `size` is that of the decoder's
    states and of the encoder's in each direction. `shared`: source and target have one embedding. `dropout` is
    applied to embeddings, between layers, and before the output.
    """

    cell: Literal["lstm", "gru"] = "lstm"
    size: int = 256
    embedding: int = 256
    bidirectional: bool = False
    heads: int = 1
    attention: Literal["learned", "uniform", "none"] = "learned"
    activation: Literal["tanh", "relu"] = "tanh"
    shared: bool = True
    layers: int = 1
    dropout: float = 0.0


class EncoderDecoder(nn.Module):
    """logits_t = V act(O [d_t; c_t]), c_t = mean_k C_k Σ_s α_kts h_s, α_kt = softmax_s((W_k d_t)·h_s).

    h are the encoder's states, d the decoder's, which starts from the encoder's last (of both directions, by a
    linear map). Source and target have the same symbols. Sources of a batch may be padded: then `lengths` are
    those without padding, which gets no weight.
    """

    def __init__(self, settings: EncoderDecoderSettings, symbols: int) -> None:
        super().__init__()
        self.settings = settings
        size, width = settings.size, settings.size * (2 if settings.bidirectional else 1)
        cell = CELLS[settings.cell]
        self.source = nn.Embedding(symbols, settings.embedding)
        self.target = None if settings.shared else nn.Embedding(symbols, settings.embedding)
        several: dict[str, Any] = {
            "batch_first": True,
            "num_layers": settings.layers,
            "dropout": settings.dropout if settings.layers > 1 else 0.0,
        }
        self.encoder = cell(
            settings.embedding, size, bidirectional=settings.bidirectional, **several
        )
        self.bridge = nn.Linear(width, size) if settings.bidirectional else nn.Identity()
        self.decoder = cell(settings.embedding, size, **several)
        self.hidden = nn.Linear(2 * size, size)
        self.output = nn.Linear(size, symbols)
        # Last, so that with another attention all other initial weights are the same.
        learned = settings.attention == "learned"
        self.queries = nn.Linear(size, settings.heads * width, bias=False) if learned else None
        self.contexts = nn.ModuleList(nn.Linear(width, size) for _ in range(settings.heads))
        self.dropout = nn.Dropout(settings.dropout)

    def forward(
        self,
        source: Int[Tensor, "B S"],
        inputs: Int[Tensor, "B T"],
        lengths: Int[Tensor, " B"] | None = None,
    ) -> tuple[Float[Tensor, "B T V"], Float[Tensor, "B K T S"]]:
        """Return the logits of every target step and the weights; `inputs` are the target, one step later."""
        states, final_state = self.encode(self.source(source), lengths)
        decoded, _ = self.decode(inputs, final_state)
        weights = self.attend(decoded, states, lengths)
        return self.emit(decoded, weights @ states.unsqueeze(1)), weights

    def take_heads(self, heads: Sequence["EncoderDecoder"]) -> None:
        """Give each head the query and context weights of another model's first; the rest stays."""
        assert self.queries is not None
        with torch.no_grad():
            query_weights = self.queries.weight.view(self.settings.heads, -1, self.settings.size)
            for query_weight, context, source_model in zip(
                query_weights, self.contexts, heads, strict=True
            ):
                assert source_model.queries is not None
                query_weight.copy_(source_model.queries.weight[: len(query_weight)])
                context.load_state_dict(source_model.contexts[0].state_dict())

    def encode(
        self, embedded: Float[Tensor, "B S E"], lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[Float[Tensor, "B S D"], State]:
        """Return the encoder's states, 0 at padding, and what the decoder starts from."""
        embedded = self.dropout(embedded)
        if lengths is None:
            states, final = self.encoder(embedded)
        else:
            packed = pack_padded_sequence(
                embedded, lengths.cpu(), batch_first=True, enforce_sorted=False
            )
            packed_states, final = self.encoder(packed)
            states, _ = pad_packed_sequence(
                packed_states, batch_first=True, total_length=embedded.shape[1]
            )
        if isinstance(final, tuple):
            return states, tuple(self._bridged(part) for part in final)
        return states, self._bridged(final)

    def _bridged(self, final: Float[Tensor, "L B H"]) -> Float[Tensor, "_ B H"]:
        """Join the directions of each layer."""
        by_layer = final.view(self.settings.layers, -1, *final.shape[1:])
        joined: Tensor = self.bridge(by_layer.transpose(1, 2).flatten(2))
        return joined.contiguous()

    def decode(
        self, inputs: Int[Tensor, "B T"], state: State
    ) -> tuple[Float[Tensor, "B T H"], State]:
        """Return the decoder's states after each of some inputs, and its state after the last."""
        decoded, state = self.decoder(self.dropout((self.target or self.source)(inputs)), state)
        return decoded, state

    def attend(
        self,
        decoded: Float[Tensor, "B T H"],
        states: Float[Tensor, "B S D"],
        lengths: Int[Tensor, " B"] | None = None,
    ) -> Float[Tensor, "B K T S"]:
        """Return the weights of each head and target step over the source; 0 at padding."""
        size = states.shape[1]
        if self.queries is None:
            shape = (len(states), self.settings.heads, decoded.shape[1], size)
            if lengths is None:
                return states.new_full((), 1 / size).expand(shape)
            even = self.real(lengths, size) / lengths[:, None].to(states.dtype)
            return even[:, None, None].expand(shape)
        heads = self.queries(decoded).unflatten(-1, (self.settings.heads, -1)).transpose(1, 2)
        scores: Tensor = heads @ states.unsqueeze(1).transpose(-1, -2)
        if lengths is not None:
            scores = scores.masked_fill(~self.real(lengths, size)[:, None, None], -torch.inf)
        return scores.softmax(-1)

    @staticmethod
    def real(lengths: Int[Tensor, " B"], size: int) -> Bool[Tensor, "B S"]:
        """Return which of `size` positions are not padding."""
        return torch.arange(size, device=lengths.device) < lengths[:, None]

    def emit(
        self, decoded: Float[Tensor, "B T H"], sums: Float[Tensor, "B K T D"]
    ) -> Float[Tensor, "B T V"]:
        """Return the logits from the heads' weighted sums of states."""
        context = torch.zeros_like(decoded)
        if self.settings.attention != "none":
            head_contexts = [project(sums[:, head]) for head, project in enumerate(self.contexts)]
            context = torch.stack(head_contexts).mean(0)
        act = ACTIVATIONS[self.settings.activation]
        logits: Tensor = self.output(
            self.dropout(act(self.hidden(torch.cat([decoded, context], -1))))
        )
        return logits
