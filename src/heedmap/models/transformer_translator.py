"""Build a Transformer that translates, with cross-attention in every decoder layer (Vaswani et al. 2017)."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional


class CrossCall(NamedTuple):
    """One call of a decoder layer's cross-attention: what it reads, and the weights that it would use."""

    layer: int
    inputs: Float[Tensor, "B T D"]
    states: Float[Tensor, "B S D"]
    real: Bool[Tensor, "B S"]
    queries: Float[Tensor, "B H T E"]
    weights: Float[Tensor, "B H T S"]


Hook = Callable[[CrossCall], Float[Tensor, "B H T S"]]
"""Reads the cross-attention of a layer and returns the weights that it is to use."""

Encoded = tuple[Float[Tensor, "B S D"], Bool[Tensor, "B S"]]
"""The encoder's states of sources, and which of them are no padding."""


@dataclass(frozen=True)
class TranslatorSettings:
    """The sizes of a Transformer translator; `layers` of the encoder and as many of the decoder."""

    size: int = 512
    heads: int = 8
    layers: int = 6
    feed_forward: int = 2048
    dropout: float = 0.1


class CrossAttention(nn.Module):
    """softmax_s(q_t·k_s / √E) per head, then a hook, then the weighted sum of the values.

    The weights are not dropped in training. It is `nn.MultiheadAttention` but for the hook.
    """

    def __init__(self, size: int, heads: int, layer: int) -> None:
        super().__init__()
        self.heads, self.layer = heads, layer
        self.query, self.key = nn.Linear(size, size), nn.Linear(size, size)
        self.value, self.output = nn.Linear(size, size), nn.Linear(size, size)

    def forward(
        self,
        inputs: Float[Tensor, "B T D"],
        states: Float[Tensor, "B S D"],
        real: Bool[Tensor, "B S"],
        hook: Hook | None,
    ) -> Float[Tensor, "B T D"]:
        """Return what the decoder's states read of the encoder's."""
        queries, keys, values = (
            split_heads(projected, self.heads)
            for projected in (self.query(inputs), self.key(states), self.value(states))
        )
        weights = head_scores(queries, keys, real).softmax(-1)
        if hook is not None:
            weights = hook(CrossCall(self.layer, inputs, states, real, queries, weights))
        output: Tensor = self.output((weights @ values).transpose(1, 2).flatten(2))
        return output


def split_heads(projected: Float[Tensor, "B T D"], heads: int) -> Float[Tensor, "B H T E"]:
    """Return the part of each head."""
    return projected.view(*projected.shape[:2], heads, -1).transpose(1, 2)


def head_scores(
    queries: Float[Tensor, "B H T E"], keys: Float[Tensor, "B H S E"], real: Bool[Tensor, "B S"]
) -> Float[Tensor, "B H T S"]:
    """Return q·k / √E; −∞ at padding."""
    scores = queries @ keys.transpose(-1, -2) / math.sqrt(queries.shape[-1])
    return scores.masked_fill(~real[:, None, None], -torch.inf)


class DecoderLayer(nn.Module):
    """Self-attention on the target so far, cross-attention, two linear maps; a layer norm after each."""

    def __init__(self, settings: TranslatorSettings, layer: int) -> None:
        super().__init__()
        size = settings.size
        self.self_attention = nn.MultiheadAttention(size, settings.heads, batch_first=True)
        self.cross_attention = CrossAttention(size, settings.heads, layer)
        self.feed_forward = nn.Sequential(
            nn.Linear(size, settings.feed_forward),
            nn.ReLU(),
            nn.Linear(settings.feed_forward, size),
        )
        self.norms = nn.ModuleList(nn.LayerNorm(size) for _ in range(3))
        self.dropout = nn.Dropout(settings.dropout)

    def forward(
        self,
        hidden: Float[Tensor, "B T D"],
        states: Float[Tensor, "B S D"],
        real: Bool[Tensor, "B S"],
        future: Bool[Tensor, "T T"],
        hook: Hook | None,
    ) -> Float[Tensor, "B T D"]:
        """Return the states of the next layer."""
        target_context, _ = self.self_attention(
            hidden, hidden, hidden, attn_mask=future, need_weights=False
        )
        hidden = self.norms[0](hidden + self.dropout(target_context))
        context = self.cross_attention(hidden, states, real, hook)
        hidden = self.norms[1](hidden + self.dropout(context))
        output: Tensor = self.norms[2](hidden + self.dropout(self.feed_forward(hidden)))
        return output


class TransformerTranslator(nn.Module):
    """An encoder and a decoder of Transformer layers, layer norm last, sinusoidal positions.

    Source, target and output have one embedding. A `Hook` given to a call sees the weights of every
    cross-attention and may replace them.
    """

    def __init__(self, settings: TranslatorSettings, symbols: int) -> None:
        super().__init__()
        self.settings = settings
        size = settings.size
        self.embedding = nn.Embedding(symbols, size)
        nn.init.normal_(self.embedding.weight, std=size**-0.5)
        encoder_layer = nn.TransformerEncoderLayer(
            size, settings.heads, settings.feed_forward, settings.dropout, batch_first=True
        )
        self.encoder = nn.TransformerEncoder(
            encoder_layer, settings.layers, enable_nested_tensor=False
        )
        for layer in self.encoder.layers:  # else all start from one draw
            for parameter in layer.parameters():
                if parameter.ndim > 1:
                    nn.init.xavier_uniform_(parameter)
        self.decoder = nn.ModuleList(
            DecoderLayer(settings, layer) for layer in range(settings.layers)
        )
        self.dropout = nn.Dropout(settings.dropout)

    def forward(
        self,
        source: Int[Tensor, "B S"],
        inputs: Int[Tensor, "B T"],
        lengths: Int[Tensor, " B"] | None = None,
        hook: Hook | None = None,
        encoded: Encoded | None = None,
    ) -> Float[Tensor, "B T V"]:
        """Return the logits of every target step; `inputs` are the target, one step later.

        With `encoded`, what `encode` gives of the source, the source is not read again.
        """
        states, real = self.encode(source, lengths) if encoded is None else encoded
        return self.decode(inputs, states, real, hook)

    def encode(
        self, source: Int[Tensor, "B S"], lengths: Int[Tensor, " B"] | None = None
    ) -> Encoded:
        """Return the encoder's states, and which of them are no padding."""
        place = torch.arange(source.shape[1], device=source.device)
        real = torch.ones_like(source, dtype=torch.bool)
        if lengths is not None:
            real = place < lengths[:, None]
        states = self.encoder(self._embed(source), src_key_padding_mask=~real)
        return states, real

    def decode(
        self,
        inputs: Int[Tensor, "B T"],
        states: Float[Tensor, "B S D"],
        real: Bool[Tensor, "B S"],
        hook: Hook | None = None,
    ) -> Float[Tensor, "B T V"]:
        """Return the logits of every step of a target, from the encoder's states."""
        steps = inputs.shape[1]
        future = torch.ones(steps, steps, dtype=torch.bool, device=inputs.device).triu(1)
        hidden = self._embed(inputs)
        for layer in self.decoder:
            hidden = layer(hidden, states, real, future, hook)
        return functional.linear(hidden, self.embedding.weight)

    def _embed(self, symbols: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        size = self.settings.size
        embedded = self.embedding(symbols) * math.sqrt(size)
        embedded = embedded + sinusoids(symbols.shape[1], size).to(embedded)
        dropped: Tensor = self.dropout(embedded)
        return dropped


def sinusoids(steps: int, size: int) -> Float[Tensor, "T D"]:
    """Return sin(t / 10000^(2i/D)) and, in the other half, the cosines: a position's fixed vector."""
    rates = torch.exp(torch.arange(0, size, 2) * (-math.log(10_000.0) / size))
    angles = torch.arange(steps)[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], 1)[:, :size]
