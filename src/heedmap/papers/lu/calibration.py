"""Attention calibration: mask networks, what they perturb, the calibrated weights, and their fusion.

Per decoder layer and head, with a the cross-attention's weights over S source positions:

    m = σ(Q̃ K̃ᵀ / √E)                       the mask network's, with projections of its own
    a_p = m a + (1 − m) mean_s(a)            perturbed
    a_c = a exp(1 − m)                       calibrated
    a + .1 a_c,  γ a + (1 − γ) a_c,  g a + (1 − g) a_c     fused: fixed, annealed, gated
    g = σ(w·q / √E + b)                      one w and b per layer for the queries q of all heads

From the authors' released code, as are the two losses (`training`). Ours differs:

* The mean of a is over the real source positions; theirs counts padding, and gives it the mean too.
* γ falls to e^(−1.5), their γ at inference, at the last step of any training; theirs is exp(−steps / 10⁵),
  which is the same for their 150,000 steps.
"""

import math
from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedmap.models.transformer_translator import (
    CrossCall,
    Hook,
    TransformerTranslator,
    TranslatorSettings,
    head_scores,
    split_heads,
)

Fusion = Literal["none", "fixed", "annealed", "gated"]
SHARE = 0.1  # of the calibrated weights in the fixed fusion
DECAY = 1.5  # γ = exp(−DECAY) at the end of a training
Weights = Float[Tensor, "B H T S"]


def perturbed(weights: Weights, masks: Weights, real: Bool[Tensor, "B S"]) -> Weights:
    """Return m a + (1 − m) mean_s(a), the mean over real positions; 0 at padding."""
    place = real[:, None, None]
    mean = (weights * place).sum(-1, keepdim=True) / place.sum(-1, keepdim=True)
    return (masks * weights + (1 - masks) * mean) * place


def calibrated(
    weights: Float[Tensor, "*batch S"], masks: Float[Tensor, "*batch S"]
) -> Float[Tensor, "*batch S"]:
    """Return a exp(1 − m), whose rows sum to more than 1; at padding, where a is 0, it is 0."""
    return weights * torch.exp(1 - masks)


def normalised(weights: Float[Tensor, "*batch S"]) -> Float[Tensor, "*batch S"]:
    """Return weights whose rows sum to 1."""
    return weights / weights.sum(-1, keepdim=True)


class Calibration(nn.Module):
    """The mask networks of all layers, and how their weights are fused with the model's own.

    `progress`, from 0 to 1, is how much of the training is done; it is read in training alone.
    With `renormalise`, fused rows sum to 1. The released code leaves them larger.
    """

    def __init__(
        self, settings: TranslatorSettings, fusion: Fusion, *, renormalise: bool = False
    ) -> None:
        super().__init__()
        size, layers = settings.size, range(settings.layers)
        self.fusion, self.renormalise, self.heads = fusion, renormalise, settings.heads
        self.progress = 0.0
        self.queries = nn.ModuleList(nn.Linear(size, size) for _ in layers)
        self.keys = nn.ModuleList(nn.Linear(size, size) for _ in layers)
        self.gates = nn.ModuleList(
            nn.Linear(size // settings.heads, 1) for _ in layers if fusion == "gated"
        )

    def masks(self, call: CrossCall) -> Weights:
        """Return m of one layer, 0 at padding."""
        queries = split_heads(self.queries[call.layer](call.inputs), self.heads)
        keys = split_heads(self.keys[call.layer](call.states), self.heads)
        return head_scores(queries, keys, call.real).sigmoid()

    def fused(self, call: CrossCall, masks: Weights) -> Weights:
        """Return the weights that the layer uses."""
        weights, raised = call.weights, calibrated(call.weights, masks)
        if self.fusion == "fixed":
            mixed = weights + SHARE * raised
        else:
            share = self._share(call)
            mixed = share * weights + (1 - share) * raised
        return normalised(mixed) if self.renormalise else mixed

    def _share(self, call: CrossCall) -> Tensor | float:
        """Return the share of the model's own weights."""
        if self.fusion == "annealed":
            return math.exp(-DECAY * (self.progress if self.training else 1.0))
        gate: Tensor = self.gates[call.layer](call.queries / math.sqrt(call.queries.shape[-1]))
        return gate.sigmoid()


class CalibratedTranslator(nn.Module):
    """A translator and its calibration; without one (`none`) it is the translator alone."""

    def __init__(
        self,
        settings: TranslatorSettings,
        symbols: int,
        fusion: Fusion = "none",
        *,
        renormalise: bool = False,
    ) -> None:
        super().__init__()
        self.translator = TransformerTranslator(settings, symbols)
        # Last, so that every fusion starts from the same translator.
        self.calibration = (
            None if fusion == "none" else Calibration(settings, fusion, renormalise=renormalise)
        )

    def hook(self, call: CrossCall) -> Weights:
        """Return the fused weights of a layer, or its own without a calibration."""
        if self.calibration is None:
            return call.weights
        return self.calibration.fused(call, self.calibration.masks(call))

    def forward(
        self,
        source: Int[Tensor, "B S"],
        inputs: Int[Tensor, "B T"],
        lengths: Int[Tensor, " B"] | None = None,
        hooks: Sequence[Hook] | None = None,
    ) -> list[Float[Tensor, "B T V"]]:
        """Return the logits of every target step under the fused weights, or under each of some hooks'.

        All passes read the same encoder states.
        """
        encoded = self.translator.encode(source, lengths)
        return [
            self.translator(source, inputs, lengths, hook, encoded) for hook in hooks or [self.hook]
        ]
