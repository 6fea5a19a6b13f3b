"""The columns of a picture: the model's own attention, and interventions on the same text."""

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from heedmap.experiments.methods.adversary_search import most_different_met
from heedmap.experiments.rounding import number
from heedmap.huggingface.attention_hook import Call
from heedmap.huggingface.inputs import SubwordBatch
from heedmap.huggingface.interventions import (
    Activation,
    Chain,
    Imposed,
    Intervention,
    Keys,
    ShuffledKeys,
    Uniform,
)
from heedmap.huggingface.transformer_classifier import TransformerClassifier
from heedmap.settings.audit import AuditSettings


@dataclass(frozen=True)
class ShownIntervention:
    """An intervention with the name of its column in the picture; `note` describes it in a few words."""

    name: str
    note: str
    intervention: Intervention

    def chained(self, recorder: Intervention) -> Intervention:
        """Return the intervention followed by a recorder, which sees its result."""
        return Chain(self.intervention, recorder)


def shown_interventions(
    model: TransformerClassifier, batch: SubwordBatch, seed: int
) -> tuple[list[ShownIntervention], list[str]]:
    """Return the interventions for one text, the model's own attention first, and notes on those left out.

    Random numbers depend on the seed alone: the same text and seed give the same picture.
    """
    generator = torch.Generator().manual_seed(seed)
    keys = model.adapter.kind == "interface"
    columns = [
        ShownIntervention("own", "the model as it is", Intervention()),
        ShownIntervention("uniform", "even weights in every layer", Uniform()),
        ShownIntervention(
            "shuffled keys" if keys else "shuffled weights",
            f"{'keys' if keys else 'each row’s weights'} change places in every layer",
            ShuffledKeys(batch.real, generator, "positions" if keys else "weights"),
        ),
        ShownIntervention("entmax15", "in place of softmax", Activation("entmax15")),
        ShownIntervention("sparsemax", "in place of softmax", Activation("sparsemax")),
    ]
    left_out = []
    if keys:
        columns.append(
            ShownIntervention(
                "random keys",
                "noise with the mean and spread of each layer's keys",
                Keys(partial(_noise, generator)),
            )
        )
    else:
        left_out.append("no column of random keys: this model's keys cannot be reached")
    columns.append(_adversary(model, batch, seed))
    return columns, left_out


def _noise(generator: torch.Generator, call: Call) -> Tensor:
    assert call.key is not None
    noise = torch.randn(call.key.shape, generator=generator).to(call.key)
    spread = call.key.std() if call.key.numel() > 1 else torch.ones_like(call.key.mean())
    return call.key.mean() + spread * noise


def _adversary(model: TransformerClassifier, batch: SubwordBatch, seed: int) -> ShownIntervention:
    """Search for the most different heat map at the same prediction, in the layer on trial."""
    settings = AuditSettings()
    trace = model.trace(batch)
    best = most_different_met(model, trace, settings, [torch.Generator().manual_seed(seed)])
    attention = best.attention.detach().to(model.model.dtype)
    rows = model.read_rows(model.inputs(batch)) if model.one_row else None
    size = attention.shape[2]
    weights = attention if model.one_row else attention.reshape(1, model.heads, -1, size)
    return ShownIntervention(
        "adversarial search",
        f"layer {model.layer} alone, TVD ≤ {settings.epsilon:g}: JSD {number(float(best.jsd[0]))} "
        f"from the model's own, at most {number(float(best.upper[0]))}",
        Imposed(model.calls[model.layer], weights, rows),
    )
